"""The large-scale schedulability study, on the cores of this machine or on a Dask cluster.

The unit of work is a *cell*: a scenario and a point on its horizontal axis. Cells share nothing, and sampling of a cell
stops by a rule that looks only at the cell's own samples, in their order. So the results are the same to the last
digit, however the cells are split over threads, processes and hosts, and in whatever order they return. If a cell is
judged twice because a worker was lost, its result is counted once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _native, _study_job, _work, mc2
from ._native import StudyError
from ._study_job import Counts
from .results import StudyResult

if TYPE_CHECKING:
    from distributed import Client

POINTS_A_JOB = 20
"""Points of one scenario that a worker is given at a time; no result depends on it."""

Progress = Callable[[int, int], None]
"""Called with the cells that are done and all cells of the study."""


def study(
    scenarios: str | Iterable[str] = "*",
    schemes: str | Iterable[str] | None = None,
    *,
    quick: bool = False,
    parameters: Mapping[str, Any] | None = None,
    resume: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> StudyResult:
    """Repeats the mixed-criticality study, or a part of it.

    Args:
        scenarios: Patterns of scenarios, see :func:`bulkhead.mc2.scenarios`.
        schemes: Names of schemes [default: all nine]. How long a cell is sampled depends on the chosen schemes, because
            sampling stops when all of them are known.
        quick: Fewer scenarios and less precision, like ``--quick`` of the command.
        parameters: Parameters that differ from the defaults, see :func:`bulkhead.mc2.parameters`.
        resume: A folder that keeps every scenario as soon as it is counted. If it holds a part of the same study, only the
            rest is computed; if it holds another study, :class:`bulkhead.StudyError` is raised. The command's ``--resume``
            can continue a study of this function, and this function can continue one of the command.
        client: A ``dask.distributed.Client``; its workers must have this version of the package.
        threads: Threads of this process, if there is no client [default: one for each core].
        progress: True for a line on standard error, False for none, or a function [default: a line if that is a terminal].

    Returns:
        The results, the same to the last digit for every value of ``client`` and ``threads``.

    Raises:
        StudyError: A chosen scenario, scheme or parameter does not exist, or the folder holds another study.

    """
    if threads is not None:
        _native.check_natural(threads, "threads")
        if not 1 <= threads <= 4096:
            raise StudyError("threads must be from 1 to 4096")
        if client is not None:
            raise StudyError("give either a client or threads")
    if client is not None:
        _work.check_client(client)
    text, digest = _native.study_parameters(mc2._changes(parameters))
    numbers = mc2.scenarios(scenarios)
    if quick:
        text, digest = _native.study_quick(text)
        numbers = _native.study_thinned(numbers)
    chosen = _schemes(schemes)
    points: int = json.loads(text)["utilisation_points"]
    pattern = scenarios if isinstance(scenarios, str) else None
    call = f"bulkhead.study({scenarios!r}, {schemes!r}, quick={quick!r}, parameters={parameters!r})"
    identity = _native.study_identity(text, chosen, numbers, pattern, bool(quick), call)

    done: dict[int, list[Counts]] = {}
    folder = None if resume is None else _native.StudyFolder(os.fspath(resume), identity)
    if folder is not None:
        identity = folder.identity()
        for scenario in numbers:
            kept = folder.kept(scenario)
            if kept is not None:
                done[scenario] = [(samples, tuple(good)) for samples, good in kept]
    missing = [scenario for scenario in numbers if scenario not in done]
    report = _reporter(progress)
    total = len(numbers) * points
    counted = len(done) * points
    report(counted, total)
    jobs = list(_jobs(missing, points, text, digest, chosen))
    # What each job was asked for; a job leaves when its result comes, so that none can count twice.
    expected = {job.key: (job.arguments[1], job.arguments[2]) for job in jobs}
    parts: dict[int, dict[int, Counts]] = {scenario: {} for scenario in missing}
    if client is not None:
        arrivals = _work.on_cluster(jobs, client)
    else:
        arrivals = _work.on_threads(jobs, threads or _work.cores())
    for key, (version, counts) in arrivals:
        scenario, asked = expected.pop(key)
        if version != _native.__version__:
            raise StudyError(f"a worker has bulkhead {version}, this is {_native.__version__}")
        parts[scenario].update(zip(asked, counts, strict=True))
        if len(parts[scenario]) == points:
            done[scenario] = [one for _, one in sorted(parts.pop(scenario).items())]
            if folder is not None:
                folder.keep(scenario, done[scenario])
        counted += len(asked)
        report(counted, total)
    if expected or parts:
        raise StudyError(f"{len(expected)} jobs gave no result")
    return StudyResult(text, chosen, tuple((scenario, tuple(done[scenario])) for scenario in numbers), identity)


def _schemes(names: str | Iterable[str] | None) -> tuple[int, ...]:
    if names is None:
        return tuple(range(len(mc2.SCHEMES)))
    texts = [names] if isinstance(names, str) else list(names)
    for name in texts:
        if not isinstance(name, str):
            raise TypeError(f"a scheme is named by a str, not {type(name).__name__}")
    if not texts:
        raise StudyError("no scheme is chosen")
    return tuple(_native.study_schemes(texts))


def _jobs(missing: list[int], points: int, text: str, digest: str, schemes: tuple[int, ...]) -> Iterator[_work.Job]:
    """Jobs of at most :data:`POINTS_A_JOB` points of one scenario; the key names everything that the result depends on."""
    what = f"bulkhead-mc2-{_native.__version__}-{digest[:32]}-{''.join(map(str, schemes))}"
    for scenario in missing:
        for first in range(0, points, POINTS_A_JOB):
            last = min(first + POINTS_A_JOB, points)
            arguments = (text, scenario, tuple(range(first, last)), schemes)
            key = f"{what}-{scenario}-{first}-{last}"
            yield _work.Job(key, _study_job.__name__, _study_job.judge_cells.__name__, arguments)


def _reporter(progress: bool | Progress | None) -> Progress:
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return lambda done, total: None

    def line(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} cells ({100 * done // max(total, 1)} %)", end=end, file=sys.stderr, flush=True)

    return line
