"""Task systems of the mixed-criticality study, as its generator makes them, and the verdicts of its nine schemes.

Four numbers (seed, scenario, point on the horizontal axis, sample) determine a system: they give the same system on every
machine. Scenarios are named in the notation of the paper, for example ``C-Light,Long,Light,Quick,Small,High,Many``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import _native
from ._native import StudyError

SCHEMES: tuple[str, ...] = tuple(_native.SCHEMES)
"""The schemes ``x|y`` in the paper's order: ``x`` for message buffers, ``y`` for buffers of devices."""

CATEGORIES: tuple[str, ...] = tuple(_native.CATEGORIES)
"""What a scenario chooses, in the order of its tuple."""


@dataclass(frozen=True, slots=True)
class Io:
    """I/O of a task: each job takes one buffer of data."""

    bytes: int
    """Bytes a job."""
    direct: bool
    """The device writes straight into the buffer; otherwise the kernel copies."""
    random_bank: int
    """Bank under schemes with random placement."""


@dataclass(frozen=True, slots=True)
class StudyTask:
    """One task. Shares and inflations are in millionths, times in nanoseconds."""

    level: str
    """Criticality: A, B or C."""
    period: int
    """Period and deadline."""
    idle: int
    """Cost in an idle system with all cache ways, as level A estimates it."""
    average: int
    """Average over greatest cost."""
    way_amplitude: int
    """Inflation without cache ways."""
    way_curve: int
    """Which decay curve over the ways."""
    unmanaged: int
    """Interference through what nobody manages."""
    dma_bus: int
    """Interference of devices through the bus, at most."""
    dma_bank: int
    """Interference of devices through the bank, at most."""
    dma_curve: int
    """Which curve over the bandwidth."""
    cpu_bank: int
    """Interference of one other processor in the bank."""
    reload: int
    """Cost of loading the cache again after a preemption, over the idle cost."""
    buffers: int
    """Message buffers that it sends to or receives from."""
    message_share: int
    """Share of a job for messages."""
    io_share: int
    """Share of a job for device data."""
    io: Io | None
    """Its I/O."""


@dataclass(frozen=True, slots=True)
class MessageBuffer:
    """A message buffer between two tasks. Shares are in millionths of the time with selective bypass."""

    sender: int
    """Index of the sender."""
    receiver: int
    """Index of the receiver."""
    bytes: int
    """Bytes of a message; one message a job."""
    ce_send: int
    """Sending with concurrency elimination."""
    ce_receive: int
    """Receiving so."""
    cl_send: int
    """Sending with the buffer locked in the cache."""
    cl_receive: int
    """Receiving so."""
    random_bank: int
    """Bank under schemes with random placement."""


@dataclass(frozen=True, slots=True)
class GeneratedSystem:
    """A generated system and the verdict of each scheme."""

    tasks: tuple[StudyTask, ...]
    """Tasks in the order of levels; tasks of a chain follow each other."""
    buffers: tuple[MessageBuffer, ...]
    """Message buffers, sorted by sender."""
    chains: tuple[tuple[int, int], ...]
    """Chains of levels A and B: first task and number of tasks."""
    schedulable: Mapping[str, bool]
    """For each scheme: whether its plan guarantees all levels."""


@lru_cache(maxsize=8)
def _study(changes: str) -> tuple[str, str, _native.Study]:
    text, digest = _native.study_parameters(changes)
    return text, digest, _native.Study(text)


def _changes(parameters: Mapping[str, Any] | None) -> str:
    if parameters is None:
        return "{}"
    if not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must be a mapping from names to values, not {type(parameters).__name__}")
    try:
        return json.dumps({str(name): value for name, value in parameters.items()}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StudyError(f"parameters: {error}") from None


def parameters(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All parameters of a study: the defaults with ``changes``. Raises :class:`bulkhead.StudyError` for a wrong parameter.

    The book's page on the study explains each parameter and the source of its value.
    """
    loaded = json.loads(_study(_changes(changes))[0])
    assert isinstance(loaded, dict)
    return loaded


def scenarios(patterns: str | Iterable[str] = "*") -> list[int]:
    """Numbers of the scenarios that any of the patterns matches.

    A pattern is a tuple of choices. Each choice is a name, the beginning of one, alternatives joined by ``|``, or ``*``.
    Choices that are missing at the end match everything.
    """
    texts = [patterns] if isinstance(patterns, str) else list(patterns)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a scenario is named by a str, not {type(text).__name__}")
    found = _native.study_scenarios(texts)
    if not found:
        raise StudyError("no scenario is chosen")
    return found


def scenario_name(number: int) -> str:
    """The paper's tuple for a scenario."""
    return _native.study_scenario(number)[1]


def generate(
    scenario: str | int, point: int, sample: int, *, parameters: Mapping[str, Any] | None = None
) -> GeneratedSystem:
    """The system of a sample.

    ``point`` is the position on the horizontal axis, from 0: by default, point p has the utilisation 0.2 (p + 1).
    """
    if isinstance(scenario, str):
        found = scenarios(scenario)
        if len(found) != 1:
            raise StudyError(f"`{scenario}` names {len(found)} scenarios; name exactly one")
        scenario = found[0]
    text, verdicts = _study(_changes(parameters))[2].system(scenario, point, sample)
    system = json.loads(text)
    return GeneratedSystem(
        tasks=tuple(StudyTask(**{**task, "io": task["io"] and Io(**task["io"])}) for task in system["tasks"]),
        buffers=tuple(MessageBuffer(**buffer) for buffer in system["buffers"]),
        chains=tuple((first, count) for first, count in system["chains"]),
        schedulable=dict(zip(SCHEMES, verdicts, strict=True)),
    )
