"""What was indexed at the last start, so that a restart reads only what has changed.

Strategy: the cache holds symbols by content hash, shared by all workspaces and branches, and one manifest per workspace that says
which content each file had at which modification time and size. A restart lists the files, asks nothing of those whose time and
size are the manifest's, and loads their symbols by hash.

Rules:
- The cache is any object with `get_bytes` and `put_bytes`; a miss, a foreign or corrupt value means: read the file.
- The key of symbols carries the format and the grammar's version, so a new grammar is a miss.
- A file changed within the clock's last ticks before it was listed is not trusted by its time (RACY_NS).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import xxhash

from lsp_complete.index.symbols import FORMAT, FileSymbols, from_bytes
from lsp_complete.index.walk import FileEntry
from lsp_complete.syntax.languages import language_for, version_of

RACY_NS = 2_000_000_000
NOTHING = b"-"
"""Stored for a file that is not worth indexing."""


class Cache(Protocol):
    """Bytes by key, kept between runs. Never raises."""

    def get_bytes(self, key: str) -> bytes | None: ...

    def put_bytes(self, key: str, value: bytes) -> None: ...


class NoCache:
    """Keeps nothing."""

    def get_bytes(self, key: str) -> bytes | None:
        """Always a miss."""
        return None

    def put_bytes(self, key: str, value: bytes) -> None:
        """Forgets it."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file's state when it was indexed. digest: hex. checked_ns: when it was listed."""

    mtime_ns: int
    size: int
    digest: str
    checked_ns: int

    def still(self, entry: FileEntry) -> bool:
        """Whether the file is certainly the same."""
        same = (self.mtime_ns, self.size) == (entry.mtime_ns, entry.size)
        return same and self.checked_ns - self.mtime_ns > RACY_NS


def symbols_key(path: str, digest: str) -> str:
    """Cache key of a content's symbols."""
    facts = language_for("", path)
    return f"symbols:{FORMAT}:{version_of(facts) if facts is not None else ''}:{digest}"


def load_symbols(cache: Cache, path: str, digest: str) -> FileSymbols | bytes | None:
    """Symbols of a content; NOTHING if it is not worth indexing; None on a miss."""
    data = cache.get_bytes(symbols_key(path, digest))
    if data is None:
        return None
    return NOTHING if data == NOTHING else from_bytes(data)


def store_symbols(cache: Cache, path: str, digest: str, symbols: FileSymbols | None) -> None:
    """Keep a content's symbols, or that there are none."""
    cache.put_bytes(symbols_key(path, digest), NOTHING if symbols is None else symbols.to_bytes())


def _manifest_key(root: str) -> str:
    return f"manifest:{FORMAT}:{xxhash.xxh3_128_hexdigest(root.encode('utf-8', 'surrogatepass'))}"


def load_manifest(cache: Cache, root: str) -> dict[str, Known]:
    """What is known of a workspace folder's files, by path below it. Empty if nothing is."""
    data = cache.get_bytes(_manifest_key(root))
    if data is None:
        return {}
    try:
        rows = json.loads(zlib.decompress(data))
        found = {path: Known(*values) for path, values in rows.items()}
        good = all(
            type(k.mtime_ns) is type(k.size) is type(k.checked_ns) is int and type(k.digest) is str for k in found.values()
        )
    except (ValueError, TypeError, AttributeError, zlib.error, RecursionError):
        return {}
    return found if good else {}


def store_manifest(cache: Cache, root: str, known: Mapping[str, Known]) -> None:
    """Keep what is known of a workspace folder's files."""
    rows = {path: (k.mtime_ns, k.size, k.digest, k.checked_ns) for path, k in known.items()}
    cache.put_bytes(_manifest_key(root), zlib.compress(json.dumps(rows).encode("utf-8", "surrogatepass"), 1))
