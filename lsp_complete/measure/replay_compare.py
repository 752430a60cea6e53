"""Two replay runs of the same recordings: what changed, and is it real? Pure.

Strategy: both runs asked at the same points, so all differences (second minus first) are paired; points of one line depend on
each other, so lines are drawn as wholes (`compare.paired`). A quality figure counts as down only where its interval
leaves 0 out on the wrong side, at a confidence raised for the number of figures looked at (Bonferroni).

Rules:
- Points that one side lacks, or where one side was overtaken or unavailable, are counted and left out.
- "Not down" means that no loss was shown: with few points that says little, so the report gives the intervals.
- The random source is seeded: the same runs give the same figures.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .compare import Interval, paired
from .statistics import STAGES, percentile

Row = Mapping[str, Any]

HIGHER_IS_BETTER: Mapping[str, bool] = {
    "exact": True,
    "similarity": True,
    "kept": True,
    "surprise": False,
    "types": True,
    "brackets": False,
    "errors": False,
    "unknown": False,
    "repeated": False,
    "safe": False,
}
"""The figures of `replay_quality.Judged` that are compared."""
CONFIDENCE = 0.95
FEWEST, FEWEST_LINES = 20, 8
"""Pairs, and lines that they stand in: resamples of one line alone are all the same, and its interval would leave out whatever it does not hold."""
_NO_TIME = frozenset({"superseded", "cancelled", "unavailable", "error", "disabled"})


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of both runs. verdict: "better" | "worse" | "same" (no difference was shown) | "few" (too few pairs)."""

    name: str
    pairs: int
    first: float
    second: float
    difference: Interval
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """latency: of the whole request as the editor saw it, and by stage. names_apart: distance of the two
    distributions of names in suggestions, 0 (same) to 1 (Jensen–Shannon divergence, base 2). differing: (first, second)."""

    pairs: int
    left_out: int
    wall: Figure
    wall_quantiles: Mapping[str, tuple[float, float]]
    stages: tuple[Figure, ...]
    quality: tuple[Figure, ...]
    names_apart: float
    gained_names: tuple[tuple[str, int, int], ...]
    differing: tuple[tuple[Row, Row], ...]

    @property
    def faster(self) -> bool:
        """Latency is down."""
        return self.wall.verdict == "better"

    @property
    def quality_down(self) -> tuple[str, ...]:
        """Quality figures that got worse."""
        return tuple(figure.name for figure in self.quality if figure.verdict == "worse")

    @property
    def same(self) -> bool:
        """No difference was shown in any quality figure, nor in latency."""
        return all(figure.verdict in ("same", "few") for figure in (self.wall, *self.quality))

    @property
    def same_quality(self) -> bool:
        """No difference was shown in any quality figure."""
        return all(figure.verdict in ("same", "few") for figure in self.quality)

    def summary(self) -> str:
        """The verdict in one sentence."""
        speed = {"better": "down", "worse": "up"}.get(self.wall.verdict, "not different")
        down = ", ".join(self.quality_down)
        quality = f"down ({down})" if down else "not down"
        return f"latency {speed}, quality {quality}, over {self.pairs} points"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, without texts."""
        plain = asdict(self)
        plain["differing"] = len(self.differing)
        return {**plain, "faster": self.faster, "quality_down": list(self.quality_down), "same": self.same}


def compare(first: Sequence[Row], second: Sequence[Row], seed: int = 1, resamples: int = 4000) -> Comparison:
    """Compare two runs' points. Raises ValueError if they share none that were answered, or are of different recordings."""
    there = {_key(row): row for row in second}
    both = [(row, there[_key(row)]) for row in first if _key(row) in there]
    pairs = [(a, b) for a, b in both if a["outcome"] not in _NO_TIME and b["outcome"] not in _NO_TIME]
    if not pairs:
        raise ValueError("The two runs share no point that both answered; replay the same recordings.")
    if any(a[name] != b[name] for a, b in both for name in ("path", "place", "wanted")):
        raise ValueError("The two runs are of different recordings that have the same file name; replay the same recordings.")
    everything = {_key(row) for row in first} | set(there)
    rng = random.Random(seed)  # noqa: S311 (resampling)
    seen = [name for name in HIGHER_IS_BETTER if any(None not in (a["judged"].get(name), b["judged"].get(name)) for a, b in pairs)]
    quality_confidence = 1 - (1 - CONFIDENCE) / max(1, len(seen))

    def figure(name: str, values: list[tuple[Any, Any]], higher: bool, confidence: float) -> Figure:
        kept = [
            (pair, _line(rows[0]))
            for pair, rows in zip(values, pairs, strict=True)
            if None not in pair and all(map(math.isfinite, pair))
        ]
        return _figure(name, kept, higher, confidence, rng, resamples)

    wall = [(a["wall_ms"], b["wall_ms"]) for a, b in pairs]
    stage_pairs = [(a["stages"], b["stages"]) for a, b in pairs]
    counts = [
        Counter(name for row in side for name in row["judged"]["names"]) for side in zip(*pairs, strict=True)
    ]
    return Comparison(
        pairs=len(pairs),
        left_out=len(everything) - len(pairs),
        wall=figure("wall", wall, False, CONFIDENCE),
        wall_quantiles={
            name: (percentile([a for a, _ in wall], q), percentile([b for _, b in wall], q))
            for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        },
        stages=tuple(
            figure(
                stage,
                [(a.get(f"{stage}_ms"), b.get(f"{stage}_ms")) for a, b in stage_pairs],
                False,
                CONFIDENCE,
            )
            for stage in STAGES
        ),
        quality=tuple(
            figure(
                name, [(a["judged"].get(name), b["judged"].get(name)) for a, b in pairs], higher, quality_confidence
            )
            for name, higher in HIGHER_IS_BETTER.items()
        ),
        names_apart=divergence(counts[0], counts[1]),
        gained_names=_moved_names(counts[0], counts[1]),
        differing=tuple((a, b) for a, b in pairs if a["text"] != b["text"]),
    )


