"""Schedulability tests and bounds.

Each function is a thin layer over one test of Bulkhead's library. The library's page names the source of each method and its
assumptions (``docs/reference/schedulability.md``). Unless a function says otherwise, tasks are sporadic, do not
suspend themselves, share only processors, and are listed by decreasing priority. Times are integers, verdicts are
decided in exact arithmetic, and other Python threads can run meanwhile. A parameter that is out of range, or that a
test does not cover, raises :class:`bulkhead.TaskError`.

A response time of None means that there is no bound (or none within the deadline, where the function says so).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from . import _native
from .tasks import (
    CacheTask,
    Flow,
    Mc2Guarantees,
    Mc2System,
    PhasedTask,
    PlacedTask,
    Slot,
    Table,
    Task,
)

ResponseTimes = list[int | None]
"""One response time for each task; None without a bound."""


def _choose(name: str, value: str, choices: Sequence[str]) -> int:
    """Position of ``value`` among ``choices``."""
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; use one of {', '.join(choices)}")
    return choices.index(value)


# One processor.


def fixed_priority_response_times(tasks: Iterable[Task]) -> ResponseTimes:
    """Exact longest response times under preemptive fixed priorities, with jitter, blocking and arbitrary deadlines."""
    return _native.fixed_priority_response_times(list(tasks))


def fixed_priority_schedulable(tasks: Iterable[Task]) -> bool:
    """Whether every job meets its deadline under preemptive fixed priorities; faster than the response times."""
    return _native.fixed_priority_schedulable(list(tasks))


def threshold_response_times(tasks: Iterable[Task], thresholds: Iterable[int]) -> ResponseTimes:
    """Longest response times with preemption thresholds.

    A job that has started is preempted only by tasks with an index below its threshold; a threshold equal to the task's
    own index means fully preemptive.
    """
    return _native.threshold_response_times(list(tasks), list(thresholds))


def non_preemptive_response_times(tasks: Iterable[Task]) -> ResponseTimes:
    """Longest response times if no job is ever preempted."""
    return _native.non_preemptive_response_times(list(tasks))


def edf_schedulable(tasks: Iterable[Task]) -> bool:
    """Whether every job meets its deadline under preemptive earliest deadline first (exact, by QPA)."""
    return _native.edf_schedulable(list(tasks))


def edf_response_times(tasks: Iterable[Task]) -> ResponseTimes:
    """Longest response times under preemptive earliest deadline first (Spuri); exact without jitter."""
    return _native.edf_response_times(list(tasks))


def harmonic_schedulable(tasks: Iterable[Task]) -> bool:
    """Rate-monotonic priorities by harmonic periods: exact for harmonic periods, else sufficient."""
    return _native.harmonic_schedulable(list(tasks))


def preemption_delay_response_times(
    tasks: Iterable[CacheTask],
    reload: int,
    approach: Literal["both", "ecb-union", "ucb-union"] = "both",
) -> ResponseTimes:
    """Response times with cache-related preemption delay; ``reload`` is the time to load one block.

    None: beyond the deadline, or unbounded. ``both`` returns the smaller response of both approaches.
    """
    chosen = _choose("approach", approach, ("both", "ecb-union", "ucb-union"))
    return _native.preemption_delay_response_times(list(tasks), reload, chosen)


def build_table(tasks: Iterable[Task]) -> Table:
    """A time-triggered table, all tasks first released at 0.

    Raises :class:`bulkhead.TableError` if no table exists.
    """
    length, slots = _native.table_build(list(tasks))
    return Table(length, tuple(Slot(*slot) for slot in slots))


def check_table(table: Table, tasks: Iterable[Task]) -> list[int]:
    """Longest response times under ``table``.

    Raises :class:`bulkhead.TableError` if a job does not get its cost in time; the message names the first such job.
    """
    return _native.table_check(table.length, table._plain(), list(tasks))


def frame_lengths(tasks: Iterable[Task]) -> list[int]:
    """Possible lengths of frames for a table in which each job is within one frame."""
    return _native.frame_lengths(list(tasks))


# Several processors.


def global_edf_schedulable(
    tasks: Iterable[Task],
    processors: int,
    test: Literal["any", "gfb", "bak", "bcl"] = "any",
) -> bool:
    """Sufficient tests of global earliest deadline first; ``any`` of the three, or a single one."""
    chosen = _choose("test", test, ("any", "gfb", "bak", "bcl"))
    return _native.global_edf_schedulable(list(tasks), processors, chosen)


def global_fixed_priority_response_times(tasks: Iterable[Task], processors: int) -> ResponseTimes:
    """Bounds under preemptive global fixed priorities (Guan et al.).

    None for the first task whose bound exceeds its deadline, and for all tasks after it.
    """
    return _native.global_fixed_priority_response_times(list(tasks), processors)


def global_fixed_priority_schedulable(tasks: Iterable[Task], processors: int) -> bool:
    """Whether the bound of every task under global fixed priorities is within its deadline."""
    return _native.global_fixed_priority_schedulable(list(tasks), processors)


@dataclass(frozen=True, slots=True)
class Supply:
    """The time that a processor leaves to these tasks: at least ``rate * t - shortage`` in any window of length t."""

    rate: Fraction | int = 1
    """Share over long windows, from 0 to 1."""
    shortage: Fraction | int = 0
    """Time that a window may fall short of it."""


def tardiness_bounds(tasks: Iterable[Task], processors: int | Iterable[Supply]) -> list[int] | None:
    """Bounds on how late jobs are under global earliest deadline first (Devi and Anderson), rounded up.

    ``processors`` is their number, or the supply that each of them leaves to these tasks. None if there is no bound.
    """
    if isinstance(processors, Iterable):
        supplies = [(supply.rate, supply.shortage) for supply in processors]
        return _native.tardiness_with_supply(list(tasks), supplies)
    return _native.tardiness_bounds(list(tasks), processors)


@dataclass(frozen=True, slots=True)
class Partition:
    """A placement of tasks on processors."""

    processors: tuple[int | None, ...]
    """Processor of each task; None where it was not placed."""
    failed: int | None
    """The first task that fits nowhere, if there is one."""


def partition(
    tasks: Iterable[Task],
    processors: int,
    *,
    fit: Literal["first", "best", "worst"] = "worst",
    order: Literal["given", "decreasing-utilisation"] = "decreasing-utilisation",
    test: Literal["edf", "fixed-priority", "harmonic"] = "edf",
) -> Partition:
    """Places tasks on processors; ``test`` decides which tasks fit on one."""
    found, failed = _native.partition(
        list(tasks),
        processors,
        _choose("fit", fit, ("first", "best", "worst")),
        bool(_choose("order", order, ("given", "decreasing-utilisation"))),
        _choose("test", test, ("edf", "fixed-priority", "harmonic")),
    )
    return Partition(tuple(found), failed)


# Whole systems.


def mc2(system: Mc2System) -> Mc2Guarantees:
    """Judges levels A, B and C of the mixed-criticality kernel together, each with its own cost estimates."""
    a, b, c, schedulable = _native.mc2_analyse(system)
    return Mc2Guarantees(tuple(a), tuple(map(tuple, b)), None if c is None else tuple(c), schedulable)


def mc2_table(system: Mc2System, processor: int) -> Table:
    """The table of a processor's level A."""
    length, slots = _native.mc2_table(system, processor)
    return Table(length, tuple(Slot(*slot) for slot in slots))


