"""Healing: the constraint by bisection equals a scan of the vocabulary, and never dead-ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.healing import Healing, allowed_tokens, consume, line_ends


class Table:
    """Pieces by id."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.by_id = pieces
        order = sorted((p, t) for t, p in enumerate(pieces) if p)
        self.pieces = [p for p, _ in order]
        self.ids: Ints = np.array([t for _, t in order], dtype=np.int32)

    def piece(self, token: int) -> bytes:
        return self.by_id[token]

    def is_eog(self, token: int) -> bool:
        return False


few = st.binary(min_size=0, max_size=4).map(lambda b: bytes(x % 3 + 0xFD if x % 5 == 0 else x % 3 for x in b))


@given(st.lists(few, max_size=30), few.filter(bool))
def test_bisection_equals_a_scan(pieces: list[bytes], owed: bytes) -> None:
    scan = {t for t, p in enumerate(pieces) if p and (p.startswith(owed) or owed.startswith(p))}
    found = allowed_tokens(Table(pieces), owed).tolist()
    assert set(found) == scan and len(found) == len(scan)


@given(st.lists(few.filter(bool), min_size=1, max_size=10), few)
def test_any_walk_through_allowed_tokens_begins_with_the_owed_bytes(pieces: list[bytes], owed: bytes) -> None:
    table = Table([*pieces, *(bytes([b]) for b in range(256))])
    healing = Healing(table)
    left, written, new = owed, b"", b""
    while left:
        allowed = healing.allowed(left)
        assert allowed is not None and len(allowed)
        piece = table.piece(int(allowed[len(written) % len(allowed)]))
        written += piece
        left, text = consume(left, piece)
        new += text
    assert written == owed + new


def test_bytes_that_no_token_has_are_given_up() -> None:
    healing = Healing(Table([b"a", b"ab", b"c"]))
    assert healing.settle(b"zzab") == b"ab"
    assert healing.settle(b"zz") == b""
    assert healing.settle(b"") == b"" and healing.allowed(b"") is None


def test_half_a_character_is_finished_by_byte_tokens() -> None:
    table = Table([bytes([b]) for b in range(256)] + ["é".encode(), "éa".encode()])
    healing = Healing(table)
    allowed = healing.allowed("é".encode())
    assert allowed is not None
    assert {table.piece(int(t)) for t in allowed} == {b"\xc3", "é".encode(), "éa".encode()}
    assert consume("é".encode(), b"\xc3") == (b"\xa9", b"")


def test_tokens_that_put_a_line_end_behind_what_is_owed() -> None:
    pieces = [b"\n", b"\n\n", b"\r\n", b"a", b"  ", b"  \n", b"  \nb", b"  x", b" ", b""]
    assert {pieces[t] for t in line_ends(Table(pieces), b"")} == {b"\n", b"\n\n", b"\r\n"}
    assert {pieces[t] for t in line_ends(Table(pieces), b"  ")} == {b"  \n", b"  \nb"}
    assert len(line_ends(Table([b"a"]), b"")) == 0
