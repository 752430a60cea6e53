"""One client's connection, seen from the engine: handshake, requests, and their end when the client vanishes.

Strategy: a reader loop that never awaits engine work; each request is a task of its own, kept by its id. What the
session needs of the engine process comes in as a small `Host` interface, so this file knows no sockets' origin.

Rules:
- Nothing of a client is believed before it said hello in our version, and (TCP) proved the secret.
- A malformed or oversized frame ends this connection only.
- When the connection ends, for whatever reason, every task of it is cancelled and awaited.
- A client that does not read its answers is dropped at `WRITE_LIMIT` bytes; it never makes the engine wait.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import secrets
from dataclasses import dataclass
from typing import Protocol

from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo
from lsp_complete.engine.protocol import (
    FRAME_LIMIT,
    HELLO_LIMIT,
    PROTOCOL,
    FrameDecoder,
    Message,
    encode_frame,
    error_message,
    int_field,
    prove,
    proven,
    text_field,
)
from lsp_complete.engine.transport import PeerCheck, check_peer
from lsp_complete.engine.wire import check_request, from_json, to_json
from lsp_complete.errors import EngineUnavailable, ProtocolError, RequestFailed

log = logging.getLogger(__name__)

WRITE_LIMIT = 16 * 1024 * 1024
MAX_REQUESTS = 64
_READ = 1 << 16


class Host(Protocol):
    """What a session needs of the engine process around it."""

    version: str
    secret: bytes
    peer_check: PeerCheck

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def joined(self, session: Session) -> None:
        """The handshake is done. Raises EngineUnavailable if there are too many clients."""
        ...

    def loaded(self) -> ModelInfo | None:
        """The model, once loaded."""
        ...

    async def info(self) -> ModelInfo:
        """Wait for the model; raises what loading raised."""
        ...

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None, *, client: str
    ) -> Completion:
        """Run one request in this client's fair share."""
        ...

    async def stats(self) -> dict[str, object]:
        """Plain JSON values."""
        ...

    def ask_stop(self, reason: str, *, told: bool = False) -> None:
        """End the engine process soon. told: by the user, so clients must not start it again unasked."""
        ...


@dataclass(slots=True)
class Work:
    """One running request. overdue_at: monotonic seconds after which the engine counts as hung; inf for what is no completion."""

    task: asyncio.Task[None]
    overdue_at: float


