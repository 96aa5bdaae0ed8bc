"""Task systems as values.

All times are integers in a unit of your choice (nanoseconds by convention); no analysis looks at a float. An
object with an impossible value cannot be created: :class:`bulkhead.TaskError` (a ``ValueError``) or ``TypeError`` is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from . import _native

LIMIT: int = _native.LIMIT
"""The greatest time that an analysis takes."""

_IMPLICIT = cast(int, None)


@dataclass(frozen=True, slots=True)
class Task:
    """A sporadic task.

    Where priorities matter, tasks are listed by decreasing priority.
    """

    cost: int
    """Longest execution of a job, alone. Positive."""
    period: int
    """Minimum inter-arrival time. Positive."""
    deadline: int = _IMPLICIT
    """Longest time from arrival to completion. The period, if it is left out; may exceed the period."""
    jitter: int = 0
    """Release jitter: longest time from arrival to release."""
    blocking: int = 0
    """Longest blocking by tasks of lower priority."""
    id: int | None = field(default=None, kw_only=True)
    """A number of the task, for files."""
    partition: int | None = field(default=None, kw_only=True)
    """The processor of the task, for files."""
    working_set: int | None = field(default=None, kw_only=True)
    """What the task uses of the cache, for files."""

    def __post_init__(self) -> None:
        if self.deadline is None:
            object.__setattr__(self, "deadline", self.period)
        _native.check_tasks([self])

    @property
    def utilisation(self) -> Fraction:
        """Exactly ``cost / period``."""
        return Fraction(self.cost, self.period)


@dataclass(frozen=True, slots=True)
class CacheTask(Task):
    """A task and its use of the cache."""

    evicting: frozenset[int] = field(default=frozenset(), kw_only=True)
    """Cache sets that it may evict from: all that it uses."""
    useful: frozenset[int] = field(default=frozenset(), kw_only=True)
    """Cache sets whose content it uses again; part of :attr:`evicting`."""


@dataclass(frozen=True, slots=True)
class PhasedTask(Task):
    """A task that loads its data into a scratchpad, executes without accessing memory (its cost), and unloads."""

    load: int = field(default=0, kw_only=True)
    """Transfer time of the load, alone."""
    unload: int = field(default=0, kw_only=True)
    """Transfer time of the unload, alone."""


@dataclass(frozen=True, slots=True)
class PlacedTask(Task):
    """A one-shot task on a core; its period is that of its events or of its polling."""

    core: int = field(default=0, kw_only=True)
    """Its core."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow over one-shot tasks, joined by sampling ports."""

    tasks: Sequence[int]
    """Indices of tasks, from the one that the event releases."""
    transfers: Sequence[int]
    """For each task but the last: longest time from the end of its job to its message in the next one's port."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a time-triggered table."""

    start: int
    """Start, from the start of the table."""
    length: int
    """Length. Positive."""
    task: int
    """Index of the task that runs."""


@dataclass(frozen=True, slots=True)
class Table:
    """A time-triggered table, which repeats for ever."""

    length: int
    """Length; a multiple of all periods."""
    slots: tuple[Slot, ...]
    """Slots by start."""

    def _plain(self) -> list[tuple[int, int, int]]:
        return [(s.start, s.length, s.task) for s in self.slots]


@dataclass(frozen=True, slots=True)
class LevelTask:
    """A task of the mixed-criticality kernel, with its cost as levels A, B and C estimate it."""

    period: int
    """Period and deadline. Positive."""
    costs: tuple[int, int, int]
    """Of a level above the task's own nothing is asked."""


@dataclass(frozen=True, slots=True)
class Mc2Processor:
    """Tasks of one processor of the mixed-criticality kernel."""

    a: Sequence[LevelTask] = ()
    """Level A: runs from a table."""
    b: Sequence[LevelTask] = ()
    """Level B: rate-monotonic, below level A."""
    interrupts: Sequence[tuple[int, int]] = ()
    """Interrupts handled here: minimum inter-arrival time and longest handler."""


@dataclass(frozen=True, slots=True)
class Mc2System:
    """A whole system of the mixed-criticality kernel."""

    processors: Sequence[Mc2Processor]
    """The processors with their tasks of levels A and B."""
    c: Sequence[LevelTask] = ()
    """Level C: global earliest deadline first in what A and B leave."""
    schedule_overhead: int = 0
    """Time of a scheduling decision with its context switch."""
    release_overhead: int = 0
    """Time of a release."""


@dataclass(frozen=True, slots=True)
class Mc2Guarantees:
    """The guarantees of each level."""

    a: tuple[bool, ...]
    """For each processor: every job of level A meets its deadline."""
    b: tuple[tuple[int | None, ...], ...]
    """For each processor: response times of level B, None where there is no bound."""
    c: tuple[int, ...] | None
    """Tardiness of level C, if it is bounded."""
    schedulable: bool
    """Levels A and B meet all deadlines, and level C has bounded tardiness."""


def utilisation(tasks: Iterable[Task]) -> Fraction:
    """The exact sum of ``cost / period``."""
    numerator, denominator = _native.total_utilisation(list(tasks))
    return Fraction(numerator, denominator)
