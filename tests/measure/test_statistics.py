"""Live statistics and the comparison of two runs."""

from __future__ import annotations

import gc
import json
import math
import random
import sys

import pytest

from lsp_complete.measure.compare import mean_difference, paired, quantile_ratio
from lsp_complete.measure.stages import StageRecord
from lsp_complete.measure.statistics import RING, SCENARIOS, Statistics, percentile


def record(number: int, **values: object) -> StageRecord:
    base: dict[str, object] = {"outcome": "shown", "source": "model", "total_ms": float(number)}
    return StageRecord(number, **{**base, **values})  # type: ignore[arg-type]


def test_percentile_is_the_nearest_rank() -> None:
    values = list(range(1, 101))
    assert [percentile(values, q) for q in (0, 0.5, 0.95, 0.99, 1)] == [1, 50, 95, 99, 100]
    assert percentile([7], 0.5) == 7 and math.isnan(percentile([], 0.5))


def test_windows_slide_and_outcomes_choose_what_is_timed() -> None:
    statistics = Statistics(ring=10, window_s=60)
    for number in range(20):
        statistics.add(record(number), now=number)
    statistics.add(record(9999, outcome="superseded"), now=20)
    statistics.add(record(5, scenario="new_file", outcome="empty"), now=20)
    snapshot = statistics.snapshot(21)
    assert snapshot["requests"] == 22 and snapshot["outcomes"] == {"shown": 20, "superseded": 1, "empty": 1}
    editing = snapshot["scenarios"]["editing"]  # type: ignore[index]
    assert editing["count"] == 10 and editing["ms"]["total"] == {"p50": 14.0, "p95": 19.0, "p99": 19.0}
    assert snapshot["scenarios"]["new_file"]["ms"]["total"]["p50"] == 5.0  # type: ignore[index]
    assert [r.request for r in statistics.recent(21, 2)] == [5, 19]
    later = statistics.snapshot(75)
    assert later["all"]["count"] == 6 and later["requests"] == 22  # type: ignore[index]
    assert statistics.snapshot(1000)["all"] == {}
    json.dumps(snapshot, allow_nan=False)


def test_hit_rates() -> None:
    statistics = Statistics()
    statistics.add(
        record(1, prompt_tokens=100, reused=90, decoded=8, decode_ms=100.0, drafted=4, accepted=1), 0
    )
    statistics.add(record(2, source="typed_through"), 0)
    statistics.add(record(3, source="store"), 0)
    statistics.add(record(4, source="joined"), 0)
    for exact in (True, True, False, True):
        statistics.tree(exact)
    rates = statistics.snapshot(0)["hit_rates"]
    assert rates == {
        "without_model": 0.5, "typed_through": 0.25, "prefetched": 0.0, "joined": 0.5, "kv_prefix": 0.9, "kv_restored": 0.0,
        "drafts": 0.25, "syntax": 0.75,
    }  # fmt: skip
    assert statistics.snapshot(0)["decode_tps"] == 80.0
    assert Statistics().snapshot(0)["hit_rates"]["kv_prefix"] == 0.0  # type: ignore[index]


def test_memory_is_bounded_whatever_the_buckets_are_called() -> None:
    statistics = Statistics(ring=8)
    for number in range(5000):
        statistics.add(record(number, scenario=f"scenario {number}"), now=0)
    held = sum(len(ring) for ring in statistics._rings.values())
    assert held == 8 and len(statistics._rings) == 6 and sys.getsizeof(statistics._rings) < 2000


def test_a_million_requests_take_no_more_memory_than_some_thousands() -> None:
    statistics = Statistics()
    names = [*SCENARIOS, "something else"]

    def add(first: int, last: int) -> None:
        for number in range(first, last):
            outcome = "superseded" if number % 3 == 0 else "shown"
            word = f"word {number}" if number % 100 == 0 else ""
            made = StageRecord(number, names[number % 6], "model", outcome, total_ms=float(number), reuse_break=word)
            statistics.add(made, now=number / 10)

    add(0, 10_000)
    gc.collect()
    before = sys.getallocatedblocks()
    add(10_000, 1_000_000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 2_000  # some large numbers took the place of small ones
    snapshot = statistics.snapshot(100_000.0)
    assert snapshot["requests"] == 1_000_000 and len(json.dumps(snapshot)) < 10_000
    assert len(statistics.recent(100_000.0, 10_000)) <= 6 * RING


def test_bootstrap_finds_a_difference_and_finds_none() -> None:
    rng = random.Random(5)
    noise = [(rng.gauss(10, 1), rng.gauss(10, 1)) for _ in range(200)]
    assert not paired(noise, random.Random(1)).settled
    better = [(a + 1, b) for a, b in noise]
    found = paired(better, random.Random(1))
    assert (
        found.settled
        and found.low < found.estimate < found.high
        and found.estimate == mean_difference(better)
    )
    assert found == paired(better, random.Random(1))


def test_clusters_widen_the_interval() -> None:
    pairs = [(float(place % 2), 0.4) for place in range(20) for _ in range(30)]
    labels = [place for place in range(20) for _ in range(30)]
    alone, grouped = paired(pairs, random.Random(1)), paired(pairs, random.Random(1), clusters=labels)
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_ratios_and_refusals() -> None:
    pairs = [(100.0, 600.0)] * 10
    assert paired(pairs, random.Random(1), quantile_ratio(0.5)).estimate == 6.0
    with pytest.raises(ValueError, match="no pairs"):
        paired([], random.Random(1))
    with pytest.raises(ValueError, match="label"):
        paired(pairs, random.Random(1), clusters=[1])


def test_breaks_of_reuse_are_counted_within_bounds() -> None:
    statistics = Statistics()
    for number in range(100):
        statistics.add(record(number, reuse_break=f"word{number % 50}" if number % 2 else ""), now=number)
    breaks = statistics.snapshot(100)["reuse_breaks"]
    assert isinstance(breaks, dict) and "" not in breaks and len(breaks) <= 32 and breaks["word1"] == 2


def test_a_frozen_copy_stays_as_it_was() -> None:
    statistics = Statistics()
    statistics.add(record(1), now=1)
    copy = statistics.frozen()
    before = copy.snapshot(2)
    assert before == statistics.snapshot(2)
    statistics.add(record(2, outcome="empty"), now=2)
    assert copy.snapshot(2) == before != statistics.snapshot(2) and len(copy.recent(2)) == 1
