"""Changes as they come from an editor, and edits as the rest of the program uses them.

Strategy: a `Change` is in the editor's terms (a range in its encoding, or a whole new text), an `Edit` is what it did
to the text (offsets and points in code points), in the order in which the edits were applied: each one refers to
the text that the one before it left.

Rules:
- Plain values only; nothing here knows the protocol.
- A whole new text becomes the smallest single edit between common head and common tail, so caches survive clients that
  send whole files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Point = tuple[int, int]
"""(line, column): 0-based, columns in code points for an `Edit`, in the editor's units for a `Change`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One content change as sent: replace `range` (start, end) by `text`, or everything if `range` is None."""

    range: tuple[Point, Point] | None
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """What a change did: `start … old_end` of the old text became `start … new_end` of the new one (code points)."""

    start: int
    old_end: int
    new_end: int
    start_point: Point
    old_end_point: Point
    new_end_point: Point

    @property
    def delta(self) -> int:
        """Code points by which everything behind the edit moved."""
        return self.new_end - self.old_end


def shift(offset: int, edit: Edit) -> int:
    """Where an offset of the old text is in the new one; one inside the replaced part goes to the edit's start."""
    if offset <= edit.start:
        return offset
    return offset + edit.delta if offset >= edit.old_end else edit.start


def merge(edits: Iterable[Edit]) -> Edit | None:
    """One edit over everything that `edits` (applied in order) touched, in the oldest and the newest text's terms; None
    if there are none. It may cover text between them that did not change."""
    merged: Edit | None = None
    for edit in edits:
        if merged is None:
            merged = edit
            continue
        first = edit if edit.start < merged.start else merged
        old_end, old_end_point = merged.old_end, merged.old_end_point
        new_end, new_end_point = edit.new_end, edit.new_end_point
        if edit.old_end > merged.new_end:  # this edit takes in old text behind the earlier ones
            old_end += edit.old_end - merged.new_end
            old_end_point = _plus(old_end_point, merged.new_end_point, edit.old_end_point)
        else:  # what the earlier ones wrote goes on behind this edit
            new_end += merged.new_end - edit.old_end
            new_end_point = _plus(new_end_point, edit.old_end_point, merged.new_end_point)
        merged = Edit(first.start, old_end, new_end, first.start_point, old_end_point, new_end_point)
    return merged


def _plus(point: Point, origin: Point, target: Point) -> Point:
    """`point` moved by the way from `origin` to `target` (which lies behind it)."""
    lines = target[0] - origin[0]
    return (point[0] + lines, target[1]) if lines else (point[0], point[1] + target[1] - origin[1])


def difference(old: str, new: str) -> tuple[int, int, str]:
    """The smallest (start, end, text) that turns `old` into `new`. O(n), in comparisons of whole pieces."""
    head = _common(old, new, min(len(old), len(new)), backwards=False)
    tail = _common(old, new, min(len(old), len(new)) - head, backwards=True)
    return head, len(old) - tail, new[head : len(new) - tail]


def _common(old: str, new: str, most: int, *, backwards: bool) -> int:
    """Length of the longest common head (or tail) of at most `most` characters, by doubling, then bisection."""

    def piece(text: str, low: int, high: int) -> str:
        return text[len(text) - high : len(text) - low] if backwards else text[low:high]

    low, step = 0, 1024
    while low < most:
        high = min(low + step, most)
        if piece(old, low, high) != piece(new, low, high):
            break
        low, step = high, step * 2
    else:
        return most
    while high - low > 1:  # the first difference lies in low … high-1
        middle = (low + high) // 2
        if piece(old, low, middle) == piece(new, low, middle):
            low = middle
        else:
            high = middle
    return low
