"""A server of its own for a measurement: private sockets, caches and configuration, and its CPU time.

Strategy: what is measured is the product's defaults plus what the caller names, so the user's configuration file and
saved prompts stay out, and no editor's engine is shared. Only the models are taken from where they are. Every process
started inherits a mark in its environment, by which the engine (a session of its own, no child) is found again.

Rules:
- A session leaves no process and no file behind.
- The first answer comes only when the engine is loaded; loading is never part of a measured time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

import platformdirs
import psutil

from ..config import gather, load
from ..config.options import OPTIONS
from ..errors import EngineUnavailable
from .client import LspClient, spawn
from .edits import Position

MARK = "LSPC_SESSION"
SERVER = (sys.executable, "-m", "lsp_complete")
ENGINE_MODULE = "lsp_complete.engine.serve"
WARM_LIMIT_S = 90.0
RETRY_S = 0.25
IDLE_LIMIT_S = 3.0


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What to start. settings go out as initialization options, with flags beside them; those that an editor may not set, model and
    variables through the environment. folder: where caches and sockets are, kept on leaving (None: a new one, which goes)."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    root: Path | None = None
    command: tuple[str, ...] = SERVER
    variables: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ("stageNotifications",)
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A running server. mark: value of the environment variable MARK in all of its processes."""

    client: LspClient
    mark: str
    log: Path

    def processes(self) -> list[psutil.Process]:
        """The server, its engine, and what they started."""
        return marked(self.mark)

    def cpu_seconds(self) -> float:
        """User and system time of all processes so far. Ended processes no longer count."""
        total = 0.0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def memory_mb(self) -> float:
        """Resident memory of all processes together (shared pages count once per process)."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total / 1e6


def marked(mark: str) -> list[psutil.Process]:
    """All processes, but this one, that carry `mark` in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
    return found


def environment(options: SessionOptions, folder: Path, mark: str) -> dict[str, str]:
    """The environment of a private session: the user's own, with folders and model replaced."""
    settings = load(gather()).settings
    models = settings.model_dir or str(Path(platformdirs.user_cache_dir("lsp-complete")) / "models")
    private = {
        "XDG_RUNTIME_DIR": str(folder / "r"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "LSP_COMPLETE_CONFIG": str(folder / "lsp-complete.toml"),
        "LSP_COMPLETE_MODEL_DIR": models,
        "LSP_COMPLETE_MODEL": options.model or settings.model,
        MARK: mark,
    }
    return {**os.environ, **private, **own_settings(options.settings), **options.variables}


def own_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Environment variables for the settings that an editor may not set, or only make stricter."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        option = OPTIONS.get(prefix + key)
        if isinstance(value, Mapping) and option is None:
            found |= own_settings(value, f"{prefix}{key}.")
        elif option is not None and option.scope != "any":
            found[option.variable] = value if isinstance(value, str) else json.dumps(value)
    return found


@dataclass(slots=True)
class Household:
    """Several windows of one user: servers that share caches, configuration and (by the same sockets) one engine."""

    options: SessionOptions
    folder: Path
    mark: str
    windows: list[Session] = field(default_factory=list)

    @property
    def runtime(self) -> Path:
        """Where the engine's socket lies (made by whoever comes first)."""
        return self.folder / "r" / "lsp-complete"

    async def window(self, root: Path | None = None) -> Session:
        """Start one more server and initialize it. Raises EngineUnavailable with its last words."""
        log = self.folder / f"server-{len(self.windows)}.log"
        client = await spawn(self.options.command, environment(self.options, self.folder, self.mark), log)
        running = Session(client, self.mark, log)
        self.windows.append(running)
        wanted = {"settings": dict(self.options.settings), **dict.fromkeys(self.options.flags, True)}
        try:
            await client.initialize(root or self.options.root, wanted)
        except (ConnectionError, TimeoutError, asyncio.TimeoutError, RuntimeError) as error:
            raise EngineUnavailable(
                f"The server did not start: {str(error).rstrip('.') or type(error).__name__}.{_tail(log)}"
            ) from None
        return running

    def engine(self) -> psutil.Process | None:
        """The engine's process, None while there is none."""
        for process in marked(self.mark):
            with contextlib.suppress(psutil.Error):
                if ENGINE_MODULE in process.cmdline():
                    return process
        return None


@contextlib.asynccontextmanager
async def household(options: SessionOptions) -> AsyncIterator[Household]:
    """A private place for several servers; on leaving they, their engine and their files are gone."""
    folder = options.folder or Path(tempfile.mkdtemp(prefix="lspc-"))
    (folder / "r").mkdir(mode=0o700, exist_ok=True)
    (folder / "lsp-complete.toml").touch()
    home = Household(options, folder, secrets.token_hex(8))
    try:
        yield home
    finally:
        await asyncio.gather(*(window.client.shutdown() for window in home.windows))
        await _end(home.mark)
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def session(options: SessionOptions) -> AsyncIterator[Session]:
    """Start a private server and initialize it; end it, and its engine, on leaving."""
    async with household(options) as home:
        yield await home.window()


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return " Its last words: " + " | ".join(lines[-3:]) if lines else ""


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but a terminate signal unwinds too, so that sessions are ended. Main thread only."""

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one is enough; a second would break the unwinding
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGTERM, before)


async def _end(mark: str) -> None:
    left = marked(mark)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = await asyncio.to_thread(psutil.wait_procs, left, 5)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()


async def warm_up(running: Session, folder: Path) -> None:
    """Wait until the engine answers: ask in a small document of its own. Raises EngineUnavailable."""
    uri = (folder / "lsp_complete_warm_up.py").as_uri()
    text = "def add(first, second):\n    return \n"
    client, started = running.client, perf_counter()
    client.open(uri, "python", text)
    try:
        while True:
            answer = await client.inline(uri, Position(1, 11), limit_s=WARM_LIMIT_S)
            outcome = answer.stages.get("outcome", "")
            if answer.items or outcome not in ("", "unavailable", "error", "superseded"):
                return
            if perf_counter() - started > WARM_LIMIT_S or client.process_ended():
                said = "; ".join(list(client.messages)[-2:])
                raise EngineUnavailable(
                    f"No answer from the engine ({outcome or 'empty'}). {said}{_tail(running.log)}"
                )
            await asyncio.sleep(RETRY_S)
    finally:
        client.close(uri)


async def model_name(running: Session) -> str:
    """File name of the model that the engine loaded, as the statistics tell it; "" if they do not."""
    try:
        stats = await running.client.execute("lsp-complete.stats")
    except (RuntimeError, ConnectionError, TimeoutError, asyncio.TimeoutError):
        return ""
    for level in (stats, (stats or {}).get("engine")):
        found = level.get("model") if isinstance(level, Mapping) else None
        if isinstance(found, Mapping):
            found = found.get("path") or found.get("name")
        if isinstance(found, str) and found:
            return Path(found).name
    return ""


class Busy(Protocol):
    """What uses processor time."""

    def cpu_seconds(self) -> float:
        """So far."""


async def settle(running: Busy, limit_s: float = IDLE_LIMIT_S) -> None:
    """Wait until the session's processes use less than a tenth of a core, at most limit_s."""
    until = perf_counter() + limit_s
    before = running.cpu_seconds()
    while perf_counter() < until:
        await asyncio.sleep(0.2)
        now = running.cpu_seconds()
        if now - before < 0.02:
            return
        before = now
