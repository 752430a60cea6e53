"""The heads of the blocks around a cursor, above a window of a few lines."""

from __future__ import annotations

import pytest

from lsp_complete.context.heads import HEADS, LOOK, enclosing_heads
from lsp_complete.text.buffer import TextBuffer

BODY = "".join(f"        step_{n}()\n" for n in range(12))


def heads(text: str, above: int = 4) -> str:
    """For the cursor at the end of the text, with so many lines of window above its line."""
    buffer = TextBuffer.from_text(text)
    line = buffer.line_count - 1
    return enclosing_heads(buffer, max(0, line - above), line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"import os\n\n\nclass Box:\n    size = 1\n\n    def open(self, key):\n{BODY}        x", "class Box:\n    def open(self, key):\n"),
        (f"def load(\n    path: str,\n) -> None:\n{BODY}        x", "def load(\n    path: str,\n) -> None:\n"),
        (f"class A {{\npublic:\n    int run(int n) {{\n{BODY}        x", "class A {\n    int run(int n) {\n"),
        (f"def f():\n#if old\n    # what it does\n    for x in y:\n{BODY}        x", "def f():\n    for x in y:\n"),
        (f"\tfunc (b *Box) open() {{\n{BODY}        x", "\tfunc (b *Box) open() {\n"),
        (f"def f():\n{BODY}x", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_what_the_cursor_stands_inside_of(text: str, expected: str) -> None:
    assert heads(text) == expected


def test_on_an_empty_line_what_is_typed_of_it_or_the_line_above_counts() -> None:
    assert heads(f"def f():\n{BODY}        ") == "def f():\n"
    assert heads(f"def f():\n{BODY}") == "def f():\n"


def test_what_the_window_shows_is_not_said_twice() -> None:
    assert heads("def f():\n    if a:\n        x", above=1) == "def f():\n"
    assert heads("def f():\n    if a:\n        x", above=2) == ""


def test_bounds() -> None:
    deep = "".join(f"{'    ' * n}if a{n}:\n" for n in range(9))
    text = deep + "".join(f"{'    ' * 9}x{n}()\n" for n in range(9)) + "    " * 9 + "y"
    assert heads(text) == "".join(f"{'    ' * n}if a{n}:\n" for n in range(9 - HEADS, 9)), "the innermost"
    far = "def f():\n" + "    pass\n" * (LOOK + 5) + "    x"
    assert heads(far) == ""
    wide = f"def f({'a, ' * 5_000}):\n" + "    pass\n" * 9 + "    x"
    assert len(heads(wide)) < 400
