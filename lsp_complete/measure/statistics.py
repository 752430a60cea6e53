"""Live statistics of requests: percentiles by stage and bucket over a sliding window, and hit rates.

Strategy: the last few hundred values of each stage and bucket, and no older than the window, are kept as they are; exact
percentiles of those are cheap enough for a person who asks. Counters run since the start.

Rules:
- Memory is bounded: buckets are a fixed set (anything else counts as "other"), each with a ring of fixed length.
- Requests that were overtaken, cancelled or refused count, but their times do not.
- No clock is read: the caller gives `now` in seconds. One owner (the event loop).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from itertools import islice

from .stages import StageRecord

STAGES = ("read", "syntax", "context", "tokenize", "queue", "prefill", "decode", "post", "transfer", "total")
SCENARIOS = ("new_file", "editing", "cross_file", "after_accept", "explicit")
WITHOUT_MODEL = ("typed_through", "prefetched", "store")
"""Sources of answers that no one waited for the model for."""
TIMED_OUTCOMES = frozenset({"shown", "empty", "held_back"})
RING = 512
MAX_BREAKS = 32
WINDOW_S = 1800.0
QUANTILES = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))


def percentile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least the share q of all values does not exceed (nearest rank); NaN for none."""
    return _ranked(sorted(values), q) if values else math.nan


def _ranked(ordered: Sequence[float], q: float) -> float:
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def ratio(part: float, whole: float) -> float:
    """part / whole, 0.0 where whole is 0."""
    return part / whole if whole else 0.0


class Statistics:
    """Statistics of one server. All methods belong to its event loop."""

    def __init__(self, ring: int = RING, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._rings: dict[str, deque[tuple[float, StageRecord]]] = {
            name: deque(maxlen=ring) for name in (*SCENARIOS, "other")
        }
        self._sources: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._breaks: Counter[str] = Counter()
        self._requests = 0
        self._decode_ms = 0.0
        self._trees: Counter[bool] = Counter()

    def tree(self, exact: bool) -> None:
        """Count a request's syntax tree: of the very text, or of an earlier one, moved."""
        self._trees[exact] += 1

    def add(self, record: StageRecord, now: float) -> None:
        """Count one answered request."""
        self._requests += 1
        self._sources[record.source] += 1
        self._outcomes[record.outcome] += 1
        for name in ("prompt_tokens", "reused", "restored", "evaluated", "decoded", "drafted", "accepted"):
            self._tokens[name] += getattr(record, name)
        self._decode_ms += record.decode_ms
        if record.reuse_break and (record.reuse_break in self._breaks or len(self._breaks) < MAX_BREAKS):
            self._breaks[record.reuse_break] += 1
        if record.outcome in TIMED_OUTCOMES:
            bucket = record.scenario if record.scenario in SCENARIOS else "other"
            self._rings[bucket].append((now, record))

    def frozen(self) -> Statistics:
        """A copy that another thread may read. Microseconds: records are shared, not copied."""
        copy = Statistics(window_s=self._window_s)
        copy._rings = {name: ring.copy() for name, ring in self._rings.items()}
        copy._sources, copy._outcomes, copy._tokens, copy._breaks = (
            counter.copy() for counter in (self._sources, self._outcomes, self._tokens, self._breaks)
        )
        copy._requests, copy._decode_ms, copy._trees = self._requests, self._decode_ms, self._trees.copy()
        return copy

    def recent(self, now: float, count: int = 50) -> list[StageRecord]:
        """The newest timed requests within the window, newest first."""
        found = [entry for ring in self._rings.values() for entry in ring if now - entry[0] <= self._window_s]
        found.sort(key=lambda entry: entry[0], reverse=True)
        return [record for _, record in islice(found, count)]

    def snapshot(self, now: float) -> dict[str, object]:
        """Plain JSON values: counts since the start, percentiles (ms) over the window, hit rates."""
        buckets: dict[str, object] = {}
        everything: list[StageRecord] = []
        for name, ring in self._rings.items():
            records = [record for at, record in ring if now - at <= self._window_s]
            everything += records
            if records:
                buckets[name] = _times(records)
        answered = sum(self._outcomes[outcome] for outcome in TIMED_OUTCOMES)
        model = self._sources["model"] + self._sources["joined"]
        return {
            "requests": self._requests,
            "sources": dict(self._sources),
            "outcomes": dict(self._outcomes),
            "tokens": dict(self._tokens),
            "reuse_breaks": dict(self._breaks),
            "window_s": self._window_s,
            "all": _times(everything) if everything else {},
            "scenarios": buckets,
            "hit_rates": {
                "without_model": ratio(sum(self._sources[s] for s in WITHOUT_MODEL), answered),
                "typed_through": ratio(self._sources["typed_through"], answered),
                "prefetched": ratio(self._sources["prefetched"], answered),
                "joined": ratio(self._sources["joined"], model),
                "kv_prefix": ratio(self._tokens["reused"], self._tokens["prompt_tokens"]),
                "kv_restored": ratio(self._tokens["restored"], self._tokens["prompt_tokens"]),
                "drafts": ratio(self._tokens["accepted"], self._tokens["drafted"]),
                "syntax": ratio(self._trees[True], self._trees[True] + self._trees[False]),
            },
            "decode_tps": ratio(self._tokens["decoded"] * 1000.0, self._decode_ms),
        }


def _times(records: Sequence[StageRecord]) -> dict[str, object]:
    stages = {}
    for stage in STAGES:
        ordered = sorted(float(getattr(record, f"{stage}_ms")) for record in records)
        stages[stage] = {name: round(_ranked(ordered, q), 3) for name, q in QUANTILES}
    return {"count": len(records), "ms": stages}
