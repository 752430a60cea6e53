"""The engine's step: reap, seat, plan, run, commit. No threads and no event loop here, so tests drive it by hand.

Strategy: `prepare` decides what the next batch is, `execute` evaluates and commits it. The runner (one thread) calls
them in turn; between the two it publishes what runs, so that other threads can abort it.

Rules: engine thread only. An error of one step fails the jobs in it and nothing else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from lsp_complete.engine.api import Priority
from lsp_complete.engine.backend import Floats, Segment, Status
from lsp_complete.engine.commit import Part, commit_aborted, commit_ok, first_choices
from lsp_complete.engine.job import Branch, Job
from lsp_complete.engine.schedule import SHORT, JobView, Limits, StepPlan, plan_step
from lsp_complete.engine.seating import check_request, missing, seat_job, unseat
from lsp_complete.engine.shrinking import shrink
from lsp_complete.engine.state import (
    State,
    clear_doubtful,
    complete_job,
    evict,
    expire_job,
    fail_job,
    free_branches,
    leave,
    most_tokens,
)
from lsp_complete.errors import PromptCold, RequestFailed

_log = logging.getLogger(__name__)

_SERVED_HALF_LIFE_S = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """A planned batch and whose it is. shared: it was planned while several clients typed."""

    plan: StepPlan
    parts: list[Part]
    shared: bool = False

    @property
    def tokens(self) -> int:
        """Tokens in the batch."""
        return sum(len(p.segment.tokens) for p in self.parts)

    @property
    def jobs(self) -> list[Job]:
        """The jobs in it, each once."""
        return list({p.job.id: p.job for p in self.parts}.values())


def add_job(state: State, job: Job) -> None:
    """Take a new job into the queue, or deliver why it cannot run."""
    state.counters.requests += 1
    context = state.backend.info.context
    try:
        check_request(job.request, state.backend.info.vocab_size, context)
    except RequestFailed as error:
        fail_job(state, job, error)
        return
    if len(state.waiting) + len(state.seated) >= state.options.max_waiting:
        fail_job(
            state,
            job,
            RequestFailed(f"{state.options.max_waiting} requests are waiting already; ask again later."),
        )
        return
    job.prompt = np.array(job.request.prompt, dtype=np.int32)
    job.max_tokens = max(0, min(job.request.max_tokens, context - len(job.prompt)))
    job.chunk = most_tokens(state)
    job.last_step = job.submitted
    if job.request.priority is Priority.INTERACTIVE:
        state.last_interactive = state.typing[job.client] = job.submitted
    state.waiting.append(job)


def prepare(state: State) -> Step | None:
    """Everything up to the evaluation. None: nothing to evaluate now."""
    _reap(state)
    _seat_waiting(state)
    while state.waiting and not state.seated:  # who was seated is done already, and others gave way to it
        _seat_waiting(state)
    now = state.clock()
    limits = _limits(state, now)
    plan = plan_step([_view(state, j, now) for j in state.seated.values()], limits)
    return Step(plan, _parts(state, plan), limits.shared) if plan else None


def _reap(state: State) -> None:
    now = state.clock()
    for job in [*state.seated.values(), *state.waiting]:
        if job.cancelled:
            state.counters.cancelled += 1
            leave(state, job)
        elif job.expired or now >= job.deadline:
            expire_job(state, job)
    if now - state.served_at > _SERVED_HALF_LIFE_S:
        state.served = {c: s / 2 for c, s in state.served.items() if s > 1.0}
        state.served_at = now


def _seat_waiting(state: State) -> None:
    for job in sorted(
        state.waiting, key=lambda j: (j.request.priority, state.served.get(j.client, 0.0), j.id)
    ):
        if job.parked and state.seated:
            continue
        if job not in state.waiting:
            continue
        if job.request.evaluate_limit and not job.branches and _too_cold(state, job):
            continue
        found = seat_job(state, job)
        if found is False:
            continue
        state.waiting.remove(job)
        if not job.main.pending:
            _begin_without_prefill(state, job, found)


def _too_cold(state: State, job: Job) -> bool:
    """Refuse a job whose prompt would need more evaluation than it allows; True if it was refused."""
    tokens = missing(state, job)
    if tokens is None or tokens <= job.request.evaluate_limit:
        return False
    fail_job(
        state,
        job,
        PromptCold(f"{tokens} prompt tokens are to be evaluated, {job.request.evaluate_limit} allowed."),
    )
    return True


def _begin_without_prefill(state: State, job: Job, memo: Floats | bool | None) -> None:
    """The whole prompt is in the slot already, and its logits are known (or none are wanted)."""
    if job.max_tokens == 0:
        job.main.done = True
    else:
        assert memo is not None and not isinstance(memo, bool)
        first_choices(state, job, memo)
    if not job.active:
        complete_job(state, job)


def _view(state: State, job: Job, now: float) -> JobView:
    pending = len(job.main.pending)
    prefill = pending if job.prefilling or (pending > 1 and not job.main.done) else 0
    return JobView(
        job.id,
        job.request.priority,
        prefill,
        len(job.active),
        (now - job.last_step) * 1e3,
        state.served.get(job.client, 0.0),
        job.chunk,
        job.id,
    )


def _limits(state: State, now: float) -> Limits:
    o = state.options
    busy = (now - state.last_interactive) * 1e3 < o.busy_window_ms
    cpu = not state.backend.info.gpu
    return Limits(o.n_batch, state.backend.max_outputs, cpu, busy, o.busy_chunk, o.idle_chunk, shared(state, now))


def shared(state: State, now: float) -> bool:
    """Whether several clients have typed lately. Engine thread."""
    since = now - state.options.busy_window_ms / 1e3
    state.typing = {client: at for client, at in state.typing.items() if at >= since}
    return len(state.typing) > 1


def _parts(state: State, plan: StepPlan) -> list[Part]:
    parts: list[Part] = []
    jobs = [(state.seated[s.job], s.prefill) for s in plan.shares]
    tokens = sum(count or len(job.active) for job, count in jobs)
    sequences = sum(1 if count else len(job.active) for job, count in jobs)
    most = state.options.speculative_tokens + 1
    spare = min(most - sequences, state.options.n_batch - tokens)
    room = max(0, spare) // max(1, sequences) if tokens <= SHORT else 0
    state.costs.planned = tokens
    for job, count in jobs:
        for branch in [job.main] if count else job.active:
            parts.append(_part(state, job, branch, count or len(branch.pending), room))
    return parts


def _part(state: State, job: Job, branch: Branch, count: int, room: int) -> Part:
    final = count == len(branch.pending) and job.max_tokens > 0
    draft: list[int] = []
    left = min(room, job.max_tokens - len(branch.tokens) - 1, state.backend.info.context - branch.at - count)
    request = job.request
    if (
        final
        and left > 0
        and request.speculate
        and request.candidates == 1
        and state.backend.info.can_drop_tail
    ):
        draft = state.proposer.propose(request.prompt, branch.tokens, request, left)[:left]
    tokens = (*branch.pending[:count], *draft)
    outputs = 1 + len(draft) if final else 0
    return Part(job, branch, Segment(branch.seq, branch.at, tokens, outputs), count, len(draft))


def execute(state: State, step: Step) -> None:
    """Evaluate a planned batch and commit the result."""
    state.counters.steps += 1
    segments = [p.segment for p in step.parts]
    started = state.clock()
    status = state.backend.decode(segments)
    while status is Status.NO_ROOM:
        victim = state.table.victim()
        if victim is None:
            _out_of_room(state, step)
            return
        evict(state, victim)
        started = state.clock()
        status = state.backend.decode(segments)
    elapsed_ms = (state.clock() - started) * 1e3
    state.counters.busy_ms += elapsed_ms
    if status is Status.OK:
        outputs = sum(s.outputs for s in segments)
        state.rates.step(step.tokens, outputs, elapsed_ms)
        if len(segments) == 1 and outputs == step.tokens:
            state.costs.step(step.tokens, elapsed_ms)
        commit_ok(state, step.parts)
    elif status is Status.ABORTED:
        commit_aborted(state, step.parts)
    elif status is Status.NO_MEMORY:
        shrink(state, step.jobs)
    else:
        fail_step(
            state, step, RequestFailed("llama.cpp could not evaluate this request; the engine goes on.")
        )


def _out_of_room(state: State, step: Step) -> None:
    """The KV is full of running jobs: fewer candidates first, then the least urgent job waits, then the only one fails."""
    branched = [
        j for j in state.seated.values() if len(j.branches) > 1 and any(not b.done for b in j.branches[1:])
    ]
    if branched:
        for branch in branched[-1].branches[1:]:
            if not branch.done:
                branch.finish("tokens")
        free_branches(state, branched[-1])
        if not branched[-1].active:
            complete_job(state, branched[-1])
        return
    leader = step.jobs[0]
    if len(state.seated) > 1:  # the least urgent one, be it the leader itself: one that has aged leads out of turn
        unseat(state, max(state.seated.values(), key=lambda j: (j.request.priority, j.id)), parked=True)
        return
    fail_job(
        state,
        leader,
        RequestFailed(
            f"No room in the KV for {len(leader.prompt)} prompt tokens and {leader.max_tokens} of output in a context "
            f"of {state.backend.info.context}. Send a shorter prompt, or start the engine with a larger context."
        ),
    )


def fail_step(state: State, step: Step, error: BaseException) -> None:
    """An evaluation failed: its jobs fail, their KV is dropped, the engine goes on."""
    state.counters.step_errors += 1
    _log.error("evaluation of %d tokens failed: %s", step.tokens, error)
    for job in step.jobs:
        if job.id in state.seated:
            fail_job(state, job, error)
    clear_doubtful(state)
