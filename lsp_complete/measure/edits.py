"""Positions and edits as an LSP client sends them: lines and UTF-16 columns, over plain strings.

Strategy: the benchmark's side of the protocol is written apart from the server's text store, so that a fault
in one shows against the other. Everything is pure and O(text); a benchmark's client is in no hurry between keys.

Rules: lines end only at LF, CR LF or CR; columns count UTF-16 code units; edits of one message apply in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Zero-based line and UTF-16 column."""

    line: int
    character: int

    def as_lsp(self) -> dict[str, int]:
        """The wire form."""
        return {"line": self.line, "character": self.character}


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace start..end by text."""

    start: Position
    end: Position
    text: str

    def as_lsp(self) -> dict[str, Any]:
        """The wire form of a content change."""
        return {"range": {"start": self.start.as_lsp(), "end": self.end.as_lsp()}, "text": self.text}


def utf16(text: str) -> int:
    """Length of text in UTF-16 code units."""
    return len(text) + sum(1 for c in text if ord(c) > 0xFFFF)


def split_lines(text: str) -> list[str]:
    """Lines with their ends; a text that ends with a line end has one more, empty, line."""
    lines = _LINE.findall(text)
    if len(lines) > 1 and not lines[-1] and not lines[-2].endswith(("\n", "\r")):
        lines.pop()  # the empty match after an unterminated last line
    return lines or [""]


def body(line: str) -> str:
    """A line without its line end."""
    return line.rstrip("\r\n")


def column_index(line: str, character: int) -> int:
    """Index into line of a UTF-16 column, clamped to the line's body."""
    units = 0
    content = body(line)
    for index, char in enumerate(content):
        if units >= character:
            return index
        units += 2 if ord(char) > 0xFFFF else 1
    return len(content)


def offset_at(lines: list[str], position: Position) -> int:
    """Offset in code points of a position, clamped to the text."""
    if position.line >= len(lines):
        return sum(map(len, lines))
    return sum(map(len, lines[: position.line])) + column_index(lines[position.line], position.character)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits, each relative to the text that the one before left."""
    for edit in edits:
        lines = split_lines(text)
        text = text[: offset_at(lines, edit.start)] + edit.text + text[offset_at(lines, edit.end) :]
    return text
