"""The chunked buffer equals a plain string, whatever is edited, at chunk sizes small enough to meet every seam."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.text import buffer as buffer_module
from lsp_complete.text.buffer import TextBuffer
from tests.text.plain import hostile, plain_lines


@pytest.fixture(autouse=True, params=[(2, 8), (256, 16_384)], ids=["tiny chunks", "real chunks"])
def chunk_size(request: pytest.FixtureRequest) -> object:
    """Run each test with chunks of a few characters too, so that short texts have many seams."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffer_module, "CHUNK_LINES", request.param[0])
        patch.setattr(buffer_module, "CHUNK_CHARS", request.param[1])
        yield


def check(buffer: TextBuffer, text: str) -> None:
    """All of the buffer's answers against the plain text, and its own invariants."""
    lines = plain_lines(text)
    assert buffer.text() == text
    assert buffer.length == len(text)
    assert buffer.line_count == len(lines)
    assert buffer.lines(0, 10**6) == lines
    start = 0
    for number, line in enumerate(lines):
        assert buffer.line(number) == line
        assert buffer.line_content(number) == line.rstrip("\r\n")
        assert buffer.line_start(number) == start
        for column in range(len(line) or 1):
            assert buffer.position(start + column) == (number, column)
            inside = min(column, len(line.rstrip("\r\n")))
            assert buffer.offset(number, column) == start + inside
        start += len(line)
    assert buffer.position(len(text)) == (len(lines) - 1, len(lines[-1]))
    for chunk in buffer.chunks:
        assert chunk.text and chunk.starts == tuple(buffer_module.line_starts(chunk.text))
    for left, right in zip(buffer.chunks, buffer.chunks[1:], strict=False):
        assert left.text.endswith(("\n", "\r"))
        assert not (left.text.endswith("\r") and right.text.startswith("\n"))


@given(hostile, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), hostile), max_size=8))
def test_edits_equal_string_edits(text: str, edits: list[tuple[int, int, str]]) -> None:
    buffer = TextBuffer.from_text(text)
    check(buffer, text)
    for start, length, new in edits:
        start = min(start, len(text))
        old, before = buffer, text
        buffer = buffer.replace(start, start + length, new)
        text = text[:start] + new + text[start + length :]
        check(buffer, text)
        assert old.text() == before


@given(hostile, st.integers(-5, 500), st.integers(-5, 500))
def test_slice_is_a_string_slice(text: str, start: int, end: int) -> None:
    assert TextBuffer.from_text(text).slice(start, end) == text[max(start, 0) : max(end, 0)]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_joining_and_parting_of_crlf(at: int) -> None:
    whole = TextBuffer.from_text("a\r\nb")
    check(whole.replace(at, at, "x"), "a\r\nb"[:at] + "x" + "a\r\nb"[at:])
    check(whole.replace(at, at, "\n"), "a\r\nb"[:at] + "\n" + "a\r\nb"[at:])
    check(whole.replace(at, at, "\r"), "a\r\nb"[:at] + "\r" + "a\r\nb"[at:])
    check(whole.replace(at, at + 1, ""), "a\r\nb"[:at] + "a\r\nb"[at + 1 :])


def test_out_of_range_is_clamped() -> None:
    buffer = TextBuffer.from_text("ab\ncd")
    assert buffer.offset(-1, 5) == 0
    assert buffer.offset(9, 9) == 5
    assert buffer.offset(0, 99) == 2
    assert buffer.position(-4) == (0, 0)
    assert buffer.position(99) == (1, 2)
    assert buffer.line(7) == "" and buffer.line(-1) == ""
    assert buffer.line_start(7) == 5
    assert buffer.replace(99, -3, "x").text() == "x"


def test_an_edit_shares_all_other_chunks() -> None:
    buffer = TextBuffer.from_text("line of text\n" * 5000)
    edited = buffer.replace(20_000, 20_000, "x")
    shared = {id(chunk) for chunk in buffer.chunks} & {id(chunk) for chunk in edited.chunks}
    assert len(shared) >= len(buffer.chunks) - 2


def test_deleting_everything_in_pieces_leaves_no_crumbs() -> None:
    buffer = TextBuffer.from_text("0123456789\n" * 20_000)
    while buffer.length > 5000:
        buffer = buffer.replace(buffer.length // 3, buffer.length // 3 + 5000, "")
    assert len(buffer.chunks) <= 2 + buffer.length // (buffer_module.CHUNK_CHARS // 4)


def test_a_huge_line_is_edited_in_place() -> None:
    text = "x" * 2_000_000
    buffer = TextBuffer.from_text(text).replace(1_000_000, 1_000_000, "\n")
    assert buffer.line_count == 2
    assert len(buffer.line(0)) == 1_000_001
