"""llama.cpp found no memory for a step: a smaller context takes the place of the present one, and the engine goes on.

Rules: what was evaluated is lost, jobs begin again in the new context (their answers are the same, later); only a job that no
longer fits fails. Engine thread.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lsp_complete.engine.job import Job
from lsp_complete.engine.slots import SlotTable
from lsp_complete.engine.state import State, clear_doubtful, complete_job, fail_job, free_branches, vacate
from lsp_complete.errors import RequestFailed

_log = logging.getLogger(__name__)


def shrink(state: State, stepped: list[Job]) -> None:
    """See the module. stepped: the jobs of the step that failed; they fail if nothing smaller is left.

    Raises MemoryPlanError if no context at all could be had: the engine has to end.
    """
    _log.warning("no memory for a step in a context of %d tokens", state.backend.info.context)
    state.cache.shrink()
    for job in list(state.seated.values()):
        _back_to_queue(state, job)
    if not state.backend.shrink():
        clear_doubtful(state)
        for job in stepped:
            if job in state.waiting:
                fail_job(state, job, RequestFailed("There is no memory left to evaluate this request. Free some memory."))
        return
    info = state.backend.info
    _log.warning("goes on with a context of %d tokens and %d slots", info.context, info.slots)
    state.counters.shrunk += 1
    state.options = replace(state.options, context=info.context, slots=info.slots)
    state.table = SlotTable(info.slots)
    state.scratch = list(range(info.slots, state.backend.sequences))
    for job in list(state.waiting):
        _fit(state, job, info.context)


def _back_to_queue(state: State, job: Job) -> None:
    """Out of its slot; further candidates end with what they have, as when the KV is full."""
    for branch in job.branches[1:]:
        if not branch.done:
            branch.finish("tokens")
    free_branches(state, job)
    if not job.active:
        complete_job(state, job)
        return
    vacate(state, job)
    state.waiting.append(job)


def _fit(state: State, job: Job, context: int) -> None:
    """Fail a job that is too long for the context now, and shorten what another may generate."""
    if len(job.prompt) >= context:
        words = f"The prompt has {len(job.prompt)} tokens but memory is left for a context of {context} only; send a shorter one."
        fail_job(state, job, RequestFailed(words))
    else:
        job.max_tokens = min(job.max_tokens, context - len(job.prompt))
