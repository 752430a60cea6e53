"""Batch costs, acceptance and the length that follows from them."""

from __future__ import annotations

import pytest

from lsp_complete.engine.adaptive import PROBE_EVERY, Adaptive, best_length
from lsp_complete.engine.batchcost import MOST, BatchCost


def test_priors_hold_until_something_is_measured() -> None:
    cost = BatchCost()
    assert cost.table() == {1: 1.0, 2: 1.56, 4: 2.16, 8: 3.76, 16: 6.12}
    cost.step(2, 30.0)  # no single step known yet: says nothing
    cost.step(1, 0.0)
    cost.step(MOST + 1, 99.0)
    assert cost.single_ms == 0.0 and cost.ratio(2) == 1.56
    assert cost.ratio(32) > cost.ratio(17) > cost.ratio(16)
    assert BatchCost(gpu=True).ratio(8) < 1.2


def test_costs_are_learned_and_never_fall_with_the_size() -> None:
    cost = BatchCost()
    for _ in range(80):
        cost.step(1, 10.0)
        cost.step(4, 11.0)
    assert cost.single_ms == pytest.approx(10.0) and cost.ratio(4) == pytest.approx(1.1, abs=0.02)
    assert 1.0 <= cost.ratio(3) <= cost.ratio(4) <= cost.ratio(8) < 2.2
    before = cost.ratio(4)
    cost.step(4, 1e9)
    assert cost.ratio(4) < 2 * before
    cost.step(1, 1e9)
    assert cost.single_ms <= 12.1


def test_the_length_follows_acceptance_and_cost() -> None:
    cpu, gpu = BatchCost(), BatchCost(gpu=True)
    assert best_length(0.5, 0.5, 7, cpu).tokens == 0  # two tokens cost 1.56, and 1.5 are expected
    lengths = [best_length(rate / 100, rate / 100, 7, cpu).tokens for rate in range(1, 100)]
    assert lengths == sorted(lengths) and lengths[0] == 0 and lengths[-1] == 7
    assert best_length(0.7, 0.7, 7, gpu).tokens > best_length(0.7, 0.7, 7, cpu).tokens
    assert best_length(0.9, 0.9, 7, gpu, extra=1.0).tokens == 0
    assert best_length(0.9, 0.9, 0, gpu).tokens == 0


def test_at_the_end_of_a_prompt_only_what_is_added_counts() -> None:
    cost = BatchCost()
    alone = best_length(0.5, 0.5, 1, cost)
    cost.planned = 4
    joined = best_length(0.5, 0.5, 1, cost)
    assert alone.tokens == 0 and joined.tokens == 1


def test_what_is_rejected_turns_itself_off_and_is_probed_rarely() -> None:
    adaptive = Adaptive(BatchCost())
    assert adaptive.length("ngram:4", 7).tokens > 0
    spent = 0
    while adaptive.length("ngram:4", 7).tokens:
        adaptive.observe("ngram:4", 3, 0)
        spent += 1
    assert spent <= 8
    assert sum(adaptive.probe() for _ in range(10 * PROBE_EVERY)) == 10
    for _ in range(100):
        adaptive.observe("ngram:4", 3, 3)
    assert adaptive.length("ngram:4", 7).tokens == 7
    assert adaptive.tallies["ngram:4"].first <= 0.99


def test_later_tokens_count_apart() -> None:
    """A kind whose first token is a gamble may still pay where the rest follows for certain."""
    cost = BatchCost()
    assert best_length(0.52, 0.5, 7, cost).tokens == 0 < best_length(0.52, 0.97, 7, cost).tokens
    adaptive = Adaptive(cost)
    for _ in range(50):
        adaptive.observe("x", 4, 0)
        adaptive.observe("x", 4, 4)
    tally = adaptive.tallies["x"]
    assert 0.45 < tally.first < 0.6 and tally.later > 0.9
    assert (tally.proposed_sum, tally.accepted_sum, tally.judged_sum) == (400, 200, 250)
