"""What became of each suggestion: shown, accepted, partly accepted, typed over, dismissed, still there later.

Strategy: one small state machine per suggestion, driven by events that carry their own time. Accepted
text is looked for again after 30, 120 and 600 seconds; the tracker says what is due, the caller reads the document.

Rules:
- Local only, and no user text leaves it: what goes out are counts and times.
- A suggestion has one final outcome; later events for it are ignored.
- Bounded; owned by the event loop; time is passed in, in seconds.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

CHECKS_S = (30.0, 120.0, 600.0)
OPEN = ("shown", "partly")
FINAL = ("accepted", "partly_accepted", "typed_over", "typed_out", "dismissed", "replaced")


@dataclass(frozen=True, slots=True)
class Shown:
    """One suggestion. status: one of `OPEN` or `FINAL`. length: characters shown; taken: characters accepted.
    taken_at: when, None if never. checked: how many of `CHECKS_S` are done; survival: share kept at each."""

    number: int
    uri: str
    text: str
    shown_at: float
    status: str = "shown"
    taken: int = 0
    taken_at: float | None = None
    checked: int = 0
    survival: tuple[float, ...] = ()

    @property
    def length(self) -> int:
        """Characters of the suggestion."""
        return len(self.text)

    @property
    def taken_text(self) -> str:
        """The accepted part."""
        return self.text[: self.taken]


@dataclass(frozen=True, slots=True)
class Check:
    """Look whether `text` is still in document `uri`; answer with `OutcomeTracker.still_there`."""

    number: int
    uri: str
    text: str
    after_s: float


def step(s: Shown, event: str, now: float, amount: int = 0) -> Shown:
    """The next state. event: "accept" (all that is left), "accept_part" (`amount` more characters), "type" (`amount`
    characters of it typed by hand so far, in all), "disagree" (the typing left it), "dismiss", "replace" (another is shown now)."""
    if s.status not in OPEN:
        return s
    if event == "accept":
        return replace(s, status="accepted", taken=s.length, taken_at=now)
    if event == "accept_part":
        taken = min(s.length, s.taken + max(0, amount))
        done = taken == s.length
        return replace(s, status="accepted" if done else "partly", taken=taken, taken_at=now)
    if event == "type":
        done = s.taken + max(0, amount) >= s.length
        return replace(s, status="typed_out" if not s.taken else "partly_accepted") if done else s
    if event not in ("disagree", "dismiss", "replace"):
        return s
    if s.status == "partly":
        return replace(s, status="partly_accepted")
    return replace(s, status={"disagree": "typed_over", "dismiss": "dismissed", "replace": "replaced"}[event])


def still_there(document: str, text: str) -> float:
    """Share (0–1) of the accepted text's lines that the document still contains, white space aside. One line counts
    by its words in order, so that a small edit is a small loss."""
    lines = [" ".join(x.split()) for x in text.splitlines() if x.strip()]
    if not lines:
        return 1.0
    there = {" ".join(x.split()) for x in document.splitlines()}
    joined = " ".join(document.split())
    whole = sum(1 for x in lines if x in there or (len(x) > 3 and x in joined))
    if whole or len(lines) > 1:
        return whole / len(lines)
    words = lines[0].split()
    return sum(1 for w in words if w in joined) / len(words) * 0.5


class OutcomeTracker:
    """Holds the open suggestions and the accepted ones whose checks are due. See the module's rules."""

    def __init__(self, capacity: int = 512) -> None:
        if capacity < 1:
            raise ValueError("an outcome tracker keeps at least one suggestion")
        self._capacity = capacity
        self._items: OrderedDict[int, Shown] = OrderedDict()
        self._open: dict[str, int] = {}
        self._next = 1
        self.counts: Counter[str] = Counter()
        self._survival: dict[float, tuple[float, int]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def shown(self, uri: str, text: str, now: float) -> int:
        """A suggestion is on screen. The same text again in the same document is the same showing. Returns its number."""
        current = self._open.get(uri)
        if current is not None:
            item = self._items[current]
            left = item.text[item.taken :]
            if left.endswith(text) and text:
                return current
            self.event(current, "replace", now)
        number = self._next
        self._next += 1
        self._items[number] = Shown(number, uri, text, now)
        self._open[uri] = number
        self.counts["shown"] += 1
        while len(self._items) > self._capacity:
            _, old = self._items.popitem(last=False)
            if self._open.get(old.uri) == old.number:
                del self._open[old.uri]
        return number

    def current(self, uri: str) -> Shown | None:
        """The suggestion that is open in a document."""
        number = self._open.get(uri)
        return None if number is None else self._items[number]

    def event(self, number: int, event: str, now: float, amount: int = 0) -> None:
        """Apply `step` to a suggestion; unknown numbers are ignored."""
        item = self._items.get(number)
        if item is None or item.status not in OPEN:
            return
        new = step(item, event, now, amount)
        self._items[number] = new
        if new.status in FINAL:
            self.counts[new.status] += 1
            self.counts["chars_shown"] += new.length
            self.counts["chars_taken"] += new.taken
            if self._open.get(new.uri) == number:
                del self._open[new.uri]
            if new.taken_at is None:
                del self._items[number]

    def due(self, now: float) -> tuple[Check, ...]:
        """Checks whose time has come. Each stays due until it is answered or its document forgotten."""
        out = []
        for item in self._items.values():
            if item.taken_at is None or item.checked >= len(CHECKS_S):
                continue
            wait = CHECKS_S[item.checked]
            if now - item.taken_at >= wait:
                out.append(Check(item.number, item.uri, item.taken_text, wait))
        return tuple(out)

    def still_there(self, check: Check, share: float) -> None:
        """Answer a check with the share (0–1) that is still there."""
        item = self._items.get(check.number)
        if item is None or item.checked >= len(CHECKS_S) or CHECKS_S[item.checked] != check.after_s:
            return
        total, count = self._survival.get(check.after_s, (0.0, 0))
        self._survival[check.after_s] = (total + share, count + 1)
        item = replace(item, checked=item.checked + 1, survival=(*item.survival, share))
        self._items[check.number] = item
        if item.checked == len(CHECKS_S) and item.status in FINAL:
            del self._items[check.number]

    def forget(self, uri: str) -> None:
        """A document was closed: an open suggestion counts as dismissed, its checks are dropped."""
        number = self._open.get(uri)
        if number is not None:
            self.event(number, "dismiss", self._items[number].shown_at)
        for number in [n for n, item in self._items.items() if item.uri == uri]:
            del self._items[number]

    def summary(self) -> dict[str, object]:
        """Plain JSON values: counts by outcome, and the mean share still there per check (seconds → share)."""
        kept = {f"{int(k)}": total / n for k, (total, n) in sorted(self._survival.items())}
        return {**{k: self.counts[k] for k in ("shown", *FINAL, "chars_shown", "chars_taken")}, "still_there": kept}


def settle(tracker: OutcomeTracker, uris: Iterable[str], now: float) -> None:
    """At shutdown: whatever is still open was dismissed."""
    for uri in list(uris):
        item = tracker.current(uri)
        if item is not None:
            tracker.event(item.number, "dismiss", now)
