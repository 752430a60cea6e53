"""HTTP/1.1 as far as a loopback API needs it: one request in, one answer out, on a kept connection.

Rules: what comes in is untrusted. Lengths are bounded, chunked bodies are refused, a slow sender is cut off.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

HEADER_LIMIT, BODY_LIMIT = 1 << 14, 1 << 22
READ_S = 10.0
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    411: "Length Required", 413: "Content Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


class BadRequest(Exception):
    """A request that is answered with an error. The text is for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """headers: names in lower case; the last of repeated ones counts."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def keep(self) -> bool:
        """The client wants to use the connection again."""
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: asyncio.StreamReader, wait_s: float | None = None) -> Request | None:
    """The next request; None at the end of the connection. wait_s: how long to wait for it to begin.

    Raises BadRequest, or TimeoutError where the sender is too slow.
    """
    try:
        first = await asyncio.wait_for(reader.readline(), wait_s)
        if not first:
            return None
        return await asyncio.wait_for(_rest(reader, first), READ_S)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except ValueError as error:  # a line beyond the reader's limit
        raise BadRequest(413, "the header is too long") from error


async def _rest(reader: asyncio.StreamReader, first: bytes) -> Request:
    words = first.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(400, "this is no HTTP/1.1 request")
    headers: dict[str, str] = {}
    size = len(first)
    while (line := await reader.readline()).strip():
        size += len(line)
        name, colon, value = line.decode("latin-1").partition(":")
        if size > HEADER_LIMIT or not colon:
            raise BadRequest(400, "the header is too long or malformed")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise BadRequest(411, "send the body with a Content-Length")
    text = headers.get("content-length", "0")
    length = int(text) if text.isdecimal() and len(text) < 10 else -1
    if not 0 <= length <= BODY_LIMIT:
        raise BadRequest(413, f"a body has at most {BODY_LIMIT} bytes")
    body = await reader.readexactly(length)
    return Request(words[0], words[1].partition("?")[0], headers, body)


def response(status: int, body: object, *, keep: bool = True, kind: str = "application/json") -> bytes:
    """A whole answer. body: a JSON value, or text as it is for other kinds."""
    data = (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
        f"Cache-Control: no-store\r\nConnection: {'keep-alive' if keep else 'close'}\r\n\r\n"
    )
    return head.encode("latin-1") + data


def error(status: int, message: str, *, keep: bool = False) -> bytes:
    """An error as OpenAI's API words it."""
    return response(status, {"error": {"message": message, "type": "invalid_request_error", "code": status}}, keep=keep)
