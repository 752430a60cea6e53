"""The anchor: what is frozen, when it moves, and that it follows edits."""

from __future__ import annotations

import random

import pytest

from lsp_complete.context.anchor import Window, between, choose, why_moved
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding

WINDOW = Window(lines_above=12, lines_below=4, anchor_lines=5, max_tail_lines=9)

FILE = "".join(
    f"def function_{n}(a, b):\n    first = a + {n}\n    second = b * first\n\n    return second\n\n\n" for n in range(12)
)


def document(text: str) -> Document:
    return Document.open("file:///a.py", "python", 1, text)


def at(text: str) -> tuple[Document, int]:
    """A document from text with a cursor mark."""
    offset = text.index("‸")
    return document(text.replace("‸", "")), offset


def replaced(doc: Document, start: int, end: int, text: str):  # type: ignore[no-untyped-def]
    change = Change((doc.buffer.position(start), doc.buffer.position(end)), text)
    return doc.apply([change], Encoding.UTF32, doc.version + 1)


def test_parts_tile_the_window() -> None:
    doc, cursor = at(FILE.replace("function_6(a, b):\n    first = a", "function_6(a, b):\n    first = ‸"))
    anchor = choose(doc.buffer, cursor, WINDOW)
    assert anchor.window_start <= anchor.anchor <= cursor <= anchor.suffix_start
    assert doc.buffer.slice(anchor.window_start, anchor.anchor) == anchor.prefix
    assert doc.buffer.slice(anchor.suffix_start, anchor.suffix_start + len(anchor.suffix)) == anchor.suffix
    assert why_moved(anchor, doc.buffer, cursor, WINDOW) == ""


def test_anchor_begins_a_line_that_is_not_blank() -> None:
    for line in range(8, 70):
        doc = document(FILE)
        anchor = choose(doc.buffer, doc.buffer.line_start(line), WINDOW)
        anchor_line, column = doc.buffer.position(anchor.anchor)
        assert column == 0
        assert doc.buffer.line_content(anchor_line).strip() or anchor_line == 0


def test_closers_right_of_the_cursor_stay_out() -> None:
    doc, cursor = at("x = call(‸)\nnext_line = 1\n")
    anchor = choose(doc.buffer, cursor, WINDOW)
    assert anchor.suffix == "next_line = 1\n"
    assert between(doc.buffer, anchor, cursor) == ")\n"


def test_text_right_of_the_cursor_heads_the_suffix() -> None:
    doc, cursor = at("x = ‸ + other\nnext_line = 1\n")
    anchor = choose(doc.buffer, cursor, WINDOW)
    assert anchor.suffix == " + other\nnext_line = 1\n"


def test_typing_accepting_enter_and_backspace_keep_the_anchor() -> None:
    doc, cursor = at(FILE.replace("second = b * first\n\n    return second\n\n\ndef function_7", "‸\n\ndef function_7"))
    anchor = choose(doc.buffer, cursor, WINDOW)
    for text in ["s", "e", "c", "ond = [", "a, b]", "\n    ", "for x in second:", "\n        ", "print(x)"]:
        doc, edits = replaced(doc, cursor, cursor, text)
        cursor += len(text)
        anchor = anchor.shifted(edits)
        assert why_moved(anchor, doc.buffer, cursor, WINDOW) == "", text
    for _ in range(12):
        doc, edits = replaced(doc, cursor - 1, cursor, "")
        cursor -= 1
        anchor = anchor.shifted(edits)
        assert why_moved(anchor, doc.buffer, cursor, WINDOW) == ""


def test_enter_between_braces_stays_out_of_the_prompt() -> None:
    doc, cursor = at("function f() {‸}\nlet rest = 1;\n")
    anchor = choose(doc.buffer, cursor, WINDOW)
    doc, edits = replaced(doc, cursor, cursor, "\n    \n")
    cursor += 5
    anchor = anchor.shifted(edits)
    assert why_moved(anchor, doc.buffer, cursor, WINDOW) == ""
    assert anchor.suffix == "let rest = 1;\n"
    assert between(doc.buffer, anchor, cursor) == "\n}\n"


