"""Prompts that outlive the process: one file per saved prompt, in a directory that only the user can read.

Strategy: `promptfile` defines the files. At start only headers and ids are read; the digest is verified when an
entry is restored, before llama.cpp parses the state. Writing happens on a thread of its own.

Rules:
- An entry counts only if its fingerprint (model file, llama.cpp version, KV settings) is this engine's.
- Whatever is corrupt, foreign, too large or too old is ignored or removed; nothing here ever raises into the engine.
- The directory has mode 0700, files 0600. They hold token ids of the user's text: `purge` removes all.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import queue
import threading
import time
from pathlib import Path

import numpy as np

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.promptfile import (
    DIGEST,
    SUFFIX,
    DiskEntry,
    build,
    enforce,
    open_plain,
    parse_head,
    read_head,
    user_key,
    verify,
    write_private,
)
from lsp_complete.engine.slots import common_prefix

_log = logging.getLogger(__name__)

_PER_KEY = 3
_CLOSE_S = 5.0


class DiskCache:
    """Saved prompts of one engine fingerprint. Engine thread, but for its own writer thread."""

    def __init__(self, directory: str, fingerprint: str, limit: int, days: float) -> None:
        self._directory = Path(directory)
        self._fingerprint = fingerprint
        self._limit = limit
        self._days = days
        self._entries: dict[Path, DiskEntry] = {}
        self._jobs: queue.Queue[tuple[Ints, bytes | bytearray, str] | None] = queue.Queue(maxsize=2)
        self._pending: list[Ints] = []
        self._lock = threading.Lock()
        self._key = b""
        self._writer: threading.Thread | None = None
        try:
            self._open()
        except OSError as error:
            _log.warning(
                "prompts are not kept on disk: %s cannot be used (%s)", directory, error.strerror or error
            )
            self._limit = 0

    def _open(self) -> None:
        if self._limit <= 0:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(self._directory, 0o700)
        self._key = user_key(self._directory)
        enforce(self._directory, self._limit, self._days, time.time())
        for path in self._directory.glob(f"{self._fingerprint[:16]}-*{SUFFIX}"):
            entry = read_head(path, self._fingerprint)
            if entry is not None:
                self._entries[path] = entry
        self._writer = threading.Thread(target=self._write_all, name="lsp-complete-saver", daemon=True)
        self._writer.start()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def enabled(self) -> bool:
        """Whether anything is kept on disk."""
        return self._writer is not None

    def find(self, prompt: Ints, at_least: int, can_drop_tail: bool) -> tuple[DiskEntry, int] | None:
        """The entry with the longest usable prefix of `prompt` (and that length), if it has `at_least` tokens."""
        best: tuple[DiskEntry, int] | None = None
        with self._lock:
            entries = list(self._entries.values())
        for entry in entries:
            length = common_prefix(entry.tokens, prompt)
            if not can_drop_tail and (length < len(entry.tokens) or length >= len(prompt)):
                continue
            if length >= at_least and (best is None or length > best[1]):
                best = (entry, length)
        return best

    def longest(self, tokens: Ints) -> int:
        """Length of the longest prefix of `tokens` that some entry, written or about to be, begins with."""
        with self._lock:
            saved = [e.tokens for e in self._entries.values()] + self._pending
        return max((common_prefix(s, tokens) for s in saved), default=0)

    def load(self, entry: DiskEntry) -> memoryview | None:
        """The verified state of exactly the entry's tokens, or None (the file is then removed)."""
        try:
            with os.fdopen(open_plain(entry.path), "rb") as file:
                data = file.read()
        except MemoryError:
            return None
        except OSError:
            self.drop(entry)
            return None
        head = parse_head(data, self._fingerprint) if verify(data, self._key) else None
        if head is None or head[1] != entry.size or not np.array_equal(head[0], entry.tokens):
            _log.warning("a saved prompt failed its check and was removed")
            self.drop(entry)
            return None
        with contextlib.suppress(OSError):
            os.utime(entry.path)
        return memoryview(data)[len(data) - DIGEST - entry.size : len(data) - DIGEST]

    def drop(self, entry: DiskEntry) -> None:
        """Remove an entry."""
        with self._lock:
            self._entries.pop(entry.path, None)
        with contextlib.suppress(OSError):
            entry.path.unlink()

    def save(self, tokens: Ints, state: bytes | bytearray, key: str, wait_s: float = 0.0) -> bool:
        """Hand a prompt to the writer, which may be waited for; False if it stays busy or disk caching is off."""
        if self._writer is None or len(state) > self._limit // 2:
            return False
        mine = np.array(tokens, dtype=np.int32)
        with self._lock:
            self._pending.append(mine)
        try:
            self._jobs.put((mine, state, key), block=wait_s > 0, timeout=wait_s or None)
        except queue.Full:
            self._forget_pending(mine)
            return False
        return True

    def _forget_pending(self, tokens: Ints) -> None:
        with self._lock:
            self._pending = [p for p in self._pending if p is not tokens]

    def close(self) -> None:
        """Finish what is being written (at most two prompts). A disk that does not answer is not waited for for ever."""
        if self._writer is not None:
            with contextlib.suppress(queue.Full):
                self._jobs.put(None, timeout=_CLOSE_S)
            self._writer.join(timeout=_CLOSE_S)

    def _write_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._write(*job)
            except Exception as error:  # whatever it was, the next prompt may be saved
                _log.warning("a prompt could not be saved: %s", getattr(error, "strerror", "") or type(error).__name__)
            self._forget_pending(job[0])

    def _write(self, tokens: Ints, state: bytes | bytearray, key: str) -> None:
        owner = hashlib.blake2b(key.encode("utf-8", "replace"), key=self._key, digest_size=8).hexdigest()
        data = build(self._fingerprint, tokens, state, owner, self._key)
        name = hashlib.blake2b(tokens.tobytes(), digest_size=12).hexdigest()
        path = self._directory / f"{self._fingerprint[:16]}-{name}{SUFFIX}"
        write_private(path, data)
        with self._lock:
            self._entries.pop(path, None)
            self._entries[path] = DiskEntry(path, tokens, len(state), owner)
            same = [e for e in self._entries.values() if e.key == owner]
            stale = [e for e in same[:-1] if common_prefix(e.tokens, tokens) == len(e.tokens)]
            stale += [e for e in same[:-_PER_KEY] if e not in stale]
        for entry in stale:
            self.drop(entry)
        gone = enforce(self._directory, self._limit, self._days, time.time())
        with self._lock:
            for lost in gone:
                self._entries.pop(lost, None)
