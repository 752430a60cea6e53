"""What a batch did: record it, choose tokens, accept or reject proposals, branch, finish.

Strategy: after an evaluation every part of it is walked in batch order, which is also the order of the logits rows. A
proposal is accepted while it equals the token that would have been chosen anyway; the KV of the rest is dropped.

Rules: logits are views and die with the next evaluation, so everything is decided here. After an abort nothing is chosen;
only the positions are read again.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_complete.engine.backend import Floats, Segment
from lsp_complete.engine.job import Branch, Job
from lsp_complete.engine.sampling import Choice
from lsp_complete.engine.schedule import grown, halved
from lsp_complete.engine.seating import new_branch
from lsp_complete.engine.state import State, complete_job, most_tokens


@dataclass(frozen=True, slots=True)
class Part:
    """One segment of a batch: whose it is, how many of its tokens were pending, and how many were proposed."""

    job: Job
    branch: Branch
    segment: Segment
    pending: int
    drafted: int


def commit_ok(state: State, parts: list[Part]) -> None:
    """The evaluation succeeded."""
    row = 0
    for part in parts:
        _record(state, part)
        if part.segment.outputs:
            _choose_from(state, part, row)
        row += part.segment.outputs
    for job in {p.job.id: p.job for p in parts}.values():
        if job.id in state.seated and not job.active:
            complete_job(state, job)


def _record(state: State, part: Part) -> None:
    job, branch, tokens = part.job, part.branch, part.segment.tokens
    branch.at += len(tokens)
    branch.pending = branch.pending[part.pending :]
    if branch is job.main and job.slot is not None:
        job.slot.extend(tokens)
    if job.prefilling:
        job.evaluated += part.pending
        state.counters.evaluated += part.pending
    if job.prefilling or part.pending > 1:  # several: a prompt, also one that a job evaluates again after it gave its slot up
        job.chunk = grown(job.chunk, most_tokens(state))
    job.last_step = state.clock()
    state.served[job.client] = state.served.get(job.client, 0.0) + len(tokens)
    if job.prefilling and not branch.pending and job.slot is not None:
        job.slot.prompt_end = len(job.prompt)
    if job.max_tokens == 0 and not branch.pending:
        branch.done = True


def _choose_from(state: State, part: Part, row: int) -> None:
    job, branch = part.job, part.branch
    logits = state.backend.logits(row)
    if job.prefilling:
        _remember(state, job, logits)
        if job.request.candidates > 1:
            first_choices(state, job, logits)
            return
        job.first_token = state.clock()
    accepted = 0
    for i in range(part.drafted + 1):
        choice = choose(state, job, branch, state.backend.logits(row + i))
        branch.advance(choice, state.backend.vocab, job.max_tokens)
        proposed = part.segment.tokens[part.pending + i] if i < part.drafted else None
        if branch.done or choice.token != proposed:
            break
        accepted += 1
    if part.drafted:
        _settle_drafts(state, part, accepted)
    _emit(job, branch)


def _settle_drafts(state: State, part: Part, accepted: int) -> None:
    job, branch = part.job, part.branch
    job.drafted += part.drafted
    job.accepted += accepted
    state.counters.drafted += part.drafted
    state.counters.accepted += accepted
    state.proposer.observe(job.request, part.drafted, accepted)
    rejected = part.drafted - accepted
    if rejected:
        branch.at -= rejected
        state.backend.seq_rm(branch.seq, branch.at)
        if branch is job.main and job.slot is not None:
            job.slot.cut(branch.at)


def _remember(state: State, job: Job, logits: Floats) -> None:
    """Keep the logits at the prompt's end: the next key within the same word asks for them again."""
    if job.slot is not None:
        job.slot.memo, job.slot.memo_at = logits.copy(), len(job.prompt)
        if not state.backend.info.can_drop_tail and state.cache.wants(job.prompt):
            # A checkpoint: this memory cannot go back by itself.
            saved = state.backend.state_get(job.slot.seq)
            if saved is not None:
                state.cache.put(job.prompt, saved)


def choose(state: State, job: Job, branch: Branch, logits: Floats) -> Choice:
    """The target's own choice for this branch. Draws one random number if sampling."""
    allowed = state.healing.allowed(branch.owed)
    temperature = job.request.temperature
    uniform = branch.rng.random() if temperature > 0.0 else 0.0
    begins = job.request.stop.no_blank and not branch.stopper.text.strip()
    banned = state.healing.line_ends(branch.owed) if begins else None
    return state.sampler.choose(logits, allowed, temperature, uniform, banned)


def first_choices(state: State, job: Job, logits: Floats) -> None:
    """The prompt is evaluated: choose the first token, or branch on the most probable ones."""
    job.first_token = state.clock()
    main = job.main
    if job.request.candidates == 1:
        main.advance(choose(state, job, main, logits), state.backend.vocab, job.max_tokens)
        _emit(job, main)
        return
    owed = main.owed
    count = min(job.request.candidates, len(state.scratch) + 1)
    choices = state.sampler.top(logits, state.healing.allowed(owed), count)
    for number, choice in enumerate(choices[1:], start=1):
        seq = state.scratch.pop()
        state.backend.seq_cp(main.seq, seq, -1)
        branch = new_branch(job, seq, main.at, [], owed, number)
        branch.advance(choice, state.backend.vocab, job.max_tokens)
        job.branches.append(branch)
    main.advance(choices[0], state.backend.vocab, job.max_tokens)
    _emit(job, main)


def _emit(job: Job, branch: Branch) -> None:
    if job.emit is not None and branch is job.main:
        text = branch.delta()
        if text:
            job.emit(text)


def commit_aborted(state: State, parts: list[Part]) -> None:
    """The evaluation was stopped: some of its tokens may be in the KV, for any of its sequences.

    A recurrent state that was being written is neither the old nor the new one (its position says the new one): it goes.
    """
    state.counters.aborted += 1
    for part in parts:
        job, branch = part.job, part.branch
        if not state.backend.info.can_drop_tail:
            state.backend.seq_rm(branch.seq, 0)
        held = state.backend.pos_max(branch.seq) + 1
        keep = min(held, branch.at + part.pending - 1)  # the last pending token must give logits again
        if keep < branch.at or (keep < held and not state.backend.seq_rm(branch.seq, keep)):
            state.backend.seq_rm(branch.seq, 0)
            keep = 0
        _rewind(part, keep)
        if job.prefilling:
            done = max(0, keep - part.segment.start)
            job.evaluated += done
            state.counters.evaluated += done
        if job.prefilling or part.pending > 1:
            job.chunk = halved(min(job.chunk, part.pending))


def _rewind(part: Part, keep: int) -> None:
    """The sequence now holds `keep` tokens; what of the segment is missing is pending."""
    job, branch, start = part.job, part.branch, part.segment.start
    if keep < start:  # everything is gone: begin again
        branch.pending = [*job.prompt.tolist(), *branch.tokens][keep:]
    else:
        branch.pending = branch.pending[keep - start :]
    branch.at = keep
    if branch is job.main and job.slot is not None:
        job.slot.extend(part.segment.tokens[: max(0, keep - start)])
        job.slot.cut(keep)
