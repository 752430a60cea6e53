"""One connection to an engine, seen from the client: dial, handshake, calls, deltas, and the end.

Strategy: a reader task turns frames into results of futures. When the connection ends, for whatever reason, every
pending call ends with EngineUnavailable, and `lost` is set.

Rules:
- What the engine sends is parsed as untrusted too; a bad frame ends the connection.
- A cancelled call sends a `cancel` frame and forgets its id; late frames for it are ignored.
- The peer's user id is checked from this side as well: nobody else may receive source code.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
from dataclasses import dataclass, field

from lsp_complete import __version__
from lsp_complete.engine.api import DeltaCallback
from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.protocol import (
    PROTOCOL,
    FrameDecoder,
    Message,
    encode_frame,
    error_from,
    int_field,
    prove,
    proven,
    text_field,
)
from lsp_complete.engine.transport import NotListening, Peer, PeerCheck, check_peer, peer_of, where
from lsp_complete.errors import EngineUnavailable, ProtocolError

_READ = 1 << 16


class VersionMismatch(EngineUnavailable):
    """The engine at this endpoint is of another product or protocol version."""


@dataclass(frozen=True, slots=True)
class Dialer:
    """How this client introduces itself. observer: does not keep the engine alive."""

    version: str = __version__
    observer: bool = False
    peer_check: PeerCheck = peer_of


@dataclass(slots=True)
class _Call:
    future: asyncio.Future[object]
    on_delta: DeltaCallback | None


@dataclass(slots=True)
class _State:
    calls: dict[int, _Call] = field(default_factory=dict)
    next_id: int = 1
    reason: str = "the connection to the engine ended"
    told: bool = False


class Connection:
    """An open connection, made by `connect`; calls only after `handshake`. One event loop."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer, secret: bytes = b""
    ) -> None:
        self.pid = peer.pid
        self.lost = asyncio.Event()
        self._reader, self._writer, self._secret = reader, writer, secret
        self._decoder = FrameDecoder()
        self._state = _State()
        self._task: asyncio.Task[None] | None = None

    @property
    def told_to_stop(self) -> bool:
        """Whether the engine ended because the user stopped it: then nobody should start it again unasked."""
        return self._state.told

    @property
    def reason(self) -> str:
        """Why the connection ended."""
        return self._state.reason

    async def handshake(self, dialer: Dialer) -> None:
        """Say hello and wait for the welcome. Raises VersionMismatch, EngineUnavailable, ProtocolError; then it is cut."""
        try:
            await self._shake(dialer)
        except BaseException as error:
            self.cut("the handshake with the engine failed")
            if isinstance(error, ConnectionError | OSError):
                raise EngineUnavailable("the engine closed the connection") from None
            raise
        self._task = asyncio.create_task(self._read())

    async def _shake(self, dialer: Dialer) -> None:
        nonce = secrets.token_hex(16)
        hello: Message = {"t": "hello", "version": dialer.version, "protocol": PROTOCOL, "observer": dialer.observer}
        self._send({**hello, "nonce": nonce} if self._secret else hello)
        if self._secret:
            challenge = await self._expect("challenge")
            if not proven(self._secret, "engine", nonce, text_field(challenge, "proof")):
                raise EngineUnavailable("what listens at the engine's port is not the engine")
            self._send({"t": "proof", "proof": prove(self._secret, "client", text_field(challenge, "nonce"))})
        welcome = await self._expect("welcome")
        if text_field(welcome, "version") != dialer.version:
            raise VersionMismatch("the engine is of another version")
        self.pid = self.pid or int_field(welcome, "pid")

    async def _expect(self, kind: str) -> Message:
        message = await self._next()
        if message is None:
            raise EngineUnavailable("the engine closed the connection")
        if message["t"] == "refused":
            text = text_field(message, "message", "")
            if message.get("reason") == "version":
                raise VersionMismatch(text)
            raise EngineUnavailable(f"the engine refused this client: {text}")
        if message["t"] == "bye":
            raise EngineUnavailable("the engine is ending")
        if message["t"] != kind:
            raise ProtocolError("the engine does not follow the handshake")
        return message

    async def _next(self) -> Message | None:
        while True:
            message = self._decoder.next_message()
            if message is not None:
                return message
            data = await self._reader.read(_READ)
            if not data:
                return None
            self._decoder.receive(data)

    async def _read(self) -> None:
        try:
            while (message := await self._next()) is not None:
                self._handle(message)
        except ProtocolError as error:
            self._state.reason = f"the engine sent what cannot be understood: {error}"
        except (ConnectionError, OSError):
            pass
        finally:
            self._lose()

    def _handle(self, message: Message) -> None:
        kind = message["t"]
        if kind == "bye":
            self._state.reason = f"the engine ended: {text_field(message, 'reason')}"
            self._state.told = message.get("told") is True
            return
        if kind == "refused":
            self._state.reason = text_field(message, "message", "the engine refused this client")
            return
        call = self._state.calls.get(int_field(message, "id"))
        if call is None or call.future.done():
            return
        if kind == "delta":
            self._deliver(call, message)
        elif kind == "result":
            call.future.set_result(message.get("value"))
        elif kind == "error":
            call.future.set_exception(error_from(message))
        else:
            raise ProtocolError("unknown kind of message")

    def _deliver(self, call: _Call, message: Message) -> None:
        try:
            data = base64.b64decode(text_field(message, "data").encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise ProtocolError("a delta is not base64") from None
        if call.on_delta is None:
            return
        try:
            call.on_delta(data)
        except Exception as error:  # the callback is the caller's: its error belongs to that call alone
            call.future.set_exception(error)

    def _lose(self) -> None:
        calls, self._state.calls = self._state.calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(EngineUnavailable(self._state.reason))
                call.future.exception()  # it counts as seen, should its caller be gone already
        self.lost.set()
        with contextlib.suppress(ConnectionError, OSError):
            self._writer.close()

    async def call(self, kind: str, fields: Message | None = None, on_delta: DeltaCallback | None = None) -> object:
        """Send one request and wait for its value. Cancelling the task sends `cancel`.

        Raises what the engine answered, or EngineUnavailable when the connection ends.
        """
        if self.lost.is_set():
            raise EngineUnavailable(self._state.reason)
        state = self._state
        number, state.next_id = state.next_id, state.next_id + 1
        frame = encode_frame({"t": kind, "id": number, **(fields or {})})
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        state.calls[number] = _Call(future, on_delta)
        self._writer.write(frame)
        answered = False
        try:
            value = await future
            answered = True
            return value
        finally:
            state.calls.pop(number, None)
            if not answered and (future.cancelled() or not self.lost.is_set()):
                self._send({"t": "cancel", "id": number})

    def ask_stop(self, *, restart: bool = False) -> None:
        """Tell the engine process to end. restart: its other clients may start it again."""
        self._send({"t": "stop", "restart": restart})

    def _send(self, message: Message) -> None:
        if not self.lost.is_set() and not self._writer.transport.is_closing():
            self._writer.write(encode_frame(message))

    def cut(self, reason: str) -> None:
        """End the connection at once, if it has not ended; pending calls end with EngineUnavailable(reason)."""
        if not self.lost.is_set():
            self._state.reason = reason
        self._writer.transport.abort()
        if self._task is not None:
            self._task.cancel()
        self._lose()

    async def close(self) -> None:
        """End the connection and wait for its reader."""
        self.cut("the connection to the engine was closed")
        if self._task is not None:
            await asyncio.wait([self._task])


async def connect(endpoint: Endpoint, dialer: Dialer) -> Connection:
    """Connect, without the handshake. Raises NotListening, or EngineUnavailable if the peer is another user."""
    address, secret = where(endpoint)
    try:
        if isinstance(address, str):
            reader, writer = await asyncio.open_unix_connection(address)
        else:
            reader, writer = await asyncio.open_connection(*address)
    except OSError:
        raise NotListening("no engine is listening") from None
    try:
        peer = check_peer(writer.get_extra_info("socket"), dialer.peer_check)
    except EngineUnavailable:
        writer.transport.abort()
        raise
    return Connection(reader, writer, peer, secret)


async def dial(endpoint: Endpoint, dialer: Dialer) -> Connection:
    """Connect and shake hands. Raises NotListening, VersionMismatch, EngineUnavailable or ProtocolError.

    Takes as long as the engine lets it: the caller sets a limit and cancels.
    """
    connection = await connect(endpoint, dialer)
    await connection.handshake(dialer)
    return connection
