"""Analyses against worked examples of the literature, a simulator, and the manners of its values."""

from __future__ import annotations

import copy
import pickle
import random
import threading
import time
from fractions import Fraction

import bulkhead
import pytest
from bulkhead import LevelTask, Mc2Processor, Mc2System, Task, TaskError
from bulkhead import analysis as a


def tasks(*parameters: tuple[int, ...]) -> list[Task]:
    return [Task(*each) for each in parameters]


def test_fixed_priority_worked_example() -> None:
    # Joseph and Pandya's method on the example of two copies that do not fit: shared oracle.
    example = tasks((1, 4), (1, 5), (3, 9), (3, 18))
    assert a.fixed_priority_response_times(example) == [1, 2, 7, 18]
    assert a.fixed_priority_schedulable(example)
    # Audsley et al. 1993, first rows of the case study: cost, period, deadline, jitter, blocking.
    study = tasks((51, 1000), (3000, 2000000, 5000, 0, 300), (2000, 25000, 25000, 0, 600), (5000, 25000, 25000, 0, 900))
    assert a.fixed_priority_response_times(study) == [51, 3504, 5906, 11512]


def test_global_fixed_priority_worked_example() -> None:
    # Guan, Stigge, Yi, Yu, RTSS 2009.
    example = tasks((1, 4), (1, 5), (3, 9), (9, 18))
    assert a.global_fixed_priority_response_times(example, 2) == [1, 1, 4, 15]
    assert a.global_fixed_priority_schedulable(example, 2)


def test_edf_worked_example() -> None:
    # Zhang and Burns, QPA, 2009.
    example = tasks(
        (6000, 31000, 18000), (2000, 9800, 9000), (1000, 17000, 12000), (90, 4200, 3000),
        (8, 96, 78), (2, 12, 16), (10, 280, 120), (26, 660, 160),
    )  # fmt: skip
    assert a.edf_schedulable(example)
    assert not a.edf_schedulable([*example, Task(10, 100, 15)])


def test_tardiness_worked_example() -> None:
    # Devi and Anderson, 2008: bounded on two processors, not on one.
    example = tasks((80, 100), (33, 66), (7, 10))
    assert a.tardiness_bounds(example, 2) is not None
    assert a.tardiness_bounds(example, 1) is None
    full = [a.Supply(), a.Supply()]
    assert a.tardiness_bounds(example, full) == a.tardiness_bounds(example, 2)
    assert a.tardiness_bounds(tasks((1, 10)), [a.Supply(Fraction(1, 2), 3)]) == [13]


def test_global_edf_by_hand() -> None:
    # Two tasks of 1/2 and one of 1/3 on two processors: 4/3 <= 2 - 1/2.
    assert a.global_edf_schedulable(tasks((1, 2), (1, 2), (1, 3)), 2, "gfb")
    # m heavy and one light task: none of the sufficient tests takes it.
    assert not a.global_edf_schedulable(tasks((1, 10), (1, 10), (10, 10)), 2)


def test_utilisation_is_exact() -> None:
    assert bulkhead.utilisation(tasks((1, 3), (1, 7), (11, 21))) == 1
    assert Task(1, 3).utilisation == Fraction(1, 3)
    assert a.harmonic_schedulable(tasks((1, 2), (1, 4), (2, 8)))


def test_table_by_hand() -> None:
    two = tasks((1, 2), (2, 4))
    table = a.build_table(two)
    assert table.length == 4
    assert a.check_table(table, two) == [1, 4]
    with pytest.raises(bulkhead.TableError, match="cannot be done"):
        a.build_table(tasks((2, 2), (1, 4)))
    with pytest.raises(bulkhead.TableError):
        a.check_table(bulkhead.Table(4, ()), two)
    assert 2 in a.frame_lengths(tasks((1, 4), (1, 8)))


def test_mc2_levels() -> None:
    system = Mc2System(
        [
            Mc2Processor(a=[LevelTask(10, (4, 2, 1))], b=[LevelTask(20, (0, 6, 3))], interrupts=[(100, 1)]),
            Mc2Processor(),
        ],
        c=[LevelTask(30, (0, 0, 10))],
    )
    found = a.mc2(system)
    assert found.schedulable
    assert found.a == (True, True)
    assert found.b[1] == ()
    assert found.c is not None
    assert a.mc2_table(system, 0).length == 10
    full = Mc2System([Mc2Processor(a=[LevelTask(10, (11, 2, 1))])])
    assert a.mc2(full).a == (False,)


