"""A folder that remembers the cells of a study, so that it can be stopped at any moment and go on.

Knows the file's shape and to which study it belongs; who does the cells it does not know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ._native import StudyError
from ._study_job import Cell

NAME = "cells.jsonl"


class Store:
    """One line for the study, then one for each cell. A last line without an end was being written when all stopped."""

    def __init__(
        self, folder: str | os.PathLike[str] | None, parameters: str, digest: str, schemes: tuple[int, ...]
    ) -> None:
        self._heading = json.dumps({"study": "mc2", "parameters": digest, "schemes": list(schemes)})
        self._path = None if folder is None else Path(folder) / NAME
        self._file: IO[str] | None = None
        self._cells: list[Cell] = []

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        self._path.parent.mkdir(parents=True, exist_ok=True)
        whole = 0
        if self._path.exists():
            text = self._path.read_bytes()
            whole = text.rfind(b"\n") + 1
            self._read(text[:whole])
        self._file = self._path.open("a", encoding="utf-8")
        self._file.truncate(whole)
        if whole == 0:
            self._write([self._heading])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, text: bytes) -> None:
        seen: dict[tuple[int, int], Cell] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if number == 1:
                if line.decode(errors="replace") != self._heading:
                    raise StudyError(
                        f"{self._path} belongs to a study with other parameters or schemes; choose another folder"
                    )
                continue
            try:
                scenario, point, samples, good = json.loads(line)
                cell = (int(scenario), int(point), int(samples), tuple(map(int, good)))
            except (ValueError, TypeError):
                raise StudyError(f"{self._path}:{number}: this line is no cell; delete it to do the cell again") from None
            if seen.setdefault((cell[0], cell[1]), cell) != cell:
                raise StudyError(f"{self._path}:{number}: the cell stands there twice with different counts")
        self._cells = list(seen.values())

    def cells(self) -> list[Cell]:
        """What was done before."""
        return self._cells

    def add(self, cells: Iterable[Cell]) -> None:
        """Remembers cells; when this returns they are in the file."""
        self._write([json.dumps([cell[0], cell[1], cell[2], list(cell[3])]) for cell in cells])

    def _write(self, lines: list[str]) -> None:
        if self._file is not None:
            self._file.write("".join(line + "\n" for line in lines))
            self._file.flush()
