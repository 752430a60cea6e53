"""Engine work in flight for one document, apart from the request that waits for it.

Strategy: a request waits on a `Generation`; a newer key whose text agrees with what has been generated so far
takes the same generation over (joins it), any other key stops it.

Rules:
- A generation is stopped at most once and ends in exactly one of: a completion, an error, stopped.
- Thread: the event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ..engine.api import Completion, CompletionRequest, Engine


@dataclass(eq=False, slots=True)
class Generation:
    """start: the cursor offset it was asked at; before, after: the document's text around it (windows).

    mode, base_indent: as asked of the engine. frozen_suffix: what the model saw below the cursor's line.
    partial: text bytes so far.
    """

    request: CompletionRequest
    start: int
    before: str
    after: str
    mode: str
    base_indent: int = 0
    frozen_suffix: str | None = None
    task: asyncio.Task[Completion] = field(init=False)
    partial: bytearray = field(default_factory=bytearray)

    def begin(self, engine: Engine) -> None:
        """Start the engine's work."""
        self.task = asyncio.ensure_future(engine.complete(self.request, self.partial.extend))
        self.task.add_done_callback(_retrieve)

    @property
    def running(self) -> bool:
        return not self.task.done()

    def stop(self) -> None:
        """Stop the engine's work; whoever waits gets CancelledError."""
        self.task.cancel()

    def agrees(self, typed: str) -> bool:
        """Whether the text typed since the start is what has been generated so far (never a guess)."""
        so_far = bytes(self.partial).decode("utf-8", "ignore")
        return len(so_far) > len(typed) and so_far.startswith(typed)


def _retrieve(task: asyncio.Task[Completion]) -> None:
    """An abandoned generation's error is nobody's business; take it so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
