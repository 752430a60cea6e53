"""Prompts that lost their slot, kept in host memory under a byte limit: restoring one costs milliseconds, not seconds.

Strategy: an entry is the token ids from position 0 and llama.cpp's saved state of exactly these. The entry with the
longest common prefix wins; least recently used ones go first when the limit is reached. An entry that is a prefix of
a newer one is redundant and dropped (where tails can be dropped, the longer one serves both).

Rules: engine thread only. Entries are of one model, one llama.cpp and one KV setting: they never leave the process here
(`diskprompts` carries fingerprints and digests). The state's length is counted, tokens included.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.slots import common_prefix


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One saved prompt. `number` names it."""

    number: int
    tokens: Ints
    state: bytearray

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.state) + self.tokens.nbytes


class PromptCache:
    """Least recently used saved prompts, at most `limit` bytes (0: off).

    Without `can_drop_tail` an entry serves only prompts that continue all of it, so prefixes are kept as well.
    """

    def __init__(self, limit: int, can_drop_tail: bool = True) -> None:
        self._limit = limit
        self._can_drop_tail = can_drop_tail
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._bytes = 0
        self._next = 0

    @property
    def bytes(self) -> int:
        """Bytes in use; never more than the limit."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def wants(self, tokens: Ints) -> bool:
        """Whether saving this prompt would add anything."""
        return self._limit > 0 and not any(self._covers(e.tokens, tokens) for e in self._entries.values())

    def _covers(self, saved: Ints, tokens: Ints) -> bool:
        """Whether an entry of `saved` serves whatever one of `tokens` would."""
        if not self._can_drop_tail and len(saved) != len(tokens):
            return False
        return common_prefix(saved, tokens) == len(tokens)

    def put(self, tokens: Ints, state: bytearray) -> None:
        """Save a prompt's state; ignored if it alone is over the limit."""
        entry = Entry(self._next, np.array(tokens, dtype=np.int32), state)
        if entry.size > self._limit:
            return
        self._next += 1
        for old in [e for e in self._entries.values() if self._covers(entry.tokens, e.tokens)]:
            self.drop(old)
        self._entries[entry.number] = entry
        self._bytes += entry.size
        while self._bytes > self._limit:
            self.drop(next(iter(self._entries.values())))

    def find(self, prompt: Ints, at_least: int) -> Entry | None:
        """The entry with the longest usable prefix of `prompt`, if that has `at_least` tokens."""
        best, best_length = None, at_least - 1
        for entry in self._entries.values():
            length = common_prefix(entry.tokens, prompt)
            if not self._can_drop_tail and (length < len(entry.tokens) or length >= len(prompt)):
                continue
            if length > best_length:
                best, best_length = entry, length
        return best

    def load(self, entry: Entry) -> Any:
        """The saved state (a buffer); it stays in the cache as the most recently used."""
        if entry.number in self._entries:
            self._entries.move_to_end(entry.number)
        return entry.state

    def drop(self, entry: Entry) -> None:
        """Forget an entry."""
        if self._entries.pop(entry.number, None) is not None:
            self._bytes -= entry.size

    def shrink(self) -> None:
        """Halve the limit: memory is short."""
        self._limit //= 2
        while self._bytes > self._limit:
            self.drop(next(iter(self._entries.values())))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0