def _key(row: Row) -> tuple[str, int]:
    return row["recording"], row["point"]


def _line(row: Row) -> tuple[str, str]:
    return row["recording"], row["place"]


def _figure(
    name: str,
    kept: list[tuple[tuple[float, float], tuple[str, str]]],
    higher: bool,
    confidence: float,
    rng: random.Random,
    resamples: int,
) -> Figure:
    if not kept:
        return Figure(name, 0, 0.0, 0.0, Interval(0.0, 0.0, 0.0), "few")
    turned = [(second, first) for (first, second), _ in kept]
    difference = paired(
        turned, rng, clusters=[line for _, line in kept], resamples=resamples, confidence=confidence
    )
    means = [sum(pair[k] for pair, _ in kept) / len(kept) for k in (0, 1)]
    verdict = "same"
    if len(kept) < FEWEST or len({line for _, line in kept}) < FEWEST_LINES:
        verdict = "few"
    elif difference.settled:
        verdict = "better" if (difference.low > 0) == higher else "worse"
    return Figure(name, len(kept), means[0], means[1], difference, verdict)


def divergence(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """Jensen–Shannon divergence (base 2) of two counts; 0.0 if either is empty. Source: Lin 1991."""
    totals = sum(first.values()), sum(second.values())
    if not all(totals):
        return 0.0
    apart = 0.0
    for name in {*first, *second}:
        p, q = first.get(name, 0) / totals[0], second.get(name, 0) / totals[1]
        middle = (p + q) / 2
        apart += sum(share * math.log2(share / middle) for share in (p, q) if share) / 2
    return min(1.0, max(0.0, apart))


def _moved_names(
    first: Counter[str], second: Counter[str], most: int = 12
) -> tuple[tuple[str, int, int], ...]:
    """Names whose counts differ most: (name, first, second)."""
    moved = sorted({*first, *second}, key=lambda name: (-abs(first[name] - second[name]), name))
    return tuple((name, first[name], second[name]) for name in moved[:most] if first[name] != second[name])
