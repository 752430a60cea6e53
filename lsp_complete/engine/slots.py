"""The slot table: which prompt lies in which sequence, and which slot serves the next prompt. Pure bookkeeping.

Strategy: a slot is one llama.cpp sequence with its token ids from position 0 on. A prompt takes the idle slot with the
longest common prefix; if a longer one lies in a slot that is busy, or that belongs to another document and would lose much,
its prefix is shared into another slot (`seq_cp`) instead.

Rules:
- Conservation: `len(slot.tokens)` equals the sequence's positions 0 … pos_max; `check_integrity` compares all.
- Reuse only where ids *and* positions agree; `verify_reuse` is asked again just before KV is reused.
- The key (a document) only breaks ties and protects other documents' prompts; it never decides what is equal.
Engine thread.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lsp_complete.engine.backend import Floats, Ints

_VERIFY = 8
_MIN_SHARE = 32
_KEEP_FRACTION = 0.5


@dataclass(slots=True)
class Slot:
    """One sequence.

    owner: the job that uses it now. memo: logits after the first `memo_at` tokens, if kept. prompt_end: length of
    the last prompt that was evaluated to its end. saved_at: when it was last written to disk (engine clock).
    """

    seq: int
    tokens: array[int] = field(default_factory=lambda: array("i"))
    owner: int | None = None
    key: str = ""
    used: int = 0
    memo_at: int = 0
    memo: Floats | None = None
    prompt_end: int = 0
    saved_at: float = float("-inf")

    @property
    def ids(self) -> Ints:
        """View of the tokens; let go of it before the slot grows."""
        return np.frombuffer(self.tokens, dtype=np.int32) if self.tokens else np.empty(0, dtype=np.int32)

    def cut(self, length: int) -> None:
        """Keep the first `length` tokens."""
        del self.tokens[length:]
        if length < self.memo_at:
            self.memo, self.memo_at = None, 0
        if length < self.prompt_end:
            self.prompt_end = 0

    def extend(self, tokens: Iterable[int]) -> None:
        """Tokens were evaluated after the present ones."""
        self.tokens.extend(tokens)


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a prompt goes. source: the slot whose first `reuse` tokens are shared into `slot` (None: they are its own)."""

    slot: Slot
    source: Slot | None
    reuse: int


def common_prefix(a: Ints, b: Ints) -> int:
    """Number of leading equal ids."""
    n = min(len(a), len(b))
    different = a[:n] != b[:n]
    at = int(different.argmax()) if n else 0
    return at if n and different[at] else n


def usable_prefix(slot: Slot, prompt: Ints, can_drop_tail: bool) -> int:
    """Tokens of this slot that the prompt can use. Without tail dropping: all of them or none."""
    return usable_length(slot.ids, prompt, can_drop_tail)


def usable_length(have: Ints, prompt: Ints, can_drop_tail: bool) -> int:
    """The same for bare ids."""
    common = common_prefix(have, prompt)
    if not can_drop_tail and (common < len(have) or common >= len(prompt)):
        return 0
    return common


class SlotTable:
    """All slots of one context."""

    def __init__(self, count: int) -> None:
        self.slots = tuple(Slot(seq) for seq in range(count))
        self._tick = 0

    def touch(self, slot: Slot) -> None:
        """This slot was used now."""
        self._tick += 1
        slot.used = self._tick

    def idle(self) -> list[Slot]:
        """Slots without an owner, least recently used first."""
        return sorted((s for s in self.slots if s.owner is None), key=lambda s: s.used)

    def seat(self, prompt: Ints, key: str, can_drop_tail: bool = True) -> Seat | None:
        """Choose a slot for a prompt; None if all are busy. Changes nothing."""
        idle = self.idle()
        if not idle:
            return None
        common = {s.seq: usable_prefix(s, prompt, can_drop_tail) for s in self.slots}
        best = max(self.slots, key=lambda s: (common[s.seq], s.owner is None, s.key == key, s.used))
        reuse = common[best.seq]
        if best.owner is None and reuse and _may_take(best, key, reuse):
            return Seat(best, None, reuse)
        own = max(
            (s for s in idle if s.key == key and s.tokens),
            key=lambda s: (common[s.seq], s.used),
            default=None,
        )
        target = own or next((s for s in idle if not s.tokens), None) or _oldest(idle, best)
        if target is best or reuse <= common[target.seq] or reuse - common[target.seq] < _MIN_SHARE:
            return Seat(target, None, common[target.seq])
        return Seat(target, best, reuse)

    def victim(self, spare: Sequence[int] = ()) -> Slot | None:
        """The idle slot with tokens to give up first, but none of the sequences in `spare`."""
        return next((s for s in self.idle() if s.tokens and s.seq not in spare), None)

    def used_tokens(self) -> int:
        """Sum of tokens over slots; cells of the KV are at most this many (shared ones count once there)."""
        return sum(len(s.tokens) for s in self.slots)


def _may_take(slot: Slot, key: str, reuse: int) -> bool:
    """Whether trimming this slot to `reuse` tokens harms nobody."""
    return slot.key in ("", key) or reuse >= _KEEP_FRACTION * len(slot.tokens)


def _oldest(idle: list[Slot], best: Slot) -> Slot:
    return next((s for s in idle if s is not best), idle[0])


def reaches_back(pos_min: int, length: int, window: int = 0) -> bool:
    """Whether a sequence whose smallest position is `pos_min` holds what a token after its first `length` ones looks at.

    window: as in `ModelInfo`, the token itself included. A sliding window's older cells may be given to others, and a state is one
    cell at the last position.
    """
    return 0 <= pos_min <= (max(0, length - window + 1) if window else 0)


def verify_reuse(slot: Slot, prompt: Ints, reuse: int, pos_min: int, pos_max: int, window: int = 0) -> bool:
    """Last look before KV is reused: the sequence reaches back and forth far enough, and the last reused ids agree."""
    if reuse == 0:
        return True
    if not reaches_back(pos_min, reuse, window) or pos_max + 1 < reuse or len(slot.tokens) != pos_max + 1:
        return False
    tail = slice(max(0, reuse - _VERIFY), reuse)
    return bool(np.array_equal(slot.ids[tail], prompt[tail]))


def check_integrity(
    slots: Sequence[Slot],
    positions: Sequence[tuple[int, int]],
    empty: Iterable[int] = (),
    window: int = 0,
    cells: Sequence[int] = (),
) -> list[str]:
    """What is wrong, one sentence each; [] if all is well.

    positions[seq] is (pos_min, pos_max) of every sequence; `empty` names sequences that must hold nothing. window: as in `ModelInfo`.
    cells[seq]: how many cells it holds (-1 unknown); as many as tokens, from the first position to the last: then none is missing.
    """
    wrong: list[str] = []
    for s in slots:
        low, high = positions[s.seq]
        held = len(s.tokens)
        whole = reaches_back(low, held, window) if held else low == -1
        if not whole or high != held - 1:
            wrong.append(f"slot {s.seq}: {len(s.tokens)} tokens recorded, positions {low} … {high} held")
        elif cells and cells[s.seq] not in (-1, held):
            wrong.append(f"slot {s.seq}: {held} tokens recorded, {cells[s.seq]} cells held")
        if s.memo is not None and s.memo_at > len(s.tokens):
            wrong.append(f"slot {s.seq}: logits kept for {s.memo_at} tokens, {len(s.tokens)} held")
    wrong.extend(f"sequence {seq} should be empty" for seq in empty if positions[seq] != (-1, -1))
    return wrong
