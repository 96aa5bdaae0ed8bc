"""Task systems in files, good and bad."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bulkhead import FileError, Task, TaskError, files

SYSTEM = [Task(2, 10, id=1), Task(4, 20, 15, partition=1, working_set=64)]


def test_schedcat_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "tasks.xml"
    files.write_schedcat(path, SYSTEM)
    assert files.read_schedcat(path) == [SYSTEM]
    point = '<testpoint><config cpus="4"/><taskset><task period="10" wcet="2.0"/></taskset><taskset/></testpoint>'
    assert files.parse_schedcat(point) == [[Task(2, 10)], []]


def test_csv_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    files.write_csv(path, SYSTEM)
    assert path.read_text() == "id,period,wcet,deadline,partition,wss\n1,10,2,10,,\n,20,4,15,1,64\n"
    assert files.read_csv(path) == SYSTEM
    assert files.parse_csv("wcet,period\n1,5\n") == [Task(1, 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<taskset>\n <task period="10" wcet="2.5"/>\n</taskset>', "a.xml:2:26: `wcet` has a fraction"),
        ('<taskset><task period="10"/></taskset>', "a.xml:1:11: a task has no `wcet`"),
        ("<taskset>", "a.xml:1:"),
        ("", "a.xml:1:1"),
        ("<tasks/>", "begin with taskset"),
    ],
)
def test_bad_schedcat(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        files.parse_schedcat(text, "a.xml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.csv:1: no column 'period'"),
        ("period,wcet,colour\n", "a.csv:1: bad column 'colour'"),
        ("period,wcet,wcet\n", "a.csv:1: bad column 'wcet'"),
        ("period,wcet\n5\n", "a.csv:2: 1 values; there must be 2"),
        ("period,wcet\n5,1.5\n", "a.csv:2: `1.5` is not a number for `wcet`"),
        ("period,wcet\n5,-1\n", "`-1` is not a number"),
        ("period,wcet\n5,\u0661\n", "is not a number"),
        ("period,wcet\n5,0\n", "a.csv:2: cost must be positive"),
        (f"period,wcet\n{'9' * 5000},1\n", "is not a number"),
        ('period,wcet\n"5,1\n', "a.csv:"),
    ],
)
def test_bad_csv(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        files.parse_csv(text, "a.csv")


def test_what_the_format_cannot_hold_is_refused() -> None:
    with pytest.raises(FileError, match="neither jitter nor blocking"):
        files.format_schedcat([Task(1, 5, jitter=1)])
    with pytest.raises(TaskError, match="id must not be negative"):
        files.format_csv([Task(1, 5, id=-1)])


def test_binary_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"a\.xml: it is not UTF-8 text"):
        files.read_schedcat(path)
    with pytest.raises(FileNotFoundError):
        files.read_csv(tmp_path / "nothing")


def test_devices_and_pipes_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(FileError, match="not a regular file"):
            files.read_schedcat(path)
    with pytest.raises(FileError, match="it is a folder, not a file"):
        files.read_csv(tmp_path)
