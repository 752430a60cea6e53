"""A cache on disk that can be shared between processes: bytes and JSON only.

Strategy: diskcache (SQLite) keeps the rows. It unpickles whatever a row says is pickled, and a row also names the file that holds
a large value, so a tampered database could run code, read or remove files. `PlainDisk` therefore stores one tagged
byte string per value and refuses everything else when reading.

Rules:
- A value is bytes or JSON; a key is a string. No pickle is ever written or read.
- A row of another mode, with a file name that diskcache would not have made, or without our tag is a miss and is deleted.
- A cache that cannot be opened or read is an empty cache: a broken database is removed and made anew once; after that nothing is
  kept. Nothing raises, every error is a miss.
- The directory belongs to the user alone (0700) and is no symbolic link; else nothing is kept there.
- An entry lives for a week after its last use. Any thread; SQLite waits at most TIMEOUT_SECONDS for another process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import sys
import time
from pathlib import Path
from typing import Any

import diskcache

WEEK_SECONDS = 7 * 24 * 3600.0
TIMEOUT_SECONDS = 0.5
DEFAULT_LIMIT = 256 * 1024 * 1024
_REFRESH_SECONDS = 24 * 3600.0
_RAW, _FILE = 1, 2  # diskcache's modes for plain values and files of bytes; all others are refused
_FILE_NAME = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val")
_BYTES, _JSON = b"B", b"J"


class ForeignRow(ValueError):
    """A row that this program did not write."""


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores bytes, reads bytes; refuses every other mode, key or file name."""

    def put(self, key: object) -> tuple[object, bool]:
        if not isinstance(key, str):
            raise ForeignRow("keys are strings")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        if not raw or not isinstance(key, str):
            raise ForeignRow("keys are strings")
        return key

    def store(self, value: object, read: bool, key: object = diskcache.UNKNOWN) -> Any:
        if not isinstance(value, bytes) or read:
            raise ForeignRow("values are bytes")
        return super().store(value, False, key=key)

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> bytes:
        if mode == _RAW and isinstance(value, (bytes, memoryview)) and not read:
            return bytes(value)
        if mode == _FILE and not read and filename is not None and self._own(filename):
            found: bytes = super().fetch(mode, filename, None, False)
            return found
        raise ForeignRow(f"a row of mode {mode} was not written by this program")

    def remove(self, file_path: str) -> None:
        if self._own(file_path):
            super().remove(file_path)

    def _own(self, filename: str) -> bool:
        """Whether diskcache itself would have made this name, and no link stands there."""
        path = Path(self._directory) / filename
        return bool(_FILE_NAME.fullmatch(filename)) and not path.is_symlink() and not path.parent.is_symlink()


_ERRORS = (
    sqlite3.Error,
    diskcache.Timeout,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    AssertionError,
)


def private_directory(path: Path) -> bool:
    """Make `path` a directory that only the user can enter; False if it is someone else's or a link."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode):
            return False
        if sys.platform != "win32":
            if info.st_uid != os.getuid():
                return False
            if stat.S_IMODE(info.st_mode) & 0o077:
                path.chmod(0o700)
    except OSError:
        return False
    return True


class DiskCache:
    """Bytes and JSON by string key, for a week after the last use. See the module's rules; no method raises."""

    def __init__(self, directory: Path, limit_bytes: int = DEFAULT_LIMIT) -> None:
        self._directory = directory
        self._limit = limit_bytes
        self._cache: diskcache.Cache | None = None
        self.refused = 0
        if private_directory(directory):
            self._cache = self._open()
            if self._cache is None:  # not `or`: an empty cache is false
                self._cache = self._anew()

    @property
    def usable(self) -> bool:
        """Whether anything is kept at all."""
        return self._cache is not None

    def _open(self) -> diskcache.Cache | None:
        try:
            return diskcache.Cache(
                str(self._directory), timeout=TIMEOUT_SECONDS, disk=PlainDisk, size_limit=self._limit, statistics=0,
                eviction_policy="least-recently-stored", disk_min_file_size=1 << 17, tag_index=0, cull_limit=10,
            )  # fmt: skip
        except _ERRORS:
            return None

    def _anew(self) -> diskcache.Cache | None:
        """Remove a broken database (only what diskcache makes) and open an empty one."""
        for name in ("cache.db", "cache.db-wal", "cache.db-shm", "cache.db-journal"):
            try:
                (self._directory / name).unlink(missing_ok=True)
            except OSError:
                return None
        for folder in self._directory.glob("[0-9a-f][0-9a-f]"):
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
        return self._open()

    def get_bytes(self, key: str) -> bytes | None:
        """Bytes stored under a key, or None."""
        return self._get(key, _BYTES)

    def put_bytes(self, key: str, value: bytes) -> None:
        """Keep bytes for a week after their last use."""
        self._put(key, _BYTES + value)

    def get_json(self, key: str) -> object | None:
        """A JSON value stored under a key, or None (also for a stored null)."""
        text = self._get(key, _JSON)
        if text is None:
            return None
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            self.delete(key)
            return None
        return value

    def put_json(self, key: str, value: object) -> None:
        """Keep a value that JSON can hold; anything else is not kept."""
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            data = text.encode("utf-8")
        except (TypeError, ValueError, RecursionError):
            return
        self._put(key, _JSON + data)

    def _get(self, key: str, tag: bytes) -> bytes | None:
        if self._cache is None:
            return None
        try:
            found = self._cache.get(key, default=None, expire_time=True)
            value, expires = found
            if value is None:
                return None
            if not isinstance(value, bytes) or value[:1] != tag:
                raise ForeignRow("a value without our tag")
            if expires is None or expires - time.time() < WEEK_SECONDS - _REFRESH_SECONDS:
                self._cache.touch(key, expire=WEEK_SECONDS)
        except _ERRORS as error:
            if isinstance(error, ForeignRow):
                self.refused += 1
            self.delete(key)
            return None
        return value[1:]

    def _put(self, key: str, data: bytes) -> None:
        if self._cache is None:
            return
        try:
            self._cache.set(key, data, expire=WEEK_SECONDS)
        except _ERRORS:
            return

    def delete(self, key: str) -> None:
        """Forget a key."""
        if self._cache is None:
            return
        try:
            self._cache.delete(key)
        except _ERRORS:
            return

    def clear(self) -> None:
        """Forget everything."""
        if self._cache is not None:
            try:
                self._cache.clear()
            except _ERRORS:
                return

    def size_bytes(self) -> int:
        """Bytes on disk, as SQLite and the files take them; 0 if unusable."""
        try:
            return int(self._cache.volume()) if self._cache is not None else 0
        except _ERRORS:
            return 0

    def close(self) -> None:
        """Close this thread's connection; later calls are misses."""
        cache, self._cache = self._cache, None
        if cache is not None:
            try:
                cache.close()
            except _ERRORS:
                return
