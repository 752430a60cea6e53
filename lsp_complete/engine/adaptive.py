"""How many tokens to propose: running acceptance per kind of proposal against the batch cost.

Strategy: with acceptance a of the first token and b of each later one, k proposed tokens yield 1 + a + ab + … + ab^(k-1)
tokens for the price of one batch of k + 1.
The k with the most tokens per millisecond is taken if it beats plain decoding by the margin; else nothing is proposed, but
for a probe of one token every `PROBE_EVERY` chances, so that a kind that became good again is noticed.

Rules: engine thread only. A probe that fails costs about half a step, so probing stays under 2 % of the time.
The constants were chosen by replaying 240 real holes of the pinned corpus against the text that stood there (no model): overall gain
moves by less than 0.01 between decays 0.98 and 0.99, priors of 5 to 20 trials, and probes every 16 to 64 chances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsp_complete.engine.batchcost import BatchCost

MARGIN = 1.0
"""Expected gain that a proposal must have at least."""

PROBE_EVERY = 32

_DECAY = 0.98
_PRIOR_TRIALS = 12.0
_DEFAULT_RATE = 0.6
_PRIOR_LATER = 0.75
PRIORS: Mapping[str, float] = {
    "draft": 0.85, "realigned": 0.7, "store": 0.6, "model": 0.7,
    "ngram:10": 0.8, "ngram:6": 0.75, "ngram:4": 0.7, "ngram:3": 0.65, "ngram:2": 0.6,
    "lookup:10": 0.8, "lookup:6": 0.75, "lookup:4": 0.7, "lookup:3": 0.65, "lookup:2": 0.6,
}  # fmt: skip
"""First guesses of the acceptance per token: high enough that each kind is tried; a few failures undo them."""


@dataclass(slots=True)
class Tally:
    """Decayed counts that estimate, and plain sums for reports.

    first: of a proposal's first token. later: of those behind accepted ones, which are right more often. tried and judged
    count tokens up to the first rejected one.
    """

    first_accepted: float
    first_tried: float
    later_accepted: float
    later_tried: float
    proposed_sum: int = 0
    accepted_sum: int = 0
    judged_sum: int = 0
    proposals: int = 0

    @property
    def first(self) -> float:
        """Probability that the first proposed token is accepted, kept inside (0, 1)."""
        return min(0.99, max(0.01, self.first_accepted / self.first_tried))

    @property
    def later(self) -> float:
        """Probability that a token behind an accepted one is accepted, kept inside (0, 1)."""
        return min(0.99, max(0.01, self.later_accepted / self.later_tried))


@dataclass(frozen=True, slots=True)
class Length:
    """How many tokens to propose and the expected gain over plain decoding (1.0: none)."""

    tokens: int
    gain: float


def best_length(first: float, later: float, available: int, cost: BatchCost, extra: float = 0.0) -> Length:
    """The number of tokens, at most `available`, with the most expected output per time.

    first, later: see `Tally`. extra: what making one proposed token costs, in single-token steps (a draft model). Where the batch holds more than one
    token anyway (the end of a prompt), only what the proposal adds counts.
    """
    base = cost.planned
    best, expected, power = Length(0, 1.0), 1.0, 1.0
    for k in range(1, available + 1):
        power *= first if k == 1 else later
        expected += power
        price = 1.0 + cost.ratio(base + k) - cost.ratio(base) + k * extra
        if expected / price > best.gain:
            best = Length(k, expected / price)
    return best if best.gain >= MARGIN else Length(0, best.gain)


class Adaptive:
    """Acceptance per kind, and when to try again what does not pay."""

    def __init__(self, cost: BatchCost) -> None:
        self.cost = cost
        self.tallies: dict[str, Tally] = {}
        self._declined: dict[str, int] = {}

    def length(self, kind: str, available: int, extra: float = 0.0) -> Length:
        """How much of a proposal of `available` tokens to use."""
        tally = self._tally(kind)
        return best_length(tally.first, tally.later, available, self.cost, extra)

    def probe(self, source: str = "", every: int = PROBE_EVERY) -> bool:
        """A proposal of this source was there and did not pay: whether to try one token all the same."""
        self._declined[source] = self._declined.get(source, 0) + 1
        if self._declined[source] < every:
            return False
        self._declined[source] = 0
        return True

    def observe(self, kind: str, proposed: int, accepted: int) -> None:
        """Of `proposed` tokens the first `accepted` were right."""
        tally = self._tally(kind)
        tally.first_accepted = tally.first_accepted * _DECAY + min(accepted, 1)
        tally.first_tried = tally.first_tried * _DECAY + 1.0
        if accepted and proposed > 1:
            judged = min(proposed, accepted + 1) - 1
            tally.later_accepted = tally.later_accepted * _DECAY + accepted - 1
            tally.later_tried = tally.later_tried * _DECAY + judged
        tally.proposed_sum += proposed
        tally.accepted_sum += accepted
        tally.judged_sum += min(proposed, accepted + 1)
        tally.proposals += 1

    def _tally(self, kind: str) -> Tally:
        found = self.tallies.get(kind)
        if found is None:
            rate = PRIORS.get(kind, _DEFAULT_RATE)
            found = self.tallies[kind] = Tally(
                rate * _PRIOR_TRIALS, _PRIOR_TRIALS, _PRIOR_LATER * _PRIOR_TRIALS, _PRIOR_TRIALS
            )
        return found
