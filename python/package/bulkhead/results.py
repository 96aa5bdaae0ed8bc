"""Results of a study: tables, areas, ratios, plots and files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._study_job import Cell
from .mc2 import CATEGORIES, SCHEMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class StudyResult:
    """What was counted in each cell. Two results are equal if all counts and parameters are."""

    parameters_text: str
    """All parameters as JSON."""
    scheme_numbers: tuple[int, ...]
    """The schemes that were asked for, as positions in :data:`bulkhead.mc2.SCHEMES`."""
    cells: tuple[Cell, ...]
    """Scenario, point, samples and schedulable systems for each of the nine schemes, by scenario and point."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters."""
        loaded = json.loads(self.parameters_text)
        assert isinstance(loaded, dict)
        return loaded

    @property
    def schemes(self) -> tuple[str, ...]:
        """Names of the schemes that were asked for."""
        return tuple(SCHEMES[number] for number in self.scheme_numbers)

    @property
    def scenarios(self) -> tuple[int, ...]:
        """Numbers of the scenarios, in order."""
        return tuple(dict.fromkeys(cell[0] for cell in self.cells))

    @cached_property
    def samples(self) -> int:
        """Systems that were judged in all."""
        return sum(cell[2] for cell in self.cells)

    def frame(self) -> pd.DataFrame:
        """One row for each cell and scheme.

        Columns: scenario and its seven choices, utilisation in processors, scheme, samples, schedulable, the share of
        schedulable systems, and half the width of its 95 % confidence interval.
        """
        import pandas as pd

        step = self.parameters["utilisation_step"]
        choices = {number: _native.study_scenario(number)[0] for number in self.scenarios}
        rows = []
        for scenario, point, samples, good in self.cells:
            for number in self.scheme_numbers:
                share, half = _native.study_interval(good[number], samples)
                utilisation = step * (point + 1) / 1000
                rows.append((scenario, *choices[scenario], utilisation, SCHEMES[number], samples, good[number], share, half))
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
        curves: dict[int, dict[int, list[float]]] = {}
        for scenario, _, samples, good in self.cells:
            for number in self.scheme_numbers:
                share, _ = _native.study_interval(good[number], samples)
                curves.setdefault(scenario, {}).setdefault(number, []).append(share)
        rows = [
            [_native.study_area(curves[scenario][number], step) for number in self.scheme_numbers]
            for scenario in self.scenarios
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
        mine = [cell for cell in self.cells if cell[0] == scenario]
        styles = ("-", "--", "-.", ":")
        for place, number in enumerate(self.scheme_numbers):
            shares = [_native.study_interval(cell[3][number], cell[2])[0] for cell in mine]
            axes.plot(
                [0.0, *(step * (cell[1] + 1) for cell in mine)],
                [1.0, *shares],
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
