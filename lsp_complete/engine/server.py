"""The engine process's server: many clients, one engine, and the rules by which the process ends.

Strategy: connections are `session.Session` objects; everything that depends on time happens in `tick`, which takes
the time from an injected clock, so tests call it instead of waiting.

Rules:
- The process ends when no client was there for `idle_s`; at once if the model failed and nobody is left; when told to.
- A request that outlives its own limit by `grace_s` means a hung engine thread: `on_hang` ends the process,
  its clients start a new one. A pause of the whole process (suspend, SIGSTOP) is no hang and extends all limits.
- The socket is made anew if someone removed it or put something else in its place, as long as the lock at its path is ours.
- Observers (`engine status`) do not count as clients; whoever is in the middle of the handshake does.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import stat
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import psutil

from lsp_complete import __version__
from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, Engine, ModelInfo
from lsp_complete.engine.launch import ServeRules
from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.session import Session
from lsp_complete.engine.transport import Lock, PeerCheck, listen, peer_of, remove_listener
from lsp_complete.errors import EngineUnavailable, LspCompleteError, PromptCold

log = logging.getLogger(__name__)


class SharedEngine(Engine, Protocol):
    """An engine that shares its time fairly between named clients."""

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        """As `Engine.complete`; `client` names whose share this is."""
        ...


def progress(stats: Mapping[str, object]) -> tuple[int, bool]:
    """Steps so far and whether work waits, from an engine's own figures; (-1, False) if it tells nothing of steps."""
    counters = stats.get("counters")
    steps = counters.get("steps") if isinstance(counters, dict) else None
    if not isinstance(steps, int):
        return -1, False
    return steps, any(isinstance(n := stats.get(name), int) and n > 0 for name in ("waiting", "running"))


