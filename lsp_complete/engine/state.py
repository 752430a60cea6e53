"""What the engine thread owns, in one place; the functions of `seating`, `commit` and `core` act on it.

Rules: engine thread only. Every sequence is either a slot's, a branch's scratch sequence, or in `scratch` (and then empty).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lsp_complete.engine.api import Candidate, Completion, EngineTiming
from lsp_complete.engine.backend import Backend
from lsp_complete.engine.batchcost import BatchCost
from lsp_complete.engine.diskprompts import DiskCache
from lsp_complete.engine.draftmodel import DraftModel
from lsp_complete.engine.healing import Healing
from lsp_complete.engine.hostcache import PromptCache
from lsp_complete.engine.job import Job, rank
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.proposer import Proposer
from lsp_complete.engine.rates import Rates
from lsp_complete.engine.sampling import Sampler
from lsp_complete.engine.slots import Slot, SlotTable, check_integrity, reaches_back
from lsp_complete.engine.speculate import Speculator

_log = logging.getLogger(__name__)

STASH_MIN = 128
"""A tail of fewer tokens is not worth saving when it is dropped."""

SAVE_MIN = 256
"""A prompt of fewer tokens is not worth a file."""

SAVE_GAIN = 96
"""A prompt is saved again only if so many of its tokens are not on disk yet."""

SAVE_INTERVAL_S = 15.0
"""While it is being worked with, a slot's prompt is written at most this often."""


UNDIVIDED = 64
"""Most tokens of a step where a step is never aborted (see `most_tokens`)."""


@dataclass(slots=True)
class Counters:
    """Sums since the engine started; tokens and requests. busy_ms: time spent evaluating."""

    requests: int = 0
    completed: int = 0
    cancelled: int = 0
    expired: int = 0
    failed: int = 0
    steps: int = 0
    busy_ms: float = 0.0
    aborted: int = 0
    evaluated: int = 0
    decoded: int = 0
    reused: int = 0
    shared: int = 0
    restored: int = 0
    restored_from_disk: int = 0
    saved_to_disk: int = 0
    drafted: int = 0
    accepted: int = 0
    evicted: int = 0
    parked: int = 0
    shrunk: int = 0
    reuse_faults: int = 0
    step_errors: int = 0
    integrity_faults: int = 0


@dataclass(slots=True)
class State:
    """Everything the engine thread works on. clock: seconds, monotonic."""

    options: EngineOptions
    backend: Backend
    clock: Callable[[], float]
    table: SlotTable
    healing: Healing
    sampler: Sampler
    cache: PromptCache
    proposer: Proposer
    costs: BatchCost
    scratch: list[int]
    disk: DiskCache | None = None
    rates: Rates = field(default_factory=Rates)
    waiting: list[Job] = field(default_factory=list)
    seated: dict[int, Job] = field(default_factory=dict)
    served: dict[str, float] = field(default_factory=dict)
    served_at: float = 0.0
    last_interactive: float = float("-inf")
    typing: dict[str, float] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)


def make_state(
    options: EngineOptions,
    backend: Backend,
    clock: Callable[[], float],
    proposer: Proposer | None = None,
    cache: PromptCache | None = None,
    draft: DraftModel | None = None,
) -> State:
    """A fresh state over a loaded backend. draft: for the engine's own proposer. A proposer that has batch costs of its own (`cost`) keeps them."""
    info = backend.info
    options = replace(options, context=info.context, slots=info.slots)  # what could be had, not what was wanted
    own = getattr(proposer, "cost", None)
    costs = own if isinstance(own, BatchCost) else BatchCost(info.gpu)
    return State(
        options=options,
        backend=backend,
        clock=clock,
        table=SlotTable(options.slots),
        healing=Healing(backend.vocab),
        sampler=Sampler(info.vocab_size),
        cache=cache or PromptCache(options.host_cache_bytes, info.can_drop_tail),
        proposer=proposer or Speculator(backend.vocab, info.vocab_size, costs, model=draft, back_off=options.draft_back_off),
        costs=costs,
        scratch=list(range(options.slots, backend.sequences)),
        disk=_open_disk(options, backend),
    )


