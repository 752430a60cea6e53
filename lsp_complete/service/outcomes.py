"""What became of suggestions: shown, accepted, partly accepted, typed over, dismissed, still there later. Local, counted only.

Strategy: the state machine is `suggest.outcome`; here the editor's messages become its events. An acceptance is told by a
command where the editor runs one, and read off the change where it does not: an edit at the cursor that puts in more than one
character of what is left of the suggestion was not typed.

Rules:
- Thread: the event loop; a change costs a comparison of a few characters. Whether accepted text is still there is looked for in a worker
  thread, within `AROUND` characters of where it was put.
- Text is held for as long as it may be looked for, in memory only; what goes out are counts and shares.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..suggest.lines import is_closers
from ..suggest.outcome import CHECKS_S, Check, OutcomeTracker, still_there
from ..suggest.typed import remaining
from ..text.document import Document
from ..text.edits import Edit, merge
from .types import Query, Suggestion

KEEP = 200
AROUND = 30_000
LONGEST = 20_000
"""An edit of more characters than this is not compared with a suggestion."""
TAB_WIDTH = 4

Later = Callable[[float, Callable[[], object]], object]


@dataclass(slots=True)
class _Place:
    """The suggestion on screen in a document. begin: offset of its first character; done: characters of it that are in the document;
    by_hand: how many of them were typed."""

    number: int
    begin: int
    done: int = 0
    by_hand: int = 0


@dataclass(frozen=True, slots=True)
class _Given:
    """A suggestion that went out."""

    uri: str
    text: str
    offset: int
    number: int


class Outcomes:
    """See the module's rules. snapshot: an open document by URI. later: calls back after so many seconds."""

    def __init__(
        self,
        clock: Callable[[], float],
        snapshot: Callable[[str], Document | None] = lambda _uri: None,
        later: Later | None = None,
    ) -> None:
        self._clock, self._snapshot, self._later = clock, snapshot, later
        self._tracker = OutcomeTracker()
        self._given: OrderedDict[str, _Given] = OrderedDict()
        self._places: dict[str, _Place] = {}
        self._taken_at: OrderedDict[int, int] = OrderedDict()
        self._answered = self._confirmed = 0
        self._looking: set[asyncio.Task[None]] = set()

    # -- what the service sees -------------------------------------------------------------------------

    def answered(self, query: Query, suggestions: Sequence[Suggestion]) -> None:
        """Suggestions went out for a query. Those of a menu count as shown once one of them is accepted."""
        self._answered += bool(suggestions)
        uri = query.document.uri
        for rank, suggestion in enumerate(suggestions):
            number = 0
            if rank == 0 and not query.menu:
                number = self._tracker.shown(uri, suggestion.text, self._clock())
                place = self._places.get(uri)
                if place is None or place.number != number:
                    self._places[uri] = _Place(number, suggestion.start)
            self._given[suggestion.id] = _Given(uri, suggestion.text, suggestion.start, number)
        while len(self._given) > KEEP:
            self._given.popitem(last=False)

    def changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """A document changed: by a key that agrees with the suggestion on screen, by accepting it, or otherwise."""
        place, item = self._places.get(document.uri), self._tracker.current(document.uri)
        edit = merge(edits)
        if place is None or item is None or item.number != place.number or edit is None:
            return
        cursor = place.begin + place.done
        if edit.old_end < place.begin:
            place.begin += edit.delta
            return
        if edit.start > cursor:
            return
        put = document.buffer.slice(edit.start, edit.new_end) if edit.new_end - edit.start <= LONGEST else ""
        if edit.start < cursor:  # acceptance may replace what was typed already
            known = edit.start >= place.begin and put == item.text[edit.start - place.begin :] and edit.old_end == cursor
            self._event(document.uri, "accept" if known else "disagree")
            return
        count = agreed(item.text[place.done :], put)
        whole = place.done + count >= item.length
        place.done += count
        if not count:
            self._event(document.uri, "disagree")
        elif count > 1 and put.strip():
            self._event(document.uri, "accept" if whole else "accept_part", count)
        else:
            place.by_hand += count
            self._event(document.uri, "type", place.by_hand)

    def moved(self, uri: str, offset: int) -> None:
        """The cursor was placed without typing; away from the suggestion, that dismisses it."""
        place = self._places.get(uri)
        if place is not None and not place.begin <= offset <= place.begin + place.done:
            self._event(uri, "dismiss")

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self._tracker.forget(uri)
        self._places.pop(uri, None)

    # -- what the editor tells -----------------------------------------------------------------------------

    def accepted(self, suggestion_id: str) -> str:
        """An acceptance; the document's URI, or "" for an id that is not known (any more)."""
        given = self._given.get(suggestion_id)
        if given is None:
            return ""
        number = given.number or self._tracker.shown(given.uri, given.text, self._clock())
        if not given.number:
            self._places[given.uri] = _Place(number, given.offset)
            self._given[suggestion_id] = _Given(given.uri, given.text, given.offset, number)
        place = self._places.get(given.uri)
        if place is not None and place.number == number:
            self._event(given.uri, "accept")
        return given.uri

    def shown(self, suggestion_id: str) -> None:
        """The editor says that it shows a suggestion; all that went out count as shown anyway."""
        self._confirmed += suggestion_id in self._given

    def partially_accepted(self, suggestion_id: str, length: int) -> None:
        """The first `length` UTF-16 units of a suggestion are accepted so far."""
        given = self._given.get(suggestion_id)
        item = self._tracker.current(given.uri) if given is not None else None
        if given is None or item is None or item.number != given.number:
            return
        taken = len(item.text.encode("utf-16-le")[: 2 * max(0, length)].decode("utf-16-le", "ignore"))
        if taken > item.taken:
            self._event(given.uri, "accept_part", taken - item.taken)

    # -- figures ---------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, object]:
        """Plain JSON values: counts by outcome, characters shown and taken, and the share still there by seconds."""
        return {"answered": self._answered, "confirmed": self._confirmed, **self._tracker.summary()}

    async def look(self) -> None:
        """Answer the checks whose time has come."""
        for check in self._tracker.due(self._clock()):
            document = self._snapshot(check.uri)
            if document is None:
                self._tracker.forget(check.uri)
                continue
            at = self._taken_at.get(check.number, 0)
            near = document.buffer.slice(max(0, at - AROUND), min(document.buffer.length, at + AROUND))
            self._tracker.still_there(check, await asyncio.to_thread(_share, near, check))

    def _event(self, uri: str, event: str, amount: int = 0) -> None:
        place = self._places[uri]
        self._tracker.event(place.number, event, self._clock(), amount)
        current = self._tracker.current(uri)
        if current is None or current.number != place.number:
            del self._places[uri]
        if event not in ("accept", "accept_part"):
            return
        self._taken_at[place.number] = place.begin
        while len(self._taken_at) > KEEP:
            self._taken_at.popitem(last=False)
        if self._later is not None:
            for seconds in CHECKS_S:
                self._later(seconds + 0.1, self._begin_look)

    def _begin_look(self) -> None:
        task = asyncio.ensure_future(self.look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)


def _share(text: str, check: Check) -> float:
    return still_there(text, check.text)


def agreed(left: str, put: str) -> int:
    """Characters of `left` that an edit at the cursor put there, 0 if it put something else. A closer that the editor added
    behind the typed character, and indentation that it chose itself, agree."""
    if not put or not left:
        return 0
    if left.startswith(put):
        return len(put)
    if put[0] == left[0] and len(put) > 1 and not put[0].isspace() and is_closers(put[1:]):
        return 1
    rest = remaining(left, put, TAB_WIDTH) if put[0] in "\r\n" else None
    return len(left) - len(rest) if rest is not None else 0
