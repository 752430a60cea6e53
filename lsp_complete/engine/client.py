"""`api.Engine` over the socket: finds or starts the shared engine process and keeps it alive for its user.

Strategy: one supervisor task owns the connection: dial, else start a process and dial, wait for the model, wait
for the end, back off, again. Requests look at the current connection only and never wait for the supervisor.

Rules:
- `complete` outside "ready" raises EngineUnavailable at once (and starts the engine if it was never started).
- A model that cannot be used ends in "failed" and stays there until its file changes or `restart` is called; one that does not
  fit the memory is also tried again a minute later, if it is asked for.
- An engine that dies again and again is started at growing intervals; one that never gets ready ends in "failed".
- An engine that the user stopped is not started again unasked, but is used again once someone else started it.
- An engine that does not answer within a request's limit and a grace is hung: it is killed, all its clients restart it. It has some
  time more where this very process stood still meanwhile.
- A program that was replaced by another version while this one ran cannot start an engine for it: "failed", and the words say so.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo, StateCallback
from lsp_complete.engine.connection import Connection, Dialer, VersionMismatch, connect
from lsp_complete.engine.launch import EngineLaunch, Spawn, spawn
from lsp_complete.engine.paths import WINDOWS, Endpoint, endpoint_name, file_stamp, runtime_directory
from lsp_complete.engine.retry import Busy, ClientRules, Replaced, Sleep, ToldToStop, back_off, kill
from lsp_complete.engine.transport import NotListening
from lsp_complete.engine.wire import from_json, to_json
from lsp_complete.errors import (
    EngineUnavailable,
    LspCompleteError,
    MemoryPlanError,
    ModelError,
    ProtocolError,
    RequestFailed,
)

log = logging.getLogger(__name__)

_SALTS = 4


class EngineClient:
    """The engine as every editor window sees it. One event loop; it is started by the first call, or by `start`."""

    def __init__(
        self,
        launch: EngineLaunch,
        on_state: StateCallback | None = None,
        *,
        rules: ClientRules | None = None,
        directory: Path | None = None,
        tcp: bool = WINDOWS,
        dialer: Dialer | None = None,
        spawn: Spawn = spawn,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        kill: Callable[[int], None] = kill,
    ) -> None:
        self.state = "idle"
        self.message = ""
        self._launch, self._on_state = launch, on_state
        self._rules, self._directory, self._tcp = rules or ClientRules(), directory, tcp
        self._dialer = dialer or Dialer()
        self._spawn, self._sleep, self._clock, self._kill = spawn, sleep, clock, kill
        self._connection: Connection | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[ModelInfo] | None = None
        self._stamp = (0, 0, 0)
        self._memory_at = math.inf
        self._closed = False

    # --- api.Engine ---

    async def info(self) -> ModelInfo:
        """Wait for the engine. Raises ModelError, MemoryPlanError, or EngineUnavailable if it was given up or closed."""
        self.start()
        if self._connection is not None and self._connection.lost.is_set():
            self._forget_ready()  # the supervisor has not heard of it yet
        return await asyncio.shield(self._future())

    async def complete(self, request: CompletionRequest, on_delta: DeltaCallback | None = None) -> Completion:
        """Run one request; see `api.Engine`. Raises EngineUnavailable at once while the engine is not ready."""
        connection = self._usable()
        fields = {"request": to_json(request), "deltas": on_delta is not None}
        limit = request.time_limit_ms / 1000.0 + self._rules.grace_s
        try:
            value = await self._guarded(connection, limit, connection.call("complete", fields, on_delta))
        except ProtocolError as error:
            raise RequestFailed(f"the request cannot be sent: {error}") from None
        try:
            return from_json(Completion, value)
        except ProtocolError as error:
            connection.cut(f"the engine sent what cannot be understood: {error}")
            raise EngineUnavailable(connection.reason) from None

    async def stats(self) -> dict[str, object]:
        """The engine's figures. Raises EngineUnavailable while it is not ready."""
        connection = self._usable()
        value = await self._guarded(connection, self._rules.grace_s, connection.call("stats"))
        return value if isinstance(value, dict) else {}

    async def close(self) -> None:
        """Let go of the engine; the process lives on for others. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        self._give_up("stopped", EngineUnavailable("this client of the engine was closed"))

    # --- beyond the interface ---

    def start(self) -> None:
        """Begin to start or find the engine, unless that is under way. Never waits, never raises."""
        if self._closed or (self._supervisor is not None and not self._supervisor.done()):
            return
        if self.state == "failed" and not self._worth_a_try():
            return
        if self.state == "stopped" and not self._somebody_listens():
            return
        self._begin()

    def _worth_a_try(self) -> bool:
        """After "failed": the file is another one, or memory was short and some may be free by now."""
        return file_stamp(self._launch.model_path) != self._stamp or self._clock() >= self._memory_at

    async def restart(self) -> None:
        """End the engine if there is one and start it anew, also from "failed" and "stopped". `info` waits for it."""
        connection = self._connection
        if connection is not None:
            connection.ask_stop(restart=True)
            await self._guarded(connection, self._rules.grace_s, connection.lost.wait())
        if not self._closed and (self._supervisor is None or self._supervisor.done()):
            self._begin()

    # --- supervisor ---

    def _begin(self) -> None:
        self._stamp = file_stamp(self._launch.model_path)
        self._memory_at = math.inf
        self._forget_ready()
        self._set("starting", "")
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())

    async def _supervise(self) -> None:
        try:
            await self._keep_connected()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a bug must not leave waiters hanging
            log.error("the engine's supervisor failed", exc_info=error)
            self._give_up("failed", EngineUnavailable(f"the engine's client failed ({type(error).__name__})"))

    async def _keep_connected(self) -> None:
        deaths = failures = 0
        while True:
            busy = False
            try:
                began, reason = await self._one_life()
            except (ModelError, MemoryPlanError, Replaced) as error:
                if isinstance(error, MemoryPlanError):
                    self._memory_at = self._clock() + self._rules.memory_retry_s
                self._give_up("failed", error)
                return
            except ToldToStop as error:
                self._give_up("stopped", error)
                return
            except LspCompleteError as error:
                reason, busy = str(error), isinstance(error, Busy)
                deaths, failures = deaths + 1, failures + (0 if busy else 1)
                if failures >= self._rules.max_failures:
                    text = f"the engine could not be started {failures} times; last: {reason}; see `lsp-complete engine logs`"
                    self._give_up("failed", EngineUnavailable(text))
                    return
            else:
                stable = self._clock() - began >= self._rules.stable_s
                deaths, failures = 1 if stable else deaths + 1, 0
            self._set("restarting", reason)
            await self._sleep(back_off(self._rules, deaths, busy))

    async def _one_life(self) -> tuple[float, str]:
        """Connect, load, be ready, until the connection ends. Gives the time when it got ready, and why it ended."""
        connection = await self._connect()
        try:
            info = from_json(ModelInfo, await connection.call("info"))
            self._connection, began = connection, self._clock()
            self._future().set_result(info)
            self._set("ready", info.description)
            await connection.lost.wait()
            self._forget_ready()
        finally:
            self._connection = None
            await connection.close()
            if connection.told_to_stop:
                raise ToldToStop(f"{connection.reason}; start it by `lsp-complete engine start`")
        return began, connection.reason

    def _endpoint(self, salt: int) -> Endpoint:
        directory = self._directory or runtime_directory(tcp=self._tcp)
        name = endpoint_name(self._launch.model_path, self._launch.settings(), salt)
        return Endpoint(directory, name, self._tcp)

    async def _connect(self) -> Connection:
        """A connection to an engine of our version, started if need be. Raises LspCompleteError."""
        for salt in range(_SALTS):
            endpoint = self._endpoint(salt)
            try:
                return await self._find_or_start(endpoint)
            except VersionMismatch:
                log.info("the engine %s is of another version; trying for one of our own", endpoint.name)
        raise EngineUnavailable("engines of other versions hold every name; run `lsp-complete engine stop`")

    async def _find_or_start(self, endpoint: Endpoint) -> Connection:
        try:
            return await self._dial(endpoint)
        except NotListening:
            started = await self._spawn(self._launch, endpoint)
        try:
            return await self._dial(endpoint)
        except VersionMismatch:
            if started != "ok":
                raise
            raise Replaced(
                "lsp-complete was updated while this editor ran; restart the editor, or its language server"
            ) from None
        except NotListening as error:
            if started == "busy":
                raise Busy("another engine process is starting or ending") from None
            raise EngineUnavailable(str(error)) from None

    async def _dial(self, endpoint: Endpoint) -> Connection:
        connection = await connect(endpoint, self._dialer)
        await self._guarded(connection, self._rules.handshake_s, connection.handshake(self._dialer))
        return connection

    async def _guarded(self, connection: Connection, limit_s: float, work: Awaitable[object]) -> object:
        """Await `work`; when the limit passes, the engine is hung: it is killed and the connection cut."""
        timer = asyncio.get_running_loop().create_task(self._end_hung(connection, limit_s))
        try:
            return await work
        finally:
            timer.cancel()

    async def _end_hung(self, connection: Connection, limit_s: float) -> None:
        began = self._clock()
        await self._sleep(limit_s)
        if self._clock() - began > limit_s + self._rules.handshake_s:  # this process stood still, so probably did the engine
            await self._sleep(self._rules.handshake_s)
        if connection.lost.is_set():
            return
        log.error("the engine process %d does not answer and is ended", connection.pid)
        try:
            self._kill(connection.pid)
        except OSError as error:
            log.error("it cannot be ended (%s)", error.strerror)
        connection.cut("the engine did not answer in time and was ended")

    # --- state ---

    def _usable(self) -> Connection:
        if self._closed:
            raise EngineUnavailable("this client of the engine was closed")
        connection = self._connection
        if connection is not None and not connection.lost.is_set():
            return connection
        self.start()
        words = {"failed": self.message, "stopped": self.message, "starting": "the engine is starting"}
        raise EngineUnavailable(words.get(self.state, "the engine is being restarted"))

    def _somebody_listens(self) -> bool:
        try:
            return any(self._endpoint(salt).listening_file().exists() for salt in range(_SALTS))
        except EngineUnavailable:
            return False

    def _future(self) -> asyncio.Future[ModelInfo]:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._ready.add_done_callback(lambda f: f.cancelled() or f.exception())  # seen, if nobody waits
        return self._ready

    def _forget_ready(self) -> None:
        if self._ready is not None and self._ready.done():
            self._ready = None

    def _give_up(self, state: str, error: LspCompleteError) -> None:
        self._connection = None
        self._forget_ready()
        self._future().set_exception(error)
        self._set(state, str(error))

    def _set(self, state: str, message: str) -> None:
        if (state, message) == (self.state, self.message):
            return
        self.state, self.message = state, message
        if self._on_state is None:
            return
        try:
            self._on_state(state, message)
        except Exception as error:
            log.error("the state callback failed", exc_info=error)
