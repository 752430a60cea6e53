"""What each filter does on real completions: how often it changes one, and exact match with and without it. Pure.

Strategy: the points are the recorded answers at keys where more than one character is left to type (up to the editor's closer: a single
one is not worth accepting). Each is polished with all filters, and once more without each filter that changed it; where a filter changed
nothing both are the same.

Trees and names are judged by the file alone (in the product the index knows more names), so what `unknown_names_*` cost here is the most
that they can cost. They are no filters but ways to choose.

Figures per filter: changed = share of points that it changed or dropped; exact, exact_without = share of all points at which
accepting makes the line right (up to the editor's closer), with all filters and without this one; lost, won = points.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..config.settings import SuggestSettings
from ..suggest.choose import Policy, choose
from ..suggest.confidence import Level
from ..suggest.filters.base import ParsesOk
from ..suggest.pipeline import JUDGE, SHAPE, Polished, RawCandidate, polish
from ..syntax.facts_at import ERRORS_AROUND, parses_ok
from ..syntax.languages import language_for, load
from ..syntax.trees import error_spans, parse
from ..text.buffer import TextBuffer
from .bench_keystrokes_replay import LinePlayer, RecordedLine
from .edits import split_lines
from .statistics import ratio

FILTERS = tuple(dict.fromkeys(f.__name__ for f in (*SHAPE, *JUDGE)))
MODES = ("hold", "trim")
OPEN = Level(first_token=None, token=-1e9, line=-1e9, sum=None, mean=None, mass=0.0)
NAMES = (*FILTERS, *(f"unknown_names_{mode}" for mode in MODES))
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class FilterPoint:
    """One answer: the filters that changed it, whether it was right, and for each of those whether it is without it. What a way to
    choose would change stands there too, with `right` under it in `instead`."""

    language: str
    changed_by: tuple[str, ...]
    right: bool
    without: dict[str, bool]
    reason: str
    instead: dict[str, bool]

    def right_with(self, name: str) -> bool:
        """Right with this filter or way to choose in force."""
        return self.instead.get(name, self.right)


def to_insert(rest: str, right: str) -> str:
    """What accepting must bring at least: the rest of the line up to the closer that the editor put right of the cursor."""
    closer = right.strip()[:1]
    return (rest.partition(closer)[0] if closer else rest).strip()


def whole(line: RecordedLine, text: str) -> tuple[str, str]:
    """The document left and right of the cursor's line; of the windows alone if the file's text is not at hand ("")."""
    if not text:
        return line.above, line.below
    lines = split_lines(text)
    return "".join(lines[: line.number]), "" if line.from_empty else "".join(lines[line.number :])[len(line.target) :]


def points_of(player: LinePlayer, text: str = "") -> list[FilterPoint]:
    """The points of one recorded line. text: of the whole file."""
    found = []
    above, below = whole(player.line, text)
    elsewhere = frozenset(_WORD.findall(above)) | frozenset(_WORD.findall(below))
    for index, told in player.line.answers.items():
        key = player.line.keys[index]
        known = player.candidate(index)
        if known is None or len(to_insert(key.rest, key.right)) < 2 or not key.expects:
            continue
        said, stop, _ = known
        place = replace(player.place(index, told), parses_ok=_parses_ok(player.line.language, above + key.left, key.right + below))
        raw = RawCandidate(said.text, stop)

        def right(done: Polished, index: int = index) -> bool:
            return bool(done.text.strip()) and player.right(index, done.text) is not None

        done = polish(raw, place)
        names = [n for n in dict.fromkeys(done.changed_by) if n in FILTERS]
        without = {name: right(polish(raw, replace(place, without=(name,)))) for name in names}
        instead: dict[str, bool] = {}
        words = elsewhere | frozenset(_WORD.findall(key.left + " " + key.right))
        for mode in MODES if done.text else ():
            policy = Policy(level=OPEN, known=words.__contains__, names=mode, guard_habits=False)
            (choice,) = choose([said], [stop], place, policy)
            if choice.text != done.text:
                name = f"unknown_names_{mode}"
                instead[name] = bool(choice.text) and player.right(index, choice.text) is not None
                without[name] = right(done)
        found.append(FilterPoint(player.line.language, (*names, *instead), right(done), without, done.reason, instead))
    return found


def _parses_ok(language: str, before: str, after: str) -> ParsesOk | None:
    facts = language_for(language)
    grammar = load(facts) if facts is not None else None
    buffer, at = TextBuffer.from_text(before + after), len(before)
    tree = parse(grammar, buffer) if grammar is not None else None
    if tree is None or error_spans(tree, max(0, at - ERRORS_AROUND), min(at + ERRORS_AROUND, buffer.length)):
        return None
    return lambda text: parses_ok(tree, buffer, at, text)


def filter_report(
    lines: Sequence[RecordedLine], texts: Mapping[str, str] | None = None, settings: SuggestSettings | None = None
) -> dict[str, Any]:
    """Figures of all filters, over all languages and for each. texts: whole files by name, where they are at hand."""
    points = [point for line in lines for point in points_of(LinePlayer(line, settings), (texts or {}).get(line.file, ""))]
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
        lost = sum(p.without[name] and not p.right_with(name) for p in changed)
        won = sum(p.right_with(name) and not p.without[name] for p in changed)
        filters[name] = {
            "changed": round(ratio(len(changed), total), 4),
            "exact": round(ratio(sum(p.right_with(name) for p in points), total), 4),
            "exact_without": round(ratio(sum(p.without.get(name, p.right) for p in points), total), 4),
            "won": won,
            "lost": lost,
        }
    return {"points": total, "exact": round(ratio(right, total), 4), "filters": filters}
