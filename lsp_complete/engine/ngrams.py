"""Finding what followed the last few tokens before: an index over one token sequence, and a bounded store over many.

Strategy: a dictionary per key length from a 64-bit hash of the last 2, 3 or 4 tokens to the position after their last
occurrence. A whole prompt is hashed by numpy at once (some 0.5 ms for 2,000 tokens), then it grows token by token. A hit is
compared with the tokens themselves, so a collision gives no proposal instead of a wild one.

Rules: keys and continuations never contain a special token, so nothing is found across a prompt's special tokens and no
special token is proposed. `NgramIndex` belongs to one thread; `NgramStore` may be fed from any.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lsp_complete.engine.backend import PieceTable

ORDERS = (4, 3, 2)
"""Key lengths, the most telling first."""

LONGEST = 16
"""Agreement before a hit is counted up to so many tokens."""

_STORE_ORDER = 4
_FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Special = NDArray[np.bool_]
"""True for each token id that is never proposed."""


def special_tokens(vocab: PieceTable, size: int) -> Special:
    """Tokens without bytes and tokens that end generation, of a vocabulary of `size` ids."""
    special = np.ones(size, dtype=np.bool_)
    ids = np.asarray(vocab.ids)
    ids = ids[ids < size]
    special[ids] = [vocab.is_eog(token) for token in ids.tolist()]
    return special


def key_of(tokens: Sequence[int]) -> int:
    """Hash of a few tokens, the same as `_keys` computes."""
    key = 0
    for token in tokens:
        key = (key * _FACTOR + token + 1) & _MASK
    return key


def _keys(ids: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """Hashes of all windows of `order` tokens."""
    count = len(ids) - order + 1
    keys = np.zeros(count, dtype=np.uint64)
    for i in range(order):
        keys = keys * np.uint64(_FACTOR) + ids[i : i + count] + np.uint64(1)
    return keys


def _clean_starts(ids: NDArray[np.uint64], special: Special, width: int) -> NDArray[np.intp]:
    """Where `width` tokens in a row begin that hold no special one."""
    marks = np.concatenate(([0], np.cumsum(special[ids.astype(np.intp)])))
    return np.flatnonzero(marks[width:] == marks[:-width])


class NgramIndex:
    """One token sequence and where its n-grams went on last."""

    def __init__(self, tokens: Sequence[int], special: Special) -> None:
        self.tokens = list(tokens)
        self._special = special
        self._after: dict[int, dict[int, int]] = {order: {} for order in ORDERS}
        ids = np.array(self.tokens, dtype=np.uint64)
        for order in ORDERS:
            if len(ids) > order:
                starts = _clean_starts(ids, special, order + 1)
                keys = _keys(ids, order)[starts]
                self._after[order] = dict(zip(keys.tolist(), (starts + order).tolist(), strict=True))

    def append(self, token: int) -> None:
        """The sequence goes on with this token."""
        tokens = self.tokens
        tokens.append(token)
        at = len(tokens) - 1
        for order in ORDERS:
            if at >= order and not any(self._special[t] for t in tokens[at - order :]):
                self._after[order][key_of(tokens[at - order : at])] = at

    def after(self, recent: Sequence[int], order: int, limit: int) -> tuple[int, list[int]]:
        """At most `limit` tokens that followed the last `order` of `recent`, and how many tokens agree before them.

        (0, []) if they were never seen. Agreement is counted up to `LONGEST`.
        """
        if len(recent) < order:
            return 0, []
        window = list(recent[-order:])
        at = self._after[order].get(key_of(window))
        if at is None or self.tokens[at - order : at] != window:
            return 0, []
        length, most = order, min(at, len(recent), LONGEST)
        while length < most and self.tokens[at - length - 1] == recent[-length - 1]:
            length += 1
        found = self.tokens[at : at + limit]
        return length, found[: next((i for i, t in enumerate(found) if self._special[t]), len(found))]


class NgramStore:
    """What followed four tokens in a workspace's own files: at most `limit` n-grams, the older half dropped when full.

    Memory: some 150 bytes an n-gram.
    """

    def __init__(self, special: Special, limit: int = 100_000) -> None:
        self._special = special
        self._half = max(1, limit // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def clear(self) -> None:
        """Forget everything. Any thread."""
        with self._lock:
            self._young, self._old = {}, {}

    def add(self, tokens: Sequence[int]) -> None:
        """Learn a sequence; what it says counts more than what was learned before. Any thread."""
        ids = np.array(tokens, dtype=np.uint64)
        for at in range(0, max(0, len(ids) - _STORE_ORDER), self._half):
            self._add(ids[at : at + self._half + _STORE_ORDER])

    def _add(self, ids: NDArray[np.uint64]) -> None:
        if len(ids) <= _STORE_ORDER:
            return
        starts = _clean_starts(ids, self._special, _STORE_ORDER + 1)
        keys = _keys(ids, _STORE_ORDER)[starts].tolist()
        learned = dict(zip(keys, ids[starts + _STORE_ORDER].tolist(), strict=True))
        with self._lock:
            if len(self._young) + len(learned) > self._half:
                self._old, self._young = self._young, {}
            self._young.update(learned)

    def after(self, recent: Sequence[int], limit: int) -> list[int]:
        """At most `limit` tokens that may follow, each looked up from those before it. Any thread."""
        window = list(recent[-_STORE_ORDER:])
        found: list[int] = []
        with self._lock:
            while len(window) == _STORE_ORDER and len(found) < limit:
                key = key_of(window)
                token = self._young.get(key, self._old.get(key, -1))
                if token < 0:
                    break
                found.append(token)
                window = [*window[1:], token]
        return found
