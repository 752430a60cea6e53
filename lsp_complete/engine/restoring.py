"""Putting saved state back into a slot, from host memory or disk: what would be quicker than evaluating, and making room for it.

Rules: the slot then holds exactly the saved tokens, or nothing. State is forgotten only if the model refuses it although there is
room: a full KV says nothing about what was saved. Engine thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.slots import Slot, usable_length
from lsp_complete.engine.state import State, clear_slot, evict, stash

_RESTORE_GAIN = 48
"""Restoring must save at least so many tokens; fewer are as quickly evaluated."""

_SLACK = 256
"""Cells that further candidates of running requests may hold beside the slots, and a block's end."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Saved state: of which tokens, how many of them a prompt can use, its bytes, and how to get or forget it."""

    length: int
    tokens: Ints
    size: int
    disk: bool
    load: Callable[[], Any]
    drop: Callable[[], None]


def worth_restoring(state: State, history: Ints, have: int) -> list[Saved]:
    """Saved state that would be quicker than evaluating what lies beyond the `have` tokens at hand; the longest first."""
    found: list[Saved] = []
    drop_tail = state.backend.info.can_drop_tail
    entry = state.cache.find(history, have + _RESTORE_GAIN)
    if entry is not None:
        length = usable_length(entry.tokens, history, drop_tail)
        load, drop = partial(state.cache.load, entry), partial(state.cache.drop, entry)
        found.append(Saved(length, entry.tokens, entry.size, False, load, drop))
    if state.disk is not None:
        longest = found[0].length if found else have
        on_disk = state.disk.find(history, max(have, longest) + _RESTORE_GAIN, drop_tail)
        if on_disk is not None:
            kept, length = on_disk
            load, drop = partial(state.disk.load, kept), partial(state.disk.drop, kept)
            found.insert(0, Saved(length, kept.tokens, kept.size, True, load, drop))
    return [s for s in found if state.rates.worth_restoring(s.length - have, s.size, s.disk)]


def restore(state: State, slot: Slot, history: Ints, have: int) -> int:
    """Put saved state into the slot if that saves enough; returns the usable length, 0 if nothing was restored."""
    for saved in worth_restoring(state, history, have):
        if _put_back(state, slot, saved):
            state.counters.restored_from_disk += saved.length if saved.disk else 0
            return saved.length
    return 0


def _put_back(state: State, slot: Slot, saved: Saved) -> bool:
    started = state.clock()
    data = saved.load()
    if data is None:
        return False
    stash(state, slot, len(slot.tokens))
    clear_slot(state, slot)
    if not _set_state(state, slot, data, len(saved.tokens)):
        clear_slot(state, slot)
        if _has_room(state, len(saved.tokens)):  # so it was refused for what it is
            saved.drop()
        return False
    slot.extend(saved.tokens.tolist())
    slot.saved_at = started if saved.disk else slot.saved_at
    state.rates.restored(len(data), (state.clock() - started) * 1e3, saved.disk)
    return True


def _set_state(state: State, slot: Slot, data: Any, length: int) -> bool:
    """Put state of `length` tokens into an empty slot. Where there is no room idle slots are given up, as for an evaluation."""
    while not state.backend.state_set(slot.seq, data):
        victim = None if _has_room(state, length) else state.table.victim((slot.seq,))
        if victim is None:
            return False
        evict(state, victim)
    return state.backend.pos_max(slot.seq) + 1 == length


def _has_room(state: State, tokens: int) -> bool:
    """Whether so many tokens surely fit beside what the slots hold (a prefix that they share counts for each of them)."""
    used = state.table.used_tokens()
    return not used or used + tokens + _SLACK <= state.backend.info.context
