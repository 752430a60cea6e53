"""Engine work in flight for one document, apart from the request that waits for it.

Strategy: a request waits on a `Generation`; a newer key whose text does not contradict what has been generated so far
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

    mode, base_indent: as asked of the engine. frozen_suffix: what the model saw below the cursor's line. explicit: the user asked for it.
    partial: text bytes so far.
    """

    request: CompletionRequest
    start: int
    before: str
    after: str
    mode: str
    base_indent: int = 0
    frozen_suffix: str | None = None
    explicit: bool = False
    task: asyncio.Task[Completion] = field(init=False)
    partial: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, engine: Engine) -> None:
        """Start the engine's work."""
        self.task = asyncio.ensure_future(engine.complete(self.request, self.came))
        self.task.add_done_callback(_retrieve)

    def came(self, text: bytes) -> None:
        """More text has come; whoever waits for it looks again."""
        self.partial.extend(text)
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def running(self) -> bool:
        return not self.task.done()

    def stop(self) -> None:
        """Stop the engine's work; whoever waits gets CancelledError."""
        self.task.cancel()

    def contradicts(self, typed: str) -> bool:
        """Whether the text typed since the start is not what has been generated. What has not come yet contradicts
        nothing: waiting for it costs less than starting over, and in prefill nothing would ever get done otherwise."""
        so_far = bytes(self.partial).decode("utf-8", "ignore")
        return not (so_far.startswith(typed) or typed.startswith(so_far))


def _retrieve(task: asyncio.Task[Completion]) -> None:
    """An abandoned generation's error is nobody's business; take it so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
