"""`lsp-complete dashboard`: the figures of this user's servers and engines as a local page, and as OpenMetrics text.

Strategy: the figures are those of `stats`, read every SAMPLE_S seconds by this process, which keeps the last of them for the
curves. The page is made on the server's side and loads itself again; there is no script in it.

Rules:
- Nothing but 127.0.0.1 is bound. The URL holds a token made anew at each start, and the `Host` header must name the
  loopback address, so neither another user nor a page in a browser (DNS rebinding) can read it.
- Only GET; only `/TOKEN/` and `/TOKEN/metrics`. What is shown holds no text of a user's files.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import dashboard_page
from .http_wire import BadRequest, read_request, response
from .stats import gather, plain_engine

if TYPE_CHECKING:
    from ..cli import Sub

SAMPLE_S = 2.0
KEEP = 900
RECORDINGS = 20
METRICS_KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Figures = tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]
Gather = Callable[[], Figures]


def add_parser(sub: Sub) -> None:
    """`dashboard [--port PORT]`."""
    parser = sub.add_parser("dashboard", help="show the figures as a local page, until Ctrl-C")
    parser.add_argument(
        "--port", type=_port, metavar="PORT", help="loopback port (default: dashboard.port, else a free one)"
    )
    parser.set_defaults(run=_run)


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def _run(args: argparse.Namespace) -> int:
    from ..config import gather as sources
    from ..config import load
    from ..service.recorder import folder_of

    settings = load(sources()).settings
    port = settings.dashboard.port if args.port is None else args.port
    board = Dashboard(secrets.token_urlsafe(24), _figures, folder_of(settings.record))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            board.serve(
                port, lambda url: print(f"lsp-complete dashboard: {url} (Ctrl-C ends it)", flush=True)
            )
        )
    return 0


def _figures() -> Figures:
    servers, engines = gather()
    return servers, [plain_engine(status) for status in engines]


class Dashboard:
    """The page's server. Event loop; figures are gathered in a worker thread."""

    def __init__(
        self, token: str, gather: Gather, recordings: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._token, self._gather, self._recordings, self._clock = token, gather, recordings, clock
        self._servers: Sequence[dict[str, Any]] = ()
        self._engines: Sequence[dict[str, Any]] = ()
        self._history: dict[int, deque[tuple[float, float, float]]] = {}
        self._hosts: frozenset[str] = frozenset()

    async def serve(self, port: int, ready: Callable[[str], None]) -> None:
        """Serve until cancelled. Raises OSError if the port cannot be used."""
        listener = await asyncio.start_server(self._client, "127.0.0.1", port, limit=1 << 14)
        bound = listener.sockets[0].getsockname()[1]
        self._hosts = frozenset(f"{name}:{bound}" for name in ("127.0.0.1", "localhost"))
        async with listener:
            ready(f"http://127.0.0.1:{bound}/{self._token}/")
            while True:
                await self.sample()
                await asyncio.sleep(SAMPLE_S)

    async def sample(self) -> None:
        """Read the figures once."""
        self._servers, self._engines = await asyncio.to_thread(self._gather)
        now, seen = self._clock(), set[int]()
        for server in self._servers:
            pid = int(server.get("pid", 0))
            seen.add(pid)
            total = ((server.get("server", {}).get("all") or {}).get("ms") or {}).get("total")
            if total:
                points = self._history.setdefault(pid, deque(maxlen=KEEP))
                points.append((now, float(total["p50"]), float(total["p95"])))
        for pid in set(self._history) - seen:
            del self._history[pid]

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader, 10.0)
            if request is not None:
                writer.write(self.answer(request.method, request.path, request.headers.get("host", "")))
                await writer.drain()
        except BadRequest as error:
            writer.write(response(error.status, str(error), keep=False, kind="text/plain"))
        except (TimeoutError, asyncio.TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, method: str, path: str, host: str) -> bytes:
        """One answer."""
        token, _, rest = path.removeprefix("/").partition("/")
        if host not in self._hosts or not secrets.compare_digest(token.encode(), self._token.encode()):
            return response(
                403, "open the address that `lsp-complete dashboard` printed", keep=False, kind="text/plain"
            )
        if method != "GET":
            return response(405, "only GET", keep=False, kind="text/plain")
        if rest == "metrics":
            return response(
                200, dashboard_page.metrics(self._servers, self._engines), keep=False, kind=METRICS_KIND
            )
        if rest:
            return response(404, "there is / and /metrics", keep=False, kind="text/plain")
        now = self._clock()
        history = {pid: [(now - at, a, b) for at, a, b in points] for pid, points in self._history.items()}
        page = dashboard_page.page(self._servers, self._engines, history, recordings(self._recordings))
        return response(200, page, keep=False, kind="text/html; charset=utf-8")


def recordings(folder: Path) -> list[tuple[str, int]]:
    """Names and sizes of the newest recordings, newest first."""
    from ..measure.recording import SUFFIX

    with contextlib.suppress(OSError):
        paths = sorted(folder.glob("*" + SUFFIX), reverse=True)[:RECORDINGS]
        return [(path.name, path.stat().st_size) for path in paths]
    return []
