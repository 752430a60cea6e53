"""The bounded windows of text around a cursor that rules look at, and the file's indentation style. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..suggest.lines import IndentStyle
from ..text.buffer import TextBuffer
from ..text.document import Document

BEFORE_CHARS = 4_000
AFTER_CHARS = 4_000
STYLE_LINES = 400


@dataclass(frozen=True, slots=True)
class Surroundings:
    """before, after: text up to and from the cursor (bounded). rest: right of the cursor on its line."""

    before: str
    after: str
    rest: str
    indent: IndentStyle

    @property
    def on_blank_line(self) -> bool:
        """Nothing stands on the cursor's line."""
        return not self.rest.strip() and not self.before.rpartition("\n")[2].strip()


def look_around(document: Document, offset: int) -> Surroundings:
    """The surroundings of a cursor. `before` starts at a line start where one is near enough."""
    buffer = document.buffer
    start = max(0, offset - BEFORE_CHARS)
    before = buffer.slice(start, offset)
    if start and "\n" in before:
        before = before[before.index("\n") + 1 :]
    after = buffer.slice(offset, min(buffer.length, offset + AFTER_CHARS))
    rest = after.split("\n", 1)[0].rstrip("\r")
    return Surroundings(before, after, rest, indent_style(buffer, buffer.position(offset)[0]))


def indent_style(buffer: TextBuffer, line: int) -> IndentStyle:
    """The file's own indentation, judged by up to STYLE_LINES lines around `line`."""
    first = max(0, line - STYLE_LINES // 2)
    tabs, widths, previous = 0, [0] * 9, 0
    for number in range(first, min(buffer.line_count, first + STYLE_LINES)):
        text = buffer.line_content(number)[:80]
        body = text.lstrip(" \t")
        if not body:
            continue
        if text[0] == "\t":
            tabs += 1
            previous = 0
            continue
        width = len(text) - len(body)
        step = abs(width - previous)
        if 1 < step <= 8 and "\t" not in text[:width]:
            widths[step] += 1
        previous = width
    spaces = sum(widths)
    if tabs > spaces:
        return IndentStyle(tabs=True, width=4, tab_width=4)
    best = max(range(2, 9), key=lambda w: widths[w]) if spaces else 4
    return IndentStyle(tabs=False, width=best, tab_width=4)
