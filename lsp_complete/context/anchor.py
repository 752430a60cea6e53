"""The anchor: which text stands before PRE, which after SUF, and which follows MID (DESIGN section 3).

Strategy: the text between the anchor (a line start above the cursor) and the cursor stands after the middle
token, so typing only appends to the prompt. Everything before it is frozen when the anchor is chosen:

    window_start ── prefix ── anchor ── tail ── cursor ── between ── suffix_start ── suffix

Rules:
- Offsets are code points in the current snapshot. `shifted` moves them along with edits; `why_moved` then
  compares the *text*, so a wrong shift can cost a new anchor but never a wrong prompt.
- `between` holds only what an editor inserts by itself (closers, indentation, line ends). It is in neither
  part of the prompt and is reconciled after generation.
- The head of the window does not slide: a new anchor keeps the old window while that is still reasonable,
  so the tokens in front of the anchor stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..text.buffer import TextBuffer
from ..text.edits import Edit

MAX_TAIL_CHARS = 6_000
MAX_PREFIX_CHARS = 24_000
MAX_SUFFIX_CHARS = 6_000
MAX_BETWEEN_CHARS = 400

_AUTO_INSERTED = re.compile(r"(?:[\s)\]}>\"'`;,]|\bend\b)*\Z")
_CLOSERS_ONLY = re.compile(r"[\s)\]}>\"'`;,:]*\Z")


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a file a prompt shows. A property of the model, found by measuring.

    lines_above, lines_below: lines around the cursor. anchor_lines: whole lines after the middle token when
    the anchor is chosen. max_tail_lines: the anchor moves when more than this many stand there.
    standard: True lays the prompt out as healed prefix-suffix-middle instead (for comparison).
    small: the near-cursor window that answers first in a cold place.
    """

    lines_above: int = 40
    lines_below: int = 15
    anchor_lines: int = 20
    max_tail_lines: int = 36
    standard: bool = False
    small: bool = False

    def __post_init__(self) -> None:
        if self.lines_above < 1 or self.lines_below < 0 or self.anchor_lines < 0:
            raise ValueError(f"a window needs lines: {self}")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A frozen choice of prompt parts. prefix and suffix are exact text; the offsets follow edits.

    at_cursor: the suffix began at the cursor itself (text to its right, or the end of the file), so that an
    insertion exactly there belongs to the tail. small: see `Window`.
    """

    window_start: int
    anchor: int
    suffix_start: int
    prefix: str
    suffix: str
    at_cursor: bool
    standard: bool = False
    small: bool = False

    def shifted(self, edits: Iterable[Edit]) -> Anchor:
        """The same anchor after edits of the document. O(edits); never raises."""
        window_start, anchor, suffix_start = self.window_start, self.anchor, self.suffix_start
        for edit in edits:
            window_start = _moved(window_start, edit, stays=False)
            anchor = _moved(anchor, edit, stays=True)
            suffix_start = _moved(suffix_start, edit, stays=not self.at_cursor)
        if (window_start, anchor, suffix_start) == (self.window_start, self.anchor, self.suffix_start):
            return self
        return replace(self, window_start=window_start, anchor=anchor, suffix_start=suffix_start)


def _moved(offset: int, edit: Edit, *, stays: bool) -> int:
    """Where `offset` is after `edit`. stays: an insertion exactly at the offset leaves it where it is."""
    if edit.start > offset or (edit.start == offset and edit.old_end == offset and stays):
        return offset
    if edit.old_end <= offset:
        return offset + edit.new_end - edit.old_end
    return edit.new_end if not stays else edit.start


def between(buffer: TextBuffer, anchor: Anchor, cursor: int) -> str:
    """Text between the cursor and the frozen suffix (what the editor has inserted since)."""
    return buffer.slice(cursor, max(cursor, min(anchor.suffix_start, cursor + MAX_BETWEEN_CHARS + 1)))


def why_moved(anchor: Anchor | None, buffer: TextBuffer, cursor: int, window: Window) -> str:
    """ "" if the anchor still serves this snapshot and cursor, else one word of why not.

    "first" | "jump" | "prefix_changed" | "suffix_changed" | "tail_long" | "short_tail".
    """
    if anchor is None:
        return "first"
    if not anchor.window_start <= anchor.anchor <= cursor <= anchor.suffix_start <= buffer.length:
        return "jump"
    if cursor - anchor.anchor > MAX_TAIL_CHARS:
        return "tail_long"
    if anchor.anchor - anchor.window_start != len(anchor.prefix):
        return "prefix_changed"
    if anchor.suffix_start - cursor > MAX_BETWEEN_CHARS:
        return "jump"
    if not _AUTO_INSERTED.match(buffer.slice(cursor, anchor.suffix_start)):
        return "jump"
    if buffer.slice(anchor.window_start, anchor.anchor) != anchor.prefix:
        return "prefix_changed"
    if buffer.slice(anchor.suffix_start, anchor.suffix_start + len(anchor.suffix)) != anchor.suffix:
        return "suffix_changed"
    cursor_line = buffer.position(cursor)[0]
    anchor_line = buffer.position(anchor.anchor)[0]
    if cursor_line - anchor_line > window.max_tail_lines:
        return "tail_long"
    if not window.standard and anchor.prefix and cursor_line - anchor_line < min(2, window.anchor_lines):
        return "short_tail"
    return ""


def choose(buffer: TextBuffer, cursor: int, window: Window, previous: Anchor | None = None) -> Anchor:
    """A new anchor for this cursor. Keeps the previous window's head while it is near enough.

    Bounded: looks at no more than lines_above * 2 + lines_below lines and the character limits above.
    """
    line, column = buffer.position(cursor)
    window_start = _window_start(buffer, line, window, previous)
    anchor_line = max(line - window.anchor_lines, buffer.position(window_start)[0])
    anchor = max(buffer.line_start(_non_blank_at_or_before(buffer, anchor_line)), window_start)
    anchor = max(anchor, cursor - MAX_TAIL_CHARS // 2) if cursor - anchor > MAX_TAIL_CHARS // 2 else anchor
    window_start = max(min(window_start, anchor), anchor - MAX_PREFIX_CHARS, 0)
    if window.standard:
        anchor = cursor
    suffix_start, at_cursor = _suffix_start(buffer, line, column, cursor)
    last = min(buffer.line_count, line + 1 + window.lines_below)
    end = buffer.length if last >= buffer.line_count else buffer.line_start(last)
    end = max(suffix_start, min(end, suffix_start + MAX_SUFFIX_CHARS))
    return Anchor(
        window_start=window_start,
        anchor=anchor,
        suffix_start=suffix_start,
        prefix=buffer.slice(window_start, anchor),
        suffix=buffer.slice(suffix_start, end),
        at_cursor=at_cursor,
        standard=window.standard,
        small=window.small,
    )


def _suffix_start(buffer: TextBuffer, line: int, column: int, cursor: int) -> tuple[int, bool]:
    """Text right of the cursor heads the suffix unless it is only closers; else the next line begins it."""
    rest = buffer.line_content(line)[column : column + MAX_SUFFIX_CHARS]
    if rest and not _CLOSERS_ONLY.match(rest):
        return cursor, True
    if line + 1 >= buffer.line_count:
        return buffer.length, True
    return buffer.line_start(line + 1), False


def _window_start(buffer: TextBuffer, line: int, window: Window, previous: Anchor | None) -> int:
    """The head of the window: kept, or a syntax boundary (a line at small indentation after a blank one)."""
    if previous is not None and (previous.standard, previous.small) == (window.standard, window.small):
        start_line, start_column = buffer.position(min(previous.window_start, buffer.length))
        same = buffer.slice(previous.window_start, previous.window_start + len(previous.prefix)) == previous.prefix
        distance = line - start_line
        if same and start_column == 0 and window.lines_above <= distance <= 2 * window.lines_above:
            return previous.window_start
        if same and start_line == 0 and start_column == 0 and 0 <= distance <= 2 * window.lines_above:
            return 0
    wanted = line - window.lines_above
    if wanted <= max(2, window.lines_above // 4):
        return 0
    best, best_score = wanted, 1_000
    for candidate in range(max(1, wanted - window.lines_above // 4), wanted + 1):
        score = _boundary_score(buffer, candidate)
        if score < best_score:
            best, best_score = candidate, score
    return buffer.line_start(best)


def _boundary_score(buffer: TextBuffer, line: int) -> int:
    """Smaller is a better place to begin a window: shallow, non-blank, after a blank line."""
    text = buffer.line_content(line)[:200]
    stripped = text.lstrip()
    if not stripped or stripped[0] in ")]}":
        return 900
    blank_before = not buffer.line_content(line - 1)[:200].strip()
    return 2 * (len(text) - len(stripped)) + (0 if blank_before else 3)


def _non_blank_at_or_before(buffer: TextBuffer, line: int) -> int:
    """An anchor line that is not blank, looking up to 8 lines back; tokens begin cleanly there."""
    for candidate in range(line, max(-1, line - 8), -1):
        if buffer.line_content(candidate)[:200].strip():
            return candidate
    return line
