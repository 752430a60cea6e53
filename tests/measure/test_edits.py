"""The client's own text arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.measure.edits import Edit, Position, apply_edits, column_index, split_lines, utf16


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc", ["a\r\n", "b\r", "c"]),
        ("a\x0cb\u2028c\n", ["a\x0cb\u2028c\n", ""]),
        ("\n\n", ["\n", "\n", ""]),
    ],
)
def test_lines(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(st.text(alphabet="ab\r\n\u2028😀"))
def test_lines_join_to_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert len(lines) == text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def test_columns_count_utf16() -> None:
    assert utf16("a😀é") == 4
    assert column_index("a😀é\n", 3) == 2
    assert column_index("a😀é\n", 99) == 3


def test_edits_apply_in_order_and_clamp() -> None:
    edits = [Edit(Position(0, 1), Position(0, 3), "x"), Edit(Position(0, 2), Position(9, 9), "!")]
    assert apply_edits("a😀b\nc", edits) == "ax!"
