"""One request inside the engine, and its branches (one per candidate): state and the pure step from a choice to the next.

Strategy: a branch is a sequence being written. `pending` holds the tokens to evaluate next; when the last of them has
logits, a token is chosen, judged by healing and the stop rules, and becomes the new pending token.

Rules: mutable, engine thread only, but for the two flags `cancelled` and `expired`, which other threads only ever set.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest
from lsp_complete.engine.backend import Ints, PieceTable
from lsp_complete.engine.healing import consume
from lsp_complete.engine.sampling import Choice
from lsp_complete.engine.slots import Slot
from lsp_complete.engine.stopping import Stopper


@dataclass(slots=True)
class Branch:
    """One candidate being generated in sequence `seq`, whose first `at` positions are evaluated."""

    seq: int
    at: int
    pending: list[int]
    owed: bytes
    stopper: Stopper
    rng: random.Random
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    shown: int = 0
    done: bool = False
    min_sum: float = 0.0
    sum: float = 0.0
    forced_only: bool = False

    def finish(self, reason: str) -> None:
        """No more tokens. A reason found by the stop rules stays."""
        self.stopper.finish(reason)
        self.done = True

    def advance(self, choice: Choice, vocab: PieceTable, max_tokens: int) -> None:
        """Take the chosen token: it becomes pending, or the branch is done."""
        piece = vocab.piece(choice.token)
        if vocab.is_eog(choice.token) or not piece:  # other special tokens end the text too
            self.finish("eog")
            return
        self.owed, text = consume(self.owed, piece)
        self.tokens.append(choice.token)
        self.logprobs.append(choice.logprob)
        self.masses.append(choice.mass)
        stopped = self.stopper.feed(text)
        self.offsets.append(self.stopper.length)
        self.pending = [choice.token]
        if stopped:
            self.done = True
        elif self.forced_only and not self.owed:
            self.finish("forced")
        elif len(self.tokens) >= max_tokens:
            self.finish("tokens")
        elif self.min_sum and self._unsure(choice.logprob):
            self.finish("unsure")

    def _unsure(self, logprob: float) -> bool:
        """Whether the first line has become too unlikely; later lines do not count."""
        if b"\n" in self.stopper.text.lstrip():
            self.min_sum = 0.0
            return False
        self.sum += logprob
        return self.sum < self.min_sum

    def delta(self) -> bytes:
        """Text that became certain since the last call."""
        safe = self.stopper.safe
        if safe <= self.shown:
            return b""
        text = self.stopper.text[self.shown : safe]
        self.shown = safe
        return text

    def candidate(self) -> Candidate:
        """The finished branch as a value; tokens beyond the kept text are left out."""
        text = self.stopper.text
        kept, before = 0, 0
        for offset in self.offsets:
            if before >= len(text) and offset > before:
                break
            kept, before = kept + 1, offset
        return Candidate(
            text,
            tuple(self.tokens[:kept]),
            tuple(self.logprobs[:kept]),
            tuple(self.masses[:kept]),
            tuple(min(o, len(text)) for o in self.offsets[:kept]),
            self.stopper.reason,
        )


@dataclass(slots=True, eq=False)
class Job:
    """A request on its way. Times are seconds of the engine's clock."""

    id: int
    request: CompletionRequest
    client: str
    submitted: float
    deadline: float
    deliver: Callable[[Completion | BaseException], None]
    emit: Callable[[bytes], None] | None
    prompt: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    max_tokens: int = 0
    slot: Slot | None = None
    branches: list[Branch] = field(default_factory=list)
    chunk: int = 1 << 30
    parked: bool = False
    cancelled: bool = False
    expired: bool = False
    started: float | None = None
    first_token: float | None = None
    last_step: float = 0.0
    reused: int = 0
    evaluated: int = 0
    restored: int = 0
    restore_ms: float = 0.0
    drafted: int = 0
    accepted: int = 0

    @property
    def main(self) -> Branch:
        """The branch that lives in the job's slot."""
        return self.branches[0]

    @property
    def active(self) -> list[Branch]:
        """Branches that still want tokens."""
        return [b for b in self.branches if not b.done]

    @property
    def prefilling(self) -> bool:
        """Whether the prompt is not evaluated yet."""
        return self.first_token is None


def rank(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    """Best first by mean log-probability per token; of equal texts only the better one stays."""
    best: dict[bytes, Candidate] = {}
    for c in sorted(candidates, key=_mean_logprob, reverse=True):
        best.setdefault(c.text, c)
    return tuple(best.values())


def _mean_logprob(c: Candidate) -> float:
    return sum(c.logprobs) / len(c.logprobs) if c.logprobs else float("-inf")
