"""The large-scale schedulability study, on the cores of this machine or on a Dask cluster.

The unit of work is a *cell*: a scenario and a point on its horizontal axis. Cells share nothing, and sampling of a cell
stops by a rule that looks only at the cell's own samples, in their order. So the digits are the same however the cells
are split over threads, processes and hosts, in whatever order they come back, and also when a cell is done twice because
a worker was lost; its result is still counted once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _native, _study_job, _work, mc2
from ._native import StudyError
from ._study_job import Cell
from ._study_store import Store
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
        schemes: Names of schemes, all nine without. How long a cell is sampled depends on the schemes asked for, because
            sampling stops when all of them are known.
        quick: A smaller study with the same meaning: see the page on the study.
        parameters: Parameters that differ from the defaults, see :func:`bulkhead.mc2.parameters`.
        resume: A folder for what is done so far. If it holds a part of the same study, only the rest is done; if it holds
            another study, :class:`bulkhead.StudyError`. The command's ``--resume`` reads and writes the same.
        client: A ``dask.distributed.Client``; its workers must have this version of the package.
        threads: Threads of this process if there is no client; all cores without.
        progress: True for a line on standard error, False for none, or a function. Without: a line if it is a terminal.

    Returns:
        The results, the same to the last digit for every value of ``client`` and ``threads``.

    Raises:
        StudyError: Something that was asked for does not exist, or the folder's study is another one.

    """
    if threads is not None:
        _native.check_natural(threads, "threads")
        if not 1 <= threads <= 4096:
            raise StudyError("threads must be from 1 to 4096")
        if client is not None:
            raise StudyError("give either a client or threads")
    if client is not None:
        _work.check_client(client)
    text, digest = _native.study_parameters(mc2._changes(_with_quick(parameters, quick)))
    numbers = mc2.scenarios(scenarios)
    chosen = _schemes(schemes)
    points = json.loads(text)["utilisation_points"]
    wanted = [(scenario, point) for scenario in numbers for point in range(points)]

    cells: dict[tuple[int, int], Cell] = {}
    with Store(resume, text, digest, chosen) as store:
        for cell in store.cells():
            cells[cell[0], cell[1]] = cell
        missing = [cell for cell in wanted if cell not in cells]
        report = _reporter(progress)
        total, done = len(wanted), len(wanted) - len(missing)
        report(done, total)
        jobs = list(_jobs(missing, text, digest, chosen))
        expected = {job.key: (job.arguments[1], job.arguments[2]) for job in jobs}
        if client is not None:
            arrivals = _work.on_cluster(jobs, client)
        else:
            arrivals = _work.on_threads(jobs, threads or _work.cores())
        for key, (version, batch) in arrivals:
            scenario, asked = expected.pop(key)
            if version != _native.__version__:
                raise StudyError(f"a worker has bulkhead {version}, this is {_native.__version__}")
            if [(cell[0], cell[1]) for cell in batch] != [(scenario, point) for point in asked]:
                raise StudyError(f"{key}: the result is of other cells")
            store.add(batch)
            for cell in batch:
                cells[cell[0], cell[1]] = cell
            done += len(batch)
            report(done, total)
        if expected:
            raise StudyError(f"{len(expected)} jobs gave no result")
    return StudyResult(text, chosen, tuple(cells[cell] for cell in wanted))


def _with_quick(parameters: Mapping[str, Any] | None, quick: bool) -> Mapping[str, Any] | None:
    return parameters


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


def _jobs(missing: list[tuple[int, int]], text: str, digest: str, schemes: tuple[int, ...]) -> Iterator[_work.Job]:
    """Jobs of at most :data:`POINTS_A_JOB` points of one scenario; the key names all that the result depends on."""
    what = f"bulkhead-mc2-{_native.__version__}-{digest[:32]}-{''.join(map(str, schemes))}"
    block: list[int] = []
    for position, (scenario, point) in enumerate(missing):
        block.append(point)
        last = position + 1 == len(missing) or missing[position + 1][0] != scenario
        if last or len(block) == POINTS_A_JOB:
            key = f"{what}-{scenario}-{'.'.join(map(str, block))}"
            yield _work.Job(
                key, _study_job.__name__, _study_job.judge_cells.__name__, (text, scenario, tuple(block), schemes)
            )
            block = []


def _reporter(progress: bool | Progress | None) -> Progress:
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return lambda done, total: None

    def line(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} cells ({100 * done // max(total, 1)} %)", end=end, file=sys.stderr, flush=True)

    return line
