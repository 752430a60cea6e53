"""LSP positions ↔ code-point columns, in the three encodings the protocol knows.

Strategy: everything inside the program counts code points; this is the one place that knows how an editor counts.
A column is found by measuring pieces with the codec in C, each piece at most what is left to cover, so a line of
megabytes costs a few passes over it and no Python loop per character.

Rules:
- Nothing raises on a bad position: it is clamped to the line, and one that falls inside a surrogate pair or a UTF-8
  sequence goes to that character's start.
- ASCII lines (most of all source lines) cost nothing: a unit is a character in every encoding.
"""

from __future__ import annotations

from enum import Enum


class Encoding(str, Enum):
    """How `character` counts within a line; the values are the protocol's `PositionEncodingKind`."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


_MOST_UNITS = {Encoding.UTF8: 4, Encoding.UTF16: 2, Encoding.UTF32: 1}


def units(text: str, encoding: Encoding) -> int:
    """Length of `text` in `encoding`'s units (bytes, 16-bit units, code points). Lone surrogates count as one unit of
    UTF-16 and three bytes of UTF-8."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def content(line: str) -> str:
    """`line` without its line ending (`\\n`, `\\r\\n` or `\\r`, at most one)."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def column_from_lsp(line: str, character: int, encoding: Encoding) -> int:
    """Code-point column of LSP offset `character` in `line` (with or without its ending).

    Past the end gives the end of the content, before the line ending; negative gives 0; inside a character gives its
    start.
    """
    body = content(line)
    if character <= 0:
        return 0
    if encoding is Encoding.UTF32 or body.isascii():
        return min(character, len(body))
    most = _MOST_UNITS[encoding]
    column, left = 0, character
    while left > 0 and column < len(body):
        piece = body[column : column + max(1, left // most)]
        size = units(piece, encoding)
        if size > left:  # only a single character can be too large: the position is inside it
            break
        column += len(piece)
        left -= size
    return column


def column_to_lsp(line: str, column: int, encoding: Encoding) -> int:
    """LSP offset of code-point `column` in `line`; columns are clamped to the content like LSP offsets are."""
    body = content(line)
    column = min(max(column, 0), len(body))
    if encoding is Encoding.UTF32 or body.isascii():
        return column
    return units(body[:column], encoding)


def negotiate(offered: list[str] | tuple[str, ...] | None) -> Encoding:
    """The encoding to announce: code points if the client offers them, else bytes, else UTF-16 (every client's)."""
    for encoding in (Encoding.UTF32, Encoding.UTF8):
        if offered and encoding.value in offered:
            return encoding
    return Encoding.UTF16
