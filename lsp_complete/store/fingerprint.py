"""Structures derived from files, kept by the file's fingerprint: memory first, then disk, then made anew.

Strategy: an entry is found by path and recipe version and is good if the file's modification time and size are the entry's; if only
they differ, the content's hash decides, so a touched or checked-out file costs one read and no parse. What is stored is a
plain JSON value; how to make it and what it means is the caller's business.

Rules:
- An entry written within RACY_NS of the file's own modification time is checked by content: the file may have changed again in the
  same tick of the clock.
- A corrupt or foreign entry, one of another version or of another path, is a miss. Nothing raises.
- Files above `max_bytes` and what is no regular file are not read. The text is decoded as UTF-8, undecodable bytes replaced.
- Any thread; the disk is touched, so not the event loop.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import xxhash

from lsp_complete.store.disk import DiskCache
from lsp_complete.store.memory import MemoryCache, MemoryStats

T = TypeVar("T")
RACY_NS = 2_000_000_000
MAX_BYTES = 4_000_000
MEMORY_BYTES = 64 * 1024 * 1024
UNKNOWN_MTIME = -1
"""Modification time of an entry whose content was not read from the file."""
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What identifies a file's state: modification time (ns), size in bytes, hash of the content (hex)."""

    mtime_ns: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A value with the state of the file it was made from. checked_ns: when that state was read."""

    fingerprint: Fingerprint
    checked_ns: int
    value: T


@dataclass(frozen=True, slots=True)
class Recipe(Generic[T]):
    """How values of one kind are made and written. make and load give None for "no value"; versions key the cache.

    version(path) must change whenever `make` would give something else for the same text. size: bytes in memory.
    """

    name: str
    version: Callable[[str], str]
    make: Callable[[str, str], T | None]
    dump: Callable[[T], object]
    load: Callable[[object], T | None]
    size: Callable[[T], int]


def digest_of(data: bytes) -> str:
    """Hash of a content, 32 hex digits (xxHash, 128 bits)."""
    return xxhash.xxh3_128_hexdigest(data)


class FingerprintCache(Generic[T]):
    """Values of one recipe. `disk` may be None (memory only)."""

    def __init__(
        self,
        recipe: Recipe[T],
        disk: DiskCache | None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        max_bytes: int = MAX_BYTES,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._recipe, self._disk = recipe, disk
        self._memory: MemoryCache[tuple[str, str], Entry[T]] = MemoryCache(memory_bytes)
        self._max_bytes, self._clock_ns = max_bytes, clock_ns
        self.made = 0

    def get(self, path: str) -> T | None:
        """The value for the file as it is now: from memory, from disk, or made. None if there is none to be had."""
        entry = self.entry(path)
        return None if entry is None else entry.value

    def entry(self, path: str) -> Entry[T] | None:
        """The same with the file's fingerprint."""
        try:
            info = Path(path).stat()
        except (OSError, ValueError):
            self.forget(path)
            return None
        if not stat.S_ISREG(info.st_mode) or info.st_size > self._max_bytes:
            return None
        version = self._recipe.version(path)
        known = self._memory.get((path, version)) or self._from_disk(path, version)
        if known is not None and self._same_state(known, info.st_mtime_ns, info.st_size):
            return known
        return self._from_content(path, version, info.st_mtime_ns, known)

    def peek(self, path: str) -> T | None:
        """The value in memory, whether or not the file has changed since; never touches the disk."""
        entry = self._memory.get((path, self._recipe.version(path)))
        return None if entry is None else entry.value

    def recall(self, path: str, data: bytes) -> T | None:
        """The value that was made of just this content under this path, or None. Reads no file but the cache's own and makes
        nothing: for a document whose text is at hand."""
        version = self._recipe.version(path)
        known = self._memory.get((path, version)) or self._from_disk(path, version)
        if known is None or known.fingerprint.size != len(data) or known.fingerprint.digest != digest_of(data):
            return None
        return known.value

    def keep(self, path: str, data: bytes, value: T) -> None:
        """Keep a value that was made elsewhere of this content, which need not be the file's: only the content is compared
        later. The caller sees to it that `version(path)` is the version it was made with."""
        version = self._recipe.version(path)
        self._keep(path, version, Entry(Fingerprint(UNKNOWN_MTIME, len(data), digest_of(data)), 0, value))

    def forget(self, path: str) -> None:
        """Drop a file that is gone or must not be known."""
        version = self._recipe.version(path)
        self._memory.discard((path, version))
        if self._disk is not None:
            self._disk.delete(self._key(path, version))

    def stats(self) -> MemoryStats:
        """Counters of the memory part."""
        return self._memory.stats()

    def _key(self, path: str, version: str) -> str:
        recipe = "\0".join((str(_FORMAT), version, path))
        return f"{self._recipe.name}:{digest_of(recipe.encode('utf-8', 'surrogatepass'))}"

    @staticmethod
    def _same_state(entry: Entry[T], mtime_ns: int, size: int) -> bool:
        state = entry.fingerprint
        settled = entry.checked_ns - state.mtime_ns > RACY_NS
        return settled and (state.mtime_ns, state.size) == (mtime_ns, size)

    def _from_content(
        self, path: str, version: str, mtime_ns: int, known: Entry[T] | None
    ) -> Entry[T] | None:
        now = self._clock_ns()
        try:
            data = Path(path).read_bytes()
        except OSError:
            return None
        state = Fingerprint(mtime_ns, len(data), digest_of(data))
        if known is not None and known.fingerprint.digest == state.digest:
            return self._keep(path, version, Entry(state, now, known.value))
        value = self._recipe.make(path, data.decode("utf-8-sig", "replace"))
        self.made += 1
        return None if value is None else self._keep(path, version, Entry(state, now, value))

    def _keep(self, path: str, version: str, entry: Entry[T]) -> Entry[T]:
        self._memory.put((path, version), entry, self._recipe.size(entry.value))
        if self._disk is not None:
            state = entry.fingerprint
            head = [_FORMAT, version, path, state.mtime_ns, state.size, state.digest, entry.checked_ns]
            self._disk.put_json(self._key(path, version), [*head, self._recipe.dump(entry.value)])
        return entry

    def _from_disk(self, path: str, version: str) -> Entry[T] | None:
        if self._disk is None:
            return None
        row = self._disk.get_json(self._key(path, version))
        if not isinstance(row, list) or len(row) != 8 or row[:3] != [_FORMAT, version, path]:
            return None
        _, _, _, mtime_ns, size, digest, checked_ns, plain = row
        if not all(type(number) is int for number in (mtime_ns, size, checked_ns)) or not isinstance(
            digest, str
        ):
            return None
        value = self._recipe.load(plain)
        if value is None:
            return None
        entry = Entry(Fingerprint(mtime_ns, size, digest), checked_ns, value)
        self._memory.put((path, version), entry, self._recipe.size(value))
        return entry
