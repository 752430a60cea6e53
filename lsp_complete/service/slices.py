"""Evaluating a prompt slice by slice: what a slice has evaluated stays in the engine's slot, so stopping loses one slice at most.

Strategy: a slice is as many tokens as the measured rate allows in its time; the next request asks for the same beginning and more.

Rules:
- Event loop. `done` says what to ask for next, never what may be reused: that only the engine knows.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ..engine.api import CompletionRequest, EngineTiming, Priority
from ..errors import LspCompleteError
from .brain import Brain

logger = logging.getLogger(__name__)

SMALLEST, LARGEST = 16, 128
"""Tokens of a slice: at least, and at most, also while no key comes."""
_FIRST_RATE = 0.15
_WEIGHT = 0.3


@dataclass(slots=True)
class Slices:
    """A prompt on its way. ids: the prompt; done: tokens of it that are evaluated, also by the
    tasks before this one; keys: that did not wait for it; pause: end after the slice that is being evaluated; step: resolved
    by its end."""

    ids: tuple[int, ...] = ()
    done: int = 0
    keys: int = 0
    pause: bool = False
    step: asyncio.Future[None] | None = None

    @property
    def left(self) -> int:
        return len(self.ids) - self.done

    def follow(self, ids: tuple[int, ...]) -> None:
        """Go on with a prompt that may differ from the one before from some token on."""
        same = 0
        for mine, theirs in zip(self.ids[: self.done], ids, strict=False):
            if mine != theirs:
                break
            same += 1
        self.keys = self.keys if self.ids[:SMALLEST] == ids[:SMALLEST] else 0
        self.ids, self.done, self.pause = ids, same, False

    def next_end(self, size: int) -> int:
        """Where a slice of about `size` tokens ends; no leftover smaller than a slice may be."""
        end = self.done + size
        return len(self.ids) if len(self.ids) - end < SMALLEST else end

    def stepped(self) -> None:
        """A slice has ended."""
        if self.step is not None and not self.step.done():
            self.step.set_result(None)


class Evaluator:
    """Asks the engine to evaluate, and learns how fast it does. tokens_per_ms: of prompts."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self.tokens_per_ms = _FIRST_RATE

    def size(self, ms: float) -> int:
        """Tokens of a slice that is to take so long; SMALLEST … LARGEST."""
        return max(SMALLEST, min(LARGEST, self.fit(ms)))

    def fit(self, ms: float) -> int:
        """Tokens that can be evaluated in so many milliseconds."""
        return int(ms * self.tokens_per_ms)

    def learn(self, timing: EngineTiming) -> None:
        """The rate after one more slice."""
        if timing.evaluated >= SMALLEST and timing.prefill_ms > 0:
            self.tokens_per_ms += _WEIGHT * (timing.evaluated / timing.prefill_ms - self.tokens_per_ms)

    async def evaluate(
        self, prompt: tuple[int, ...], key: str, priority: Priority, limit_ms: float = 60_000
    ) -> EngineTiming | None:
        """Evaluate a prompt, without decoding; None if that was not possible. limit_ms: of the request."""
        engine = self._brain.engine
        if engine is None:
            return None
        request = CompletionRequest(prompt, key=key, max_tokens=0, priority=priority, time_limit_ms=limit_ms)
        try:
            return (await engine.complete(request)).timing
        except LspCompleteError as error:
            logger.info("a prompt was not made ready: %s", type(error).__name__)
            return None
