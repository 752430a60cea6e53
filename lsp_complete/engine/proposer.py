"""The place where speculation plugs in: something that proposes tokens, which the target then verifies in one batch.

Strategy: a proposer only guesses. The engine evaluates the proposal with the pending token and accepts it while it
equals what the target would have chosen anyway, constraint and seeded sampling included. So a proposer changes speed only.

`speculate.Speculator` is the engine's own.

Rules: called on the engine thread between steps, so it must return within some 100 µs; it never blocks or raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lsp_complete.engine.api import CompletionRequest


class Proposer(Protocol):
    """Engine thread."""

    def propose(
        self, context: Sequence[int], generated: Sequence[int], request: CompletionRequest, limit: int
    ) -> list[int]:
        """At most `limit` tokens that may follow `context` (the prompt) + `generated`; [] for none."""
        ...

    def observe(self, request: CompletionRequest, proposed: int, accepted: int) -> None:
        """What became of the last proposal for this request."""
        ...