def most_tokens(state: State) -> int:
    """Most tokens of one prompt in a step. A memory that cannot go back is lost with an aborted step, so there steps are short
    instead and run to their end (`Runner`)."""
    return state.options.n_batch if state.backend.info.can_drop_tail else min(UNDIVIDED, state.options.n_batch)


def _open_disk(options: EngineOptions, backend: Backend) -> DiskCache | None:
    if not options.disk_cache_dir or options.disk_cache_bytes <= 0:
        return None
    disk = DiskCache(
        options.disk_cache_dir, backend.info.fingerprint, options.disk_cache_bytes, options.disk_cache_days
    )
    return disk if disk.enabled else None


def clear_slot(state: State, slot: Slot) -> None:
    """Forget a slot's prompt."""
    state.backend.seq_rm(slot.seq, 0)
    slot.cut(0)
    slot.memo, slot.memo_at = None, 0


def clear_doubtful(state: State) -> None:
    """After a step that failed: forget every slot whose books differ from the backend's."""
    for slot in state.table.slots:
        if state.backend.pos_max(slot.seq) + 1 != len(slot.tokens):
            clear_slot(state, slot)


def stash(state: State, slot: Slot, dropped: int) -> None:
    """Save a slot's prompt in host memory before `dropped` of its tokens are lost."""
    if dropped < STASH_MIN or not state.cache.wants(slot.ids):
        return
    saved = state.backend.state_get(slot.seq)
    if saved is not None:
        state.cache.put(slot.ids, saved)
        if state.disk is not None and _worth_a_file(state, slot, 0.0):
            state.counters.saved_to_disk += state.disk.save(slot.ids, saved, slot.key)


def _worth_a_file(state: State, slot: Slot, interval_s: float) -> bool:
    """A prompt that was used, is long enough, not saved just now, and not nearly all on disk already."""
    if state.disk is None or slot.prompt_end < SAVE_MIN or state.clock() - slot.saved_at < interval_s:
        return False
    return slot.prompt_end - state.disk.longest(slot.ids[: slot.prompt_end]) >= SAVE_GAIN


def save_one(state: State, interval_s: float = SAVE_INTERVAL_S, wait_s: float = 0.0) -> bool:
    """Hand one idle slot's prompt to the disk writer; False if there is nothing to save (or the writer is busy)."""
    for slot in state.table.slots:
        if slot.owner is None and state.disk is not None and _worth_a_file(state, slot, interval_s):
            saved = state.backend.state_get(slot.seq)
            if saved is not None and state.disk.save(slot.ids, saved, slot.key, wait_s):
                slot.saved_at = state.clock()
                state.counters.saved_to_disk += 1
                return True
    return False


def evict(state: State, slot: Slot) -> None:
    """Save and forget an idle slot's prompt."""
    stash(state, slot, len(slot.tokens))
    clear_slot(state, slot)
    slot.key = ""
    state.counters.evicted += 1


def free_branches(state: State, job: Job) -> None:
    """Give the scratch sequences of a job back."""
    for branch in job.branches[1:]:
        if branch.seq >= 0:
            state.backend.seq_rm(branch.seq, 0)
            state.scratch.append(branch.seq)
            branch.seq = -1


def leave(state: State, job: Job) -> None:
    """The job is over: it needs no slot or place in the queue any more, and parked ones may try again."""
    vacate(state, job)
    for other in state.waiting:
        other.parked = False


def vacate(state: State, job: Job) -> None:
    """Take a job from its slot and from the queue; what it evaluated stays for others."""
    free_branches(state, job)
    if job.slot is not None:
        job.slot.owner = None
        state.table.touch(job.slot)
        job.slot = None
    state.seated.pop(job.id, None)
    if job in state.waiting:
        state.waiting.remove(job)


