"""Giving a job a slot: find the longest part of its prompt that exists somewhere, and bring it there.

Strategy: in order of price: tokens already in the slot, a prefix shared from another slot (`seq_cp`, 0.1 ms), state saved in
host memory or on disk (some ms), evaluation. What must be dropped and is long enough is saved first.

Rules: the slot's KV after seating is exactly `job.main.at` tokens of the job's own text, verified; otherwise
it is cleared and everything is evaluated. At least one token is left to evaluate unless its logits are at hand.
"""

from __future__ import annotations

import random

import numpy as np

from lsp_complete.engine.api import CompletionRequest, Priority
from lsp_complete.engine.backend import Floats, Ints
from lsp_complete.engine.job import Branch, Job
from lsp_complete.engine.restoring import restore, worth_restoring
from lsp_complete.engine.slots import Seat, Slot, reaches_back, verify_reuse
from lsp_complete.engine.state import State, clear_slot, stash, vacate
from lsp_complete.engine.stopping import Stopper
from lsp_complete.errors import RequestFailed


def check_request(request: CompletionRequest, vocab_size: int, context: int) -> None:
    """Raises RequestFailed for a request that can never run."""
    n = len(request.prompt)
    if n == 0:
        raise RequestFailed("The prompt is empty; a completion needs at least one token of prompt.")
    if n >= context:
        raise RequestFailed(
            f"The prompt has {n} tokens but the engine's context holds {context}, output included. "
            "Send a shorter prompt, or start the engine with a larger context."
        )
    if min(request.prompt) < 0 or max(request.prompt) >= vocab_size:
        raise RequestFailed(
            f"The prompt has token ids outside 0 … {vocab_size - 1}: made with another vocabulary?"
        )
    if not 1 <= request.candidates <= 8:
        raise RequestFailed(f"{request.candidates} candidates were asked for; 1 to 8 are possible.")


def new_branch(job: Job, seq: int, at: int, pending: list[int], owed: bytes, number: int) -> Branch:
    """Branch `number` of a job, with its own random source."""
    rng = random.Random(job.request.seed * 64 + number)  # noqa: S311 - sampling, not secrets
    rules = job.request.stop
    return Branch(seq, at, pending, owed, Stopper(rules), rng, min_sum=rules.min_sum, forced_only=rules.forced_only)


def missing(state: State, job: Job) -> int | None:
    """Prompt tokens that would have to be evaluated if the job were seated now; None if no slot is free or made free.

    Changes nothing; what `seat_job` then does may differ only if saved state turns out to be damaged.
    """
    history = _history(job)
    seat = state.table.seat(history, job.request.key, state.backend.info.can_drop_tail)
    if seat is None:
        seat = _seat_after(state, job, history)
    if seat is None:
        return None
    saved = worth_restoring(state, history, seat.reuse)
    return len(history) - (saved[0].length if saved else seat.reuse)


def _seat_after(state: State, job: Job, history: Ints) -> Seat | None:
    """The seat that the job would have once another one has given way; None if none would."""
    other = _who_gives_way(state, job)
    if other is None or other.slot is None:
        return None
    slot, owner = other.slot, other.slot.owner
    slot.owner = None
    try:
        return state.table.seat(history, job.request.key, state.backend.info.can_drop_tail)
    finally:
        slot.owner = owner


