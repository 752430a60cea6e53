"""What the speculation benchmark says: gains, acceptance, and whether the texts are the same. Pure.

Rules: a gain is tokens per second over all points against plain decoding of the same points with the same stop, so
long texts count more; `gain_p50` is the middle point's. A gain of 1.0 is plain decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..engine.adaptive import best_length
from ..engine.api import Candidate
from ..engine.batchcost import BatchCost
from .bench_speculation_best import BestOf, best_report
from .bench_speculation_policies import Judged, acceptance, policy_report
from .statistics import percentile, ratio

NEAR_TIE = 0.38
"""Natural-log units: P99.9 of how far the gap between the two best tokens moves with the batch's shape (q8_0 KV, measured)."""


@dataclass(slots=True)
class Run:
    """One variant at one point, over its repetitions. ms is the median; the text is the first repetition's."""

    candidate: Candidate
    times: list[float] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0

    @property
    def ms(self) -> float:
        return percentile(self.times, 0.5)


Runs = dict[str, Run]
Kinds = dict[str, dict[str, int]]
"""Per kind of proposal: tokens proposed, judged, accepted (`Speculator.report`)."""


@dataclass(slots=True)
class Measured:
    """One point's results. kinds: per variant, what its proposers did at this point. repeated: see `Point`. costs: batch costs known
    when it was done. judged: what the draft model says along the plain text ({} without one)."""

    place: str
    repeated: float
    runs: Runs
    kinds: dict[str, Kinds] = field(default_factory=dict)
    best: BestOf | None = None
    costs: dict[str, float] = field(default_factory=dict)
    judged: Judged = field(default_factory=dict)


def summed(measured: Sequence[Measured]) -> dict[str, Kinds]:
    """What the proposers of each variant did over all points."""
    total: dict[str, Kinds] = {}
    for one in measured:
        for name, kinds in one.kinds.items():
            mine = total.setdefault(name, {})
            for kind, sums in kinds.items():
                so_far = mine.setdefault(kind, {})
                for what, count in sums.items():
                    so_far[what] = so_far.get(what, 0) + count
    return total


def verdict(got: Candidate, plain: Candidate) -> str:
    """ "identical", "near_tie" or "different"."""
    if got.text == plain.text:
        return "identical"
    parted = next((i for i, (a, b) in enumerate(zip(got.tokens, plain.tokens, strict=False)) if a != b), None)
    if parted is None:
        return "different"
    return "near_tie" if abs(got.logprobs[parted] - plain.logprobs[parted]) < NEAR_TIE else "different"


def _speed(runs: Sequence[Run]) -> float:
    """Tokens per second over several points."""
    return 1e3 * ratio(sum(len(r.candidate.tokens) for r in runs), sum(r.ms for r in runs))


def variant_report(name: str, all_runs: Sequence[Runs], top: Sequence[Runs]) -> dict[str, Any]:
    """One variant against plain decoding with the same stop. top: the points with most repetition."""
    plain = "plain_line" if name.endswith("_line") else "plain"
    pairs = [(r[name], r[plain]) for r in all_runs]
    verdicts = [verdict(a.candidate, b.candidate) for a, b in pairs]
    speed, before = _speed([a for a, _ in pairs]), _speed([b for _, b in pairs])
    repeated = ratio(_speed([r[name] for r in top]), _speed([r[plain] for r in top]))
    drafted, accepted = sum(a.drafted for a, _ in pairs), sum(a.accepted for a, _ in pairs)
    return {
        "tokens_per_s": round(speed, 2),
        "plain_tokens_per_s": round(before, 2),
        "gain": round(ratio(speed, before), 4),
        "gain_p50": round(percentile([ratio(b.ms, a.ms) for a, b in pairs], 0.5), 4),
        "gain_most_repeated": round(repeated, 4),
        "acceptance": round(ratio(accepted, drafted), 4),
        "drafted": drafted,
        "accepted": accepted,
        "identical": round(ratio(verdicts.count("identical"), len(verdicts)), 4),
        "identical_or_near_tie": round(ratio(len(verdicts) - verdicts.count("different"), len(verdicts)), 4),
        "near_ties": verdicts.count("near_tie"),
        "different": verdicts.count("different"),
        "n": len(pairs),
    }


def predicted_gain(rate: float, cost_ratio: float) -> float:
    """Best gain of a draft model whose token costs 1 / cost_ratio of the target's, on hardware where a batch costs little
    more than one token (the prior for a GPU)."""
    return best_length(rate, rate, 15, BatchCost(gpu=True), 1.0 / cost_ratio).gain


def report(measured: Sequence[Measured]) -> dict[str, Any]:
    """One model's figures. At least one point."""
    ranked = sorted(measured, key=lambda one: one.repeated, reverse=True)
    top = [one.runs for one in ranked[: max(1, len(ranked) // 3)]]
    all_runs = [one.runs for one in measured]
    names = [name for name in all_runs[0] if not name.startswith("plain")]
    kinds = summed(measured)
    variants = {name: variant_report(name, all_runs, top) | {"kinds": kinds.get(name, {})} for name in names}
    result: dict[str, Any] = {"batch_cost": measured[-1].costs, "variants": variants}
    if "all" in variants:
        result |= {k: v for k, v in variants["all"].items() if k != "kinds"}
    if "all_line" in variants:
        result["gain_single_line"] = variants["all_line"]["gain"]
    if "model_fixed" in variants:
        sums = kinds.get("model_fixed", {}).get("model", {"judged": 0, "accepted": 0})
        rate = ratio(sums["accepted"], sums["judged"])
        result["draft_model"] = {
            "acceptance_per_token": round(rate, 4),
            "predicted_gain": {str(c): round(predicted_gain(rate, c), 3) for c in (5, 10)},
        }
    judged = [one.judged for one in measured if one.judged]
    if judged:
        result["draft_policies"] = {"acceptance": acceptance(judged)} | policy_report(judged)
    bests = [one.best for one in measured if one.best is not None]
    if bests:
        result["best_of"] = best_report(bests)
    return result
