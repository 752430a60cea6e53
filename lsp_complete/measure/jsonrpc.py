"""JSON-RPC 2.0 over a byte stream, client side, with exact receive times.

Strategy: one reader task splits the stream into messages and notes the clock as soon as a message's last
byte is there, before it is parsed, so that the client's own work is not counted as the server's.

Rules:
- A reply settles exactly one pending call; a reply to an unknown id is ignored.
- Every request that the server sends gets an answer, or a server that waits for it would hang.
- When the stream ends, every pending call fails with `ConnectionError`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ..errors import ProtocolError

MAX_BODY = 256 * 1024 * 1024

NotificationHandler = Callable[[str, Any], None]
RequestHandler = Callable[[str, Any], Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: `result`, or `code` and `message` of its error. received: `perf_counter` seconds."""

    result: Any
    code: int
    message: str
    received: float


@dataclass(frozen=True, slots=True)
class Call:
    """A request under way. sent: `perf_counter` seconds just before it was written."""

    id: int
    sent: float
    reply: asyncio.Future[Reply]


def encode(message: dict[str, Any]) -> bytes:
    """One framed message. Text stays UTF-8."""
    try:
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, as editors send it: an escape
        body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next body, or None at the end of the stream. Raises ProtocolError on a broken header."""
    length = -1
    while True:
        line = await reader.readline()
        if not line:
            return None
        stripped = line.strip()
        if not stripped:
            break
        name, _, value = stripped.partition(b":")
        if name.lower() == b"content-length":
            try:
                length = int(value)
            except ValueError:
                raise ProtocolError("The server sent a Content-Length that is no number.") from None
    if not 0 <= length <= MAX_BODY:
        raise ProtocolError("The server sent a message without a usable Content-Length header.")
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None


class Connection:
    """Both directions of one stream. Belongs to one event loop; `run` must be running for calls to settle."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_notification: NotificationHandler,
        on_request: RequestHandler,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_notification = on_notification
        self._on_request = on_request
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self._next_id = 0
        self.closed = False

    def notify(self, method: str, params: Any) -> None:
        """Write a notification; returns before it is flushed."""
        self._writer.write(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def call(self, method: str, params: Any) -> Call:
        """Write a request. Await `call.reply` for its answer."""
        if self.closed:
            raise ConnectionError("The server has closed the connection.")
        self._next_id += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[self._next_id] = future
        sent = perf_counter()
        self._writer.write(
            encode({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        )
        return Call(self._next_id, sent, future)

    async def drain(self) -> None:
        """Wait until the stream takes more bytes (needed only after large messages)."""
        await self._writer.drain()

    async def run(self) -> None:
        """Read until the stream ends; then fail what is still pending."""
        try:
            while (body := await read_frame(self._reader)) is not None:
                self._dispatch(body, perf_counter())
        except (ConnectionError, asyncio.LimitOverrunError):
            pass
        finally:
            self.closed = True
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(ConnectionError("The server has closed the connection."))
                    future.exception()  # marks it as seen: nobody may be waiting for it
            self._pending.clear()

    def close(self) -> None:
        """Close the write side; the reader ends when the server closes its own."""
        self._writer.close()

    def _dispatch(self, body: bytes, received: float) -> None:
        message = json.loads(body)
        if "method" not in message:
            future = self._pending.pop(message.get("id"), None)
            if future is not None and not future.done():
                error = message.get("error") or {}
                reply = Reply(message.get("result"), error.get("code", 0), error.get("message", ""), received)
                future.set_result(reply)
        elif "id" in message:
            result = self._on_request(message["method"], message.get("params"))
            self._writer.write(encode({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        else:
            self._on_notification(message["method"], message.get("params"))
