"""Small things shared by the two files that use llama.cpp: how the library is initialised and how it logs.

Rules: llama.cpp's own messages go to a logger at DEBUG (they name paths and sizes, never user text); the last error
line is kept so that a failure to load can say why.
"""

from __future__ import annotations

import logging
import threading

_log = logging.getLogger("lsp_complete.llama")


class LastErrors:
    """The most recent error lines of the native library. Any thread."""

    def __init__(self, keep: int = 4) -> None:
        self._keep = keep
        self._lines: list[str] = []
        self._lock = threading.Lock()

    def add(self, level: int, text: bytes) -> None:
        """Take one log message; level 3 is an error, 2 a warning."""
        line = text.decode("utf-8", "replace").strip()
        if not line:
            return
        _log.debug("%s", line)
        if level == 3:
            with self._lock:
                self._lines = [*self._lines, line][-self._keep :]

    def take(self) -> str:
        """What was gathered since the last call, as one line ("" if nothing)."""
        with self._lock:
            lines, self._lines = self._lines, []
        return "; ".join(lines)


ERRORS = LastErrors()
