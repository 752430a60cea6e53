"""The scheduler: priorities, chunks, fairness, ageing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.engine.api import Priority
from lsp_complete.engine.schedule import (
    MIN_CHUNK,
    TURN,
    JobView,
    Limits,
    StepPlan,
    grown,
    halved,
    may_preempt,
    plan_step,
)

CPU = Limits(n_batch=512, max_outputs=64, cpu=True, busy=False, busy_chunk=16, idle_chunk=256)
INT, PRE, BACK = Priority.INTERACTIVE, Priority.PREFETCH, Priority.BACKGROUND


def job(number: int, priority: Priority = INT, prefill: int = 0, **more: object) -> JobView:
    values: dict[str, object] = {
        "rows": 1,
        "idle_ms": 0.0,
        "served": 0.0,
        "chunk": 512,
        "order": number,
        **more,
    }
    return JobView(number, priority, prefill, **values)  # type: ignore[arg-type]


def shares(plan: StepPlan | None) -> dict[int, int]:
    assert plan is not None
    return {s.job: s.prefill for s in plan.shares}


def test_nothing_to_do() -> None:
    assert plan_step([], CPU) is None


def test_on_a_cpu_priorities_are_never_mixed() -> None:
    assert shares(plan_step([job(1, BACK, 500), job(2, INT, 5), job(3, PRE, 9)], CPU)) == {2: 5}
    assert set(shares(plan_step([job(1, BACK, 500), job(2, INT, 5)], replace(CPU, cpu=False)))) == {1, 2}


def test_interactive_requests_share_one_batch() -> None:
    assert shares(plan_step([job(1), job(2), job(3, INT, 3)], CPU)) == {1: 0, 2: 0, 3: 3}


def test_a_long_prompt_beside_others_goes_in_small_steps() -> None:
    plan = shares(plan_step([job(1), job(2, INT, 2000)], CPU))
    assert plan == {1: 0, 2: 32}
    assert shares(plan_step([job(2, INT, 2000)], CPU)) == {2: 256}


def test_short_prompts_come_before_long_ones() -> None:
    plan = plan_step([job(1, INT, 2000), job(2, INT, 4)], CPU)
    assert plan is not None and [(s.job, s.prefill) for s in plan.shares] == [(2, 4), (1, 32)]


def test_of_two_long_prompts_the_client_that_had_less_is_first() -> None:
    plan = plan_step([job(1, INT, 900, served=5000.0), job(2, INT, 1000, served=10.0)], CPU)
    assert plan is not None and plan.shares[0].job == 2


def test_background_chunks_are_small_while_someone_types() -> None:
    assert shares(plan_step([job(1, BACK, 900)], replace(CPU, busy=True))) == {1: 16}
    assert shares(plan_step([job(1, BACK, 900)], CPU)) == {1: 256}
    assert shares(plan_step([job(1, BACK, 900, chunk=8)], replace(CPU, busy=True))) == {1: 8}


def test_a_job_that_has_not_moved_for_long_leads_once() -> None:
    plan = plan_step([job(1), job(2, BACK, 900, idle_ms=5000.0)], replace(CPU, busy=True))
    assert plan is not None and plan.aged and shares(plan) == {2: 16}
    assert shares(plan_step([job(1), job(2, BACK, 900, idle_ms=100.0)], CPU)) == {1: 0}


def test_nothing_starves_under_endless_typing() -> None:
    left, idle, steps = 300, 0.0, 0
    while left:
        steps += 1
        plan = shares(plan_step([job(steps + 1), job(1, BACK, left, idle_ms=idle)], replace(CPU, busy=True)))
        left, idle = (left - plan[1], 0.0) if 1 in plan else (left, idle + 25.0)
        assert steps < 5000


def test_chunks_shrink_and_grow() -> None:
    chunk = 256
    while chunk > MIN_CHUNK:
        assert halved(chunk) < chunk
        chunk = halved(chunk)
    assert halved(MIN_CHUNK) == MIN_CHUNK and grown(300, 512) == 512 and grown(4, 512) == 8


def test_who_may_interrupt_whom() -> None:
    background, interactive = StepPlan((), BACK), StepPlan((), INT)
    assert may_preempt(background, 16, INT) and may_preempt(background, 16, PRE)
    assert not may_preempt(background, 2, INT) and not may_preempt(background, 16, BACK)
    assert not may_preempt(interactive, 3, INT) and may_preempt(interactive, 256, INT)
    assert not may_preempt(replace(background, aged=True), 16, INT)


def test_several_who_type_on_one_cpu_take_turns() -> None:
    shared = replace(CPU, shared=True)
    prompts = [job(1, INT, 400, served=900.0), job(2, INT, 80, served=5.0), job(3, INT, 500, served=40.0)]
    assert shares(plan_step(prompts, shared)) == {2: TURN}, "one prompt at a time, of whoever had least"
    assert not may_preempt(StepPlan((), INT), TURN, INT), "and nobody interrupts the turn"
    writing = [job(4), job(5), job(6, INT, 2), *prompts]
    assert shares(plan_step(writing, shared)) == {4: 0, 5: 0, 6: 2}, "who decodes is not held up by long prompts"
    waiting = replace(prompts[0], idle_ms=5000.0)
    assert shares(plan_step([job(4), waiting], shared)) == {1: TURN}, "but nobody waits for ever"
    assert shares(plan_step(writing, replace(shared, cpu=False))).keys() == {1, 2, 3, 4, 5, 6}


views = st.builds(
    JobView,
    job=st.integers(0, 1 << 30),
    priority=st.sampled_from(list(Priority)),
    prefill=st.integers(0, 3000),
    rows=st.integers(1, 8),
    idle_ms=st.floats(0, 9000),
    served=st.floats(0, 1e5),
    chunk=st.integers(1, 512),
    order=st.integers(0, 1 << 30),
)


@given(st.lists(views, min_size=1, max_size=12, unique_by=lambda v: v.job), st.booleans(), st.booleans(), st.booleans())
def test_every_plan_fits_and_moves(jobs: list[JobView], cpu: bool, busy: bool, shared: bool) -> None:
    limits = replace(CPU, cpu=cpu, busy=busy, shared=shared)
    plan = plan_step(jobs, limits)
    assert plan is not None and plan.shares
    by_id = {j.job: j for j in jobs}
    tokens = sum(s.prefill or by_id[s.job].rows for s in plan.shares)
    rows = sum(1 if s.prefill else by_id[s.job].rows for s in plan.shares)
    assert 0 < tokens <= limits.n_batch and rows <= limits.max_outputs
    assert len({s.job for s in plan.shares}) == len(plan.shares)
    for s in plan.shares:
        assert s.prefill <= min(by_id[s.job].prefill, by_id[s.job].chunk)
        assert bool(s.prefill) == bool(by_id[s.job].prefill)
    if cpu:
        assert {by_id[s.job].priority for s in plan.shares} == {plan.priority}
