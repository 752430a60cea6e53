"""What n-gram proposals may be looked up in beside the prompt: the rest of the file, retrieved code, deleted text, other open files.

Strategy: the text is made behind an answer, when the prompt's head is another one or something was deleted, so a key never waits
for it and most keys find it as it was. Its tokens cross the socket until the engine has surely indexed them; from then on
the key alone names them, and now and again they go along in case the engine has let go of them or was started anew.

Rules:
- It changes speed, never text; so a little out of date is good enough.
- Text of a document that other prompts must not see stays in its own.
- Bounded: `SIDE_CHARS` either side of the window, `MAX_TOKENS` in all; the most telling stands last (the last occurrence wins).
- Event loop; some milliseconds, through the shared token cache.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..engine.api import CompletionRequest
from ..text.buffer import TextBuffer
from ..text.edits import Edit
from .documents import DocumentSet, OpenDocument
from .planning import LoadedModel

SIDE_CHARS = 8_000
"""Of the file above and below its window."""
OTHER_CHARS = 2_000
"""Either side of the cursor of another open file."""
OTHER_FILES = 2
MAX_TOKENS = 6_000
DELETED_MIN, DELETED_MAX = 24, 2_000
"""Characters of a deletion worth keeping."""
DELETIONS = 8
RESEND = 48
"""Requests after which the tokens go along again."""
MIN_DECODED = 3
"""A request of so many tokens has asked the proposer, so its look-up text is indexed."""
_KEYS = 64


@dataclass(frozen=True, slots=True)
class LookupText:
    """tokens under their key (a digest of them). head: the prompt head it was made beside; deletions: how many were known then."""

    key: str
    tokens: tuple[int, ...]
    head: object
    deletions: int


class Lookups:
    """See the module's rules. shareable: whether a document's text may help in others; retrieved: code that was found for a
    document and that its prompt does not show whole."""

    def __init__(
        self,
        documents: DocumentSet,
        shareable: Callable[[str], bool] = lambda _uri: True,
        retrieved: Callable[[str], Iterable[str]] = lambda _uri: (),
    ) -> None:
        self._documents, self._shareable, self._retrieved = documents, shareable, retrieved
        self._deleted: dict[str, deque[str]] = {}
        self._deletions = 0
        self._engine: object = None
        self._known: OrderedDict[str, int] = OrderedDict()

    def changed(self, uri: str, old: TextBuffer, edits: Sequence[Edit]) -> None:
        """A document was edited. old: its text before. Of several edits at once only the first is in its terms."""
        for edit in edits[:1]:
            size = edit.old_end - edit.start
            if DELETED_MIN <= size <= DELETED_MAX and edit.new_end - edit.start < size:
                self._deleted.setdefault(uri, deque(maxlen=DELETIONS)).append(old.slice(edit.start, edit.old_end))
                self._deletions += 1

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._deleted.pop(uri, None)

    def renew(self, state: OpenDocument, model: LoadedModel) -> None:
        """Make the document's look-up text anew if what it was made beside is gone. Call it behind an answer."""
        old = state.lookup
        if state.anchor is None or state.head is None or state.anchor.small or state.table is None:
            return
        if old is not None and old.head is state.head and old.deletions == self._deletions:
            return
        elsewhere = [model.spans.ids(text) for text in self._elsewhere(state.document.uri)]
        gone = [model.spans.ids(text) for text in self._deleted.get(state.document.uri, ())]
        tokens = _joined([*elsewhere, *_rest(state), *gone], model)
        key = hashlib.blake2b(array("q", tokens).tobytes(), digest_size=12).hexdigest()
        state.lookup = LookupText(key, tokens, state.head, self._deletions)

    def attach(self, state: OpenDocument, engine: object) -> tuple[tuple[int, ...], str]:
        """Tokens and key for a request; no tokens if this engine has them."""
        text = state.lookup
        if text is None or not text.tokens:
            return (), ""
        if engine is not self._engine:
            self._engine, self._known = engine, OrderedDict()
        uses = self._known.get(text.key, RESEND)
        if uses >= RESEND:
            return text.tokens, text.key
        self._known[text.key] = uses + 1
        return (), text.key

    def answered(self, request: CompletionRequest, decoded: int) -> None:
        """A request was answered after so many tokens."""
        if request.lookup and decoded >= MIN_DECODED:
            self._known[request.lookup_key] = 0
            self._known.move_to_end(request.lookup_key)
            if len(self._known) > _KEYS:
                self._known.popitem(last=False)

    def _elsewhere(self, uri: str) -> list[str]:
        """Other open files where the user was, and code that was retrieved."""
        texts: list[str] = []
        others = [s for s in self._documents if s.document.uri != uri and self._shareable(s.document.uri)]
        for other in others[-OTHER_FILES:]:
            buffer, at = other.document.buffer, other.cursor
            texts.append(buffer.slice(max(0, at - OTHER_CHARS), min(buffer.length, at + OTHER_CHARS)))
            texts += self._deleted.get(other.document.uri, ())
        return [*texts, *self._retrieved(uri)]


def _rest(state: OpenDocument) -> list[list[int]]:
    """The file below and above its window, from line start to line start."""
    anchor, table, buffer = state.anchor, state.table, state.document.buffer
    assert anchor is not None and table is not None
    end = min(buffer.length, anchor.suffix_start + len(anchor.suffix))
    start = min(anchor.window_start, end)
    first = buffer.line_start(buffer.position(max(0, start - SIDE_CHARS))[0])
    below = table.ids(end, min(buffer.length, end + SIDE_CHARS)) if end < buffer.length else []
    above = table.ids(max(first, start - 2 * SIDE_CHARS), start) if start else []
    return [below, above]


def _joined(parts: Sequence[Sequence[int]], model: LoadedModel) -> tuple[int, ...]:
    """The parts apart from each other by a special token, so that nothing is found across; the last MAX_TOKENS of them."""
    wall = model.fim.middle[:1] or model.fim.suffix[:1]
    tokens: list[int] = []
    for part in parts:
        if part:
            tokens += [*part, *wall]
    return tuple(tokens[-MAX_TOKENS:])
