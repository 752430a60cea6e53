"""Columns in three encodings against counting character by character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.document import to_offset, to_point
from lsp_complete.text.positions import Encoding, column_from_lsp, column_to_lsp, negotiate, units
from tests.text.plain import hostile, plain_lines, plain_offset

encodings = st.sampled_from(list(Encoding))


@given(hostile, st.integers(0, 40), st.integers(0, 80), encodings)
def test_offsets_equal_plain_counting(text: str, line: int, character: int, encoding: Encoding) -> None:
    found = to_offset(TextBuffer.from_text(text), (line, character), encoding)
    assert found == plain_offset(text, line, character, encoding.value)


@given(hostile, encodings)
def test_points_go_there_and_back(text: str, encoding: Encoding) -> None:
    buffer = TextBuffer.from_text(text)
    start = 0
    for line in plain_lines(text):
        for column in range(len(line.rstrip("\r\n")) + 1):
            point = to_point(buffer, start + column, encoding)
            assert to_offset(buffer, point, encoding) == start + column
        start += len(line)


def test_inside_a_character_goes_to_its_start() -> None:
    assert [column_from_lsp("a😀b", n, Encoding.UTF16) for n in range(6)] == [0, 1, 1, 2, 3, 3]
    assert [column_from_lsp("é漢", n, Encoding.UTF8) for n in range(7)] == [0, 0, 1, 1, 1, 2, 2]
    assert column_from_lsp("ab", -3, Encoding.UTF16) == 0


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", list(Encoding))
def test_past_the_end_stops_before_the_line_ending(ending: str, encoding: Encoding) -> None:
    assert column_from_lsp("é" + ending, 99, encoding) == 1
    assert column_to_lsp("é" + ending, 99, encoding) == units("é", encoding)


def test_a_huge_line_of_wide_characters() -> None:
    line = "漢😀a" * 300_000
    for encoding, per in ((Encoding.UTF8, 8), (Encoding.UTF16, 4), (Encoding.UTF32, 3)):
        assert column_from_lsp(line, per * 200_000, encoding) == 600_000
        assert column_to_lsp(line, 600_000, encoding) == per * 200_000


def test_negotiation_prefers_code_points_then_bytes() -> None:
    assert negotiate(["utf-16", "utf-8", "utf-32"]) is Encoding.UTF32
    assert negotiate(["utf-16", "utf-8"]) is Encoding.UTF8
    assert negotiate(["utf-16"]) is Encoding.UTF16
    assert negotiate(None) is Encoding.UTF16