def timing(state: State, job: Job) -> EngineTiming:
    """Stage times of a job that ends now."""
    now = state.clock()
    started = now if job.started is None else job.started
    first = now if job.first_token is None else job.first_token
    slot = job.slot  # once: it may go meanwhile
    return EngineTiming(
        queue_ms=(started - job.submitted) * 1e3,
        prefill_ms=max(0.0, first - started) * 1e3,
        decode_ms=max(0.0, now - first) * 1e3,
        total_ms=(now - job.submitted) * 1e3,
        prompt=len(job.prompt),
        reused=job.reused,
        evaluated=job.evaluated,
        restored=job.restored,
        decoded=sum(len(b.tokens) for b in job.branches),
        drafted=job.drafted,
        accepted=job.accepted,
        slot=-1 if slot is None else slot.seq,
        restore_ms=job.restore_ms,
    )


def complete_job(state: State, job: Job) -> None:
    """Deliver a finished job and let go of it."""
    if job.max_tokens == 0:
        candidates: tuple[Candidate, ...] = ()
    elif job.branches:
        candidates = rank([b.candidate() for b in job.branches])
    else:
        candidates = (Candidate(b"", stop="time"),)
    times = timing(state, job)
    state.counters.completed += 1
    state.counters.decoded += times.decoded
    leave(state, job)
    job.deliver(Completion(candidates, times))


def out_of_time(state: State, job: Job) -> Completion:
    """The answer of a job whose time ended before its first token. Any thread; the numbers may be a step old."""
    candidates = (Candidate(b"", stop="time"),) if job.request.max_tokens else ()
    return Completion(candidates, timing(state, job))


def expire_job(state: State, job: Job) -> None:
    """Its time is over: deliver what is there."""
    for branch in job.active:
        branch.finish("time")
    state.counters.expired += 1
    complete_job(state, job)


def fail_job(state: State, job: Job, error: BaseException) -> None:
    """Deliver an error; the slot's KV is not trusted any more."""
    slot = job.slot
    state.counters.failed += 1
    leave(state, job)
    if slot is not None:
        clear_slot(state, slot)
    job.deliver(error)


def integrity(state: State, count_cells: bool = False) -> list[str]:
    """Compare the books with the backend; [] if all is well. count_cells: the positions in between too, for some more time."""
    backend = state.backend
    positions = [(backend.pos_min(s), backend.pos_max(s)) for s in range(backend.sequences)]
    cells = [backend.cells(s) for s in range(backend.sequences)] if count_cells else []
    wrong = check_integrity(state.table.slots, positions, state.scratch, backend.info.window, cells)
    for slot in state.table.slots:
        if slot.owner is not None and slot.owner not in state.seated:
            wrong.append(f"slot {slot.seq} belongs to job {slot.owner}, which is gone")
    held = [b.seq for j in state.seated.values() for b in j.branches[1:] if b.seq >= 0]
    if sorted([*held, *state.scratch]) != list(range(state.options.slots, backend.sequences)):
        wrong.append(f"scratch sequences do not add up: held {held}, free {sorted(state.scratch)}")
    return wrong


def check_at_rest(state: State, count_cells: bool = False) -> None:
    """Compare the books with the backend while nothing runs; a slot that differs is logged, counted and cleared."""
    problems = integrity(state, count_cells)
    if not problems:
        return
    state.counters.integrity_faults += len(problems)
    for problem in problems:
        _log.error("integrity: %s", problem)
    for slot in state.table.slots:
        low, high, held = state.backend.pos_min(slot.seq), state.backend.pos_max(slot.seq), len(slot.tokens)
        gap = count_cells and state.backend.cells(slot.seq) not in (-1, held)
        if high + 1 != held or gap or (held and not reaches_back(low, held, state.backend.info.window)):
            clear_slot(state, slot)
    for seq in state.scratch:
        state.backend.seq_rm(seq, 0)
