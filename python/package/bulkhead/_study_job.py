"""The work of a study: the only module that a worker imports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from . import _native

Counts = tuple[int, tuple[int, ...]]
"""Samples of a cell, and schedulable systems for each of the nine schemes."""


@lru_cache(maxsize=4)
def _prepared(parameters: str) -> _native.Study:
    return _native.Study(parameters)


def judge_cells(parameters: str, scenario: int, points: Sequence[int], schemes: Sequence[int]) -> tuple[str, list[Counts]]:
    """Judges cells of a scenario, and returns the version of the package that judged them.

    Sampling of a cell stops by a rule that looks at the cell's own samples in their order, so the result does not
    depend on which worker judges which cell.
    """
    counts = _prepared(parameters).cells(scenario, points, schemes)
    return _native.__version__, [(samples, tuple(good)) for samples, good in counts]
