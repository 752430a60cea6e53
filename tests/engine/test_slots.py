"""The slot table: choice, sharing, protection, integrity."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.slots import (
    Slot,
    SlotTable,
    check_integrity,
    common_prefix,
    usable_prefix,
    verify_reuse,
)


def ids(*tokens: int) -> Ints:
    return np.array(tokens, dtype=np.int32)


def table(*contents: tuple[str, int, int]) -> SlotTable:
    """Slots of (key, first token, length): tokens first, first+1, …"""
    t = SlotTable(len(contents))
    for slot, (key, first, length) in zip(t.slots, contents, strict=True):
        slot.key = key
        slot.extend(range(first, first + length))
        if length:
            t.touch(slot)
    return t


def run(first: int, length: int) -> Ints:
    return np.arange(first, first + length, dtype=np.int32)


@given(st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 2), max_size=12))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    plain = 0
    while plain < min(len(a), len(b)) and a[plain] == b[plain]:
        plain += 1
    assert common_prefix(ids(*a), ids(*b)) == plain


def test_the_longest_prefix_wins() -> None:
    t = table(("a", 0, 50), ("a", 0, 80), ("a", 500, 90))
    seat = t.seat(run(0, 200), "a")
    assert seat is not None and (seat.slot.seq, seat.source, seat.reuse) == (1, None, 80)


def test_an_empty_slot_before_the_least_recently_used() -> None:
    t = table(("a", 0, 50), ("", 0, 0), ("b", 100, 50))
    seat = t.seat(run(900, 10), "c")
    assert seat is not None and seat.slot.seq == 1
    t = table(("a", 0, 50), ("b", 100, 50))
    t.touch(t.slots[0])
    seat = t.seat(run(900, 10), "c")
    assert seat is not None and seat.slot.seq == 1


def test_another_documents_long_prompt_is_shared_from() -> None:
    t = table(("a", 0, 200), ("b", 900, 50))
    seat = t.seat(np.concatenate([run(0, 60), run(700, 5)]), "b")
    assert seat is not None and seat.source is not None
    assert (seat.slot.seq, seat.source.seq, seat.reuse) == (1, 0, 60)


def test_a_busy_slot_is_shared_from_and_never_chosen() -> None:
    t = table(("a", 0, 200), ("a", 900, 50))
    t.slots[0].owner = 7
    seat = t.seat(run(0, 201), "a")
    assert seat is not None and seat.slot.seq == 1 and seat.source is t.slots[0]
    t.slots[1].owner = 8
    assert t.seat(run(0, 201), "a") is None


def test_few_common_tokens_are_not_worth_sharing() -> None:
    t = table(("a", 0, 200), ("b", 900, 50))
    seat = t.seat(np.concatenate([run(0, 5), run(700, 5)]), "b")
    assert seat is not None and seat.source is None


def test_without_tail_dropping_it_is_all_or_nothing() -> None:
    slot = table(("a", 0, 50)).slots[0]
    assert usable_prefix(slot, run(0, 60), False) == 50
    assert usable_prefix(slot, run(0, 50), False) == 0
    assert usable_prefix(slot, run(0, 40), False) == 0
    assert usable_prefix(slot, run(0, 40), True) == 40


def test_the_last_look_before_reuse() -> None:
    slot = table(("a", 0, 50)).slots[0]
    assert verify_reuse(slot, run(0, 60), 50, 0, 49)
    assert verify_reuse(slot, run(7, 60), 0, -1, -1)
    assert not verify_reuse(slot, run(0, 60), 50, 3, 49)  # positions do not begin at 0
    assert not verify_reuse(slot, run(0, 60), 50, 0, 40)  # fewer held than recorded
    assert not verify_reuse(slot, run(1, 60), 50, 0, 49)  # other ids


def test_integrity() -> None:
    t = table(("a", 0, 3), ("", 0, 0))
    assert check_integrity(t.slots, [(0, 2), (-1, -1), (-1, -1)], [2]) == []
    assert len(check_integrity(t.slots, [(0, 1), (0, 0), (0, 0)], [2])) == 3
    t.slots[1].memo, t.slots[1].memo_at = np.zeros(2, dtype=np.float32), 4
    assert len(check_integrity(t.slots, [(0, 2), (-1, -1), (-1, -1)], [2])) == 1


def test_cutting_below_the_kept_logits_drops_them() -> None:
    slot = Slot(0)
    slot.extend(range(10))
    slot.memo, slot.memo_at = np.zeros(2, dtype=np.float32), 8
    slot.cut(8)
    assert slot.memo is not None
    slot.cut(7)
    assert slot.memo is None and len(slot.tokens) == 7
