"""The server's figures as a file that `lsp-complete stats` reads: no port, no question to a busy server.

Strategy: after an answer the figures are frozen on the loop (microseconds), summed up and written in a worker thread,
at most every EVERY_S seconds. The file lies in the private runtime directory, beside the engine's socket.

Rules:
- No user text: workspace folders are digests, file names do not occur.
- The file goes when the server ends; a reader removes what a killed server left.
- Trouble with the file is nobody's trouble: it is not told, and the next time tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from .. import __version__
from ..engine.paths import runtime_directory
from ..errors import EngineUnavailable
from ..measure.statistics import Statistics

EVERY_S = 2.0
FORMAT = 1
MAX_BYTES = 1 << 20
RECENT = 30
PREFIX = "stats-"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a server tells of itself. now: clock of the statistics, seconds. roots: workspace folders. token_table: share of tokens that
    needed no tokenizing. reference: `Reference.figures`."""

    statistics: Statistics
    now: float
    outcomes: dict[str, object]
    documents: int
    model: str
    problem: str
    roots: tuple[str, ...]
    token_table: float = 0.0
    reference: Mapping[str, object] = field(default_factory=dict)


class Publisher:
    """Writes one server's figures. Thread: the event loop, but for the writing itself."""

    def __init__(
        self,
        figures: Callable[[], Figures],
        directory: Callable[[], Path] = runtime_directory,
        every_s: float = EVERY_S,
    ) -> None:
        self._figures, self._directory, self._every_s = figures, directory, every_s
        self._started = time.time()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._last = float("-inf")
        self._closed = False
        self._path: Path | None = None

    def noted(self) -> None:
        """Something was answered; the file will follow."""
        if self._timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._last + self._every_s), self._begin)

    def _begin(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        self._writing = loop.run_in_executor(None, self._write, self._figures())

    def _write(self, figures: Figures) -> None:
        with contextlib.suppress(OSError, EngineUnavailable):
            path = self._directory() / f"{PREFIX}{os.getpid()}.json"
            data = json.dumps(plain(figures, self._started), separators=(",", ":")).encode()
            draft = path.with_suffix(".new")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(data)
            os.replace(draft, path)
            self._path = path

    async def close(self) -> None:
        """Write no more; remove the file."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def plain(figures: Figures, started: float) -> dict[str, Any]:
    """The file's content. Any thread."""
    recent = figures.statistics.recent(figures.now, RECENT)
    return {
        "format": FORMAT,
        "pid": os.getpid(),
        "version": __version__,
        "started": round(started, 1),
        "written": round(time.time(), 1),
        "model": figures.model,
        "problem": figures.problem,
        "documents": figures.documents,
        "roots": [hashlib.sha256(os.fsencode(root)).hexdigest()[:12] for root in figures.roots],
        "outcomes": figures.outcomes,
        **({"reference": dict(figures.reference)} if figures.reference else {}),
        "server": with_rate(figures.statistics.snapshot(figures.now), "token_table", figures.token_table),
        "recent": [record.as_dict() for record in recent],
    }


def with_rate(snapshot: dict[str, object], name: str, share: float) -> dict[str, object]:
    """The snapshot with one more hit rate."""
    rates = snapshot.get("hit_rates")
    return {**snapshot, "hit_rates": {**(rates if isinstance(rates, dict) else {}), name: round(share, 4)}}


def published(directory: Path, alive: Callable[[int], bool] = psutil.pid_exists) -> list[dict[str, Any]]:
    """What the servers of this user that run now have published, oldest server first."""
    found = []
    for path in sorted(_files(directory)):
        number = path.stem.removeprefix(PREFIX)
        if not number.isdecimal() or not alive(int(number)):
            with contextlib.suppress(OSError):
                path.unlink()
            continue
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_size <= MAX_BYTES:
                value = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(value, dict) and value.get("format") == FORMAT:
                    found.append(value)
    return sorted(found, key=lambda value: str(value.get("started")))


def _files(directory: Path) -> Iterable[Path]:
    try:
        return list(directory.glob(f"{PREFIX}*.json"))
    except OSError:
        return []
