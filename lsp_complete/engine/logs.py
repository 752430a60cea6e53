"""The engine's log: one private file with rotation that never costs the engine anything but the log.

Rules:
- Mode 0600, in a directory of mode 0700; a symbolic link at its path is not followed.
- A full disk, a removed file or a forbidden directory loses lines (counted in `dropped`), never raises.
- No user text: a record is the program's own words and numbers; of an exception only its type, its place in
  the code, and its message if the program raised it itself, are written.
- What llama.cpp and the interpreter write to standard error goes to the same file (`take_stderr`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lsp_complete.errors import LspCompleteError

MAX_BYTES = 1 << 20
KEEP = 2
STALE_DAYS = 14.0

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
Opener = Callable[[Path], int]


def open_private(path: Path) -> int:
    """A file descriptor that appends to `path`, created with mode 0600. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, 0o600)


class PlainFormatter(logging.Formatter):
    """Exceptions by type and place only."""

    def formatException(self, ei: _ExcInfo) -> str:
        """Type, place, and our own messages; other messages may quote the text that caused them."""
        kind, error, trace = ei
        if kind is None or error is None:
            return ""
        places = [f"  {Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(trace)]
        message = f": {error}" if isinstance(error, LspCompleteError) else ""
        return "\n".join([f"{kind.__name__}{message}", *places])


class PrivateLog(logging.Handler):
    """A logging handler with rotation at `max_bytes`, keeping `keep` older files. Any thread."""

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, keep: int = KEEP, opener: Opener = open_private
    ) -> None:
        super().__init__()
        self.setFormatter(PlainFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        self.path = path
        self.dropped = 0
        self._max_bytes, self._keep, self._opener = max_bytes, keep, opener
        self._fd = -1
        self._stderr = False
        self._open()

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._fd = self._opener(self.path)
            if self._stderr:
                os.dup2(self._fd, 2)
        except OSError:
            self._fd = -1

    def take_stderr(self) -> None:
        """From now on file descriptor 2 of the process is this log."""
        with self.lock or _NO_LOCK:
            self._stderr = True
            if self._fd >= 0:
                os.dup2(self._fd, 2)

    def fileno(self) -> int:
        """The log's descriptor, or -1 while it cannot be opened."""
        return self._fd

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; on any failure count it as dropped."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
            self._rotate(len(data))
            if self._fd < 0 or os.write(self._fd, data) != len(data):
                self.dropped += 1
        except Exception:
            self.dropped += 1

    def _rotate(self, more: int) -> None:
        if self._fd < 0:
            self._open()
            return
        size = os.fstat(self._fd).st_size
        if size == 0 or size + more <= self._max_bytes:
            return
        os.close(self._fd)
        self._fd = -1
        with contextlib.suppress(OSError):  # then the file grows on, which is better than no log
            for n in range(self._keep, 0, -1):
                older = self.path.with_name(f"{self.path.name}.{n}")
                newer = self.path if n == 1 else self.path.with_name(f"{self.path.name}.{n - 1}")
                if newer.exists():
                    os.replace(newer, older)
        self._open()

    def close(self) -> None:
        """Close the file. Standard error, if taken, stays on it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        super().close()


class _NoLock:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


_NO_LOCK = _NoLock()


def remove_stale(directory: Path, now: float | None = None) -> None:
    """Remove engine logs that nobody wrote to for STALE_DAYS. now: seconds since the epoch."""
    oldest = (time.time() if now is None else now) - STALE_DAYS * 86400
    try:
        entries = list(directory.glob("e-*.log*"))
    except OSError:
        return
    for path in entries:
        try:
            if path.lstat().st_mtime < oldest:
                path.unlink()
        except OSError:
            continue


def tail(directory: Path, lines: int = 200) -> str:
    """The last lines of the log that was written to last; "" if there is none."""
    try:
        paths = sorted(directory.glob("e-*.log"), key=lambda p: p.stat().st_mtime)
        if not paths:
            return ""
        with paths[-1].open("rb") as file:
            file.seek(max(0, paths[-1].stat().st_size - 512 * max(lines, 1)))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
