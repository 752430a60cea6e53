"""Where a replay asks, and what the user finally had there. Pure.

Strategy: a recording made by our own server says where it asked. An imported one does not: there a request follows every
single edit that puts in something short, at its end, as editors do. The place is then carried through all later edits to
the final text: what stands behind it there is what the user wanted.

Rules:
- A place sticks to what is left of it: what is typed there later comes behind it. If that is deleted, it is where it was.
- Edits leave as LSP positions that never split a CR LF: an edit that does is widened to hold both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .edits import Edit, Position, body, split_lines, utf16
from .recording import Asked, Changed, Event, Recording, RecordingError, Splice, Texts, spliced

SHORT = 40
"""An edit that puts in more characters than this was pasted, accepted or refactored, not typed."""
REST_LIMIT = 4000


@dataclass(frozen=True, slots=True)
class Point:
    """A place where a replay asks. event: index of the event that it follows. line: the final text's line there;
    rest: the final text from the place on (up to REST_LIMIT characters)."""

    index: int
    event: int
    doc: int
    offset: int
    trigger: str
    line: str
    rest: str


@dataclass(slots=True)
class _Place:
    """A point under way to the end of the recording."""

    event: int
    doc: int
    offset: int
    trigger: str
    now: int


def points(recording: Recording, limit: int = 0) -> tuple[Point, ...]:
    """The places in order, at most `limit` (0: all). Raises RecordingError for a recording that contradicts itself."""
    own = any(isinstance(event, Asked) for event in recording.events)
    state, places = Texts(), list[_Place]()
    edits: dict[int, list[tuple[int, Sequence[Splice]]]] = {}
    for index, event in enumerate(recording.events):
        state.apply(event)
        if isinstance(event, Changed):
            edits.setdefault(event.doc, []).append((index, event.edits))
        asked = _asked(event, own)
        if asked is not None and (not limit or len(places) < limit):
            doc, offset, trigger = asked
            if doc not in state.text:
                raise RecordingError(f"The recording asks in document {doc} before it is opened.")
            offset = min(offset, len(state.text[doc]))
            places.append(_Place(index, doc, offset, trigger, offset))
    for doc, changes in edits.items():
        _carry([place for place in places if place.doc == doc], changes)
    return tuple(_point(number, place, state.text[place.doc]) for number, place in enumerate(places))


def _asked(event: Event, own: bool) -> tuple[int, int, str] | None:
    if own:
        return (event.doc, event.offset, event.trigger) if isinstance(event, Asked) else None
    if not isinstance(event, Changed) or len(event.edits) != 1:
        return None
    start, _, text = event.edits[0]
    return (event.doc, start + len(text), "automatic") if 0 < len(text) <= SHORT else None


def _point(number: int, place: _Place, final: str) -> Point:
    start = max(final.rfind("\n", 0, place.now), final.rfind("\r", 0, place.now)) + 1
    line = body(split_lines(final[start : start + REST_LIMIT])[0])
    rest = final[place.now : place.now + REST_LIMIT]
    return Point(number, place.event, place.doc, place.offset, place.trigger, line, rest)


def _carry(places: Sequence[_Place], changes: Sequence[tuple[int, Sequence[Splice]]]) -> None:
    """Carry the places of one document through what came after each. changes: (index of the event, its edits), in order. All places at once: a day of
    typing has tens of thousands of both."""
    now = np.array([place.offset for place in places], dtype=np.int64)
    known = 0
    for index, edits in changes:
        while known < len(places) and places[known].event < index:
            known += 1
        now[:known] = carried(now[:known], edits)
    for place, offset in zip(places, now.tolist(), strict=True):
        place.now = offset


def carried(offsets: NDArray[np.int64], edits: Sequence[Splice]) -> NDArray[np.int64]:
    """Where places are after the edits."""
    for start, end, text in edits:
        behind = offsets >= end if end > start else offsets > start
        offsets = np.where(behind, offsets + len(text) - (end - start), np.minimum(offsets, start) if end > start else offsets)
    return offsets


def position_at(text: str, offset: int) -> Position:
    """LSP position (UTF-16) of an offset; inside of a CR LF, the one before it."""
    if 0 < offset < len(text) and text[offset - 1] == "\r" and text[offset] == "\n":
        offset -= 1
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    head = text[:start]
    line = head.count("\n") + head.count("\r") - head.count("\r\n")
    return Position(line, utf16(text[start:offset]))


def lsp_edits(text: str, edits: Sequence[Splice]) -> tuple[Edit, ...]:
    """The edits of one event as an editor sends them."""
    out = []
    for start, end, new in edits:
        if 0 < start < len(text) and text[start - 1 : start + 1] == "\r\n":
            wide_start, wide = start - 1, "\r" + new
        else:
            wide_start, wide = start, new
        if 0 < end < len(text) and text[end - 1 : end + 1] == "\r\n":
            wide_end, wide = end + 1, wide + "\n"
        else:
            wide_end = end
        out.append(Edit(position_at(text, wide_start), position_at(text, wide_end), wide))
        text = spliced(text, [(start, end, new)])
    return tuple(out)
