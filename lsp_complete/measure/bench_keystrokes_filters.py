"""What each filter does on real completions: how often it changes one, and exact match with and without it. Pure.

Strategy: the points are the recorded answers at keys where more than one character is left to type. Each is polished with all
filters, and once more without each filter that changed it; where a filter changed nothing both are the same.

Figures per filter: changed = share of points that it changed or dropped; exact, exact_without = share of all points at which
accepting makes the line right (up to the editor's closer), with all filters and without this one; lost, won = points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..suggest.pipeline import JUDGE, SHAPE, Polished, RawCandidate, polish
from .bench_keystrokes_replay import LinePlayer, RecordedLine
from .statistics import ratio

NAMES = tuple(dict.fromkeys(f.__name__ for f in (*SHAPE, *JUDGE)))


@dataclass(frozen=True, slots=True)
class FilterPoint:
    """One answer: the filters that changed it, whether it was right, and for each of those whether it is without it."""

    language: str
    changed_by: tuple[str, ...]
    right: bool
    without: dict[str, bool]
    reason: str


def points_of(player: LinePlayer) -> list[FilterPoint]:
    """The points of one recorded line."""
    found = []
    for index, told in player.line.answers.items():
        key = player.line.keys[index]
        known = player.candidate(index)
        if known is None or len(key.rest.strip()) < 2 or not key.expects:
            continue
        text, stop, _ = known
        place, raw = player.place(index, told), RawCandidate(text.text, stop)

        def right(done: Polished, index: int = index) -> bool:
            return bool(done.text.strip()) and player.right(index, done.text) is not None

        done = polish(raw, place)
        names = [n for n in dict.fromkeys(done.changed_by) if n in NAMES]
        without = {name: right(polish(raw, replace(place, without=(name,)))) for name in names}
        found.append(FilterPoint(player.line.language, tuple(names), right(done), without, done.reason))
    return found


def filter_report(lines: Sequence[RecordedLine]) -> dict[str, Any]:
    """Figures of all filters, over all languages and for each."""
    points = [point for line in lines for point in points_of(LinePlayer(line))]
    languages = sorted({p.language for p in points})
    return {
        **_figures(points),
        "held_back": dict(Counter(p.reason for p in points if p.reason).most_common()),
        "by_language": {language: _figures([p for p in points if p.language == language]) for language in languages},
    }


def _figures(points: Sequence[FilterPoint]) -> dict[str, Any]:
    total = len(points)
    right = sum(p.right for p in points)
    filters: dict[str, Any] = {}
    for name in NAMES:
        changed = [p for p in points if name in p.changed_by]
        if not changed:
            continue
        lost = sum(p.without[name] and not p.right for p in changed)
        won = sum(p.right and not p.without[name] for p in changed)
        filters[name] = {
            "changed": round(ratio(len(changed), total), 4),
            "exact": round(ratio(right, total), 4),
            "exact_without": round(ratio(right + lost - won, total), 4),
            "won": won,
            "lost": lost,
        }
    return {"points": total, "exact": round(ratio(right, total), 4), "filters": filters}
