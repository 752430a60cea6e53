"""`lsp-complete serve-http`: OpenAI-style fill-in requests on loopback, with a token, for editors without LSP ghost text (Zed).

Rules: nothing but 127.0.0.1 is ever bound. The token is made once and kept in a file that only the user can read; without it there is no answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LspCompleteError

if TYPE_CHECKING:
    from ..cli import Sub
    from ..config import Settings
    from ..service.brain import Opener

PORT = 8543


def add_parser(sub: Sub) -> None:
    """`serve-http [--port PORT]`."""
    parser = sub.add_parser("serve-http", help="answer OpenAI-style requests on loopback, for Zed and others")
    parser.add_argument("--port", type=_port, default=PORT, metavar="PORT", help="loopback port; 0 picks one (default: %(default)s)")
    parser.set_defaults(run=_run)


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def _run(args: argparse.Namespace) -> int:
    from ..config import gather, load, user_file
    from ..service.startup import open_engine

    path = user_file().parent / "http-token"
    token = token_in(path)
    settings = load(gather()).settings

    def ready(port: int) -> None:
        print(f"lsp-complete answers on http://127.0.0.1:{port}/v1/completions", flush=True)
        print(f"token: {token} (kept in {path})", flush=True)

    try:
        asyncio.run(serve(args.port, token, settings, open_engine, ready))
    except OSError as error:
        raise LspCompleteError(f"port {args.port} cannot be used ({error.strerror}); choose another with --port") from None
    return 0


def token_in(path: Path) -> str:
    """The token kept in this file, made if it is not there. Raises LspCompleteError if others could read it."""
    if path.is_file():
        if sys.platform != "win32" and path.stat().st_mode & 0o077:
            raise LspCompleteError(f"{path} can be read by other users; run: chmod 600 {path}")
        token = path.read_text("utf-8").strip()
        if token:
            return token
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(24)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(token + "\n")
    return token


async def serve(
    port: int, token: str, settings: Settings, opener: Opener, ready: Callable[[int], None]
) -> None:
    """Serve until the task is cancelled or the process is told to end. ready(port) is called once it listens.

    Raises OSError if the port cannot be bound.
    """
    from ..service import Service
    from .http_completions import Completions

    service = Service(settings, opener, _say, lambda kind, message, busy=False: None)
    bound: list[int] = []

    def hosts() -> frozenset[str]:
        return frozenset(f"{name}:{bound[0]}" for name in ("127.0.0.1", "localhost"))

    api = Completions(service, token, hosts)
    listener = await asyncio.start_server(api.connection, "127.0.0.1", port, limit=1 << 16)
    bound.append(listener.sockets[0].getsockname()[1])
    ended = asyncio.Event()
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    ready(bound[0])
    try:
        await ended.wait()
    finally:
        listener.close()
        await service.close()


def _say(level: str, message: str) -> None:
    print(message, file=sys.stderr, flush=True)
