"""How a draft model should propose: warmer or not, how many tokens, when to stop, whether to back off after rejections. Pure, but for `judge`.

Strategy: the target's own text is known. What the draft model says before each of its tokens is read once, in batches; up to the
first wrong token a proposal stands on that very text, so every policy can be played over the same readings, with the product's own
adaptive length, at any ratio of the two models' costs. Batches cost what they do on a GPU, where a draft model is of use.

Rules: a policy is judged by tokens per time against plain decoding, over all points in their order. What is sampled is seeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..engine.adaptive import Adaptive
from ..engine.batchcost import BatchCost
from ..engine.draftmodel import LEAST, DraftModel, pick
from ..engine.options import SPECULATIVE_TOKENS
from ..engine.speculate import after_verdict, backed_off
from .statistics import ratio

RATIOS = (5, 10)
TEMPERATURES = (0.0, 0.3, 0.6, 1.0)
SEED = 1

Said = Sequence[tuple[bool, float]]
"""Before each token of a text: whether the draft's choice was that token, and the probability it gave to its choice."""
Judged = Mapping[str, Said]
"""By temperature, as text."""


@dataclass(frozen=True, slots=True)
class DraftPolicy:
    """See `engine.options.EngineOptions`. tokens: proposed at most."""

    temperature: float = 0.0
    tokens: int = SPECULATIVE_TOKENS
    least: float = LEAST
    back_off: int = 0


GRID: Mapping[str, tuple[float, ...]] = {
    "temperature": TEMPERATURES, "tokens": (2, 4, 7, 10, 15), "least": (0.0, 0.2, 0.4, 0.6, 0.8), "back_off": (0, 1, 2, 4),
}  # fmt: skip

TOGETHER: tuple[tuple[Any, ...], ...] = (TEMPERATURES, (4, 7, 15), (0.0, 0.2, 0.4, 0.6), (0, 1, 2))
"""Values of the knobs that are tried with each other, in the order of `DraftPolicy`."""


def judge(draft: DraftModel, prompt: Sequence[int], text: Sequence[int]) -> dict[str, list[tuple[bool, float]]]:
    """What the draft says along a text that the target wrote. The thread that owns the draft, while nobody else asks it."""
    random = {t: np.random.default_rng(SEED + len(prompt)) for t in TEMPERATURES}
    said: dict[str, list[tuple[bool, float]]] = {str(t): [] for t in TEMPERATURES}
    for token, logits in zip(text, draft.along(prompt, text), strict=False):
        for t in TEMPERATURES:
            chosen, probability = pick(logits, t, random[t])
            said[str(t)].append((chosen == token, round(probability, 4)))
    return said


def played(texts: Sequence[Said], policy: DraftPolicy, cost_ratio: float) -> float:
    """Tokens per time against plain decoding. cost_ratio: a token of the target costs so many of the draft's."""
    cost = BatchCost(gpu=True)
    adaptive, step = Adaptive(cost), 1.0 / cost_ratio
    tokens, spent = 0, 0.0
    for said in texts:
        at = rejected = 0
        while at < len(said):
            limit = min(backed_off(policy.tokens, rejected, policy.back_off), len(said) - at - 1)
            wanted = adaptive.length("model", limit, step).tokens if limit > 0 else 0
            if not wanted and limit > 0 and adaptive.probe("model"):
                wanted = 1
            proposed, right, steps = _proposed(said[at : at + wanted], policy.least)
            spent += cost.ratio(1 + proposed) + steps * step
            if proposed:
                adaptive.observe("model", proposed, right)
                rejected = after_verdict(rejected, proposed, right)
            tokens += right + 1
            at += right + 1
    return ratio(tokens, spent)


def _proposed(said: Said, least: float) -> tuple[int, int, int]:
    """Tokens proposed, accepted of them, and steps of the draft. Behind a wrong token it is taken to be as sure as before."""
    right, wrong = 0, False
    for n, (agrees, probability) in enumerate(said):
        if not wrong and probability < least:
            return n, right, n + 1
        wrong = wrong or not agrees
        right += not wrong
    return len(said), right, len(said)


def policy_report(judged: Sequence[Judged]) -> dict[str, Any]:
    """By cost ratio: the gain of the default policy, of each value of each knob with the others at their defaults, and the best of all
    tried."""
    found: dict[str, Any] = {}
    for cost_ratio in RATIOS:

        def gain(policy: DraftPolicy, cost_ratio: float = cost_ratio) -> float:
            return round(played([one[str(policy.temperature)] for one in judged], policy, cost_ratio), 3)

        default = DraftPolicy()
        knobs = {name: {str(value): gain(_with(default, name, value)) for value in values} for name, values in GRID.items()}
        best = max((DraftPolicy(*values) for values in product(*TOGETHER)), key=gain)
        found[str(cost_ratio)] = {"default": gain(default), **knobs, "best": asdict(best) | {"gain": gain(best)}}
    return found


def _with(policy: DraftPolicy, name: str, value: float) -> DraftPolicy:
    """The policy with one knob at another value."""
    kind = type(getattr(policy, name))
    return replace(policy, **{name: kind(value)})


def acceptance(judged: Sequence[Judged]) -> dict[str, float]:
    """Share of right choices by temperature, along the target's own text."""
    return {
        name: round(ratio(sum(right for one in judged for right, _ in one[name]), sum(len(one[name]) for one in judged)), 4)
        for name in map(str, TEMPERATURES)
    }
