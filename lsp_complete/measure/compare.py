"""Is the difference real? Paired bootstrap over clusters. Pure.

Strategy: two variants saw the same keys, so differences are taken key by key; keys of one place depend on each other, so
whole places are drawn, with replacement. Percentile intervals (Efron 1979; clusters: Davison and Hinkley 1997,
section 3.8).

Rules: the random source is the caller's; a cluster stays whole; pairs with a missing side are left out by the caller.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from .statistics import percentile

Statistic = Callable[[Sequence[tuple[float, float]]], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence limits."""

    estimate: float
    low: float
    high: float

    @property
    def settled(self) -> bool:
        """The interval leaves 0 out."""
        return self.low > 0 or self.high < 0

    def as_dict(self, digits: int = 4) -> dict[str, float]:
        """Rounded plain values."""
        return {k: round(getattr(self, k), digits) for k in ("estimate", "low", "high")}


def mean_difference(pairs: Sequence[tuple[float, float]]) -> float:
    """Mean of first minus second; 0.0 for none."""
    return sum(a - b for a, b in pairs) / len(pairs) if pairs else 0.0


def quantile_ratio(q: float) -> Statistic:
    """Ratio of the q-quantiles, second over first (how many times slower the second is)."""

    def statistic(pairs: Sequence[tuple[float, float]]) -> float:
        below = percentile([a for a, _ in pairs], q)
        return percentile([b for _, b in pairs], q) / below if below else float("inf")

    return statistic


def paired(
    pairs: Sequence[tuple[float, float]],
    rng: random.Random,
    statistic: Statistic = mean_difference,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """The statistic with its bootstrap interval. clusters: one label per pair; None draws pairs singly.

    Raises ValueError for no pairs or labels that do not match.
    """
    if not pairs:
        raise ValueError("There is nothing to compare: no pairs.")
    labels = clusters if clusters is not None else range(len(pairs))
    if len(labels) != len(pairs):
        raise ValueError("There must be one cluster label per pair.")
    groups: dict[Hashable, list[tuple[float, float]]] = defaultdict(list)
    for label, pair in zip(labels, pairs, strict=True):
        groups[label].append(pair)
    members = list(groups.values())
    values = []
    if statistic is mean_difference:  # sums of the groups do
        sums = [(sum(a - b for a, b in group), len(group)) for group in members]
        for _ in range(resamples):
            chosen = rng.choices(sums, k=len(sums))
            values.append(sum(total for total, _ in chosen) / sum(count for _, count in chosen))
    else:
        for _ in range(resamples):
            drawn = [pair for group in rng.choices(members, k=len(members)) for pair in group]
            values.append(statistic(drawn))
    tail = (1 - confidence) / 2
    return Interval(statistic(pairs), percentile(values, tail), percentile(values, 1 - tail))
