"""The open documents and what belongs to each: snapshot, token table, anchor, work in flight.

Thread: the event loop only. A snapshot handed out stays valid whatever happens here afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..context.anchor import Anchor
from ..context.header import EMPTY, Frame
from ..context.prompt import Head
from ..context.reasons import Parts
from ..text.document import Document
from ..text.edits import Change, Edit
from ..text.positions import Encoding
from ..text.tokenizer import Tokenizer
from ..text.tokens import SpanCache, TokenTable

if TYPE_CHECKING:
    from .generation import Generation
    from .held import Held
    from .lookups import LookupText

MAX_TABLE_CHARS = 60_000_000
"""A longer document gets no token table and no suggestions (about 60 MB of text)."""


@dataclass(slots=True)
class OpenDocument:
    """State of one open document.

    anchor, head, frame: in force. parts: of the last prompt. next_anchor: being made ready behind it. generation: work in flight; stopped: the last one
    that was stopped; held: the last answer, if it was held back as unsure. lookup: what proposals may be looked up in beside the prompt. requests: asked so far. Times are clock seconds, −1 for never. cursor: last known offset.
    """

    document: Document
    opened_at: float
    table: TokenTable | None = None
    anchor: Anchor | None = None
    head: Head | None = None
    frame: Frame = EMPTY
    parts: Parts | None = field(default=None, repr=False)
    next_anchor: Anchor | None = None
    generation: Generation | None = None
    stopped: Generation | None = None
    held: Held | None = field(default=None, repr=False)
    lookup: LookupText | None = field(default=None, repr=False)
    requests: int = 0
    changed_at: float = -1.0
    accepted_at: float = -1.0
    cursor: int = 0
    last_tokens: tuple[int, ...] = ()
    cached_prompt: tuple[int, ...] = field(default=(), repr=False)

    def stop_generation(self) -> None:
        """Stop the work in flight; what had come of it may serve as a draft."""
        if self.generation is not None:
            self.generation.stop()
            self.stopped, self.generation = self.generation, None

    def change(self, changes: Iterable[Change], encoding: Encoding, version: int, now: float) -> tuple[Edit, ...]:
        """Apply an editor's changes; the token table and the anchor follow. Returns the edits they were."""
        old = self.document
        self.document, edits = old.apply(changes, encoding, version)
        self.changed_at = now
        if self.table is not None:
            self.table.update(old.buffer, self.document.buffer, edits)
        if self.anchor is not None:
            self.anchor = self.anchor.shifted(edits)
        if self.next_anchor is not None:
            self.next_anchor = self.next_anchor.shifted(edits)
        return edits

    def take_over(self, planned: OpenDocument, anchor: Anchor | None) -> None:
        """Put a prompt that was planned on a copy in force. anchor: its anchor, moved along with the edits since then."""
        self.anchor, self.head, self.frame, self.parts = anchor, planned.head, planned.frame, planned.parts
        self.held = None

    def ensure_table(self, tokenizer: Tokenizer, spans: SpanCache) -> TokenTable:
        """The token table of the current snapshot, made on first use over the cache that documents share."""
        if self.table is None:
            self.table = TokenTable(tokenizer, self.document.buffer, spans)
        return self.table


class DocumentSet:
    """Open documents by URI, most recently used last."""

    def __init__(self) -> None:
        self._documents: dict[str, OpenDocument] = {}

    def __iter__(self) -> Iterator[OpenDocument]:
        return iter(list(self._documents.values()))

    def __len__(self) -> int:
        return len(self._documents)

    def open(self, document: Document, now: float) -> OpenDocument:
        """Open (or open again: the newer text wins)."""
        state = OpenDocument(document, now)
        self._documents.pop(document.uri, None)
        self._documents[document.uri] = state
        return state

    def get(self, uri: str) -> OpenDocument | None:
        """The open document, or None. Does not count as a use."""
        return self._documents.get(uri)

    def touch(self, uri: str) -> None:
        """Mark as most recently used."""
        state = self._documents.pop(uri, None)
        if state is not None:
            self._documents[uri] = state

    def close(self, uri: str) -> OpenDocument | None:
        """Forget a document; returns what was open."""
        return self._documents.pop(uri, None)

    def forget_model(self) -> None:
        """Drop what depends on the vocabulary (another model was loaded)."""
        for state in self._documents.values():
            state.table = state.anchor = state.head = state.next_anchor = state.lookup = state.held = None
            state.last_tokens = state.cached_prompt = ()
