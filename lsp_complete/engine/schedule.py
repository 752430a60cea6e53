"""What to evaluate next: a pure function from the queue's state to one batch.

Strategy: the most urgent job leads; on a CPU only jobs of its priority join. Sequences that decode come first
(one short row each), then prompts, short ones before long ones, clients that had less before those that had more. A
prompt's chunk is large when nobody else waits, small beside others, and smallest for background work while someone types.

Where several clients type on one CPU there is more to do than can be done, and what is done for all at once is ready for nobody before
the next key. So they take turns: who decodes goes on alone to the end, then one client's prompt moves by a turn that nobody
interrupts, not even the key that makes the request stale, since the next one begins with the same tokens.

Rules:
- CPU: a batch never mixes priorities (15 prefill tokens beside one decode token make it 76 ms instead of 17).
- A job that has not moved for long leads once, whatever its priority, so nothing starves.
- A job's own `chunk` limit (halved when it was aborted, doubled when it succeeds) is always respected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_complete.engine.api import Priority

SHORT = 32
MIN_CHUNK = 4
TURN = 64
"""Most prompt tokens of a step while several clients type on a CPU: about half a second."""
_AGE_MS = {Priority.INTERACTIVE: 2000.0, Priority.PREFETCH: 2000.0, Priority.BACKGROUND: 4000.0}


@dataclass(frozen=True, slots=True)
class JobView:
    """What the scheduler needs to know of one seated job.

    prefill: prompt tokens still to evaluate (0: it decodes). rows: tokens of its next decode step over all branches.
    idle_ms: since it was last part of a batch. served: tokens its client had lately. chunk: its own limit. order: age.
    """

    job: int
    priority: Priority
    prefill: int
    rows: int
    idle_ms: float
    served: float
    chunk: int
    order: int


@dataclass(frozen=True, slots=True)
class Limits:
    """n_batch, max_outputs: of the context. cpu: no mixing. busy: someone typed within the busy window; shared: several clients did."""

    n_batch: int
    max_outputs: int
    cpu: bool
    busy: bool
    busy_chunk: int
    idle_chunk: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """One job's part of a batch: `prefill` tokens of its prompt, or (0) its decode rows."""

    job: int
    prefill: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One batch. `aged`: it runs out of turn and should not be pre-empted."""

    shares: tuple[Share, ...]
    priority: Priority
    aged: bool = False


def plan_step(jobs: Sequence[JobView], limits: Limits) -> StepPlan | None:
    """The next batch, or None if there is nothing to do."""
    if not jobs:
        return None
    leader = min(jobs, key=lambda j: (0 if _aged(j) else 1, j.priority, j.served, j.order))
    first = min(j.priority for j in jobs)
    aged = _aged(leader) and leader.priority != first
    members = [j for j in jobs if j.priority == leader.priority] if limits.cpu else list(jobs)
    shares: list[Share] = []
    tokens = rows = 0
    decoding = sorted(
        (j for j in members if not j.prefill), key=lambda j: (j is not leader, j.priority, -j.idle_ms)
    )
    for j in decoding:
        if tokens + j.rows <= limits.n_batch and rows + j.rows <= limits.max_outputs:
            shares.append(Share(j.job, 0))
            tokens += j.rows
            rows += j.rows
    turns = limits.cpu and limits.shared and leader.priority is Priority.INTERACTIVE
    if turns and shares and not (_aged(leader) and leader.prefill):
        members = [j for j in members if j.prefill <= MIN_CHUNK]
    elif turns:
        shares, tokens, rows = ([], 0, 0) if leader.prefill else (shares, tokens, rows)
    for j in _prompt_order(members, leader):
        if turns and shares and j.prefill > MIN_CHUNK:
            break
        room = min(limits.n_batch - tokens, _chunk(j, limits, alone=not shares))
        if room <= 0 or rows >= limits.max_outputs:
            continue
        count = min(room, j.prefill)
        shares.append(Share(j.job, count))
        tokens += count
        rows += 1
    return StepPlan(tuple(shares), leader.priority, aged) if shares else None


def _aged(job: JobView) -> bool:
    return job.idle_ms >= _AGE_MS[job.priority]


def _prompt_order(members: Sequence[JobView], leader: JobView) -> list[JobView]:
    prompts = [j for j in members if j.prefill]
    return sorted(
        prompts,
        key=lambda j: (
            not (j is leader and _aged(j)),
            j.priority,
            j.prefill > SHORT,
            j.served if j.prefill > SHORT else 0.0,
            j.prefill,
            j.order,
        ),
    )


def _chunk(job: JobView, limits: Limits, alone: bool) -> int:
    """How many prompt tokens of this job may go into a batch."""
    if job.priority is not Priority.INTERACTIVE:
        own = limits.busy_chunk if limits.busy and limits.cpu else limits.idle_chunk
    elif limits.cpu and limits.shared:
        own = TURN
    elif alone or job.prefill <= SHORT or not limits.cpu:
        own = limits.idle_chunk
    else:
        own = SHORT
    return max(1, min(own, job.chunk))


def halved(chunk: int) -> int:
    """Chunk limit after an abort."""
    return max(MIN_CHUNK, chunk // 2)


def grown(chunk: int, limit: int) -> int:
    """Chunk limit after a step that ran to its end."""
    return min(limit, chunk * 2)


def may_preempt(running: StepPlan, tokens: int, arriving: Priority) -> bool:
    """Whether a new job should abort the running batch of `tokens` tokens instead of waiting for its end."""
    if tokens <= MIN_CHUNK or running.aged:
        return False
    if arriving < running.priority:
        return True
    return arriving is Priority.INTERACTIVE and tokens > 2 * SHORT
