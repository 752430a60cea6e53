"""The engine thread: it owns the backend, and everything else reaches it through a queue and an abort flag.

Strategy: submit, cancel and expire may be called from the event loop at any time. They only set flags or append
to the inbox, wake the thread, and abort the running evaluation if that is worth it. The abort flag is cleared under the
same lock that publishes the running step, so an abort can neither be lost nor hit a later step.

Rules: results reach the event loop by `call_soon_threadsafe` only. The thread ends in `close` or when loading fails.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace

from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo
from lsp_complete.engine.backend import Backend
from lsp_complete.engine.core import Step, add_job, execute, fail_step, prepare
from lsp_complete.engine.draftmodel import DraftModel, load_draft
from lsp_complete.engine.job import Job
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.proposer import Proposer
from lsp_complete.engine.schedule import TURN, may_preempt
from lsp_complete.engine.speculate import Speculator
from lsp_complete.engine.state import (
    State,
    check_at_rest,
    fail_job,
    make_state,
    out_of_time,
    save_one,
    vacate,
)
from lsp_complete.errors import EngineUnavailable, LspCompleteError, MemoryPlanError, RequestFailed

_log = logging.getLogger(__name__)

_REST_S = 0.5
"""After so long without work the books are checked once more, cell by cell, and prompts are saved to disk, one at a time."""


class Runner:
    """One thread, one model."""

    def __init__(
        self,
        options: EngineOptions,
        factory: Callable[[EngineOptions], Backend],
        loop: asyncio.AbstractEventLoop,
        ready: asyncio.Future[ModelInfo],
        proposer: Proposer | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._options = options
        self._factory = factory
        self._loop = loop
        self._ready = ready
        self._proposer = proposer
        self._clock = clock
        self._ids = itertools.count(1)
        self._wake = threading.Condition()
        self._inbox: deque[Job] = deque()
        self._running: Step | None = None
        self._closing = False
        self._changed = False
        self._state: State | None = None
        self._broken = ""
        self._draft: DraftModel | None = None
        self._thread = threading.Thread(target=self._main, name="lsp-complete-engine", daemon=True)

    def start(self) -> None:
        """Start loading the model."""
        self._thread.start()

    # --- any thread ---

    def submit(
        self,
        request: CompletionRequest,
        client: str,
        future: asyncio.Future[Completion],
        on_delta: DeltaCallback | None,
    ) -> Job:
        """Queue a request; `future` (of the event loop) gets its result. Event loop."""
        now = self._clock()
        limit = min(request.time_limit_ms, self._options.max_time_limit_ms) / 1e3
        emit = None if on_delta is None else (lambda text: self._post(on_delta, text))
        job = Job(
            next(self._ids), request, client, now, now + limit, lambda r: self._post(_settle, future, r), emit
        )
        with self._wake:
            if self._closing:
                self._post(_settle, future, EngineUnavailable("the engine is closed"))
                return job
            self._inbox.append(job)
            running = self._running
            if running is not None and may_preempt(running.plan, running.tokens, request.priority):
                self._abort()
            self._wake.notify()
        return job

    def cancel(self, job: Job) -> None:
        """Nobody waits for this job any more. Any thread."""
        job.cancelled = True
        self._interrupt_if_useless()

    def expire(self, job: Job) -> None:
        """This job's time is over: it is answered with what it has. Any thread.

        Before its first token that is nothing, so it is answered now, whatever the engine is doing. A step in which it is still being
        prefilled goes on: an aborted micro-batch is lost, and on a loaded machine the next request would lose the same tokens
        again, for ever.
        """
        job.expired = True
        state = self._state
        if state is not None and job.prefilling:
            job.deliver(out_of_time(state, job))
        self._interrupt_if_useless()

    def _interrupt_if_useless(self) -> None:
        with self._wake:
            running = self._running
            if running is not None and all(_useless(j, running) for j in running.jobs):
                self._abort()
            self._changed = True
            self._wake.notify()

    def _abort(self) -> None:
        """Stop the running step, unless its sequences would be lost with it (those steps are short: `most_tokens`)."""
        state = self._state
        if state is not None and (state.backend.info.can_drop_tail or self._closing):
            state.backend.abort()

    def close(self) -> None:
        """Abort, end the thread, free the model. Blocks until done (a load in progress is waited for)."""
        with self._wake:
            self._closing = True
            self._abort()
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def info(self, loaded: ModelInfo) -> ModelInfo:
        """What was loaded, with the speed measured so far. Any thread."""
        state = self._state
        if state is None:
            return loaded
        return replace(loaded, prefill_tps=state.rates.prefill_tps, decode_ms=state.rates.decode_ms)

    def stats(self) -> dict[str, object]:
        """A snapshot for display; numbers may be a step apart. Any thread."""
        state = self._state
        if self._broken:
            return {"state": "broken", "problem": self._broken}
        if state is None:
            return {"state": "loading"}
        info = state.backend.info
        return {
            "state": "ready",
            "model": asdict(self.info(info)),
            "counters": asdict(state.counters),
            "slots": [
                {"slot": s.seq, "key": s.key, "tokens": len(s.tokens), "busy": s.owner is not None}
                for s in state.table.slots
            ],
            "waiting": len(state.waiting) + len(self._inbox),
            "running": len(state.seated),
            "tokens": state.table.used_tokens(),
            "rates": asdict(state.rates),
            "speculation": _speculation(state),
            "disk_cache": {"entries": 0 if state.disk is None else len(state.disk)},
            "host_cache": {"entries": len(state.cache), "bytes": state.cache.bytes},
        }

    # --- engine thread ---

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            _log.debug("the event loop is closed; a result is dropped")

    def _main(self) -> None:
        state = self._load()
        if state is None:
            return
        self._state = state
        self._post(_settle, self._ready, state.backend.info)
        try:
            self._loop_until_closed(state)
        except MemoryPlanError as error:
            _log.error("the engine cannot go on: %s", error)
            self._broken = str(error)
        except BaseException as error:  # the process has to end: without this thread it would refuse every request for ever
            _log.exception("the engine thread failed")
            self._broken = f"its thread failed ({type(error).__name__})"
        finally:
            self._shut_down(state)

    def _load(self) -> State | None:
        """The loaded model with everything around it, or None once whoever waits was told why not."""
        backend: Backend | None = None
        try:
            backend = self._factory(self._options)
            self._draft = load_draft(self._options, backend, self._factory)
            return make_state(self._options, backend, self._clock, self._proposer, draft=self._draft)
        except BaseException as error:
            if self._draft is not None:
                self._draft.close()
            if backend is not None:
                backend.close()
            if not isinstance(error, LspCompleteError):
                _log.exception("loading the model failed")
                error = EngineUnavailable(f"Loading the model failed: {error!r}")
            self._post(_settle, self._ready, error)
            return None

    def _loop_until_closed(self, state: State) -> None:
        while True:
            with self._wake:
                if self._closing:
                    return
                self._changed = False
                arrived = list(self._inbox)
                self._inbox.clear()
            for job in arrived:
                add_job(state, job)
            step = self._guarded_prepare(state)
            if step is None:
                self._sleep(state)
            elif self._publish(step, state):
                self._guarded_execute(state, step)

    def _publish(self, step: Step, state: State) -> bool:
        """Announce the step, unless something arrived meanwhile that changes the plan."""
        with self._wake:
            if self._closing or self._inbox or self._changed:
                return False
            state.backend.clear_abort()
            self._running = step
            return True

    def _guarded_prepare(self, state: State) -> Step | None:
        try:
            return prepare(state)
        except Exception as error:
            _log.exception("planning failed")
            for job in [*state.seated.values(), *state.waiting]:
                fail_job(state, job, RequestFailed(f"The engine failed to plan this request: {error!r}"))
            return None

    def _guarded_execute(self, state: State, step: Step) -> None:
        try:
            execute(state, step)
        except MemoryPlanError:
            raise
        except Exception as error:
            _log.exception("a step failed")
            fail_step(state, step, RequestFailed(f"The engine failed to run this request: {error!r}"))
        finally:
            with self._wake:
                self._running = None

    def _sleep(self, state: State) -> None:
        """Wait until something arrives (deadlines arrive through `expire`); at rest, count cells once and save prompts to disk."""
        check_at_rest(state)
        rested, saving = False, True
        while True:
            with self._wake:
                woken = self._wake.wait_for(self._wanted, _REST_S if saving else None)
            if woken:
                return
            if not rested:
                check_at_rest(state, count_cells=True)
                rested = True
            saving = save_one(state)

    def _wanted(self) -> bool:
        return bool(self._closing or self._inbox or self._changed)

    def _shut_down(self, state: State) -> None:
        gone = EngineUnavailable(self._broken or "the engine was closed")
        with self._wake:
            self._closing = True
            left = [*self._inbox, *state.waiting, *state.seated.values()]
            self._inbox.clear()
        for job in left:
            job.deliver(gone)
            vacate(state, job)
        while not self._broken and save_one(state, interval_s=0.0, wait_s=2.0):
            pass
        if state.disk is not None:
            state.disk.close()
        if not self._broken:
            check_at_rest(state)
        self._state = None
        if self._draft is not None:
            self._draft.close()
        state.backend.close()


def _useless(job: Job, running: Step) -> bool:
    """Whether nobody is served by the step going on for this job: a client's turn is (`schedule`)."""
    if job.cancelled:
        return not (running.shared and job.prefilling and running.tokens <= TURN)
    return job.expired and not job.prefilling


def _speculation(state: State) -> dict[str, object]:
    """Batch costs in single-token steps, and tokens proposed and accepted by kind."""
    costs = {str(size): ratio for size, ratio in state.costs.table().items()}
    kinds = state.proposer.report() if isinstance(state.proposer, Speculator) else {}
    return {"batch_cost": costs, "kinds": kinds}


def _settle(future: asyncio.Future[object], result: object) -> None:
    """Event loop: set a result or an exception unless the waiter has gone."""
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