class EngineServer:
    """Serves one engine at one endpoint. Event loop of the engine process; make it there."""

    def __init__(
        self,
        engine: SharedEngine,
        endpoint: Endpoint,
        lock: Lock,
        rules: ServeRules | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        peer_check: PeerCheck = peer_of,
        on_hang: Callable[[str], None] | None = None,
        version: str = __version__,
    ) -> None:
        self.version = version
        self.secret = b""
        self.peer_check = peer_check
        self.sessions: set[Session] = set()
        self.stopping = asyncio.Event()
        self.failure: LspCompleteError | None = None
        self._engine, self._endpoint, self._lock = engine, endpoint, lock
        self._rules = rules or ServeRules()
        self._clock, self._on_hang = clock, on_hang
        self._started = self._alone_since = self._last_tick = clock()
        self._steps, self._steps_at = -1, clock()
        self._listener: asyncio.Server | None = None
        self._listening: object = None
        self._deaf = ""
        self._model: asyncio.Future[ModelInfo] = asyncio.get_running_loop().create_future()
        self._loading: asyncio.Task[None] | None = None
        self._reason, self._told = "", False
        self._connections = self._served = self._failed = self._cancelled = 0

    # --- life ---

    async def start(self) -> None:
        """Listen and begin to load. Raises EngineUnavailable if it cannot listen."""
        await self._listen()
        self._loading = asyncio.create_task(self._load())

    async def _listen(self) -> None:
        sock, self.secret = listen(self._endpoint)
        self._listener = await asyncio.start_server(self._connected, sock=sock)
        self._listening, self._deaf = self._file(), ""

    def _file(self) -> object:
        """Which file lies where clients look; None if there is none. A link is a file of its own."""
        try:
            info = self._endpoint.listening_file().lstat()
        except OSError:
            return None
        return info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode)

    async def _load(self) -> None:
        try:
            info = await self._engine.info()
        except Exception as error:
            expected = isinstance(error, LspCompleteError)
            log.error("the model cannot be used", exc_info=error)
            text = str(error) if expected else f"loading failed ({type(error).__name__}); see the engine's log"
            self.failure = error if isinstance(error, LspCompleteError) else EngineUnavailable(text)
            self._model.set_exception(self.failure)
            self._model.exception()  # it is retrieved, also when no client is there
            return
        self._model.set_result(info)
        log.info("model loaded after %.1f s: %s", self._clock() - self._started, info.architecture)

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> str:
        """Tick until something ends the process; gives the reason. `start` must have been called."""
        ticker = asyncio.create_task(self._tick_forever(sleep))
        try:
            await self.stopping.wait()
        finally:
            ticker.cancel()
            await asyncio.wait([ticker])
        return self._reason

    async def _tick_forever(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        while True:
            await sleep(self._rules.tick_s)
            try:
                await self.tick()
            except Exception as error:
                log.error("the watch failed", exc_info=error)

    def ask_stop(self, reason: str, *, told: bool = False) -> None:
        """End soon; the first reason counts. told: by the user, so clients must not start it again unasked."""
        if not self.stopping.is_set():
            self._reason, self._told = reason, told
            self.stopping.set()
            log.info("the engine ends: %s", reason)

    async def close(self) -> None:
        """Stop listening, say goodbye, stop all work, close the engine, give up the lock. Idempotent."""
        self.ask_stop("it was closed")
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            if self._lock.still_ours():
                remove_listener(self._endpoint)
        sessions = list(self.sessions)
        for session in sessions:
            session.bye(self._reason, self._told)
            session.close()
        if sessions:
            waiting = [asyncio.create_task(session.ended.wait()) for session in sessions]
            _, late = await asyncio.wait(waiting, timeout=self._rules.close_s / 5)
            if late:  # a client that does not read what it was told does not keep the engine
                for session in sessions:
                    session.abort()
                await asyncio.wait(late)
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
            if not self._model.done():  # nobody may wait for it for ever
                self._model.set_exception(EngineUnavailable("the engine ended while it was loading"))
                self._model.exception()
        await self._engine.close()
        self._lock.release()

    # --- time ---

    async def tick(self) -> None:
        """Look at everything that depends on time, once."""
        now = self._clock()
        self._forgive_pause(now)
        for session in list(self.sessions):
            if not session.ready and now - session.since > self._rules.handshake_s:
                session.abort()
        hang = self._hung(now) or await self._stalled(now)
        if hang:
            log.error("the engine hangs or is broken: %s", hang)
            if self._on_hang is not None:
                self._on_hang(hang)
            return
        await self._keep_listening()
        if not self._clients() and all(session.ready for session in self.sessions):
            if self.failure is not None:
                self.ask_stop("the model cannot be used and no client is left")
            elif now - self._alone_since >= self._rules.idle_s or not self._lock.still_ours():
                self.ask_stop(f"no client for {now - self._alone_since:.0f} s")

    def _forgive_pause(self, now: float) -> None:
        pause = now - self._last_tick - 5 * self._rules.tick_s
        self._last_tick = now
        if pause > 0:
            self._steps_at += pause
            self._started += pause
            for session in self.sessions:
                session.since += pause
                for work in session.work.values():
                    work.overdue_at += pause

    def _hung(self, now: float) -> str:
        for session in self.sessions:
            for work in session.work.values():
                if now > work.overdue_at:
                    return f"a request did not end within {self._rules.grace_s:.0f} s of its limit"
        return ""

    async def _stalled(self, now: float) -> str:
        """The model does not finish loading, or work waits and yet no step of the engine ends."""
        if not self._model.done():
            late = now - self._started > self._rules.load_s
            return f"the model did not load within {self._rules.load_s:.0f} s" if late else ""
        stats = await self._engine.stats()
        if stats.get("state") == "broken":
            return f"it cannot go on: {stats.get('problem')}"
        steps, busy = progress(stats)
        if not busy or steps != self._steps:
            self._steps, self._steps_at = steps, now
        elif now - self._steps_at > self._rules.stall_s:
            return f"no step of the engine ended for {now - self._steps_at:.0f} s"
        return ""

    async def _keep_listening(self) -> None:
        if self._listener is None or not self._lock.still_ours():
            return
        if self._file() is None or self._file() != self._listening:
            self._listener.close()
            try:
                await self._listen()
                log.warning("the socket was removed or replaced; it was made anew")
            except EngineUnavailable as error:
                if str(error) != self._deaf:  # once, not at every tick
                    log.error("%s", error)
                self._deaf = str(error)

    # --- what sessions see (session.Host) ---

    def now(self) -> float:
        """Monotonic seconds by the injected clock."""
        return self._clock()

    def loaded(self) -> ModelInfo | None:
        """The model, once loaded without error."""
        return self._model.result() if self._model.done() and self.failure is None else None

    async def info(self) -> ModelInfo:
        """Wait for the model; raises what loading raised."""
        return await asyncio.shield(self._model)

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None, *, client: str
    ) -> Completion:
        """Run one request, counted by its outcome."""
        try:
            result = await self._engine.complete(request, on_delta, client=client)
        except asyncio.CancelledError:
            self._cancelled += 1
            raise
        except PromptCold:  # the answer that was asked for: this prompt is not ready
            raise
        except Exception:
            self._failed += 1
            raise
        self._served += 1
        return result

    async def stats(self) -> dict[str, object]:
        """The engine's own figures, and under "process" those of this process. rss_bytes counts shared pages."""
        own: dict[str, object] = {
            "pid": os.getpid(),
            "version": self.version,
            "state": "failed" if self.failure else "ready" if self._model.done() else "loading",
            "uptime_s": round(self._clock() - self._started, 3),
            "clients": self._clients(),
            "in_flight": sum(w.overdue_at < math.inf for s in self.sessions for w in s.work.values()),
            "served": self._served,
            "failed": self._failed,
            "cancelled": self._cancelled,
            "connections": self._connections,
            "rss_bytes": psutil.Process().memory_info().rss,
        }
        return {**await self._engine.stats(), "process": own}

    def joined(self, session: Session) -> None:
        """A client said hello. Raises EngineUnavailable if there are too many."""
        if self._clients() >= self._rules.max_clients:
            raise EngineUnavailable(f"the engine already serves {self._rules.max_clients} clients")
        if not session.observer:  # `stats --watch` and the dashboard look every two seconds
            log.info("client %s joined", session.client)

    def _clients(self) -> int:
        return sum(s.ready and not s.observer for s in self.sessions)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.stopping.is_set():  # accepted just before the listener was closed: nobody would end it any more
            writer.transport.abort()
            return
        self._connections += 1
        session = Session(self, self._connections, reader, writer, self._rules.grace_s)
        self.sessions.add(session)
        try:
            await session.run()
        finally:
            self.sessions.discard(session)
            if session.ready and not session.observer:
                self._alone_since = self._clock()
            session.ended.set()