def test_three_phase_equation_1() -> None:
    # mpsoc-ecrts19, Equation 1: k slots take k rounds and a slot.
    tdma = a.Tdma([10, 10, 10], [8, 8, 8])
    assert a.memory_time(tdma, 0, unload=8, load=16) == 3 * 30 + 10
    phased = [bulkhead.PhasedTask(50, 1000, load=8, unload=8)]
    assert a.three_phase_response_times(phased, tdma, 0) != [None]


def test_memory_by_hand() -> None:
    assert a.memguard_stall(10, budget=4, period=20, access=2) == 36
    cores = [(3, 10), (4, 50), (6, 60)]
    assert a.memory_mutex_wait(cores, 1) == 9
    assert a.memory_mutex_wait(cores, 1, "priority") == 8


def test_one_shot_flow() -> None:
    placed = [bulkhead.PlacedTask(2, 10, core=0), bulkhead.PlacedTask(3, 5, core=1)]
    assert a.one_shot_response_times(placed) == [2, 3]
    bound = a.one_shot_flow_bounds(placed, [bulkhead.Flow([0, 1], [1])])[0]
    assert bound is not None
    # Response, transfer, a period of polling, response.
    assert bound.latency == 2 + 1 + 5 + 3


def test_preemption_delay_adds_reloads() -> None:
    high = bulkhead.CacheTask(1, 10, evicting=frozenset({1, 2}))
    low = bulkhead.CacheTask(5, 50, evicting=frozenset({1, 2, 3}), useful=frozenset({1, 3}))
    # Only set 1 is both useful below and evicted above: one reload of 2.
    assert a.preemption_delay_response_times([high, low], 2) == [1, 8]
    assert a.preemption_delay_response_times([high, low], 0) == a.fixed_priority_response_times([high, low])


def test_partitioning() -> None:
    placed = a.partition(tasks((6, 10), (6, 10), (4, 10)), 2)
    assert placed.failed is None
    assert placed.processors[0] != placed.processors[1]
    assert a.partition(tasks((6, 10), (6, 10), (6, 10)), 2).failed == 2


def test_no_simulation_is_later_than_its_bound() -> None:
    rng = random.Random(20261121)
    for _ in range(300):
        system = [Task(rng.randint(1, 4), rng.choice([5, 8, 10, 20]), jitter=rng.randint(0, 2)) for _ in range(4)]
        seed = rng.randint(0, 1 << 40)
        for policy, bounds in (
            ("fixed-priority", a.fixed_priority_response_times(system)),
            ("non-preemptive", a.non_preemptive_response_times(system)),
            ("edf", a.edf_response_times(system)),
        ):
            seen = a.simulate(system, 200, policy=policy, seed=seed)  # type: ignore[arg-type]
            for bound, response in zip(bounds, seen.responses, strict=True):
                assert bound is None or response <= bound
    # Without jitter fixed priorities are exact: the synchronous release shows the bound.
    example = tasks((1, 4), (1, 5), (3, 9), (3, 18))
    assert a.simulate(example, 180).responses == (1, 2, 7, 18)
    assert a.threshold_response_times(example, [0, 1, 2, 3]) == [1, 2, 7, 18]


def test_empty_systems() -> None:
    assert a.fixed_priority_response_times([]) == []
    assert a.edf_schedulable([])
    assert a.tardiness_bounds([], 1) == []
    assert a.build_table([]).slots == ()
    assert bulkhead.utilisation([]) == 0
    with pytest.raises(TaskError, match="number of processors"):
        a.mc2(Mc2System([]))


def test_values_survive_copies() -> None:
    task = Task(1, 5, jitter=2, id=3)
    assert pickle.loads(pickle.dumps(task)) == task
    assert copy.deepcopy(task) == task
    assert hash(task) == hash(Task(1, 5, 5, jitter=2, id=3))
    with pytest.raises(AttributeError):
        task.cost = 2  # type: ignore[misc]


def test_integers_of_other_kinds() -> None:
    numpy = pytest.importorskip("numpy")
    assert a.fixed_priority_response_times([Task(numpy.int64(1), numpy.uint32(4))]) == [1]
    with pytest.raises(TypeError, match="not float64"):
        Task(numpy.float64(1), 4)


def test_other_threads_run_meanwhile() -> None:
    done = threading.Event()
    turns = 0

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        # One call of many milliseconds: under overload nearly all jobs wait. If it kept the interpreter, the other
        # thread would have no turn in it.
        before = turns
        a.simulate([Task(2, 10) for _ in range(9)], 11_000)
        during = turns - before
    finally:
        done.set()
        counter.join()
    assert during >= 3
