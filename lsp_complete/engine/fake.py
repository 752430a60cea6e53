"""A scripted `api.Engine` for tests: answers from a list or a function, held back until the test says so.

Rules: no model, no thread, no clock. Everything that was asked is recorded. A request that is held ends only by
`release`, by `fail`, by cancellation or by `close`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lsp_complete.engine.api import (
    Candidate,
    Completion,
    CompletionRequest,
    DeltaCallback,
    EngineTiming,
    ModelInfo,
)
from lsp_complete.errors import EngineUnavailable, LspCompleteError

FAKE_INFO = ModelInfo(
    path="fake.gguf",
    fingerprint="fake",
    description="scripted engine",
    architecture="fake",
    vocab_size=1000,
    context=4096,
    slots=4,
    parameters=1,
    size_bytes=1,
)

Answer = bytes | Completion | LspCompleteError
Script = Sequence[Answer] | Callable[[CompletionRequest], Answer]


def completion(text: bytes, prompt: int = 1) -> Completion:
    """A plain one-candidate answer."""
    return Completion((Candidate(text),), EngineTiming(prompt=prompt, evaluated=1, decoded=1))


@dataclass(slots=True)
class Call:
    """One recorded request. `outcome`: "running" | "done" | "failed" | "cancelled"."""

    request: CompletionRequest
    client: str
    outcome: str = "running"
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    error: LspCompleteError | None = None


class ScriptedEngine:
    """`api.Engine` whose answers are scripted.

    script: answers in order (the last one repeats), or a function of the request; an exception in it is raised.
    hold: requests wait until `release`. deltas: give the text to `on_delta` byte by byte before the answer.
    info_error: what `info` and `complete` raise instead (a bad model file).
    """

    def __init__(
        self,
        script: Script = (b"answer",),
        *,
        info: ModelInfo = FAKE_INFO,
        hold: bool = False,
        deltas: bool = False,
        info_error: LspCompleteError | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self.hold = hold
        self.closed = False
        self._script, self._info, self._deltas, self._info_error = script, info, deltas, info_error
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def requests(self) -> list[CompletionRequest]:
        """All requests so far, in order of arrival."""
        return [call.request for call in self.calls]

    async def info(self) -> ModelInfo:
        """The scripted description, or the scripted error."""
        if self._info_error is not None:
            raise self._info_error
        return self._info

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        """Record the request, wait while held, then answer by the script."""
        if self.closed:
            raise EngineUnavailable("the scripted engine is closed")
        await self.info()
        call = Call(request, client)
        index = len(self.calls)
        self.calls.append(call)
        self._tell()
        try:
            if self.hold:
                await call.gate.wait()
            answer = call.error or self._answer(request, index)
            if isinstance(answer, LspCompleteError):
                call.outcome = "failed"
                raise answer
            result = completion(answer, len(request.prompt)) if isinstance(answer, bytes) else answer
            if self._deltas and on_delta is not None:
                for n in range(len(result.candidates[0].text)):
                    on_delta(result.candidates[0].text[n : n + 1])
            call.outcome = "done"
            return result
        except asyncio.CancelledError:
            call.outcome = "cancelled"
            raise
        finally:
            self._tell()

    def _answer(self, request: CompletionRequest, index: int) -> Answer:
        if callable(self._script):
            return self._script(request)
        return self._script[min(index, len(self._script) - 1)]

    def _tell(self) -> None:
        for ready, future in self._waiters:
            if not future.done() and ready():
                future.set_result(None)
        self._waiters = [pair for pair in self._waiters if not pair[1].done()]

    async def wait_for(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready()` holds; looked at after every arrival and every end of a request."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((ready, future))
        self._tell()
        await future

    async def wait_calls(self, count: int) -> None:
        """Wait until `count` requests have arrived."""
        await self.wait_for(lambda: len(self.calls) >= count)

    def release(self, index: int = -1) -> None:
        """Let one held request end by the script."""
        self.calls[index].gate.set()

    def fail(self, error: LspCompleteError, index: int = -1) -> None:
        """Let one held request end by `error`."""
        self.calls[index].error = error
        self.calls[index].gate.set()

    async def stats(self) -> dict[str, object]:
        """Counts by outcome."""
        outcomes = [call.outcome for call in self.calls]
        return {name: outcomes.count(name) for name in ("running", "done", "failed", "cancelled")}

    async def close(self) -> None:
        """Running requests end with EngineUnavailable."""
        self.closed = True
        for call in self.calls:
            if call.outcome == "running":
                call.error = EngineUnavailable("the scripted engine was closed")
                call.gate.set()
