"""The host-memory cache keeps its limit and finds the longest prefix."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.hostcache import PromptCache


def run(first: int, length: int) -> Ints:
    return np.arange(first, first + length, dtype=np.int32)


def test_the_longest_prefix_is_found_and_short_ones_are_not() -> None:
    cache = PromptCache(10_000)
    cache.put(run(0, 50), bytearray(b"a"))
    cache.put(np.concatenate([run(0, 60), run(900, 9)]), bytearray(b"b"))
    entry = cache.find(run(0, 100), 10)
    assert entry is not None and cache.load(entry) == b"b"
    assert cache.find(run(0, 100), 61) is None


def test_without_tail_dropping_only_whole_entries_serve() -> None:
    cache = PromptCache(10_000, can_drop_tail=False)
    cache.put(run(0, 50), bytearray(b"a"))
    cache.put(run(0, 70), bytearray(b"b"))
    short, long = cache.find(run(0, 60), 10), cache.find(run(0, 100), 10)
    assert short is not None and long is not None and (len(short.tokens), len(long.tokens)) == (50, 70)
    assert cache.find(run(0, 50), 10) is None
    assert cache.wants(run(0, 60)) and not cache.wants(run(0, 70))


def test_a_prefix_of_a_newer_prompt_is_dropped_and_nothing_is_saved_twice() -> None:
    cache = PromptCache(10_000)
    cache.put(run(0, 50), bytearray(b"a"))
    cache.put(run(0, 70), bytearray(b"b"))
    assert len(cache) == 1
    assert not cache.wants(run(0, 70)) and not cache.wants(run(0, 20)) and cache.wants(run(0, 71))
    assert not PromptCache(0).wants(run(0, 5))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 400)), max_size=40))
def test_the_limit_holds_and_bytes_add_up(puts: list[tuple[int, int]]) -> None:
    cache = PromptCache(1000)
    for first, size in puts:
        cache.put(run(first * 1000, size // 8 + 1), bytearray(size))
        total = sum(e.size for e in cache._entries.values())
        assert cache.bytes == total <= 1000
    cache.clear()
    assert cache.bytes == 0 and len(cache) == 0
