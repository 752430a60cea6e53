"""A part of a buffer held as one string, for many small reads.

Strategy: describing the definitions of a file takes hundreds of slices of a few characters; finding the chunk for each would cost
more than the query that found them. Reads inside the passage are string slices, all others go to the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_complete.text.buffer import TextBuffer


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of `buffer` from `start` on, as far as `text` goes. Offsets are the buffer's."""

    buffer: TextBuffer
    text: str
    start: int

    @classmethod
    def of(cls, buffer: TextBuffer, start: int, end: int) -> Passage:
        """The passage start … end."""
        start = max(start, 0)
        return cls(buffer, buffer.slice(start, end), start)

    def slice(self, start: int, end: int) -> str:
        """Text between two offsets, as `TextBuffer.slice` gives it."""
        first, last = start - self.start, end - self.start
        if first >= 0 and last <= len(self.text):
            return self.text[first:last] if first < last else ""
        return self.buffer.slice(start, end)

    def line_of(self, offset: int) -> int:
        """The line of an offset."""
        return self.buffer.position(offset)[0]
