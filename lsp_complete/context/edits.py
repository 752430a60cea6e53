"""What was edited lately, as places with their text before: the raw material of `extras.edit_chunks`.

Strategy: neighbouring edits of one document make one place, which moves with the text below or above it. What it became is read
from the document when asked, so the log holds only what is gone.

Rules:
- Bounded: MAX_PLACES places over all documents, MAX_LINES lines of old text each.
- Event loop. The old text is a user's text: never logged, gone with the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..text.buffer import TextBuffer
from ..text.edits import Edit
from .extras import RecentEdit

MAX_PLACES = 12
MAX_LINES = 12
NEAR_LINES = 2


@dataclass(slots=True)
class _Spot:
    """Lines first … last (of the document now), which were `before`."""

    uri: str
    first: int
    last: int
    before: list[str]


class EditLog:
    """See the module's rules."""

    def __init__(self) -> None:
        self._spots: list[_Spot] = []  # the newest last

    def changed(self, uri: str, old: TextBuffer, edits: Iterable[Edit]) -> None:
        """A document was edited. old: its text before the first of the edits; later ones are in the terms of their time."""
        for at, edit in enumerate(edits):
            first, last = edit.start_point[0], edit.old_end_point[0]
            lines = edit.new_end_point[0] - edit.old_end_point[0]
            spot = self._near(uri, first, last)
            before = [old.line_content(line) for line in range(first, min(last, first + MAX_LINES) + 1)] if at == 0 else []
            if spot is None:
                spot = _Spot(uri, first, last, before)
            else:
                self._spots.remove(spot)
                self._widen(spot, first, last, before)
            spot.last += lines
            for other in self._spots:
                if other.uri == uri and other.first > first:
                    end = edit.new_end_point[0]
                    other.first = other.first + lines if other.first > last else end
                    other.last = other.last + lines if other.last > last else max(other.first, end)
            self._spots.append(spot)
        del self._spots[:-MAX_PLACES]

    def _near(self, uri: str, first: int, last: int) -> _Spot | None:
        for spot in reversed(self._spots):
            if spot.uri == uri and spot.first - NEAR_LINES <= last and first <= spot.last + NEAR_LINES:
                return spot
        return None

    @staticmethod
    def _widen(spot: _Spot, first: int, last: int, before: list[str]) -> None:
        """Take in lines above or below; those in between are as they were."""
        if first < spot.first:
            spot.before[:0] = before[: spot.first - first]
            spot.first = first
        if last > spot.last:
            spot.before += before[-(last - spot.last) :]
            spot.last = last
        del spot.before[MAX_LINES:]

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._spots = [spot for spot in self._spots if spot.uri != uri]

    def recent(self, buffer_of: Callable[[str], TextBuffer | None], path_of: Callable[[str], str]) -> list[RecentEdit]:
        """The places, newest first. path_of gives "" for a document whose text must stay out of other prompts."""
        found: list[RecentEdit] = []
        for age, spot in enumerate(reversed(self._spots)):
            buffer, path = buffer_of(spot.uri), path_of(spot.uri)
            if buffer is None or not path:
                continue
            first = min(spot.first, buffer.line_count - 1)
            last = min(spot.last, first + MAX_LINES, buffer.line_count - 1)
            after = [buffer.line_content(line) for line in range(first, last + 1)]
            before, after = _trimmed(spot.before, after)
            if "\n".join(before) != "\n".join(after):
                found.append(RecentEdit(path, "\n".join(before), "\n".join(after), first, age))
        return found


def _trimmed(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Without the lines at either end that are the same."""
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    return before, after
