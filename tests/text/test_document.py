"""Documents after changes equal a plain editor's text, and the edits tell the truth."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.text.document import Document, clean, dominant_newline
from lsp_complete.text.edits import Change, Edit, difference, shift
from lsp_complete.text.positions import Encoding
from tests.text.plain import hostile, plain_offset

points = st.tuples(st.integers(0, 20), st.integers(0, 30))
changes = st.builds(Change, st.none() | st.tuples(points, points), hostile)


@given(hostile, st.lists(changes, max_size=6), st.sampled_from(list(Encoding)))
def test_changes_equal_plain_changes(text: str, batch: list[Change], encoding: Encoding) -> None:
    document, edits = Document.open("file:///a", "c", 1, text).apply(batch, encoding, 2)
    replayed = text
    for change, edit in zip(batch, edits, strict=True):
        before = replayed
        if change.range is None:
            after = change.text
        else:
            start, end = sorted(plain_offset(text, *point, encoding.value) for point in change.range)
            after = text[:start] + change.text + text[end:]
        replayed = before[: edit.start] + after[edit.start : edit.new_end] + before[edit.old_end :]
        assert replayed == after
        text = after
    assert document.buffer.text() == text
    assert document.version == 2


@given(hostile, changes, st.integers(0, 300))
def test_an_edit_carries_matching_points(text: str, change: Change, at: int) -> None:
    old = Document.open("file:///a", "c", 1, text)
    new, (edit,) = old.apply([change], Encoding.UTF16, 2)
    assert old.buffer.position(edit.start) == edit.start_point
    assert old.buffer.position(edit.old_end) == edit.old_end_point
    assert new.buffer.position(edit.new_end) == edit.new_end_point
    if at <= edit.start or edit.old_end <= at <= len(text):
        assert (
            old.buffer.slice(at, at + 1) in ("", new.buffer.slice(shift(at, edit), shift(at, edit) + 1))
            or at == edit.start
        )


@given(hostile, hostile)
def test_difference_is_right_and_minimal(old: str, new: str) -> None:
    start, end, piece = difference(old, new)
    assert old[:start] + piece + old[end:] == new
    if start < end and piece:
        assert old[start] != piece[0] and old[end - 1] != piece[-1]


def test_difference_of_long_texts() -> None:
    old = "line\n" * 50_000
    assert difference(old, old) == (len(old), len(old), "")
    assert difference(old, old[:123_456] + "X" + old[123_456:]) == (123_456, 123_456, "X")


def test_shift_inside_a_replaced_part() -> None:
    edit = Edit(5, 9, 6, (0, 5), (0, 9), (0, 6))
    assert [shift(at, edit) for at in (0, 5, 7, 9, 12)] == [0, 5, 5, 6, 9]


def test_lone_surrogates_keep_their_width() -> None:
    document = Document.open("file:///a", "c", 1, "a\ud83db")
    assert document.buffer.text() == "a\ufffdb"
    document, _ = document.apply([Change(((0, 2), (0, 3)), "\ude00")], Encoding.UTF16, 2)
    assert document.buffer.text() == "a\ufffd\ufffd"
    assert clean("é") == "é"


def test_dominant_newline_follows_the_first_line_end() -> None:
    assert dominant_newline("a\r\nb\nc\r\n") == "\r\n"
    assert dominant_newline("a\rb\r") == "\r"
    assert dominant_newline("") == "\n"
    document = Document.open("file:///a", "c", 1, "")
    document, _ = document.apply([Change(((0, 0), (0, 0)), "a\r\nb")], Encoding.UTF16, 2)
    assert document.newline == "\r\n"
    document, _ = document.apply([Change(((1, 1), (1, 1)), "\n\n\n")], Encoding.UTF16, 3)
    assert document.newline == "\r\n"
