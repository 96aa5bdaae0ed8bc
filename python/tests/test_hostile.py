"""Hostile callers: every wrong value becomes an exception that says what is wrong."""
# mypy: disable-error-code="arg-type, list-item"

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import bulkhead
import pytest
from bulkhead import LIMIT, LevelTask, Mc2Processor, Mc2System, Task, TaskError
from bulkhead import analysis as a


@pytest.mark.parametrize(
    ("make", "exception", "text"),
    [
        (lambda: Task(-1, 2), TaskError, "task 0: cost must not be negative"),
        (lambda: Task(0, 2), TaskError, "task 0: cost must be positive"),
        (lambda: Task(1, LIMIT + 1), TaskError, f"task 0: period is above {LIMIT}"),
        (lambda: Task(1, 10**400), TaskError, "task 0: period is above"),
        (lambda: Task(1.5, 2), TypeError, "task 0: cost must be an integer, not float"),
        (lambda: Task(float("nan"), 2), TypeError, "not float"),
        (lambda: Task(True, 2), TypeError, "not bool"),
        (lambda: Task("1", 2), TypeError, "not str"),
        (lambda: Task(1, None), TypeError, "not NoneType"),
        (lambda: a.edf_schedulable("abc"), TypeError, "task 0 is no Task but str"),
        (lambda: a.edf_schedulable(5), TypeError, "not iterable"),
        (lambda: a.edf_schedulable([Task(1, 2), object()]), TypeError, "task 1 is no Task but object"),
        (lambda: a.edf_schedulable([Task(1, 2, blocking=1)]), TaskError, "does not cover blocking"),
        (lambda: a.global_edf_schedulable([Task(1, 2)], 0), TaskError, "number of processors"),
        (lambda: a.global_edf_schedulable([Task(1, 2)], -1), TaskError, "must not be negative"),
        (lambda: a.global_edf_schedulable([Task(1, 2)], 10**30), TaskError, "is above"),
        (lambda: a.global_edf_schedulable([Task(1, 2)], 1, "best"), ValueError, "unknown test 'best'"),
        (lambda: a.partition([Task(1, 2)], 1 << 40), TaskError, "is above"),
        (lambda: a.tardiness_bounds([Task(1, 2)], [a.Supply(2)]), TaskError, "from 0 to 1"),
        (lambda: a.tardiness_bounds([Task(1, 2)], [a.Supply(0.5)]), TypeError, "Fraction or an integer"),
        (lambda: a.tardiness_bounds([Task(1, 2)], []), TaskError, "number of processors"),
        (lambda: a.threshold_response_times([Task(1, 2)], []), TaskError, "threshold"),
        (lambda: a.threshold_response_times([Task(1, 2)], [10**20]), TaskError, "thresholds.0. is above"),
        (lambda: a.simulate([Task(1, 1)], 1 << 50), TaskError, "shorten the horizon"),
        (lambda: a.simulate([Task(1, 1, jitter=LIMIT)], 9), TaskError, "shorten the horizon"),
        (lambda: a.simulate([Task(1, 1)], 9, policy="threshold"), TaskError, "one threshold for each task"),
        (lambda: a.memory_mutex_wait([(1, 0)], 0), TaskError, "distance must be positive"),
        (lambda: a.memory_mutex_wait([(1, 2, 3)], 0), TaskError, "two numbers"),
        (lambda: a.memory_mutex_wait([(1, 2)], 7), TaskError, "does not exist"),
        (lambda: a.memguard_stall(1, budget=0, period=1, access=1), TaskError, "budget must be positive"),
        (lambda: a.memory_time(a.Tdma([10], [0]), 0, unload=1, load=1), TaskError, "no slot"),
        (lambda: a.check_table(bulkhead.Table(0, ()), [Task(1, 2)]), bulkhead.TableError, "task 0"),
        (lambda: a.mc2_table(Mc2System([Mc2Processor()]), 3), bulkhead.TableError, "does not exist"),
        (lambda: a.mc2(Mc2System([Mc2Processor(a=[LevelTask(5, (1, 2))])])), TaskError, "three costs"),
        (lambda: a.mc2(Mc2System([Mc2Processor(a=[LevelTask(0, (1, 1, 1))])])), TaskError, "period must be positive"),
        (lambda: a.mc2(Mc2System([Mc2Processor(interrupts=[(0, 1)])])), TaskError, "interrupt's distance"),
        (
            lambda: a.preemption_delay_response_times([bulkhead.CacheTask(1, 2, useful=frozenset({1 << 60}))], 1),
            TaskError,
            "useful is above",
        ),
        (
            lambda: a.one_shot_flow_bounds([bulkhead.PlacedTask(1, 2)], [bulkhead.Flow([0, 9], [0])]),
            TaskError,
            "task that does not exist",
        ),
    ],
)  # fmt: skip
def test_hostile_values(make: Callable[[], Any], exception: type[Exception], text: str) -> None:
    with pytest.raises(exception, match=text):
        make()


def test_endless_input_ends() -> None:
    def endless() -> Any:
        while True:
            yield Task(1, 2)

    with pytest.raises(TaskError, match="more than 100000"):
        bulkhead._native.check_tasks(endless())


def test_hostile_numbers_never_panic() -> None:
    rng = random.Random(7)
    values = [1, 2, 3, LIMIT - 1, LIMIT, 10**6, 10**12]
    functions: list[Callable[[list[Task]], Any]] = [
        a.fixed_priority_schedulable,
        a.edf_schedulable,
        a.harmonic_schedulable,
        a.fixed_priority_response_times,
        lambda t: a.global_edf_schedulable(t, 2),
        lambda t: a.global_fixed_priority_schedulable(t, 2),
        lambda t: a.tardiness_bounds(t, 3),
        lambda t: a.mc2(Mc2System([Mc2Processor(b=[LevelTask(x.period, (x.cost,) * 3) for x in t])])),
    ]
    for _ in range(200):
        system = [
            Task(rng.choice(values), rng.choice(values), rng.choice(values), jitter=rng.choice([0, *values]))
            for _ in range(rng.randint(1, 4))
        ]
        for function in functions:
            with contextlib.suppress(TaskError):
                function(system)
