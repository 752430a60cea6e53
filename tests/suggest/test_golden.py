"""Each filter against its golden files (see `golden_tool.py`, which also writes them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete.suggest.pipeline import JUDGE, SHAPE
from tests.suggest import golden_tool

LANGUAGES = ("cpp", "go", "java", "python", "rust", "typescript")


@pytest.mark.parametrize(("language", "name", "path"), golden_tool.files(), ids=lambda v: getattr(v, "stem", v))
def test_results_are_as_reviewed(language: str, name: str, path: Path) -> None:
    for case in golden_tool.read(path):
        now = golden_tool.run(case, language, name)
        assert (now.filtered, now.polished) == (case.filtered, case.polished), f"{path.name}: {case.title}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_filter_has_a_golden_file(language: str) -> None:
    there = {name for lang, name, _ in golden_tool.files() if lang == language}
    assert {f.__name__ for f in (*SHAPE, *JUDGE)} | {"newlines"} <= there


def test_a_file_written_again_is_the_same(tmp_path: Path) -> None:
    for _, _, path in golden_tool.files():
        copy = tmp_path / "copy.txt"
        golden_tool.write(copy, golden_tool.read(path))
        assert copy.read_text("utf-8") == path.read_text("utf-8")
