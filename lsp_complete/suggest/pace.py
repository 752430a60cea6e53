"""How long to wait after a key before asking the model: adapted to the machine and to the typing.

Strategy: running means of the gap between keys within a burst and of the time an answer takes. A key whose text agrees with the
work in flight joins it, so an answer may take a few gaps and still come while one types: up to `FAST_GAPS` of them asking at once
costs nothing and wins everything, and the delay is 0. Where it takes longer, most requests would be overtaken and their work
thrown away; waiting about one gap lets the burst pass.

Rules: frozen values; `now` and durations in milliseconds are passed in. Never more than `MAX_DELAY_MS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX_DELAY_MS = 250.0
BURST_MS = 1000.0
WEIGHT = 0.15
TYPICAL_GAP_MS = 92.0
FAST_GAPS = 4.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What was seen so far. gap_ms: mean gap between keys of a burst. answer_ms: mean time of an answer from the
    model, 0 while none was seen. last_key_ms: time of the last key, None at first."""

    gap_ms: float = TYPICAL_GAP_MS
    answer_ms: float = 0.0
    last_key_ms: float | None = None


def key(pace: Pace, now_ms: float) -> Pace:
    """A key was pressed. A pause longer than a burst's gap teaches nothing about typing speed."""
    gap = None if pace.last_key_ms is None else now_ms - pace.last_key_ms
    if gap is None or not 0.0 < gap <= BURST_MS:
        return replace(pace, last_key_ms=now_ms)
    return replace(pace, gap_ms=pace.gap_ms + WEIGHT * (gap - pace.gap_ms), last_key_ms=now_ms)


def answered(pace: Pace, took_ms: float) -> Pace:
    """The model answered in `took_ms` (answers from the store do not count)."""
    took = max(0.0, took_ms)
    mean = took if not pace.answer_ms else pace.answer_ms + WEIGHT * (took - pace.answer_ms)
    return replace(pace, answer_ms=mean)


def delay_ms(pace: Pace) -> float:
    """Milliseconds to wait before asking: 0 up to `FAST_GAPS` of answer time, then growing to one gap and a half."""
    fast = FAST_GAPS * pace.gap_ms
    if pace.answer_ms <= fast or pace.gap_ms <= 0:
        return 0.0
    excess = min(1.0, (pace.answer_ms - fast) / fast)
    return min(MAX_DELAY_MS, 1.5 * pace.gap_ms * excess)
