"""The book's page on Python: every example gives what the page says."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

ROOT = Path(os.environ.get("BULKHEAD_ROOT", Path(__file__).parents[2]))
PAGE = ROOT / "docs" / "python.md"


def blocks(language: str) -> list[str]:
    """Code blocks of the page."""
    pieces = PAGE.read_text(encoding="utf-8").split("```")[1::2]
    return [piece.removeprefix(f"{language}\n") for piece in pieces if piece.startswith(f"{language}\n")]


def test_examples(tmp_path: Path) -> None:
    assert blocks("python")
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        example = doctest.DocTestParser().get_doctest("\n".join(blocks("python")), {}, "python.md", str(PAGE), 0)
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    finally:
        os.chdir(before)
    assert results.failed == 0
    assert results.attempted > 10


def test_commands_exist() -> None:
    for command in "\n".join(blocks("sh")).splitlines():
        words = command.split()
        # The first is what builds the environment of these tests, the second enters it.
        assert words[0] in ("python3", "source"), command
        assert (ROOT / words[1]).exists(), command