@dataclass(frozen=True, slots=True)
class Tdma:
    """Slots of a DMA engine that the cores share."""

    slots: Sequence[int]
    """Slot of each core, overhead included."""
    usable: Sequence[int]
    """Part of each core's slot in which the engine can transfer."""


def memory_time(tdma: Tdma, core: int, *, unload: int, load: int) -> int | None:
    """Longest time that ``core`` needs for an unload and then a load."""
    return _native.memory_time(list(tdma.slots), list(tdma.usable), core, unload, load)


def three_phase_response_times(tasks: Iterable[PhasedTask], tdma: Tdma, core: int) -> ResponseTimes:
    """Response times of the three-phase tasks of ``core``, to the end of the unload.

    None: beyond the deadline, or unbounded.
    """
    return _native.three_phase_response_times(list(tasks), list(tdma.slots), list(tdma.usable), core)


def one_shot_response_times(tasks: Iterable[PlacedTask]) -> ResponseTimes:
    """Longest responses of one-shot, non-preemptive tasks, for each core separately."""
    return _native.one_shot_response_times(list(tasks))


@dataclass(frozen=True, slots=True)
class FlowBound:
    """The bound of a flow over sampling ports."""

    latency: int
    """From the event to the end of the last task's job."""
    lossless: bool
    """Whether no message can be overwritten before it is read."""


def one_shot_flow_bounds(tasks: Iterable[PlacedTask], flows: Iterable[Flow]) -> list[FlowBound | None]:
    """End-to-end bounds of flows; None where a task on the way has no bounded response."""
    bounds = _native.one_shot_flow_bounds(list(tasks), list(flows))
    return [None if bound is None else FlowBound(*bound) for bound in bounds]


def memguard_stall(accesses: int, *, budget: int, period: int, access: int) -> int | None:
    """The longest stall of a job with this many memory accesses on a core that MemGuard regulates.

    Each ``period`` allows ``budget`` accesses; an access takes at least ``access``.
    """
    return _native.memguard_stall(accesses, budget, period, access)


def memory_mutex_wait(
    cores: Iterable[tuple[int, int]],
    core: int,
    order: Literal["arrival", "priority"] = "arrival",
) -> int | None:
    """Longest wait of a request of ``core`` for the memory mutex.

    ``cores`` are pairs of the longest memory phase and the minimum inter-arrival time of requests. Requests are served in
    order of arrival, or the core with the lowest index first. None: there is no bound.
    """
    by_priority = bool(_choose("order", order, ("arrival", "priority")))
    return _native.memory_mutex_wait(list(cores), core, by_priority)


# A second opinion.


@dataclass(frozen=True, slots=True)
class Simulated:
    """The results of a simulation for each task."""

    responses: tuple[int, ...]
    """Longest time from arrival to completion."""
    missed: tuple[bool, ...]
    """Whether a job was late."""


def simulate(
    tasks: Iterable[Task],
    horizon: int,
    *,
    policy: Literal["fixed-priority", "non-preemptive", "threshold", "edf"] = "fixed-priority",
    thresholds: Iterable[int] = (),
    processors: int = 1,
    seed: int | None = None,
) -> Simulated:
    """Simulates every job that arrives before ``horizon``, exactly.

    Without a seed, all tasks are released together and as often as possible; with a seed, at random distances. A simulated
    response is never above the bound of the matching analysis.
    """
    chosen = _choose("policy", policy, ("fixed-priority", "non-preemptive", "threshold", "edf"))
    responses, missed = _native.simulate(list(tasks), chosen, list(thresholds), processors, horizon, seed)
    return Simulated(tuple(responses), tuple(missed))
