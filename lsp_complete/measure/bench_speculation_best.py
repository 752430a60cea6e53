"""Several candidates against one: is the right line among them, is it ranked first, and what does that cost? Part of `bench speculation`.

Strategy: at each point the rest of the cursor's line is asked for once greedily and once as K candidates that branch on the most
probable first tokens, with the prompt there already and in an order that alternates.

Rules: right means equal to the line that was taken out, trailing blanks aside. `top_ranked` is by the product's own ranking
(`suggest.confidence.rank`), `top_by_mean` by mean log-probability. Ratios are of summed times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine.api import Candidate, Completion, CompletionRequest, Engine, StopRules
from ..suggest.confidence import Scored, rank
from .statistics import percentile, ratio


@dataclass(frozen=True, slots=True)
class BestOf:
    """One point. line: what stood there."""

    line: str
    greedy: Completion
    several: Completion


async def measure_best(engine: Engine, base: CompletionRequest, line: str, count: int, turn: int) -> BestOf:
    """One point: greedy and `count` candidates. base: the point's request."""
    asked = {
        number: replace(base, stop=StopRules("line"), speculate=False, candidates=number, lookup=(), drafts=())
        for number in (1, count)
    }
    got = {number: await engine.complete(asked[number]) for number in sorted(asked, reverse=turn % 2 == 1)}
    return BestOf(line, got[1], got[count])


def first_line(candidate: Candidate) -> str:
    """What a candidate makes of the cursor's line, without trailing blanks."""
    return candidate.text.decode("utf-8", "replace").split("\n", 1)[0].rstrip()


def _ms(answer: Completion) -> float:
    return answer.timing.total_ms - answer.timing.queue_ms


def top_ranked(candidates: Sequence[Candidate]) -> Candidate:
    """The one that the product would offer first."""
    order = rank([Scored(c.text, c.logprobs, c.masses, c.offsets) for c in candidates], [first_line(c) for c in candidates])
    return candidates[order[0] if order else 0]


def best_report(points: Sequence[BestOf]) -> dict[str, Any]:
    """Exact match of greedy, of the best of the candidates, of those ranked first, and what the candidates cost."""
    right = [p for p in points if p.greedy.candidates and p.several.candidates]

    def share(hit: Sequence[bool]) -> float:
        return round(ratio(sum(hit), len(right)), 4)

    wanted = [p.line.rstrip() for p in right]
    pairs = list(zip(right, wanted, strict=True))
    return {
        "n": len(right),
        "exact_greedy": share([first_line(p.greedy.candidates[0]) == w for p, w in pairs]),
        "exact_best": share([any(first_line(c) == w for c in p.several.candidates) for p, w in pairs]),
        "exact_top_ranked": share([first_line(top_ranked(p.several.candidates)) == w for p, w in pairs]),
        "exact_top_by_mean": share([first_line(p.several.candidates[0]) == w for p, w in pairs]),
        "distinct": round(ratio(sum(len({first_line(c) for c in p.several.candidates}) for p in right), len(right)), 2),
        "cost_ratio": round(ratio(sum(_ms(p.several) for p in right), sum(_ms(p.greedy) for p in right)), 3),
        "cost_ratio_p50": round(percentile([ratio(_ms(p.several), _ms(p.greedy)) for p in right], 0.5), 3) if right else None,
        "greedy_ms_p50": round(percentile([_ms(p.greedy) for p in right], 0.5), 1) if right else None,
    }
