"""Task systems from and to files: SchedCAT's XML and comma-separated values.

A wrong file raises :class:`bulkhead.FileError`, whose message has the line, the column, the cause and the remedy. A
value with a fraction is refused rather than rounded.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path

from . import _native
from ._native import BulkheadError, FileError
from .tasks import Task

_COLUMNS = ("id", "period", "wcet", "deadline", "partition", "wss")


def _task(entry: tuple[int, int, int, int | None, int | None, int | None]) -> Task:
    cost, period, deadline, number, processor, working_set = entry
    return Task(cost, period, deadline, id=number, partition=processor, working_set=working_set)


def _read(path: str | os.PathLike[str]) -> str:
    return _native.read_text(path)


def parse_schedcat(text: str, name: str = "text") -> list[list[Task]]:
    """Reads task systems from a text in SchedCAT's XML format; messages use ``name``."""
    return [[_task(entry) for entry in entries] for entries in _native.schedcat_read(name, text)]


def read_schedcat(path: str | os.PathLike[str]) -> list[list[Task]]:
    """Reads the task systems of a file in SchedCAT's XML format, in the order of the file."""
    return parse_schedcat(_read(path), os.fspath(path))


def format_schedcat(tasks: Iterable[Task]) -> str:
    """Formats one task system as SchedCAT's XML. The format has no jitter and no blocking; such tasks are refused."""
    return _native.schedcat_write(list(tasks), False)


def write_schedcat(path: str | os.PathLike[str], tasks: Iterable[Task]) -> None:
    """Writes one task system in SchedCAT's XML format."""
    Path(path).write_text(format_schedcat(tasks), encoding="utf-8")


def format_csv(tasks: Iterable[Task]) -> str:
    """Formats one task system as comma-separated values with a heading."""
    return _native.schedcat_write(list(tasks), True)


def write_csv(path: str | os.PathLike[str], tasks: Iterable[Task]) -> None:
    """Writes one task system as comma-separated values with a heading."""
    Path(path).write_text(format_csv(tasks), encoding="utf-8")


def parse_csv(text: str, name: str = "text") -> list[Task]:
    """Reads a task system from a text with comma-separated values, as :func:`format_csv` writes it.

    The columns may be in any order; only ``period`` and ``wcet`` are required.
    """
    reader = csv.reader(io.StringIO(text), strict=True)
    tasks: list[Task] = []
    try:
        heading = next(reader, [])
        for column in heading:
            if column not in _COLUMNS or heading.count(column) > 1:
                raise FileError(f"{name}:1: bad column {column!r}; use each of {', '.join(_COLUMNS)} at most once")
        for column in ("period", "wcet"):
            if column not in heading:
                raise FileError(f"{name}:1: no column {column!r}; begin with a heading such as {','.join(_COLUMNS)}")
        for row in reader:
            place = f"{name}:{reader.line_num}"
            if len(row) != len(heading):
                raise FileError(f"{place}: {len(row)} values; there must be {len(heading)}, as in the heading")
            values: dict[str, int | None] = dict.fromkeys(_COLUMNS)
            for column, value in zip(heading, row, strict=True):
                if not value and column not in ("period", "wcet"):
                    continue
                if not (value.isascii() and value.isdigit() and len(value) <= 20):
                    raise FileError(f"{place}: `{value}` is not a number for `{column}`; write a natural number")
                values[column] = int(value)
            cost, period = values["wcet"], values["period"]
            assert cost is not None
            assert period is not None
            deadline = period if values["deadline"] is None else values["deadline"]
            try:
                entry = (cost, period, deadline, values["id"], values["partition"], values["wss"])
                tasks.append(_task(entry))
            except BulkheadError as error:
                raise FileError(f"{place}: {str(error).removeprefix('task 0: ')}") from None
    except csv.Error as error:
        raise FileError(f"{name}:{reader.line_num}: {error}; write comma-separated values") from None
    return tasks


def read_csv(path: str | os.PathLike[str]) -> list[Task]:
    """Reads a task system from a file with comma-separated values."""
    return parse_csv(_read(path), os.fspath(path))
