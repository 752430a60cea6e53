"""Memory that cannot be had, at the start and in the middle of work, with injected failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from lsp_complete.engine.backend import Segment, Status
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.shrink import first_that_works, gpu_choices, half
from lsp_complete.engine.state import integrity
from lsp_complete.errors import EngineUnavailable, MemoryPlanError, RequestFailed
from tests.engine.fake_backend import FakeBackend, encode
from tests.engine.harness import Harness, cold
from tests.engine.test_core import TEXT, ask

OPTIONS = EngineOptions("model", context=8192, slots=8, host_cache_bytes=512 << 20)


def test_half_the_context_and_no_more_slots_than_it_holds() -> None:
    sizes, options = [], OPTIONS
    while options is not None:
        sizes.append((options.context, options.slots, options.host_cache_bytes >> 20))
        options = half(options)
    assert sizes == [(8192, 8, 512), (4096, 4, 256), (2048, 2, 128), (1024, 1, 64)]
    assert half(EngineOptions("model", context=3000, slots=2)).context == 1280


def test_the_first_size_that_can_be_had() -> None:
    tried: list[int] = []

    def make(options: EngineOptions) -> str | None:
        tried.append(options.context)
        return "made" if options.context <= 2048 else None

    options, made = first_that_works(OPTIONS, make, lambda: "")
    assert (options.context, options.slots, made, tried) == (2048, 2, "made", [8192, 4096, 2048])


def test_where_nothing_can_be_had_the_error_has_the_numbers() -> None:
    with pytest.raises(MemoryPlanError, match=r"8192 tokens.*down to 1024.*out of it.*smaller model"):
        first_that_works(OPTIONS, lambda options: None, lambda: "out of it")


@pytest.mark.parametrize(
    ("layers", "total", "tried"),
    [(0, 24, [0]), (-1, 24, [-1, 12, 6, 3, 0]), (8, 24, [8, 4, 2, 0]), (-1, 0, [-1, 0]), (1, 24, [1, 0])],
)
def test_gpu_layers_are_halved_down_to_none(layers: int, total: int, tried: list[int]) -> None:
    assert list(gpu_choices(layers, total)) == tried


def test_no_memory_in_mid_work_shrinks_and_the_answers_are_the_same() -> None:
    h = Harness(FakeBackend(context=4096, slots=4))
    request, other = ask(encode(TEXT)), ask(encode("another " * 20), key="b")
    jobs = [h.add(request), h.add(other, "two")]
    h.step()
    h.backend.fail_next = Status.NO_MEMORY
    h.run()
    assert [h.results[j.id].candidates[0].text for j in jobs] == [cold(request), cold(other)]
    assert (h.backend.info.context, h.backend.info.slots, len(h.state.table.slots)) == (2048, 2, 2)
    assert h.state.counters.shrunk == 1 and h.state.counters.failed == 0
    assert h.complete(request).candidates[0].text == cold(request)


def test_no_memory_while_candidates_branch_gives_what_there_is() -> None:
    h = Harness(FakeBackend(context=4096, slots=4))
    job = h.add(ask(encode(TEXT), candidates=4, max_tokens=12))
    while len(job.branches) < 2:
        h.step()
    h.backend.fail_next = Status.NO_MEMORY
    h.run()
    greedy = cold(ask(encode(TEXT), max_tokens=12))
    assert greedy in [c.text for c in h.results[job.id].candidates]
    assert integrity(h.state) == [] and h.backend.shrinks == 1


def test_a_prompt_that_no_longer_fits_fails_alone() -> None:
    h = Harness(FakeBackend(context=4096, slots=4))
    long, short = h.add(ask(encode("x" * 2500))), h.add(ask(encode("short"), key="b"))
    h.step()
    h.backend.fail_next = Status.NO_MEMORY
    h.run()
    assert isinstance(h.results[long.id], RequestFailed) and "2048" in str(h.results[long.id])
    assert h.results[short.id].candidates[0].text == cold(ask(encode("short")))


def test_at_the_smallest_size_the_step_fails_and_the_engine_goes_on() -> None:
    h = Harness(FakeBackend(context=1024, slots=1))
    job = h.add(ask(encode("abc")))
    h.backend.fail_next = Status.NO_MEMORY
    h.run()
    assert isinstance(h.results[job.id], RequestFailed) and "memory" in str(h.results[job.id])
    assert h.complete(ask(encode("abc"))).candidates


class HalfDone(FakeBackend):
    """Where memory runs out, the micro-batches before are in the KV already."""

    def decode(self, segments: Sequence[Segment]) -> Status:
        if self.fail_next is not Status.NO_MEMORY:
            return super().decode(segments)
        self.fail_next = None
        super().decode([Segment(s.seq, s.start, s.tokens[:3]) for s in segments])
        return Status.NO_MEMORY


def test_at_the_smallest_size_what_was_half_done_is_forgotten() -> None:
    h = Harness(HalfDone(context=1024, slots=1))
    job = h.add(ask(encode(TEXT)))
    h.backend.fail_next = Status.NO_MEMORY
    h.run()
    assert isinstance(h.results[job.id], RequestFailed)
    assert h.complete(ask(encode(TEXT))).candidates[0].text == cold(ask(encode(TEXT)))
    assert h.state.counters.reuse_faults == h.state.counters.step_errors == 0


async def test_an_engine_without_any_context_says_that_it_is_broken() -> None:
    backend = FakeBackend(context=4096)
    engine = LocalEngine(EngineOptions("fake", context=4096, slots=4, n_batch=64), lambda o: backend)
    await engine.info()
    backend.shrink_fails, backend.fail_next = True, Status.NO_MEMORY
    with pytest.raises(EngineUnavailable, match="no context"):
        await engine.complete(ask(encode(TEXT)))
    stats = await engine.stats()
    assert stats["state"] == "broken" and "no context" in str(stats["problem"])
    with pytest.raises(EngineUnavailable):
        await asyncio.wait_for(engine.complete(ask(encode(TEXT))), 20)
    await engine.close()
    assert backend.closed


async def test_the_books_follow_the_size_that_was_had() -> None:
    """The loader gave less than the options asked for."""
    engine = LocalEngine(EngineOptions("fake", context=4096, slots=8), lambda o: FakeBackend(context=1024, slots=2))
    assert (await engine.complete(ask(encode(TEXT)))).candidates
    stats = await engine.stats()
    assert len(stats["slots"]) == 2 and stats["counters"]["integrity_faults"] == 0
    await engine.close()