def seat_job(state: State, job: Job) -> Floats | bool | None:
    """Bring a waiting job into a slot.

    False: no slot is free. None: seated, tokens are pending. Logits: seated with the prompt's last logits at hand.
    """
    history = _history(job)
    seat = state.table.seat(history, job.request.key, state.backend.info.can_drop_tail)
    if seat is None and _make_way(state, job):
        seat = state.table.seat(history, job.request.key, state.backend.info.can_drop_tail)
    if seat is None:
        return False
    slot = seat.slot
    began = state.clock()
    job.started = began if job.started is None else job.started
    restored = restore(state, slot, history, seat.reuse)
    if restored:
        reuse = restored
        job.restore_ms += (state.clock() - began) * 1e3
    elif not slot.tokens and seat.source is None:
        reuse = 0  # nothing was there, or it had to go for a restore that failed
    elif seat.source is not None:
        reuse = _share(state, seat)
    else:
        reuse = seat.reuse
    memo = slot.memo if slot.memo_at == len(history) == reuse else None
    wanted = reuse if memo is not None or job.max_tokens == 0 else min(reuse, len(history) - 1)
    reuse = _trim(state, slot, history, wanted)
    memo = memo if reuse == len(history) else None
    _occupy(state, job, slot, history, reuse)
    job.restored += min(restored, reuse)
    job.reused += reuse - min(restored, reuse)
    state.counters.restored += min(restored, reuse)
    state.counters.reused += reuse - min(restored, reuse)
    return memo


def _history(job: Job) -> Ints:
    """Prompt and, for a job that had to give its slot up, what it generated."""
    if not job.branches or not job.main.tokens:
        return job.prompt
    return np.concatenate([job.prompt, np.array(job.main.tokens, dtype=np.int32)])


def _occupy(state: State, job: Job, slot: Slot, history: Ints, reuse: int) -> None:
    now = state.clock()
    job.slot = slot
    slot.owner, slot.key = job.id, job.request.key
    state.table.touch(slot)
    pending = history[reuse:].tolist()
    if job.branches:
        job.main.seq, job.main.at, job.main.pending = slot.seq, reuse, pending
    else:
        owed = state.healing.settle(job.request.forced)
        job.branches = [new_branch(job, slot.seq, reuse, pending, owed, 0)]
    job.last_step = now
    state.seated[job.id] = job


def _make_way(state: State, job: Job) -> bool:
    """Take a slot from a less urgent job that has not branched; True if one was freed."""
    other = _who_gives_way(state, job)
    if other is None:
        return False
    unseat(state, other, parked=False)
    return True


def _who_gives_way(state: State, job: Job) -> Job | None:
    """The least urgent job that has not branched, if it is less urgent than this one."""
    if job.request.priority is Priority.BACKGROUND:
        return None
    others = [j for j in state.seated.values() if j.request.priority > job.request.priority and len(j.branches) == 1]
    return max(others, key=lambda j: (j.request.priority, j.id), default=None)


def unseat(state: State, job: Job, parked: bool) -> None:
    """Back to the queue. Its slot keeps the KV as an idle one, so little is lost."""
    vacate(state, job)
    job.parked = parked
    state.waiting.append(job)
    state.counters.parked += 1


def _share(state: State, seat: Seat) -> int:
    source, slot = seat.source, seat.slot
    assert source is not None
    stash(state, slot, len(slot.tokens))
    clear_slot(state, slot)
    reuse = min(seat.reuse, len(source.tokens))  # 0 if it was given up for a restore that failed all the same
    state.backend.seq_cp(source.seq, slot.seq, -1 if reuse == len(source.tokens) else reuse)
    slot.extend(source.tokens[:reuse])
    if source.memo is not None and source.memo_at == reuse:
        slot.memo, slot.memo_at = source.memo, source.memo_at
    state.counters.shared += reuse
    return reuse


def _trim(state: State, slot: Slot, history: Ints, reuse: int) -> int:
    """Cut the slot to `reuse` tokens, verified; returns what is really there (0 after any doubt)."""
    backend = state.backend
    dropped = len(slot.tokens) - reuse
    low, high, window = backend.pos_min(slot.seq), backend.pos_max(slot.seq), backend.info.window
    if window and reuse and not reaches_back(low, reuse, window):
        clear_slot(state, slot)  # going back so far needs cells that a sliding window has given up: no fault
        return 0
    if not verify_reuse(slot, history, reuse, low, high, window):
        state.counters.reuse_faults += 1
        clear_slot(state, slot)
        return 0
    if dropped > 0:
        stash(state, slot, dropped)
        if reuse == 0 or not backend.seq_rm(slot.seq, reuse):
            clear_slot(state, slot)
            return 0
        slot.cut(reuse)
    return reuse
