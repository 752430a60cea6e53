"""Token healing: which tokens may come next while bytes are still owed.

Strategy: the prompt was cut back to a pre-token's start; the cut bytes are *owed*. A token is allowed if its bytes begin
with all owed bytes, or are a proper prefix of them. In the sorted vocabulary the first kind is one contiguous
range and the second one short bisection per prefix length, so no scan of the vocabulary happens per key.

Rules:
- Never a dead end: a byte that no piece covers is given up (`settle`), so there is always an allowed token or no constraint.
- Tokens that end generation are not in the table and so never allowed while bytes are owed.
Engine thread (the cache is not locked); the functions are pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict

import numpy as np

from lsp_complete.engine.backend import Ints, PieceTable

_CACHE = 256


def consume(owed: bytes, piece: bytes) -> tuple[bytes, bytes]:
    """What is still owed after a token, and which of its bytes are new text.

    The piece must be allowed for `owed`; one that is not (a given-up byte) counts as if it paid everything.
    """
    if not owed:
        return b"", piece
    if piece.startswith(owed):
        return b"", piece[len(owed) :]
    if owed.startswith(piece):
        return owed[len(piece) :], b""
    return b"", piece


def _after(prefix: bytes) -> bytes | None:
    """The smallest bytes greater than everything that begins with prefix; None if there are none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


def allowed_tokens(table: PieceTable, owed: bytes) -> Ints:
    """Ids that may come next while `owed` (not empty) is owed; possibly none."""
    pieces, ids = table.pieces, table.ids
    low = bisect_left(pieces, owed)
    bound = _after(owed)
    high = len(pieces) if bound is None else bisect_left(pieces, bound, low)
    parts = [ids[low:high]]
    for length in range(1, len(owed)):
        head = owed[:length]
        first = last = bisect_left(pieces, head)
        while last < len(pieces) and pieces[last] == head:
            last += 1
        if last > first:
            parts.append(ids[first:last])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def line_ends(table: PieceTable, owed: bytes) -> Ints:
    """Ids of the tokens that put a line end right behind what is owed."""
    pieces, ids = table.pieces, table.ids
    parts = []
    for head in (owed + b"\n", owed + b"\r"):
        low, bound = bisect_left(pieces, head), _after(head)
        parts.append(ids[low : len(pieces) if bound is None else bisect_left(pieces, bound, low)])
    return np.concatenate(parts)


class Healing:
    """`allowed_tokens` with a small cache: consecutive keys owe the same bytes again and again."""

    def __init__(self, table: PieceTable) -> None:
        self._table = table
        self._cache: OrderedDict[bytes, Ints] = OrderedDict()

    def allowed(self, owed: bytes) -> Ints | None:
        """Allowed ids, or None if nothing is owed. Empty only for bytes that `settle` would give up."""
        if not owed:
            return None
        found = self._cache.get(owed)
        if found is None:
            found = allowed_tokens(self._table, owed)
            self._cache[owed] = found
            if len(self._cache) > _CACHE:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(owed)
        return found

    def line_ends(self, owed: bytes) -> Ints:
        """Tokens that would begin the text with a line end. Microseconds."""
        return line_ends(self._table, owed)

    def settle(self, owed: bytes) -> bytes:
        """`owed` without leading bytes that no token can produce."""
        while owed:
            found = self.allowed(owed)
            if found is not None and len(found):
                return owed
            owed = owed[1:]
        return b""
