"""Frames on the engine socket: four bytes of length, then one JSON object. A pure state machine.

Strategy: bytes go in with `FrameDecoder.receive`, messages come out of `next_message`; no sockets here, so
every test can feed a stream whole, byte by byte, or cut anywhere.

Rules:
- The other side is not trusted: a frame over the limit is refused by its header alone, before its body is
  stored; after an error the decoder stays dead and the connection must be closed.
- Before the handshake is done only `HELLO_LIMIT` bytes are allowed per frame.
- Every message is an object with a text `t` (its kind) and, where it belongs to a request, a whole number `id`.
- NaN and infinity are not JSON and are refused.

Messages, client to engine: hello, proof (TCP only), info, complete, cancel, stats, stop.
Engine to client: challenge (TCP only), welcome, refused, result, delta, error, bye.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Mapping

from lsp_complete.errors import (
    EngineUnavailable,
    LspCompleteError,
    MemoryPlanError,
    ModelError,
    PromptCold,
    ProtocolError,
    RequestFailed,
)

PROTOCOL = 1
"""Number of this message format. Another number, or another product version, is another engine."""

FRAME_LIMIT = 4 * 1024 * 1024
"""Bytes of one frame's body, either way. A prompt of 32,000 tokens is about 230 KB."""

HELLO_LIMIT = 4096
"""Bytes of one frame's body before the handshake is done."""

_HEADER = struct.Struct("!I")

Message = dict[str, object]

_KINDS: tuple[tuple[str, type[LspCompleteError]], ...] = (
    ("memory", MemoryPlanError),
    ("model", ModelError),
    ("cold", PromptCold),
    ("request", RequestFailed),
    ("unavailable", EngineUnavailable),
)


def encode_frame(message: Mapping[str, object]) -> bytes:
    """One frame. Raises ProtocolError if it would be over FRAME_LIMIT or holds what JSON cannot say."""
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"message cannot be written as JSON ({type(error).__name__})") from None
    if len(body) > FRAME_LIMIT:
        raise ProtocolError(f"message of {len(body)} bytes is over the limit of {FRAME_LIMIT}; send less context")
    return _HEADER.pack(len(body)) + body


class FrameDecoder:
    """Collects bytes and gives whole messages. `limit` may be raised once the peer is known."""

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._dead = False

    @property
    def pending(self) -> int:
        """Bytes received but not yet given out."""
        return len(self._buffer)

    def receive(self, data: bytes) -> None:
        """Add bytes as they came from the socket."""
        if not self._dead:
            self._buffer += data

    def next_message(self) -> Message | None:
        """The next whole message, or None until more bytes come. Raises ProtocolError, then for ever."""
        if self._dead:
            raise ProtocolError("the stream was already broken; close the connection")
        try:
            return self._take()
        except ProtocolError:
            self._dead = True
            self._buffer.clear()
            raise

    def _take(self) -> Message | None:
        if len(self._buffer) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack_from(self._buffer)
        if size > self.limit:
            raise ProtocolError(f"frame of {size} bytes is over the limit of {self.limit}")
        end = _HEADER.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        return parse_message(body)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def parse_message(body: bytes) -> Message:
    """One frame's body as a message. Raises ProtocolError on anything else; never echoes the body."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise ProtocolError(f"frame of {len(body)} bytes is not JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("t"), str):
        raise ProtocolError("frame is not an object with a kind")
    return value


def text_field(message: Message, name: str, default: str | None = None) -> str:
    """A text field of a message. Raises ProtocolError if it is missing (without a default) or no text."""
    value = message.get(name, default)
    if not isinstance(value, str):
        raise ProtocolError(f"field {name!r} of a {message.get('t')!r:.40} message must be text")
    return value


def int_field(message: Message, name: str) -> int:
    """A field that is a whole number from 0 to 2**53. Raises ProtocolError otherwise."""
    value = message.get(name)
    if type(value) is not int or not 0 <= value <= 2**53:
        raise ProtocolError(f"field {name!r} of a {message.get('t')!r:.40} message must be a whole number")
    return value


def error_message(request: int, error: BaseException) -> Message:
    """The `error` message for an exception. Text of unexpected exceptions may hold user text: it stays out."""
    for kind, cls in _KINDS:
        if isinstance(error, cls):
            return {"t": "error", "id": request, "kind": kind, "message": str(error)}
    if isinstance(error, LspCompleteError):
        return {"t": "error", "id": request, "kind": "request", "message": str(error)}
    text = f"the engine failed this request ({type(error).__name__}); see `lsp-complete engine logs`"
    return {"t": "error", "id": request, "kind": "request", "message": text}


def error_from(message: Message) -> LspCompleteError:
    """The exception that an `error` message stands for."""
    kind, text = text_field(message, "kind"), text_field(message, "message")
    return dict(_KINDS).get(kind, RequestFailed)(text)


def prove(secret: bytes, role: str, nonce: str) -> str:
    """Answer to a challenge: shows that the side `role` knows the secret without sending it."""
    return hmac.new(secret, f"lsp-complete {role} {nonce}".encode(), hashlib.sha256).hexdigest()


def proven(secret: bytes, role: str, nonce: str, proof: str) -> bool:
    """Whether `proof` answers `nonce`, compared in constant time."""
    return hmac.compare_digest(prove(secret, role, nonce).encode(), proof.encode("utf-8", "replace"))
