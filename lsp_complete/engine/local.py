"""The engine inside this process: `api.Engine` over one engine thread.

Strategy: asyncio on this side, a plain thread with its own queue on the other (`runner.Runner`). Only three things
cross: a job goes in, a cancel goes in, and results come back by `loop.call_soon_threadsafe`.

Rules:
- All methods belong to one event loop, the one that called `start`.
- Cancelling the task that awaits `complete` raises at once; the engine thread stops the work within one decode step,
  and in the middle of a prefill too (CPU: by the abort flag).
- `close` ends the thread and frees the model; requests still running raise EngineUnavailable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo
from lsp_complete.engine.backend import Backend
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.proposer import Proposer
from lsp_complete.engine.runner import Runner
from lsp_complete.errors import EngineUnavailable

BackendFactory = Callable[[EngineOptions], Backend]


def load_llama(options: EngineOptions) -> Backend:
    """The real thing. Imported late: the native library takes a while to load. Engine thread."""
    from lsp_complete.engine.llama import load

    return load(options)


def _mark_retrieved(future: asyncio.Future[ModelInfo]) -> None:
    """A failure to load that nobody waited for is not an "exception was never retrieved"."""
    if not future.cancelled():
        future.exception()


class LocalEngine:
    """`api.Engine` in this process. Also what the socket server serves."""

    def __init__(
        self, options: EngineOptions, factory: BackendFactory = load_llama, proposer: Proposer | None = None
    ) -> None:
        self._options = options
        self._proposer = proposer
        self._factory = factory
        self._runner: Runner | None = None
        self._ready: asyncio.Future[ModelInfo] | None = None
        self._closed = False

    async def start(self) -> None:
        """Start the engine thread; returns before the model is loaded (`info` waits). Only the first call counts."""
        if self._ready is not None:
            return
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[ModelInfo] = loop.create_future()
        ready.add_done_callback(_mark_retrieved)
        self._ready = ready
        self._runner = Runner(self._options, self._factory, loop, ready, self._proposer)
        self._runner.start()

    async def info(self) -> ModelInfo:
        """Wait until the model is loaded. Raises ModelError, MemoryPlanError or EngineUnavailable."""
        if self._closed:
            raise EngineUnavailable("the engine is closed; start a new one")
        await self.start()
        assert self._ready is not None
        loaded = await asyncio.shield(self._ready)
        return loaded if self._runner is None else self._runner.info(loaded)

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        """Run one request. `client` names whose fair share this is (a window).

        Raises EngineUnavailable, RequestFailed, or what `info` raises if the model never loaded.
        """
        await self.info()
        assert self._runner is not None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Completion] = loop.create_future()
        job = self._runner.submit(request, client, future, on_delta)
        limit = min(request.time_limit_ms, self._options.max_time_limit_ms)
        timer = loop.call_later(max(limit, 0.0) / 1000.0, self._runner.expire, job)
        try:
            return await future
        finally:
            timer.cancel()
            if future.cancelled() or not future.done():
                self._runner.cancel(job)

    async def stats(self) -> dict[str, object]:
        """Counters, slots, queue, memory as plain JSON values; {"state": …} alone before the model is loaded."""
        runner = self._runner
        if runner is None or self._ready is None or not self._ready.done() or self._ready.exception():
            return {"state": "closed" if self._closed else "loading"}
        return runner.stats()

    async def close(self) -> None:
        """End the engine thread (waits for the running step, which is aborted) and free the model."""
        self._closed = True
        runner, self._runner = self._runner, None
        if runner is not None:
            await asyncio.to_thread(runner.close)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(EngineUnavailable("the engine was closed while it was loading"))
