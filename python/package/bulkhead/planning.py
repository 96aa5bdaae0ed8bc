"""Plans and verdicts for descriptions, as ``bulkhead plan`` and ``bulkhead check`` compute them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _native
from ._native import DescriptionError


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that must hold."""

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
    holds: bool | None
    """Whether it holds; None: it was not judged."""
    method: str
    """The method that gave the bound."""
    note: str | None
    """What a reader should know, or why it was not judged."""

    @property
    def excess(self) -> int | None:
        """By how much the constraint fails; None if it does not fail, or has no bound."""
        if self.holds is not False or self.bound is None or self.limit is None:
            return None
        return self.bound - self.limit


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that the description leaves open and the planner chose."""

    what: str
    """What was open."""
    how: str
    """How it was decided."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one number that makes all constraints hold."""

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
    """A complete task system, and whether its constraints hold."""

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
    def schedulable(self) -> bool | None:
        """Whether all judged constraints hold; None if none was judged."""
        return {"held": True, "failed": False, "nothing-judged": None}[self.details["verdict"]["outcome"]]

    def _verdict(self) -> str:
        if self.schedulable is None:
            return "nothing was judged"
        if self.schedulable and any(one.holds is None for one in self.constraints):
            return "schedulable as far as it was judged"
        return "schedulable" if self.schedulable else f"{len(self.failures)} of {len(self.constraints)} fail"

    @property
    def failures(self) -> tuple[Constraint, ...]:
        """The constraints that fail, the worst first."""
        return tuple(self.constraints[place] for place in self._native.failures())

    def repairs(self) -> list[Repair]:
        """Single changes that would make all constraints hold, the relatively smallest first; empty without one."""
        return [
            Repair(one["number"], one["subject"], one["from"], one["to"], one["unit"], one["anew"])
            for one in json.loads(self._native.repairs())
        ]

    def export(self, format: Literal["xml", "schedcat", "csv"] = "xml", *, unit: str | None = None) -> str:
        """The complete system as a text; ``unit`` is the meaning of 1 in formats without units (default: ``1us``)."""
        formats = ("xml", "schedcat", "csv")
        if format not in formats:
            raise ValueError(f"unknown format {format!r}; use one of {', '.join(formats)}")
        return self._native.export(formats.index(format), unit)

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<Plan of {self.details['system']['name']}: {self._verdict()}>"


class SystemPlan(Plan):
    """A judged system with a chip: the constraints of all its variants, and the chosen values."""

    def __init__(self, native: _native.SystemPlan) -> None:
        self._system = native
        self.details: dict[str, Any] = json.loads(native.json())
        """Everything, as ``bulkhead plan --json`` prints it: one entry of ``runs`` for each variant."""
        self.constraints: tuple[Constraint, ...] = tuple(
            Constraint(**{name: one[name] for name in Constraint.__slots__})
            for run in self.details["runs"]
            for one in [*(one for plan in run["tasks"] for one in plan["constraints"]), *run["constraints"]]
        )
        """Everything that must hold in any variant: tasks, quotas of shared tiles, flows."""
        self.choices: tuple[Choice, ...] = tuple(Choice(one["what"], one["how"]) for one in self.details["choices"])
        """What was open and is decided; empty after :func:`check`, which decides nothing."""
        self.overrides: tuple[str, ...] = tuple(self.details["set"])
        """What was decided, as changes of the description."""

    @property
    def failures(self) -> tuple[Constraint, ...]:
        """The constraints that fail."""
        return tuple(one for one in self.constraints if one.holds is False)

    def repairs(self) -> list[Repair]:
        """Single changes that would make all constraints hold, the relatively smallest first; empty without one."""
        found = []
        for one in json.loads(self._system.repairs()):
            subject, number = one["set"].partition("=")[0].rsplit("@", 1)
            before, after = (int("".join(filter(str.isdigit, one[end]))) for end in ("from", "to"))
            unit = "nanoseconds" if one["to"].endswith("ns") else "bytes-per-second"
            found.append(Repair(number, subject, before, after, unit, False))
        return found

    def export(self, format: Literal["xml", "schedcat", "csv"] = "xml", *, unit: str | None = None) -> str:
        """The completed description; only XML can express a system."""
        if format != "xml" or unit is not None:
            raise ValueError("a system with a chip is written as XML, with its units")
        return self._system.export()

    def __str__(self) -> str:
        return self._system.text()

    def __repr__(self) -> str:
        return f"<SystemPlan of {self.details['system']}: {self._verdict()}>"


def _judged(
    system: str | os.PathLike[str],
    policy: str | None,
    processors: int | None,
    unit: str | None,
    task_set: int | None,
    overrides: Iterable[str],
    complete: bool,
) -> Plan:
    if isinstance(overrides, str):
        raise TypeError("overrides must be a sequence of str, not one str")
    path, changes = os.fspath(system), list(overrides)
    found = _native.plan_file(path, changes, policy, processors, unit, task_set)
    if found is not None:
        return Plan(found)
    if policy is not None or processors is not None:
        raise DescriptionError("policy and processors are about task systems; a <system> has tiles and <tilemux>")
    return SystemPlan(_native.system_file(path, changes, complete))


def check(
    system: str | os.PathLike[str],
    *,
    policy: str | None = None,
    processors: int | None = None,
    unit: str | None = None,
    task_set: int | None = None,
    overrides: Iterable[str] = (),
) -> Plan:
    """Judges a description of a task system or a system, a task set in SchedCAT's format, or one of the catalog by its name.

    Args:
        system: A file or a name (:func:`names`).
        policy: The scheduling policy, if not the description's.
        processors: The number of processors, if not the description's.
        unit: The meaning of 1 in a file without units, such as ``1us``.
        task_set: The index of the task set in a file with several; the first is 0.
        overrides: Values of the description to change, such as ``task-01@cost=60us``.

    Raises:
        DescriptionError: The description is wrong (every error with file, line and column) or the tests do not cover it.
        OSError: The file cannot be read.

    """
    return _judged(system, policy, processors, unit, task_set, overrides, complete=False)


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
    """Completes a description: chooses processors, priorities, ways, budgets, tiles and token buckets that it leaves open.

    If ``out`` is given and all constraints hold, writes the completed description there. All else is as for :func:`check`.
    """
    found = _judged(system, policy, processors, unit, task_set, overrides, complete=True)
    if out is not None and found.schedulable:
        Path(out).write_text(found.export(), encoding="utf-8")
    return found


def names() -> list[str]:
    """Names of the task systems of the catalog."""
    return _native.plan_names()