def test_typing_at_the_end_of_the_file_keeps_the_anchor() -> None:
    doc, cursor = at("import os\nprint(‸")
    anchor = choose(doc.buffer, cursor, WINDOW)
    doc, edits = replaced(doc, cursor, cursor, "os.name")
    anchor = anchor.shifted(edits)
    assert why_moved(anchor, doc.buffer, cursor + 7, WINDOW) == ""


@pytest.mark.parametrize(
    ("edit_at", "expected"),
    [("above", ""), ("prefix", "prefix_changed"), ("suffix", "suffix_changed"), ("far_below", "")],
)
def test_edits_elsewhere(edit_at: str, expected: str) -> None:
    doc = document(FILE)
    cursor = doc.buffer.line_start(44) + 4
    anchor = choose(doc.buffer, cursor, WINDOW)
    where = {
        "above": 0,
        "prefix": anchor.window_start + 6,
        "suffix": anchor.suffix_start + 3,
        "far_below": doc.buffer.length,
    }[edit_at]
    doc, edits = replaced(doc, where, where, "x" if edit_at != "above" else "import sys\n")
    cursor += sum(e.delta for e in edits if e.start <= cursor)
    assert why_moved(anchor.shifted(edits), doc.buffer, cursor, WINDOW) == expected


def test_the_anchor_moves_when_the_tail_is_long_and_keeps_the_window() -> None:
    doc = document(FILE)
    cursor = doc.buffer.line_start(40)
    anchor = choose(doc.buffer, cursor, WINDOW)
    further = doc.buffer.line_start(40 + WINDOW.max_tail_lines)
    assert why_moved(anchor, doc.buffer, further, WINDOW) != ""
    moved = choose(doc.buffer, doc.buffer.line_start(45), WINDOW, anchor)
    assert moved.window_start == anchor.window_start
    assert moved.prefix.startswith(anchor.prefix)


def test_a_line_of_two_megabytes_is_bounded() -> None:
    doc = document("x" * 2_000_000)
    anchor = choose(doc.buffer, 1_000_000, WINDOW)
    assert len(anchor.prefix) <= 24_000
    assert len(anchor.suffix) <= 6_000
    assert 1_000_000 - anchor.anchor <= 6_000


def test_a_standing_anchor_is_never_wrong() -> None:
    """Random edits: whenever the anchor is said to stand, its frozen texts are what the document says."""
    rng = random.Random(5)
    doc = document(FILE)
    cursor = doc.buffer.line_start(30)
    anchor = choose(doc.buffer, cursor, WINDOW)
    stood = 0
    for _ in range(600):
        near = rng.random() < 0.8
        start = cursor if near else rng.randrange(doc.buffer.length)
        end = min(doc.buffer.length, start + (rng.randrange(6) if rng.random() < 0.2 else 0))
        text = rng.choice(["a", "(", ")", "\n", "    ", "}\n", "word", "", "é😀"])
        doc, edits = replaced(doc, start, end, text)
        cursor = start + len(text)
        anchor = anchor.shifted(edits)
        if why_moved(anchor, doc.buffer, cursor, WINDOW):
            anchor = choose(doc.buffer, cursor, WINDOW, anchor)
        else:
            stood += 1
        assert doc.buffer.slice(anchor.window_start, anchor.anchor) == anchor.prefix
        assert doc.buffer.slice(anchor.suffix_start, anchor.suffix_start + len(anchor.suffix)) == anchor.suffix
        gap = doc.buffer.slice(cursor, anchor.suffix_start)
        assert not gap.strip(" \t\r\n)]}>\"'`;,:") or set(gap.split()) <= {"end"}
    assert stood > 300
