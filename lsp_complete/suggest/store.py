"""Recent suggestions, and whether one of them still answers at the cursor.

Strategy: an entry keeps the whole text the model meant to stand at a place (`full`), with the closers that
the editor may have inserted already. A look-up asks whether the text before the cursor grew from the entry's
place by a beginning of that text, and reconciles the rest with what is right of the cursor *now*. So typing,
auto-closing, auto-indent, typing over a closer, accepting a word or a line, undo and backspace are one case.

Rules:
- While the typing agrees, the suggestion on screen is returned, minus what was typed, unchanged.
- The suggestion on screen is asked first, then the newest.
- Bounded by entries and by age; the clock is injected. Owned by the event loop: no lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.lines import to_lf
from lsp_complete.suggest.reconcile import reconcile
from lsp_complete.suggest.typed import after_agrees, remaining, typed_since

KEEP_BEFORE = 16_000
KEEP_AFTER = 2400


@dataclass(frozen=True, slots=True)
class Entry:
    """One suggestion at one place. Line ends of all texts may be the document's own.

    before, after: windows around the cursor it was made for. shown: the text that is (or would be) on
    screen. full: the text before it was reconciled with what is right of the cursor ("" means `shown`).
    frozen_suffix: what the model saw below (None if unknown). newline: the document's line end.
    origin: "model" | "prefetch" | "alternative", for statistics only.
    """

    uri: str
    before: str
    after: str
    shown: str
    full: str = ""
    facts: LanguageFacts = field(default_factory=LanguageFacts)
    frozen_suffix: str | None = None
    newline: str = "\n"
    tab_width: int = 4
    origin: str = "model"


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer from the store. text: to insert at the cursor, with the document's line ends.
    typed: characters of it that are in the document already. entry: its number, for `drop`. fresh: it is not the one that was on
    screen before. judged: some of it could be shown where it was made; else nobody has said yet that it is worth showing."""

    text: str
    typed: int
    entry: int
    origin: str
    fresh: bool = False
    judged: bool = True


@dataclass(slots=True)
class _Kept:
    entry: Entry
    before: str
    after: str
    shown: str
    full: str
    at: float
    seen: bool = False


class SuggestionStore:
    """See the module's rules. clock: seconds, monotonic. max_age: seconds an entry stays usable."""

    def __init__(
        self, clock: Callable[[], float], max_entries: int = 256, per_document: int = 32, max_age: float = 600.0
    ) -> None:
        if max_entries < 1 or per_document < 1:
            raise ValueError("a suggestion store keeps at least one entry")
        self._clock = clock
        self._max, self._per_document, self._max_age = max_entries, per_document, max_age
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._by_uri: dict[str, list[int]] = {}
        self._current: dict[str, int] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, entry: Entry, current: bool = True) -> int:
        """Keep a suggestion and return its number. current: it is what the editor now shows."""
        shown = to_lf(entry.shown)
        full = to_lf(entry.full) or shown
        number = self._next
        self._next += 1
        before, after = to_lf(entry.before)[-KEEP_BEFORE:], to_lf(entry.after)[:KEEP_AFTER]
        self._kept[number] = _Kept(entry, before, after, shown, full, self._clock())
        mine = self._by_uri.setdefault(entry.uri, [])
        mine.append(number)
        if current:
            self._current[entry.uri] = number
        while len(mine) > self._per_document:
            self.drop(mine[0])
        while len(self._kept) > self._max:
            self.drop(next(iter(self._kept)))
        return number

    def lookup(self, uri: str, before: str, after: str, *, look_only: bool = False) -> Hit | None:
        """The suggestion that still holds at this cursor, or None. look_only: it does not go on screen now.

        before: text before the cursor, at least its line and a few above. after: text from the cursor on.
        """
        numbers = self._by_uri.get(uri)
        if not numbers:
            return None
        before, after = to_lf(before), to_lf(after)
        now, current = self._clock(), self._current.get(uri, 0)
        order = [n for n in reversed(numbers) if n != current]
        for number in [current, *order] if current in self._kept else order:
            kept = self._kept[number]
            if now - kept.at > self._max_age:
                continue
            text, typed = _still_holds(kept, before, after)
            if text:
                if not look_only:
                    self._current[uri], kept.seen = number, True
                newline = kept.entry.newline
                out = text if newline == "\n" else text.replace("\n", newline)
                return Hit(out, typed, number, kept.entry.origin, number != current, bool(kept.shown))
        return None

    def drop(self, number: int) -> None:
        """Forget one suggestion (dismissed, or proved wrong). Unknown numbers are ignored."""
        kept = self._kept.pop(number, None)
        if kept is None:
            return
        uri = kept.entry.uri
        self._by_uri[uri].remove(number)
        if not self._by_uri[uri]:
            del self._by_uri[uri]
        if self._current.get(uri) == number:
            del self._current[uri]

    def forget(self, uri: str) -> None:
        """Forget a document (closed, renamed)."""
        for number in list(self._by_uri.get(uri, ())):
            self.drop(number)

    def forget_ahead(self, uri: str) -> None:
        """Forget what was prepared for a place that will not come: prefetched texts that were never on screen."""
        for number in list(self._by_uri.get(uri, ())):
            kept = self._kept[number]
            if kept.entry.origin == "prefetch" and not kept.seen:
                self.drop(number)

    def check_integrity(self) -> None:
        """Every entry is listed once under its document, and nothing else is. Raises AssertionError."""
        listed = [n for numbers in self._by_uri.values() for n in numbers]
        assert sorted(listed) == sorted(self._kept)
        assert all(self._kept[n].entry.uri == uri for uri, ns in self._by_uri.items() for n in ns)
        assert all(n in self._kept for n in self._current.values())
        assert len(self._kept) <= self._max


def _still_holds(kept: _Kept, before: str, after: str) -> tuple[str, int]:
    """(what is left to show or "", characters typed since)."""
    limit = max(len(kept.full), len(kept.shown))
    typed = typed_since(kept.before, before, limit)
    if typed is None:
        return "", 0
    if after[:KEEP_AFTER] == kept.after:
        left = remaining(kept.shown, typed, kept.entry.tab_width)
        if left:
            return (left if left.strip() else ""), len(typed)
    elif not after_agrees(kept.after, after):
        return "", 0
    left = remaining(kept.full, typed, kept.entry.tab_width)
    if not left:
        return "", 0
    e = kept.entry
    frozen = None if e.frozen_suffix is None else to_lf(e.frozen_suffix)
    left = reconcile(left, before, after, e.facts, frozen, e.tab_width)
    return (left if left.strip() else ""), len(typed)


def next_word(text: str) -> str:
    """What "accept word" takes: blanks, then one word or one run of other characters; a line end with the
    indentation after it counts as blanks."""
    at = 0
    while at < len(text) and text[at].isspace():
        at += 1
    if at < len(text):
        word = text[at].isalnum() or text[at] == "_"
        while at < len(text) and not text[at].isspace() and (text[at].isalnum() or text[at] == "_") == word:
            at += 1
    return text[:at]


def next_line(text: str) -> str:
    """What "accept line" takes: up to the first line end after something visible (not included)."""
    body = len(text) - len(text.lstrip())
    ends = [i for i in (text.find("\n", body), text.find("\r", body)) if i >= 0]
    return text[: min(ends)] if ends else text
