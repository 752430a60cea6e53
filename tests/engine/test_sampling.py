"""Sampling against plain formulas."""

from __future__ import annotations

import math
import random

import numpy as np

from lsp_complete.engine.sampling import Sampler


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max())
    return e / e.sum()


LOGITS = np.random.default_rng(1).normal(0, 3, 1000).astype(np.float32)


def test_greedy_takes_the_most_probable_and_tells_its_probability() -> None:
    choice = Sampler(1000).choose(LOGITS)
    assert choice.token == LOGITS.argmax() and choice.mass == 1.0
    assert math.isclose(choice.logprob, math.log(softmax(LOGITS)[choice.token]), rel_tol=1e-4)


def test_under_a_constraint_probability_is_within_the_set() -> None:
    allowed = np.array([3, 500, 77, 8], dtype=np.int32)
    choice = Sampler(1000).choose(LOGITS, allowed)
    p = softmax(LOGITS)[allowed]
    assert choice.token == allowed[p.argmax()]
    assert math.isclose(choice.mass, p.sum(), rel_tol=1e-4)
    assert math.isclose(choice.logprob, math.log(p.max() / p.sum()), abs_tol=1e-5)


def test_sampling_follows_the_distribution_and_the_seed() -> None:
    logits = np.array([0.0, 1.0, 2.0, -50.0], dtype=np.float32)
    sampler = Sampler(4)
    draws = [sampler.choose(logits, None, 1.0, random.Random(s).random()).token for s in range(4000)]
    share = np.bincount(draws, minlength=4) / 4000
    assert np.allclose(share, softmax(logits), atol=0.03)
    assert sampler.choose(logits, None, 1.0, 0.0).token == 0
    assert sampler.choose(logits, None, 1.0, 1.0 - 1e-12).token == 2


def test_top_is_ordered_and_limited_to_what_is_allowed() -> None:
    sampler = Sampler(1000)
    best = sampler.top(LOGITS, None, 5)
    assert [c.token for c in best] == np.argsort(-LOGITS)[:5].tolist()
    assert [c.token for c in sampler.top(LOGITS, np.array([4, 9], dtype=np.int32), 8)] in ([4, 9], [9, 4])
    assert best[0] == sampler.choose(LOGITS)


def test_logits_are_not_written_to() -> None:
    before = LOGITS.copy()
    view = LOGITS.view()
    view.flags.writeable = False
    Sampler(1000).choose(view)
    Sampler(1000).top(view, None, 3)
    assert np.array_equal(before, LOGITS)


def test_what_is_banned_is_not_chosen_but_counts() -> None:
    best, second = (int(t) for t in np.argsort(-LOGITS)[:2])
    choice = Sampler(1000).choose(LOGITS, None, banned=np.array([best], dtype=np.int32))
    assert choice.token == second and choice.mass == 1.0
    assert math.isclose(choice.logprob, math.log(softmax(LOGITS)[second]), rel_tol=1e-4)
    allowed = np.array([best, second, 8], dtype=np.int32)
    choice = Sampler(1000).choose(LOGITS, allowed, banned=np.array([best], dtype=np.int32))
    p = softmax(LOGITS)[allowed]
    assert choice.token == second and math.isclose(choice.logprob, math.log(p[1] / p.sum()), abs_tol=1e-4)
    everything = Sampler(1000).choose(LOGITS, allowed, banned=allowed)
    assert everything == Sampler(1000).choose(LOGITS, allowed)
    drawn = {Sampler(1000).choose(LOGITS, allowed, 5.0, u / 50, np.array([best], dtype=np.int32)).token for u in range(50)}
    assert drawn == {second, 8}
