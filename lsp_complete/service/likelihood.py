"""How likely the model finds a text at a place. For judging models by what was really written (`replay gate`), never for suggestions.

Strategy: the place's own prompt, and the text as bytes that the model is forced to write, verified as one draft. What the model would have
written there without being forced is told by the mass of what was allowed at each step.

Rules: thread: the event loop. The figure counts from the healing cut on, so what was typed of the last word belongs to it. Nothing is stored,
shown or recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..engine.api import CompletionRequest, Engine, StopRules
from .planning import LoadedModel, Planned

LEAST_MASS = 1e-9
"""A step that the model finds less likely counts as this, so that one name nobody could know does not outweigh a file."""
MOST_BYTES = 1000
TIME_MS = 60_000.0


@dataclass(frozen=True, slots=True)
class Likelihood:
    """logprob: natural log of the probability of all the bytes (at most 0); bytes: how many, those of the last word's beginning included;
    tokens: steps of the model."""

    logprob: float
    bytes: int
    tokens: int


async def likelihood(engine: Engine, model: LoadedModel, planned: Planned, uri: str, text: str) -> Likelihood | None:
    """None where there is nothing to force, too much of it, or no time. Raises what the engine raises."""
    forced = planned.prompt.forced + text.encode("utf-8", "replace")
    if not text or len(forced) > MOST_BYTES:
        return None
    request = CompletionRequest(
        prompt=planned.prompt.prompt,
        forced=forced,
        key=uri,
        max_tokens=min(len(forced), 512),
        time_limit_ms=TIME_MS,
        stop=StopRules("free", forced_only=True),
        drafts=(tuple(model.spans.ids(forced.decode("utf-8", "replace"))),),
    )
    (candidate,) = (await engine.complete(request)).candidates
    if candidate.stop != "forced" or not candidate.masses:
        return None
    return Likelihood(sum(math.log(max(LEAST_MASS, mass)) for mass in candidate.masses), len(forced), len(candidate.masses))
