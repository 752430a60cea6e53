"""An immutable text as a sequence of lines, cheap to edit at any size.

Strategy: the text is a tuple of chunks, each some hundred whole lines as one string with the starts of its lines. An
edit rebuilds the chunks it touches and shares all the others, so a key costs one chunk and one pass over the
chunk lengths: tens of microseconds at 10,000 lines, and old snapshots stay valid for whoever holds them.

Rules:
- Lines end only at `\\n`, `\\r\\n` and `\\r`. Form feeds, U+0085, U+2028 and others are ordinary characters.
- There is always a last line; it has no ending and may be empty.
- A chunk holds whole lines and a `\\r\\n` is never parted, so an edit begins at the chunk of the character before it: a
  `\\n` written after a `\\r` joins it, wherever that was.
- Offsets and columns count code points. Nothing raises on positions out of range: they are clamped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from lsp_complete.text.positions import content

CHUNK_LINES = 256
CHUNK_CHARS = 16_384
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Whole lines as one string; `starts` are the offsets in it where its lines begin (at least one). Equal only to
    itself, so that what is derived from a chunk can be kept in a dictionary."""

    text: str
    starts: tuple[int, ...]


def line_starts(text: str) -> list[int]:
    """Offsets where the non-empty lines of `text` begin; an empty last line is not among them."""
    if not text:
        return []
    starts = [0]
    if "\r" in text:
        starts += (match.end() for match in _LINE_END.finditer(text))
    else:
        at = text.find("\n") + 1
        while at:
            starts.append(at)
            at = text.find("\n", at) + 1
    if starts[-1] == len(text):
        starts.pop()
    return starts


def _chunks(text: str) -> list[Chunk]:
    """Cut whole lines into chunks of at most CHUNK_LINES lines and CHUNK_CHARS characters (a longer line is a chunk of its
    own). Chunk by chunk, so that a file of many short lines needs no list of all of them."""
    made: list[Chunk] = []
    begin, size = 0, len(text)
    while begin < size:
        stop = min(begin + CHUNK_CHARS, size)
        starts = _starts_between(text, begin, stop, CHUNK_LINES + 1)
        if len(starts) > CHUNK_LINES or (stop < size and len(starts) > 1):
            end = begin + starts.pop()  # the line after the last that fits, or that may go on beyond `stop`
        elif stop == size:
            end = size
        else:
            ending = _LINE_END.search(text, stop - 1)
            end = ending.end() if ending else size
        made.append(Chunk(text[begin:end], tuple(starts)))
        begin = end
    return made


