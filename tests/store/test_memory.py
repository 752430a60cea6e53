"""The memory cache: least recently used first out, bytes conserved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.store.memory import MemoryCache


def test_the_least_recently_used_goes_first() -> None:
    cache: MemoryCache[str, int] = MemoryCache(100)
    for number, key in enumerate("abc"):
        cache.put(key, number, 40)
        cache.get("a")
    assert [cache.get(key) for key in "abc"] == [0, None, 2]
    stats = cache.stats()
    assert (stats.entries, stats.bytes, stats.evicted) == (2, 80, 1)


def test_a_value_larger_than_the_limit_is_not_kept() -> None:
    cache: MemoryCache[str, int] = MemoryCache(100)
    cache.put("a", 1, 10)
    cache.put("a", 2, 101)
    assert cache.get("a") is None and cache.stats().bytes == 0


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(0, 60), st.sampled_from(["put", "get", "drop"]))
    )
)
def test_bytes_are_conserved(steps: list[tuple[str, int, str]]) -> None:
    cache: MemoryCache[str, int] = MemoryCache(100)
    for key, size, what in steps:
        if what == "put":
            cache.put(key, size, size)
            assert cache.get(key) == size
        elif what == "get":
            cache.get(key)
        else:
            cache.discard(key)
            assert cache.get(key) is None
        cache.check_integrity()
    cache.clear()
    assert cache.stats().bytes == cache.stats().entries == 0
