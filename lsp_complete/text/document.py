"""An open document as an immutable snapshot.

Strategy: every change gives a new `Document` that shares its text with the old one; whoever took a snapshot keeps a
consistent text whatever is typed meanwhile.

Rules:
- The text equals the editor's after any sequence of changes. The one exception: a lone surrogate half, which no UTF-8
  text can hold, is stored as U+FFFD; it counts the same in all three encodings (one 16-bit unit, three
  bytes, one code point), so positions stay right.
- Changes apply in order, each to the text the one before it left; positions are clamped, ranges the wrong way round are
  turned. Nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.edits import Change, Edit, Point, difference
from lsp_complete.text.positions import Encoding, column_from_lsp, column_to_lsp

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD; the same object if there are none."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def dominant_newline(text: str) -> str:
    """The most frequent line ending of `text`: "\\n", "\\r\\n" or "\\r"; "\\n" if it has none or on a tie."""
    if "\r" not in text:
        return "\n"
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=lambda ending: counts[ending])


@dataclass(frozen=True, slots=True)
class Document:
    """One version of an open document. `newline` is the text's dominant line ending, for what is inserted."""

    uri: str
    language_id: str
    version: int
    buffer: TextBuffer
    newline: str = "\n"

    @classmethod
    def open(cls, uri: str, language_id: str, version: int, text: str) -> Document:
        """A document as the editor opened it."""
        text = clean(text)
        return cls(uri, language_id, version, TextBuffer.from_text(text), dominant_newline(text))

    def apply(
        self, changes: Iterable[Change], encoding: Encoding, version: int
    ) -> tuple[Document, tuple[Edit, ...]]:
        """The document after `changes`, and the edits they were, in order."""
        buffer, newline = self.buffer, self.newline
        edits: list[Edit] = []
        for change in changes:
            text = clean(change.text)
            if change.range is None:
                start, end, piece = difference(buffer.text(), text)
            else:
                start, end = sorted(to_offset(buffer, point, encoding) for point in change.range)
                piece = text
            if change.range is None or buffer.line_count == 1:
                newline = dominant_newline(text)
            old, buffer = buffer, buffer.replace(start, end, piece)
            edits.append(_edit(old, buffer, start, end, start + len(piece)))
        return Document(self.uri, self.language_id, version, buffer, newline), tuple(edits)


def _edit(old: TextBuffer, new: TextBuffer, start: int, old_end: int, new_end: int) -> Edit:
    return Edit(start, old_end, new_end, old.position(start), old.position(old_end), new.position(new_end))


def to_offset(buffer: TextBuffer, point: Point, encoding: Encoding) -> int:
    """Offset of an LSP position, clamped: past the line → end of its content; past the document → its end."""
    line, character = point
    if line < 0:
        return 0
    if line >= buffer.line_count:
        return buffer.length
    return buffer.line_start(line) + column_from_lsp(buffer.line(line), character, encoding)


def to_point(buffer: TextBuffer, offset: int, encoding: Encoding) -> Point:
    """LSP position (line, character) of an offset, clamped to the text; inside a `\\r\\n` → before it."""
    line, column = buffer.position(offset)
    return line, column_to_lsp(buffer.line(line), column, encoding)
