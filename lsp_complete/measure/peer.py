"""Another program to compare with: llama-server's `/infill`, driven as llama.vim drives it, behind the benchmark's client interface.

Strategy: `PeerClient` keeps the documents itself and turns a request for suggestions into one HTTP request, so `closed.retype` types into
both sides with the same code and the same clock. One connection is kept open, where llama.vim starts curl each time.

Rules:
- Loopback only: the text of files goes there.
- The server is the caller's: it is neither started nor stopped, and must serve the model that is compared with.
- Chunks are evaluated when a place is left (`rest`), outside of any measured time.
- HTTP is blocking and runs in a worker thread, one request at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any
from urllib.parse import unquote, urlsplit

import psutil

from ..errors import EngineUnavailable
from .client import AUTOMATIC, Answer, Item
from .edits import Edit, Position, apply_edits, body, column_index, split_lines
from .peer_vim import RING_CHUNKS, Ring, local, request, shown, warming

LIMIT_S = 120.0
STOP = ("\n",)
TOKENS = 64
"""As many as an automatic one-line request of ours generates at most (`suggest.how_much.LINE_TOKENS`)."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Where the peer listens and how it is asked. chunks: of extra context at most (0: none)."""

    url: str
    chunks: int = RING_CHUNKS
    tokens: int = TOKENS
    seed: int = 1


def address(url: str) -> tuple[str, int]:
    """Host and port of a loopback URL. Raises ValueError for any other."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local_host = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local_host = False
    if parts.scheme != "http" or not local_host:
        raise ValueError(f"{url!r} is no http address of this machine; the peer must listen on loopback.")
    return host, parts.port or 80


class PeerClient:
    """One editor's view of the peer. All methods belong to one event loop."""

    def __init__(self, peer: Peer) -> None:
        host, port = address(peer.url)
        self._peer = peer
        self._http = http.client.HTTPConnection(host, port, timeout=LIMIT_S)
        self._texts: dict[str, str] = {}
        self._rows: dict[str, int] = {}
        self._requests = 0
        self.ring = Ring(random.Random(peer.seed), peer.chunks)  # noqa: S311 (choice of lines)

    # -- as the benchmark's LSP client ---------------------------------------------------------------------

    def open(self, uri: str, language_id: str, text: str) -> None:
        """A file is opened."""
        self._texts[uri] = text
        self.ring.entered(_name(uri), _lines(text), 0)

    def change(self, uri: str, edits: Iterable[Edit]) -> int:
        """Edits in order."""
        self._texts[uri] = apply_edits(self._texts[uri], edits)
        return 0

    def close(self, uri: str) -> None:
        """A file is left."""
        self.ring.entered(_name(uri), _lines(self._texts.pop(uri)), self._rows.pop(uri, 0))

    def move_workspace(self, old: Path | None, new: Path) -> None:
        """llama.vim knows no workspace."""

    async def inline(self, uri: str, cursor: Position, trigger: int = AUTOMATIC, limit_s: float = LIMIT_S) -> Answer:
        """Ask and wait. Raises EngineUnavailable if the peer does not answer as llama-server does."""
        sent = perf_counter()
        lines = _lines(self._texts[uri])
        row, column = cursor.line, column_index(lines[cursor.line], cursor.character)
        self.ring.near(lines, row)
        asked = request(
            local(lines, row, column), self.ring.chunks, tokens=self._peer.tokens, stop=STOP, seed=self._peer.seed
        )
        self._requests += 1
        reply = await self._post("/infill", asked)
        received = perf_counter()
        self._rows[uri] = row
        self.ring.asked(_name(uri), lines, row)
        text = shown(str(reply.get("content", "")), lines, row, column)
        items = (Item(text, cursor, cursor),) if text else ()
        return Answer(self._requests, items, sent, received, 0, "", _stages(reply, bool(items)))

    # -- beside it -----------------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Nobody types: let the waiting chunks be evaluated, one after the other."""
        while self.ring.update():
            await self._post("/infill", warming(self.ring.chunks))

    async def model(self) -> str:
        """File name of the peer's model. Raises EngineUnavailable if nothing of the kind answers there."""
        properties = await self._send("GET", "/props", None)
        return PurePosixPath(str(properties.get("model_path", "")).replace("\\", "/")).name

    def close_connection(self) -> None:
        """The end."""
        self._http.close()

    async def _post(self, path: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._send("POST", path, json.dumps(value).encode())

    async def _send(self, method: str, path: str, data: bytes | None) -> Mapping[str, Any]:
        try:
            reply = await asyncio.to_thread(self._blocking, method, path, data)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EngineUnavailable(f"The peer at {self._peer.url} does not answer: {str(error) or type(error).__name__}.") from None
        return reply if isinstance(reply, dict) else {}

    def _blocking(self, method: str, path: str, data: bytes | None) -> Any:
        try:
            response = self._once(method, path, data)
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            self._http.close()  # the server closes a connection that was idle for some seconds
            response = self._once(method, path, data)
        text = response.read()
        if response.status != 200:
            raise ValueError(f"status {response.status}: {text[:200].decode('utf-8', 'replace')}")
        return json.loads(text)

    def _once(self, method: str, path: str, data: bytes | None) -> http.client.HTTPResponse:
        self._http.request(method, path, data, {"Content-Type": "application/json"})
        return self._http.getresponse()


def _name(uri: str) -> str:
    return PurePosixPath(unquote(urlsplit(uri).path)).name


def _lines(text: str) -> list[str]:
    return [body(line) for line in split_lines(text)]


def _stages(reply: Mapping[str, Any], offered: bool) -> dict[str, Any]:
    timings = reply.get("timings") or {}
    evaluated, cached = int(timings.get("prompt_n", -1)), int(timings.get("cache_n", 0))
    return {
        "outcome": "shown" if offered else "empty",
        "source": "model",
        "evaluated": evaluated,
        "prompt_tokens": evaluated + cached if evaluated >= 0 else -1,
        "decoded": int(timings.get("predicted_n", -1)),
        "prefill_ms": float(timings.get("prompt_ms", 0.0)),
        "decode_ms": float(timings.get("predicted_ms", 0.0)),
    }


@dataclass(frozen=True, slots=True)
class PeerSession:
    """A peer that answers; what `closed` needs of a session."""

    client: PeerClient
    processes: Sequence[psutil.Process]

    def cpu_seconds(self) -> float:
        """User and system time of the peer's process so far; 0.0 if the system does not tell which one it is."""
        total = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    async def rest(self) -> None:
        """Work of a pause."""
        await self.client.rest()

    async def model(self) -> str:
        """File name of its model."""
        return await self.client.model()


@contextlib.asynccontextmanager
async def peer_session(peer: Peer) -> AsyncIterator[PeerSession]:
    """A connection to a peer. Raises ValueError for an address elsewhere, EngineUnavailable if nothing answers there."""
    client = PeerClient(peer)
    try:
        await client.model()
        yield PeerSession(client, _listening(address(peer.url)[1]))
    finally:
        client.close_connection()


def _listening(port: int) -> list[psutil.Process]:
    found = []
    with contextlib.suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid:
                with contextlib.suppress(psutil.Error):
                    found.append(psutil.Process(each.pid))
    return found
