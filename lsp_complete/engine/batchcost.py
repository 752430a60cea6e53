"""What a batch of n tokens costs against one of a single token, learned from the steps that run anyway.

Strategy: one scale (ms of a single-token step) and one ratio per batch size, both exponential averages. Sizes that were never
seen take the prior's ratio, corrected by the nearest size that was. So nothing is measured at start, and a machine that
becomes slower changes the scale, not the ratios.

Rules: engine thread only. Ratios never fall with the size. One slow step counts at most three times its expectation.
Priors: 0.5B Q4_K_M with a q8_0 KV on two quiet cores took 25 / 39 / 46 / 54 / 94 / 153 ms for 1 / 2 / 3 / 4 / 8 / 16 tokens; a
GPU is bound by memory there and nearly flat.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

MOST = 16
"""Larger batches are extrapolated."""

_CPU = ((1, 1.0), (2, 1.56), (3, 1.84), (4, 2.16), (8, 3.76), (16, 6.12))
_GPU = ((1, 1.0), (2, 1.03), (4, 1.06), (8, 1.12), (16, 1.25))
_WEIGHT = 0.1
_FIRST = 4
"""The first observations count as if the prior had been seen so many times before."""
_OUTLIER = 3.0


class BatchCost:
    """`planned`: tokens that the batch being planned holds without proposals; the planner sets it, proposers read it."""

    def __init__(self, gpu: bool = False) -> None:
        self.planned = 1
        self.single_ms = 0.0
        self._prior = _interpolated(_GPU if gpu else _CPU)
        self._factor = [1.0] * (MOST + 1)
        self._seen = [0] * (MOST + 1)
        self._table = list(self._prior)

    def step(self, tokens: int, elapsed_ms: float) -> None:
        """One sequence's step of `tokens` tokens, all with logits, took so long."""
        if elapsed_ms <= 0.0 or not 1 <= tokens <= MOST:
            return
        if tokens == 1:
            if self.single_ms:
                elapsed_ms = min(elapsed_ms, _OUTLIER * self.single_ms)
                self.single_ms += _WEIGHT * (elapsed_ms - self.single_ms)
            else:
                self.single_ms = elapsed_ms
            return
        if not self.single_ms:
            return
        ratio = min(elapsed_ms / self.single_ms, _OUTLIER * self._table[tokens])
        weight = max(_WEIGHT, 1.0 / (self._seen[tokens] + _FIRST))
        self._factor[tokens] += weight * (ratio / self._prior[tokens] - self._factor[tokens])
        self._seen[tokens] += 1
        self._rebuild()

    def ratio(self, tokens: int) -> float:
        """Cost of a batch of `tokens` tokens in single-token steps; 1.0 for one token."""
        if tokens <= MOST:
            return self._table[max(1, tokens)]
        slope = (self._table[MOST] - self._table[MOST // 2]) / (MOST // 2)
        return self._table[MOST] + (tokens - MOST) * slope

    def table(self) -> dict[int, float]:
        """Ratios at the sizes that reports show."""
        return {n: round(self._table[n], 3) for n in (1, 2, 4, 8, 16)}

    def _rebuild(self) -> None:
        known = [n for n in range(2, MOST + 1) if self._seen[n]]
        for n in range(2, MOST + 1):
            nearest = min(known, key=lambda k: abs(k - n))
            self._table[n] = max(self._table[n - 1], self._prior[n] * self._factor[nearest])


def _interpolated(points: Sequence[tuple[int, float]]) -> list[float]:
    """Ratios for 0 … MOST tokens; index 0 repeats index 1."""
    table = [points[0][1]] * (MOST + 1)
    for (a, low), (b, high) in itertools.pairwise(points):
        for n in range(a, b + 1):
            table[n] = low + (high - low) * (n - a) / (b - a)
    return table
