"""The files that a scan has still to read, those likely to be needed first.

Strategy: what open documents import is asked for by name (`hurry`), also while the scan runs; for the rest the file edited last comes
first, for it is the one most likely to be edited, or used, next.

Rules: every entry is given once; ties go by path, so the order is repeatable. Any thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock

from lsp_complete.index.index import stem_of
from lsp_complete.index.walk import FileEntry


class Waiting:
    """See the module's rules."""

    def __init__(self, entries: Sequence[FileEntry]) -> None:
        ordered = sorted(entries, key=lambda entry: (-entry.mtime_ns, entry.path))
        self._rest = deque(ordered)
        self._first: deque[FileEntry] = deque()
        self._left = {entry.path for entry in ordered}
        self._by_stem: dict[str, list[FileEntry]] = {}
        for entry in ordered:
            self._by_stem.setdefault(stem_of(entry.path), []).append(entry)
        self._lock = Lock()

    def hurry(self, stems: Iterable[str]) -> None:
        """Files that stand for these module names come before all others, behind those that were hurried before."""
        with self._lock:
            for stem in stems:
                self._first.extend(self._by_stem.pop(stem, ()))

    def take(self) -> FileEntry | None:
        """The next file to read; None if none is left."""
        with self._lock:
            for line in (self._first, self._rest):
                while line:
                    entry = line.popleft()
                    if entry.path in self._left:
                        self._left.discard(entry.path)
                        return entry
            return None
