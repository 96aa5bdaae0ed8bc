"""Results of a study: tables, areas, ratios, plots and files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._study_job import Counts
from .mc2 import CATEGORIES, SCHEMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class StudyResult:
    """The counts of each cell. Two results are equal if all their counts and parameters are equal."""

    parameters_text: str
    """All parameters as JSON."""
    scheme_numbers: tuple[int, ...]
    """The schemes that were asked for, as positions in :data:`bulkhead.mc2.SCHEMES`."""
    counts: tuple[tuple[int, tuple[Counts, ...]], ...]
    """For each scenario, in order, its number and for each point samples and schedulable systems of the nine schemes."""
    identity_text: str = field(compare=False, repr=False)
    """What identifies the study, as JSON: version, parameters and their hash, schemes, scenarios, the command."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters."""
        loaded = json.loads(self.parameters_text)
        assert isinstance(loaded, dict)
        return loaded

    @property
    def schemes(self) -> tuple[str, ...]:
        """Names of the chosen schemes."""
        return tuple(SCHEMES[number] for number in self.scheme_numbers)

    @property
    def scenarios(self) -> tuple[int, ...]:
        """Numbers of the scenarios, in order."""
        return tuple(scenario for scenario, _ in self.counts)

    @cached_property
    def samples(self) -> int:
        """Total number of judged systems."""
        return sum(samples for _, points in self.counts for samples, _ in points)

    @cached_property
    def _summary(self) -> _native.StudySummary:
        return _native.StudySummary(self.identity_text, self.counts)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Areas and ratios, as ``bulkhead study mc2 --json`` prints them."""
        loaded = json.loads(self._summary.json())
        assert isinstance(loaded, dict)
        return loaded

    def __str__(self) -> str:
        return self._summary.text()

    def ratios(self) -> pd.DataFrame:
        """By how many percent the areas of some schemes exceed those of others, beside the paper's figures.

        Contains only ratios whose schemes and scenarios were studied; the paper's figures cover all 648 scenarios.
        """
        import pandas as pd

        columns = ["scheme", "over", "only", "scenarios", "ours", "confidence", "paper", "difference"]
        return pd.DataFrame([[one[name] for name in columns] for one in self.summary["comparisons"]], columns=columns)

    def csv(self) -> str:
        """All counts as comma-separated values with their provenance, identical to the command's ``counts.csv``."""
        return self._summary.csv()

    def save_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes :meth:`csv` to a file."""
        Path(path).write_bytes(self.csv().encode())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes everything that the command writes: page, plots, counts and summary."""
        self._summary.write(os.fspath(folder))

    def frame(self) -> pd.DataFrame:
        """One row for each cell and scheme.

        Columns: scenario and its seven choices, utilisation in processors, scheme, samples, schedulable, the share of
        schedulable systems, and half the width of its 95 % confidence interval.
        """
        import pandas as pd

        step = self.parameters["utilisation_step"]
        choices = {number: _native.study_scenario(number)[0] for number in self.scenarios}
        rows = []
        for scenario, points in self.counts:
            for point, (samples, good) in enumerate(points):
                utilisation = step * (point + 1) / 1000
                for number in self.scheme_numbers:
                    share, half = _native.study_interval(good[number], samples)
                    name = SCHEMES[number]
                    rows.append((scenario, *choices[scenario], utilisation, name, samples, good[number], share, half))
        columns = [
            "scenario",
            *CATEGORIES_RENAMED,
            "utilisation",
            "scheme",
            "samples",
            "schedulable",
            "share",
            "half_width",
        ]
        return pd.DataFrame(rows, columns=columns)

    def areas(self) -> pd.DataFrame:
        """Schedulable-utilisation area in processors: one row for each scenario, one column for each scheme."""
        import pandas as pd

        step = self.parameters["utilisation_step"] / 1000
        rows = [
            [_native.study_area(_shares(points, number), step) for number in self.scheme_numbers]
            for _, points in self.counts
        ]
        index = pd.Index(self.scenarios, name="scenario")
        return pd.DataFrame(rows, columns=list(self.schemes), index=index)

    def plot(self, scenario: int, axes: Axes | None = None) -> Axes:
        """Share of schedulable systems against utilisation, one curve for each scheme; returns the axes."""
        if scenario not in self.scenarios:
            raise _native.StudyError(f"the study has no scenario {scenario}")
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(7, 4.5), layout="constrained").subplots()
        step = self.parameters["utilisation_step"] / 1000
        points = dict(self.counts)[scenario]
        styles = ("-", "--", "-.", ":")
        for place, number in enumerate(self.scheme_numbers):
            axes.plot(
                [step * point for point in range(len(points) + 1)],
                [1.0, *_shares(points, number)],
                styles[place % len(styles)],
                label=SCHEMES[number],
            )
        axes.set_title(_native.study_scenario(scenario)[1])
        axes.set_xlabel("utilisation in an idle system, in processors")
        axes.set_ylabel("share of schedulable systems")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(left=0)
        axes.legend(fontsize="small")
        return axes

    def save_plots(self, folder: str | os.PathLike[str], ending: str = "svg") -> list[Path]:
        """Writes the plot of every scenario into a folder; returns the files."""
        from matplotlib.figure import Figure

        if not ending.isalnum():
            raise ValueError(f"{ending!r} is no ending of a picture's name, such as svg, png or pdf")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files = []
        for scenario in self.scenarios:
            figure = Figure(figsize=(7, 4.5), layout="constrained")
            self.plot(scenario, figure.subplots())
            files.append(place / f"{_native.study_scenario(scenario)[2]}.{ending}")
            figure.savefig(files[-1])
        return files


CATEGORIES_RENAMED = tuple({"utilisation": "task_utilisation"}.get(name, name) for name in CATEGORIES)
"""Columns of a scenario's choices; the horizontal axis is a utilisation too."""


def _shares(points: tuple[Counts, ...], number: int) -> list[float]:
    return [_native.study_interval(good[number], samples)[0] for samples, good in points]
