"""What became of suggestions: shown, accepted, partly accepted, replaced. Local, counted, never stored with text.

Thread: the event loop.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

from ..text.document import Document
from .types import Query, Suggestion

KEEP = 200


class Outcomes:
    """Recent suggestions by id, and counters."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recent: OrderedDict[str, str] = OrderedDict()
        self._counts: Counter[str] = Counter()

    def answered(self, query: Query, suggestions: Sequence[Suggestion]) -> None:
        """Suggestions went out for a query."""
        for suggestion in suggestions:
            self._recent[suggestion.id] = query.document.uri
        while len(self._recent) > KEEP:
            self._recent.popitem(last=False)
        self._counts["answered"] += bool(suggestions)

    def changed(self, _document: Document) -> None:
        """A document changed."""

    def accepted(self, suggestion_id: str) -> str:
        """Count an acceptance; the document's URI, or "" for an id that is not known (any more)."""
        uri = self._recent.get(suggestion_id, "")
        self._counts["accepted"] += bool(uri)
        return uri

    def shown(self, suggestion_id: str) -> None:
        """Count a showing."""
        self._counts["shown"] += suggestion_id in self._recent

    def partially_accepted(self, suggestion_id: str, _length: int) -> None:
        """Count a partial acceptance."""
        self._counts["partially_accepted"] += suggestion_id in self._recent

    def snapshot(self) -> dict[str, object]:
        """Plain JSON values."""
        return dict(self._counts)