def _starts_between(text: str, begin: int, stop: int, most: int) -> list[int]:
    """Where lines begin before `stop`, as offsets from `begin` (a line's start), at most `most`."""
    starts = [0]
    if text.find("\r", begin, stop) >= 0:
        ends = (match.end() for match in _LINE_END.finditer(text, begin, stop))
        starts += (end - begin for end in islice(ends, most) if end < stop)
        return starts[:most]
    at = text.find("\n", begin, stop) + 1
    while 0 < at < stop and len(starts) < most:
        starts.append(at - begin)
        at = text.find("\n", at, stop) + 1
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class TextBuffer:
    """One snapshot of a text. Safe to share between threads.

    `line_index[i]` and `offset_index[i]` are the lines and code points before chunk i; one more entry holds the totals.
    """

    chunks: tuple[Chunk, ...]
    line_index: Sequence[int]
    offset_index: Sequence[int]

    @classmethod
    def from_text(cls, text: str) -> TextBuffer:
        """A buffer of `text`. O(n)."""
        return cls._of(_chunks(text))

    @classmethod
    def _of(cls, chunks: Iterable[Chunk]) -> TextBuffer:
        kept = tuple(chunks)
        lines = accumulate((len(chunk.starts) for chunk in kept), initial=0)
        offsets = accumulate((len(chunk.text) for chunk in kept), initial=0)
        return cls(kept, tuple(lines), tuple(offsets))

    def text(self) -> str:
        """The whole text. O(n): not for the key path."""
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def length(self) -> int:
        """Code points in the text."""
        return self.offset_index[-1]

    @property
    def line_count(self) -> int:
        """Number of lines, at least 1: line endings + 1."""
        ended = not self.chunks or self.chunks[-1].text.endswith(("\n", "\r"))
        return self.line_index[-1] + ended

    def _line_span(self, line: int) -> tuple[int, int]:
        """Offsets of the start and end (ending included) of an existing line."""
        if line >= self.line_index[-1]:
            return self.length, self.length
        at = bisect_right(self.line_index, line) - 1
        starts, base, row = self.chunks[at].starts, self.offset_index[at], line - self.line_index[at]
        end = base + starts[row + 1] if row + 1 < len(starts) else self.offset_index[at + 1]
        return base + starts[row], end

    def line(self, line: int) -> str:
        """Line `line` with its ending; "" for a line that does not exist."""
        return self.slice(*self._line_span(line)) if line >= 0 else ""

    def line_content(self, line: int) -> str:
        """Line `line` without its ending."""
        return content(self.line(line))

    def lines(self, start: int, end: int) -> list[str]:
        """Lines start … end-1 with their endings, cut to the lines that exist."""
        return [self.line(line) for line in range(max(start, 0), min(end, self.line_count))]

    def line_start(self, line: int) -> int:
        """Offset where `line` begins; the text's end for lines past the last, 0 for negative ones."""
        return self._line_span(line)[0] if line > 0 else 0

    def offset(self, line: int, column: int) -> int:
        """Offset of a position, clamped to the line's content; past the last line gives the text's end."""
        if line < 0:
            return 0
        if line >= self.line_count:
            return self.length
        start = self._line_span(line)[0]
        return start + min(max(column, 0), len(self.line_content(line)))

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset. An offset inside a `\\r\\n` is one column past the line's content."""
        offset = min(max(offset, 0), self.length)
        if offset == self.length and self.line_count > self.line_index[-1]:
            return self.line_index[-1], 0
        at = min(bisect_right(self.offset_index, offset) - 1, len(self.chunks) - 1)
        chunk, inside = self.chunks[at], offset - self.offset_index[at]
        row = bisect_right(chunk.starts, inside) - 1
        return self.line_index[at] + row, inside - chunk.starts[row]

    def slice(self, start: int, end: int) -> str:
        """Text between two offsets; "" if they are the wrong way round. O(length of the slice + log chunks)."""
        start, end = max(start, 0), min(end, self.length)
        if start >= end:
            return ""
        first = bisect_right(self.offset_index, start) - 1
        last = bisect_right(self.offset_index, end - 1) - 1
        begin = start - self.offset_index[first]
        if first == last:
            return self.chunks[first].text[begin : end - self.offset_index[first]]
        parts = [self.chunks[first].text[begin:]]
        parts += (chunk.text for chunk in self.chunks[first + 1 : last])
        parts.append(self.chunks[last].text[: end - self.offset_index[last]])
        return "".join(parts)

    def chunks_between(self, start: int, end: int) -> tuple[Chunk, ...]:
        """The chunks that hold the characters from `start` to `end`, both included as far as they exist."""
        first = max(bisect_right(self.offset_index, start) - 1, 0)
        return self.chunks[first : bisect_right(self.offset_index, end)]

    def replace(self, start: int, end: int, text: str) -> TextBuffer:
        """A new buffer with start … end replaced by `text`. Offsets are clamped and ordered; this one is unchanged."""
        start, end = (min(max(at, 0), self.length) for at in (min(start, end), max(start, end)))
        if not self.chunks:
            return TextBuffer.from_text(text)
        last_chunk = len(self.chunks) - 1
        first = max(bisect_right(self.offset_index, start - 1) - 1, 0)
        last = min(bisect_right(self.offset_index, end) - 1, last_chunk)
        head = self.chunks[first].text[: start - self.offset_index[first]]
        tail = self.chunks[last].text[end - self.offset_index[last] :]
        middle = f"{head}{text}{tail}"
        if len(middle) < CHUNK_CHARS // 4 and last < last_chunk:  # keep deletions from leaving crumbs behind
            last += 1
            middle += self.chunks[last].text
        return TextBuffer._of((*self.chunks[:first], *_chunks(middle), *self.chunks[last + 1 :]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextBuffer) and self.length == other.length and self.text() == other.text()

    __hash__ = None  # type: ignore[assignment]  # equality is O(n); hash the text where a key is needed
