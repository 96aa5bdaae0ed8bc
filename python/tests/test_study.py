"""The study on threads: the same digits however it is split, stopped and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import bulkhead
import pytest
from bulkhead import StudyError, mc2

SMALL = "C-Light,Long,Light,Quick,Small,High,Many"
TWO = "C-Light,Long,Light,Quick,Small,High,*"
POINTS: int = mc2.parameters()["utilisation_points"]
ROUGH = {"half_width": 150_000, "most_samples": 96}


@pytest.fixture(scope="module")
def whole() -> bulkhead.StudyResult:
    """Two scenarios on one thread."""
    return bulkhead.study(TWO, threads=1, parameters=ROUGH)


def test_threads_do_not_matter(whole: bulkhead.StudyResult) -> None:
    assert [len(points) for _, points in whole.counts] == [POINTS, POINTS]
    for threads in (2, 5):
        assert bulkhead.study(TWO, threads=threads, parameters=ROUGH) == whole


def test_a_part_of_a_study_is_a_part_of_its_results(whole: bulkhead.StudyResult) -> None:
    part = bulkhead.study(SMALL, threads=2, parameters=ROUGH)
    assert set(part.counts) < set(whole.counts)


def test_counts_are_those_of_the_single_systems(whole: bulkhead.StudyResult) -> None:
    # A second way to the same counts: each system generated and judged alone.
    scenario, points = whole.counts[0]
    for point in range(6, POINTS, 9):
        samples, good = points[point]
        counted = [0] * len(mc2.SCHEMES)
        for sample in range(samples):
            system = mc2.generate(scenario, point, sample, parameters=ROUGH)
            for number, scheme in enumerate(mc2.SCHEMES):
                counted[number] += system.schedulable[scheme]
        assert tuple(counted) == good


def test_generated_systems_have_the_utilisation_of_their_point() -> None:
    for point in (0, 9, 30):
        system = mc2.generate(SMALL, point, 0)
        total = sum(task.idle / task.period for task in system.tasks)
        # Shares are integers in millionths, costs in nanoseconds.
        assert abs(total - 0.2 * (point + 1)) < 1e-4
        assert [task.level for task in system.tasks] == sorted(task.level for task in system.tasks)
    assert mc2.generate(SMALL, 3, 7) == mc2.generate(SMALL, 3, 7)
    assert mc2.generate(SMALL, 3, 7) != mc2.generate(SMALL, 3, 8)


class Stop(Exception):
    """Ends a study from its progress."""


def test_a_stopped_study_goes_on(whole: bulkhead.StudyResult, tmp_path: Path) -> None:
    begun: list[int] = []
    result = None
    for _ in range(10):
        calls = 0

        def stop(done: int, total: int) -> None:
            nonlocal calls
            assert total == 2 * POINTS
            if calls == 0:
                begun.append(done)
            calls += 1
            if calls == 4 and done < total:
                raise Stop

        try:
            result = bulkhead.study(TWO, threads=1, parameters=ROUGH, resume=tmp_path, progress=stop)
        except Stop:
            continue
        break
    assert result == whole
    # The first run kept the first scenario, the second one did the rest.
    assert begun == [0, POINTS]
    # All is there: nothing is done again.
    reports: list[int] = []
    again = bulkhead.study(
        TWO, threads=1, parameters=ROUGH, resume=tmp_path, progress=lambda done, total: reports.append(done)
    )
    assert again == whole
    assert reports == [2 * POINTS]


def test_a_damaged_file_is_counted_again(whole: bulkhead.StudyResult, tmp_path: Path) -> None:
    bulkhead.study(TWO, threads=2, parameters=ROUGH, resume=tmp_path)
    first, second = sorted((tmp_path / "counts").iterdir())
    text = first.read_bytes()
    first.write_bytes(text[: len(text) * 2 // 3])
    second.write_bytes(second.read_bytes().replace(b",4", b",5", 1))
    assert bulkhead.study(TWO, threads=2, parameters=ROUGH, resume=tmp_path) == whole


def test_another_study_is_not_mixed_in(tmp_path: Path) -> None:
    bulkhead.study(SMALL, "C|C", threads=2, parameters=ROUGH, resume=tmp_path)
    with pytest.raises(StudyError, match=r"holds a study with schemes C\|C; this one has R\|R"):
        bulkhead.study(SMALL, "R|R", parameters=ROUGH, resume=tmp_path)
    with pytest.raises(StudyError, match="holds a study with seed 2020; this one has 1"):
        bulkhead.study(SMALL, "C|C", parameters={**ROUGH, "seed": 1}, resume=tmp_path)
    with pytest.raises(StudyError, match="holds a study with parameters"):
        bulkhead.study(SMALL, "C|C", resume=tmp_path)
    (tmp_path / "study.json").write_text("nonsense")
    with pytest.raises(StudyError, match="is not readable"):
        bulkhead.study(SMALL, "C|C", parameters=ROUGH, resume=tmp_path)


def test_files_of_the_command(whole: bulkhead.StudyResult, tmp_path: Path) -> None:
    whole.save(tmp_path)
    whole.save_csv(tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_bytes() == (tmp_path / "counts.csv").read_bytes()
    assert len(list((tmp_path / "plots").iterdir())) == 2
    # The parameters are no option of the command, so the provenance names the call.
    assert "# command: bulkhead.study(" in whole.csv()
    lines = [line for line in whole.csv().splitlines() if not line.startswith("#")]
    assert len(lines) == 1 + 2 * POINTS
    assert json.loads((tmp_path / "summary.json").read_text())["areas"] == whole.summary["areas"]


def test_ratios_beside_the_papers(whole: bulkhead.StudyResult) -> None:
    areas = dict(whole.areas().sum())
    for one in whole.summary["comparisons"]:
        assert one["difference"] == pytest.approx(one["ours"] - one["paper"])
        if one["only"] == "*":
            assert one["ours"] == pytest.approx(100 * (areas[one["scheme"]] / areas[one["over"]] - 1))
    ratios = whole.ratios()
    assert len(ratios) == len(whole.summary["comparisons"])
    assert {("C|C", "R|R"), ("O|C+A/B-ALL", "C|C")} <= set(zip(ratios["scheme"], ratios["over"], strict=True))
    assert "How much larger the areas are" in str(whole)


def test_quick_is_the_commands() -> None:
    result = bulkhead.study("C-Light", "C|C", quick=True, threads=2)
    assert len(result.scenarios) < 216
    assert result.parameters["half_width"] == 100_000
    assert "# command: bulkhead study mc2 --scenarios 'C-Light' --schemes 'C|C' --quick\n" in result.csv()


def test_tables_and_plots(whole: bulkhead.StudyResult, tmp_path: Path) -> None:
    frame = whole.frame()
    assert len(frame) == 2 * POINTS * 9
    assert ((frame["share"] * frame["samples"]).round() == frame["schedulable"]).all()
    assert frame["half_width"].max() <= 0.15
    areas = whole.areas()
    assert list(areas.columns) == list(mc2.SCHEMES)
    # The trapezoidal rule once more, by hand.
    mine = frame[(frame["scenario"] == whole.scenarios[0]) & (frame["scheme"] == "C|C")]
    curve = [1.0, *mine.sort_values("utilisation")["share"]]
    by_hand = sum(0.1 * (a + b) for a, b in zip(curve, curve[1:], strict=False))
    assert areas.loc[whole.scenarios[0], "C|C"] == pytest.approx(by_hand)
    files = whole.save_plots(tmp_path)
    assert [file.exists() for file in files] == [True, True]
    assert "C|C+A/B-ALL" in whole.plot(whole.scenarios[1]).get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("arguments", "exception", "text"),
    [
        ({"scenarios": "Nonsense"}, StudyError, "is none of its choices; choices: C-Light"),
        ({"scenarios": "*,*,*,*,*,*,*,*"}, StudyError, "has 8 places"),
        ({"scenarios": []}, StudyError, "no scenario is chosen"),
        ({"scenarios": 5}, TypeError, "not iterable"),
        ({"scenarios": [5]}, TypeError, "named by a str"),
        ({"schemes": "X|Y"}, StudyError, "is not a scheme; schemes: R|R"),
        ({"schemes": []}, StudyError, "no scheme is chosen"),
        ({"schemes": [3]}, TypeError, "named by a str"),
        ({"threads": 0}, StudyError, "threads must be from 1"),
        ({"threads": -1}, bulkhead.TaskError, "threads must not be negative"),
        ({"threads": 1.0}, TypeError, "threads must be an integer"),
        ({"threads": 10**30}, bulkhead.TaskError, "is above"),
        ({"client": "tcp://nowhere"}, TypeError, "must be a dask.distributed.Client, not str"),
        ({"parameters": {"sead": 1}}, StudyError, "there is no `sead`; there are"),
        ({"parameters": {"seed": -1}}, StudyError, "`seed`: invalid value"),
        ({"parameters": {"seed": 10**40}}, StudyError, "`seed`:"),
        ({"parameters": {"seed": 0.5}}, StudyError, "`seed`: invalid"),
        ({"parameters": {"batch": 0}}, StudyError, "`batch` is 0; it must be"),
        ({"parameters": {"seed": float("nan")}}, StudyError, "parameters: "),
        ({"parameters": {"seed": object()}}, StudyError, "not JSON serializable"),
        ({"parameters": 5}, TypeError, "must be a mapping"),
        ({"parameters": {"io_sizes": [0]}}, StudyError, "at least one size"),
    ],
)
def test_hostile_studies(arguments: dict[str, object], exception: type[Exception], text: str) -> None:
    with pytest.raises(exception, match=text.replace("|", r"\|")):
        bulkhead.study(**arguments)  # type: ignore[arg-type]


def test_hostile_samples() -> None:
    for make, text in (
        (lambda: mc2.generate("*", 0, 0), "names 648 scenarios"),
        (lambda: mc2.generate(648, 0, 0), "scenario"),
        (lambda: mc2.generate(0, POINTS, 0), "the point is above"),
        (lambda: mc2.generate(0, 0, -1), "must not be negative"),
        (lambda: mc2.scenario_name(700), "is above 647"),
    ):
        with pytest.raises(bulkhead.BulkheadError, match=text):
            make()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OSError, match="file"):
        bulkhead.study(SMALL, "C|C", parameters=ROUGH, resume=file / "below")
