"""What `bench load` and `bench soak` are held against: each figure's bar in one table, and the verdict beside the figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure's place in a result, and the most (or least) that it may be."""

    path: tuple[str, ...]
    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether the figure is on the right side of its bar, or on it."""
        return value >= self.limit if self.at_least else value <= self.limit


LOAD = (
    Bar(("typist", "p95_ratio"), 1.2),
    Bar(("eight", "lost"), 0),
    Bar(("eight", "answered_share_min_over_mean"), 0.5, at_least=True),
    Bar(("eight", "engine_rss_ratio"), 1.15),
    Bar(("batching", "batching_gain"), 1.0, at_least=True),
    Bar(("cancel", "cancel_p95_ms"), 60),
    Bar(("idle_slots", "decode_ratio"), 1.15),
    Bar(("restore", "memory", "restore_ms"), 10),
    Bar(("restore", "disk", "restore_ms"), 100),
    Bar(("restore", "restart", "first_suggestion_ms"), 500),
    Bar(("exact", "different"), 0),
)
SOAK = (
    Bar(("memory_growth",), 0.05),
    Bar(("stuck",), 0),
    Bar(("integrity_faults",), 0),
)


def verdicts(result: Mapping[str, Any], bars: Sequence[Bar]) -> dict[str, dict[str, Any]]:
    """Of every bar whose part was run: the figure, its bar, and whether it is met. A figure that could not be had (None) is not met."""
    found: dict[str, dict[str, Any]] = {}
    for bar in bars:
        if bar.path[0] not in result:
            continue
        value: Any = result
        for name in bar.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        known = isinstance(value, (int, float))
        sign = "≥" if bar.at_least else "≤"
        found[".".join(bar.path)] = {"value": value, "bar": f"{sign} {bar.limit:g}", "met": bool(known and bar.met(value))}
    return found
