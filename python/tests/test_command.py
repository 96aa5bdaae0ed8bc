"""The command and the package: the same study gives the same bytes, and each goes on where the other stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import bulkhead
import pytest
from distributed import Client, LocalCluster

SCENARIOS = "C-Light,Long,Light|Heavy,Quick,Small,High,Many"
SCHEMES = ["C|C", "O|C+A/B-ALL"]


@pytest.fixture(scope="module")
def command() -> str:
    """The command's program, which python/develop.py builds."""
    program = os.environ.get("BULKHEAD_PROGRAM")
    if program is None or shutil.which(program) is None:
        pytest.skip("no program: BULKHEAD_PROGRAM names none")
    return program


def run(program: str, *arguments: str) -> str:
    """Runs the command."""
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_same_bytes(command: str, tmp_path: Path) -> None:
    theirs, mine, spread = tmp_path / "command", tmp_path / "threads", tmp_path / "cluster"
    arguments = ["--scenarios", SCENARIOS, "--schemes", ",".join(SCHEMES)]
    run(command, "study", "mc2", *arguments, "--out", str(theirs), "--threads", "2")
    result = bulkhead.study(SCENARIOS, SCHEMES, threads=2, resume=mine)
    result.save(mine)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        bulkhead.study(SCENARIOS, SCHEMES, client=client, resume=spread).save(spread)
    expected = files(theirs)
    assert set(expected) >= {"study.json", "counts.csv", "summary.json", "index.html"}
    assert files(mine) == expected
    assert files(spread) == expected
    assert result.csv().encode() == expected["counts.csv"]


def test_each_goes_on_with_the_other(command: str, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "command", tmp_path / "python"
    run(command, "study", "mc2", "--scenarios", SCENARIOS, "--schemes", "C|C", "--out", str(theirs))
    expected = files(theirs)
    # A part of the command's study is finished by the package.
    next((theirs / "counts").iterdir()).unlink()
    bulkhead.study(SCENARIOS, "C|C", resume=theirs).save(theirs)
    assert files(theirs) == expected
    # A part of the package's study is finished by the command.
    bulkhead.study(SCENARIOS, "C|C", resume=mine)
    next((mine / "counts").iterdir()).unlink()
    run(command, "study", "mc2", "--resume", str(mine))
    assert files(mine) == expected
