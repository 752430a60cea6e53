"""Choosing a token from logits with numpy: greedy, or seeded sampling at a temperature.

Strategy: llama.cpp's samplers build the whole vocabulary per token; here one argmax and one log-sum-exp over the logits
view do (about 0.2 ms for 152,000 entries, into a buffer that is reused).

Rules: never write to the logits (they belong to llama.cpp). Log-probabilities are natural logs of the model's own
distribution (temperature 1); under a constraint they are taken within the allowed set, whose total probability is `mass`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lsp_complete.engine.backend import Floats, Ints


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token, its log-probability (≤ 0) and the allowed set's mass (0 … 1)."""

    token: int
    logprob: float
    mass: float = 1.0


class Sampler:
    """Holds the scratch buffer. Engine thread."""

    def __init__(self, vocab_size: int) -> None:
        self._scratch = np.empty(vocab_size, dtype=np.float32)

    def log_sum_exp(self, logits: Floats) -> float:
        """Natural log of the sum of exponentials of all logits."""
        top = float(logits.max())
        np.subtract(logits, top, out=self._scratch)
        np.exp(self._scratch, out=self._scratch)
        return top + math.log(float(self._scratch.sum()))

    def choose(
        self, logits: Floats, allowed: Ints | None = None, temperature: float = 0.0, uniform: float = 0.0, banned: Ints | None = None
    ) -> Choice:
        """One token. temperature 0 takes the most probable; otherwise `uniform` in [0, 1) decides. banned: not to be chosen, if
        there is anything else, though they count in the log-probability of what is."""
        total = self.log_sum_exp(logits)
        if banned is not None and len(banned):
            found = self._but(logits, allowed, temperature, uniform, banned, total)
            if found is not None:
                return found
        scores = logits if allowed is None else logits[allowed]
        at = int(scores.argmax()) if temperature <= 0.0 else _draw(scores, temperature, uniform)
        return _choice(scores, at, allowed, total)

    def _but(
        self, logits: Floats, allowed: Ints | None, temperature: float, uniform: float, banned: Ints, total: float
    ) -> Choice | None:
        np.copyto(self._scratch, logits)
        self._scratch[banned] = -np.inf
        scores = self._scratch if allowed is None else self._scratch[allowed]
        if scores.max() == -np.inf:
            return None
        at = int(scores.argmax()) if temperature <= 0.0 else _draw(scores, temperature, uniform)
        within = total if allowed is None else _log_sum_exp(logits[allowed])
        token = at if allowed is None else int(allowed[at])
        return Choice(token, min(0.0, float(scores[at]) - within), min(1.0, math.exp(within - total)))

    def top(self, logits: Floats, allowed: Ints | None, count: int) -> list[Choice]:
        """The `count` most probable tokens (fewer if fewer are allowed), most probable first; ties by id order."""
        total = self.log_sum_exp(logits)
        scores = logits if allowed is None else logits[allowed]
        count = min(count, len(scores))
        best = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
        order = best[np.lexsort((best, -scores[best]))]
        return [_choice(scores, int(at), allowed, total) for at in order]


def _choice(scores: Floats, at: int, allowed: Ints | None, total: float) -> Choice:
    value = float(scores[at])
    if allowed is None:
        return Choice(at, min(0.0, value - total))
    within = _log_sum_exp(scores)
    return Choice(int(allowed[at]), min(0.0, value - within), min(1.0, math.exp(within - total)))


def _log_sum_exp(scores: Floats) -> float:
    top = float(scores.max())
    return top + math.log(float(np.exp(scores - top).sum()))


def _draw(scores: Floats, temperature: float, uniform: float) -> int:
    weights = np.exp((scores - scores.max()).astype(np.float64) / temperature)
    cumulative = np.cumsum(weights)
    at = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    return min(at, len(scores) - 1)