class Session:
    """One connection. Event loop of the engine process."""

    def __init__(
        self, host: Host, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, grace_s: float
    ) -> None:
        self.client = str(number)
        self.observer = False
        self.ready = False
        self.since = host.now()
        self.work: dict[int, Work] = {}
        self.ended = asyncio.Event()  # set by the host, when it has forgotten the session
        self._host, self._reader, self._writer, self._grace = host, reader, writer, grace_s
        self._decoder = FrameDecoder(HELLO_LIMIT)

    async def run(self) -> None:
        """Serve until the connection ends. Raises nothing but CancelledError."""
        try:
            check_peer(self._writer.get_extra_info("socket"), self._host.peer_check)
            await self._handshake()
            await self._serve()
        except ProtocolError as error:
            log.warning("client %s dropped: %s", self.client, error)
            self._send({"t": "refused", "reason": "protocol", "message": str(error)})
        except EngineUnavailable as error:
            log.warning("client %s refused: %s", self.client, error)
            self._send({"t": "refused", "reason": "unavailable", "message": str(error)})
        except (ConnectionError, OSError):
            pass
        finally:
            await self._end()

    async def _end(self) -> None:
        tasks = [w.task for w in self.work.values()]
        for number in list(self.work):
            self._cancel(number)
        if tasks:
            log.info("client %s left; %d requests of it are stopped", self.client, len(tasks))
            await asyncio.wait(tasks)
        self.close()

    def close(self) -> None:
        """Close once everything written is sent; `run` then ends by itself."""
        with contextlib.suppress(ConnectionError, OSError):
            self._writer.close()

    def abort(self) -> None:
        """Cut the connection at once; `run` then ends by itself."""
        self._writer.transport.abort()

    def bye(self, reason: str, told: bool) -> None:
        """Tell the client that the engine ends on purpose."""
        self._send({"t": "bye", "reason": reason, "told": told})

    async def _next(self) -> Message | None:
        """The next message, or None when the client is gone."""
        while True:
            message = self._decoder.next_message()
            if message is not None:
                return message
            data = await self._reader.read(_READ)
            if not data:
                return None
            self._decoder.receive(data)

    async def _expect(self, kind: str) -> Message:
        message = await self._next()
        if message is None:
            raise ConnectionResetError
        if message["t"] != kind:
            raise ProtocolError(f"expected a {kind!r} message")
        return message

    async def _handshake(self) -> None:
        hello = await self._expect("hello")
        host = self._host
        if host.secret:
            nonce = secrets.token_hex(16)
            proof = prove(host.secret, "engine", text_field(hello, "nonce"))
            self._send({"t": "challenge", "nonce": nonce, "proof": proof})
            answer = await self._expect("proof")
            if not proven(host.secret, "client", nonce, text_field(answer, "proof")):
                raise EngineUnavailable("the client does not know the engine's secret")
        if text_field(hello, "version") != host.version or int_field(hello, "protocol") != PROTOCOL:
            log.info("client %s is of another version; it will start its own engine", self.client)
            self._send({"t": "refused", "reason": "version", "message": f"this engine is {host.version}"})
            raise ConnectionResetError
        self.observer = hello.get("observer") is True
        host.joined(self)
        self.ready = True
        self._decoder.limit = FRAME_LIMIT
        self._send({"t": "welcome", "version": host.version, "pid": os.getpid(), "client": self.client})

    async def _serve(self) -> None:
        while (message := await self._next()) is not None:
            kind = message["t"]
            if kind == "cancel":
                self._cancel(int_field(message, "id"))
            elif kind == "stop":
                restart = message.get("restart") is True
                self._host.ask_stop("it was told to " + ("restart" if restart else "stop"), told=not restart)
            elif kind in ("info", "complete", "stats"):
                self._start(int_field(message, "id"), kind, message)
            else:
                raise ProtocolError("unknown kind of message")

    def _cancel(self, number: int) -> None:
        work = self.work.get(number)
        if work is not None:
            work.task.cancel()
            work.overdue_at = min(work.overdue_at, self._host.now() + self._grace)

    def _start(self, number: int, kind: str, message: Message) -> None:
        if number in self.work:
            raise ProtocolError("a request id is used twice")
        if len(self.work) >= MAX_REQUESTS:
            error = RequestFailed(f"more than {MAX_REQUESTS} requests at once; wait for answers")
            self._send(error_message(number, error))
            return
        limit = float("inf")
        request: CompletionRequest | None = None
        if kind == "complete":
            request = from_json(CompletionRequest, message.get("request"))
            limit = self._host.now() + request.time_limit_ms / 1000.0 + self._grace
        deltas = message.get("deltas") is True
        task = asyncio.create_task(self._answer(number, kind, request, deltas))
        self.work[number] = Work(task, limit)
        task.add_done_callback(lambda _: self.work.pop(number, None))

    async def _answer(self, number: int, kind: str, request: CompletionRequest | None, deltas: bool) -> None:
        """Run one request and send its one answer. A cancelled one gets none: its client has let go of it."""
        try:
            if request is not None:
                value: object = await self._complete(number, request, deltas)
            elif kind == "info":
                value = await self._host.info()
            else:
                value = await self._host.stats()
            self._send({"t": "result", "id": number, "value": to_json(value)})
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, RequestFailed):
                log.warning("a %s request of client %s failed", kind, self.client, exc_info=error)
            self._send(error_message(number, error))

    async def _complete(self, number: int, request: CompletionRequest, deltas: bool) -> Completion:
        model = self._host.loaded()
        if model is None:
            raise EngineUnavailable("the engine is still loading the model")
        check_request(request, model.vocab_size)
        on_delta = self._delta_sender(number) if deltas else None
        return await self._host.complete(request, on_delta, client=self.client)

    def _delta_sender(self, number: int) -> DeltaCallback:
        def send(data: bytes) -> None:
            if number in self.work:  # late words of a cancelled request stay here
                self._send({"t": "delta", "id": number, "data": base64.b64encode(data).decode("ascii")})

        return send

    def _send(self, message: Message) -> None:
        transport = self._writer.transport
        if transport.is_closing():
            return
        self._writer.write(encode_frame(message))
        if transport.get_write_buffer_size() > WRITE_LIMIT:
            log.warning("client %s does not read its answers and is dropped", self.client)
            transport.abort()
