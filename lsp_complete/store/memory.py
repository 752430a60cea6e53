"""A cache in memory, least recently used first out, counted in bytes.

Rules:
- The caller says how many bytes a value takes; the sum never exceeds the limit, and a value larger than the limit is not kept.
- Own lock: any thread. Values are shared, so they must be immutable.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What the cache holds and did. bytes: as the callers counted them."""

    entries: int
    bytes: int
    hits: int
    misses: int
    evicted: int


class MemoryCache(Generic[K, V]):
    """At most `limit_bytes` of values."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = max(limit_bytes, 0)
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evicted = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, now the most recently used one; None if it is not there."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes; the least recently used ones make room."""
        with self._lock:
            self._remove(key)
            if size > self._limit:
                return
            self._values[key] = (value, size)
            self._bytes += size
            while self._bytes > self._limit:
                _, (_, freed) = self._values.popitem(last=False)
                self._bytes -= freed
                self._evicted += 1

    def discard(self, key: K) -> None:
        """Forget a key."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: K) -> None:
        known = self._values.pop(key, None)
        if known is not None:
            self._bytes -= known[1]

    def clear(self) -> None:
        """Forget everything; the counters of hits and misses stay."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def stats(self) -> MemoryStats:
        """Counters so far."""
        with self._lock:
            return MemoryStats(len(self._values), self._bytes, self._hits, self._misses, self._evicted)

    def check_integrity(self) -> None:
        """The conservation law: the bytes counted are those of the values held, and within the limit."""
        with self._lock:
            assert self._bytes == sum(size for _, size in self._values.values()) <= self._limit
