"""Plans and verdicts for descriptions of task systems: what ``bulkhead plan`` and ``bulkhead check`` answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _native


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that must hold."""

    kind: str
    """What it is about: ``response``, ``tardiness``, ``capacity``, ``ways``, ``budget``, ``channel``, ..."""
    subject: str
    """Whom it is about: a task, a channel, ``processor 0``."""
    bound: int | None
    """What may at worst happen; None: there is no bound."""
    limit: int | None
    """What is allowed; None: anything, as long as there is a bound."""
    unit: str
    """What both count: ``nanoseconds``, ``millionths``, ``count``, ``bytes`` or ``bytes-per-second``."""
    holds: bool
    """Whether it holds."""
    method: str
    """The method that gave the bound."""
    note: str | None
    """What a reader should know."""

    @property
    def excess(self) -> int | None:
        """By how much it fails; None if it holds or there is no bound."""
        if self.holds or self.bound is None or self.limit is None:
            return None
        return self.bound - self.limit


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that the description left open and the planner decided."""

    what: str
    """What was open."""
    how: str
    """How it was decided."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one number with which everything holds."""

    number: str
    """Which number, for example ``cost`` or ``period``."""
    subject: str
    """Of what; empty for the system itself."""
    before: int
    """Its value now."""
    after: int
    """The value nearest to it with which everything holds."""
    unit: str
    """What both count, as for a constraint."""
    anew: bool
    """Whether processors, priorities and shares must be chosen anew too."""


class Plan:
    """A task system with everything decided, and whether it holds."""

    def __init__(self, native: _native.Plan) -> None:
        self._native = native
        self.details: dict[str, Any] = json.loads(native.json())
        """Everything, as ``bulkhead plan --json`` prints it."""
        self.constraints: tuple[Constraint, ...] = tuple(
            Constraint(**{name: one[name] for name in Constraint.__slots__}) for one in self.details["constraints"]
        )
        """Everything that must hold."""
        self.choices: tuple[Choice, ...] = tuple(Choice(one["what"], one["how"]) for one in self.details["choices"])
        """What was open; empty if nothing was."""

    @property
    def schedulable(self) -> bool:
        """Whether all constraints hold."""
        return bool(self.details["schedulable"])

    @property
    def failures(self) -> tuple[Constraint, ...]:
        """The constraints that fail, the worst first."""
        return tuple(self.constraints[place] for place in self._native.failures())

    def repairs(self) -> list[Repair]:
        """Single changes with which all would hold, the relatively least first; empty if all holds, or none would help."""
        return [
            Repair(one["number"], one["subject"], one["from"], one["to"], one["unit"], one["anew"])
            for one in json.loads(self._native.repairs())
        ]

    def export(self, format: Literal["xml", "schedcat", "csv"] = "xml", *, unit: str | None = None) -> str:
        """The complete system as a text; ``unit`` is what 1 means in formats without units (``1us`` without it)."""
        formats = ("xml", "schedcat", "csv")
        if format not in formats:
            raise ValueError(f"unknown format {format!r}; use one of {', '.join(formats)}")
        return self._native.export(formats.index(format), unit)

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        verdict = "schedulable" if self.schedulable else f"{len(self.failures)} of {len(self.constraints)} fail"
        return f"<Plan of {self.details['system']['name']}: {verdict}>"


def check(
    system: str | os.PathLike[str],
    *,
    policy: str | None = None,
    processors: int | None = None,
    unit: str | None = None,
    task_set: int | None = None,
    overrides: Iterable[str] = (),
) -> Plan:
    """Judges a description of a task system, a task set in SchedCAT's format, or a system of the catalog by its name.

    Args:
        system: A file or a name (:func:`names`).
        policy: How the processors are scheduled, where that differs from the description's.
        processors: Their number, where it differs.
        unit: What 1 means in a file without units, such as ``1us``.
        task_set: Which task set of a file with several, from 0.
        overrides: Values of the description to change, such as ``task-01@cost=60us``.

    Raises:
        DescriptionError: The description is wrong (every error with file, line and column) or beyond what the tests cover.
        OSError: The file cannot be read.

    """
    if isinstance(overrides, str):
        raise TypeError("overrides must be a sequence of str, not one str")
    return Plan(_native.plan_file(os.fspath(system), list(overrides), policy, processors, unit, task_set))


def plan(
    system: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    policy: str | None = None,
    processors: int | None = None,
    unit: str | None = None,
    task_set: int | None = None,
    overrides: Iterable[str] = (),
) -> Plan:
    """Completes a task system: processors, priorities, ways, budgets, whatever the description leaves open.

    With ``out``, and if all constraints hold, the completed description is written there. Otherwise as :func:`check`.
    """
    found = check(system, policy=policy, processors=processors, unit=unit, task_set=task_set, overrides=overrides)
    if out is not None and found.schedulable:
        Path(out).write_text(found.export(), encoding="utf-8")
    return found


def names() -> list[str]:
    """Names of the task systems of the catalog."""
    return _native.plan_names()
