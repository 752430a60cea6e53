"""`lsp-complete dashboard`: the figures of this user's servers and engines as a local page, and as OpenMetrics text.

Strategy: the figures are those of `stats`, read every SAMPLE_S seconds by this process, which keeps the last of them for the
curves. The page is made on the server's side and loads itself again; there is no script in it.

Rules:
- Nothing but 127.0.0.1 is bound. The URL holds a token made anew at each start, and the `Host` header must name the
  loopback address (on any port: an editor may forward it), so neither another user nor a page in a browser (DNS rebinding) can read it.
- Only GET; `/TOKEN/`, `/TOKEN/metrics`, `/TOKEN/recording/NAME` and `/TOKEN/comparison/NAME`, each of a name that is in the list. What is shown
  holds no text of a user's files.
- A page is made in a worker thread, from copies: reading a large recording keeps nobody waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..errors import LspCompleteError
from ..measure import kept
from ..measure.recording import SUFFIX, read
from . import dashboard_charts, dashboard_page
from .dashboard_judged import comparison_page, comparisons_list, recording_page, recordings_list
from .http_wire import BadRequest, read_request, response
from .stats import gather, plain_engine

if TYPE_CHECKING:
    from ..cli import Sub

SAMPLE_S = 2.0
KEEP = 900
RECORDINGS = 20
ODD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What comes of figures that are not as this version writes them."""
_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?")
METRICS_KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Figures = tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]
Gather = Callable[[], Figures]


def add_parser(sub: Sub) -> None:
    """`dashboard [--port PORT] [--until-eof]`."""
    parser = sub.add_parser("dashboard", help="show the figures as a local page, until Ctrl-C")
    parser.add_argument(
        "--port", type=_port, metavar="PORT", help="loopback port (default: dashboard.port, else a free one)"
    )
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends (for editors)")
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
    board = Dashboard(secrets.token_urlsafe(24), _figures, folder_of(settings.record), kept.folder())
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(board, port, args.until_eof))
    return 0


async def _serve(board: Dashboard, port: int, until_eof: bool) -> None:
    serving = asyncio.ensure_future(
        board.serve(port, lambda url: print(f"lsp-complete dashboard: {url} (Ctrl-C ends it)", flush=True))
    )
    if until_eof:
        loop = asyncio.get_running_loop()

        def wait() -> None:
            while sys.stdin.buffer.read(4096):
                pass
            with contextlib.suppress(RuntimeError):  # the loop may be gone already
                loop.call_soon_threadsafe(serving.cancel)

        threading.Thread(target=wait, name="until-eof", daemon=True).start()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _figures() -> Figures:
    servers, engines = gather()
    return servers, [plain_engine(status) for status in engines]


class Dashboard:
    """The page's server. Event loop; figures are gathered in a worker thread."""

    def __init__(
        self, token: str, gather: Gather, recordings: Path, comparisons: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._token, self._gather, self._clock = token, gather, clock
        self._recordings, self._comparisons = recordings, comparisons
        self._servers: Sequence[dict[str, Any]] = ()
        self._engines: Sequence[dict[str, Any]] = ()
        self._history: dict[int, deque[dashboard_charts.Point]] = {}

    async def serve(self, port: int, ready: Callable[[str], None]) -> None:
        """Serve until cancelled. Raises OSError if the port cannot be used."""
        listener = await asyncio.start_server(self._client, "127.0.0.1", port, limit=1 << 14)
        bound = listener.sockets[0].getsockname()[1]
        async with listener:
            ready(f"http://127.0.0.1:{bound}/{self._token}/")
            await self.sample()
            while True:
                await asyncio.sleep(SAMPLE_S)
                with contextlib.suppress(LspCompleteError, OSError):  # what was read last stays
                    await self.sample()

    async def sample(self) -> None:
        """Read the figures once."""
        self._servers, self._engines = await asyncio.to_thread(self._gather)
        now, seen = self._clock(), set[int]()
        for server in self._servers:
            with contextlib.suppress(*ODD):
                pid = int(server.get("pid", 0))
                seen.add(pid)
                stages = (server.get("server", {}).get("all") or {}).get("ms") or {}
                if "total" in stages:
                    parts = tuple(float(stages[name]["p50"]) for name in dashboard_charts.SHOWN)
                    point = (now, float(stages["total"]["p50"]), float(stages["total"]["p95"]), parts)
                    self._history.setdefault(pid, deque(maxlen=KEEP)).append(point)
        for pid in set(self._history) - seen:
            del self._history[pid]

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader, 10.0)
            if request is not None:
                history = {pid: tuple(points) for pid, points in self._history.items()}
                writer.write(
                    await asyncio.to_thread(self.answer, request.method, request.path, request.headers.get("host", ""), history)
                )
                await writer.drain()
        except BadRequest as error:
            writer.write(response(error.status, str(error), keep=False, kind="text/plain"))
        except (TimeoutError, asyncio.TimeoutError, ConnectionError):
            pass
        except ODD as error:  # figures of another version, perhaps
            writer.write(response(500, f"the page could not be made ({type(error).__name__})", keep=False, kind="text/plain"))
        finally:
            writer.close()

    def answer(
        self, method: str, path: str, host: str, history: Mapping[int, Sequence[dashboard_charts.Point]]
    ) -> bytes:
        """One answer. history: by server, times by the clock."""
        token, _, rest = path.removeprefix("/").partition("/")
        if not _LOOPBACK.fullmatch(host) or not secrets.compare_digest(token.encode(), self._token.encode()):
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
            found = self._judged(rest)
            if found is None:
                return response(404, "there is no such page", keep=False, kind="text/plain")
            return response(200, found, keep=False, kind="text/html; charset=utf-8")
        now = self._clock()
        ago = {pid: [(now - p[0], p[1], p[2], p[3]) for p in points] for pid, points in history.items()}
        judged = recordings_list(recordings(self._recordings)) + comparisons_list(kept.comparisons(self._comparisons))
        page = dashboard_page.page(self._servers, self._engines, ago, judged)
        return response(200, page, keep=False, kind="text/html; charset=utf-8")

    def _judged(self, rest: str) -> str | None:
        """The page of a recording or a comparison that is in the list, or None."""
        kind, _, name = rest.partition("/")
        name = unquote(name, errors="surrogateescape")
        if kind == "comparison":
            entry = kept.comparisons(self._comparisons).get(name)
            with contextlib.suppress(*ODD):
                return comparison_page(entry) if entry is not None else None
        elif kind == "recording" and name in {known for known, _ in recordings(self._recordings)}:
            with contextlib.suppress(OSError, LspCompleteError, *ODD):
                return recording_page(name, kept.counted(read(self._recordings / name)))
        return None


def recordings(folder: Path) -> list[tuple[str, int]]:
    """Names and sizes of the newest recordings, newest first."""
    with contextlib.suppress(OSError):
        paths = sorted(folder.glob("*" + SUFFIX), reverse=True)[:RECORDINGS]
        return [(path.name, path.stat().st_size) for path in paths]
    return []
