"""The engine thread and the event loop together, over the toy model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lsp_complete.engine.api import CompletionRequest, ModelInfo, Priority, StopRules
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.errors import EngineUnavailable, ModelError, RequestFailed
from tests.engine.fake_backend import FakeBackend, encode, scripted_brain
from tests.engine.harness import cold
from tests.engine.test_core import TEXT, ask

OPTIONS = EngineOptions("fake", context=4096, slots=4, n_batch=64)


class Gate:
    """Holds the engine inside an evaluation until the test opens it; lets it go at once when it is aborted."""

    def __init__(self, backend: FakeBackend) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        backend.before_ubatch = self._wait
        raise_flag = backend.abort

        def abort() -> None:
            raise_flag()
            self.open.set()

        backend.abort = abort  # type: ignore[method-assign]

    def _wait(self, number: int) -> None:
        self.entered.set()
        assert self.open.wait(20)

    async def inside(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 20)


@pytest.fixture
def backend() -> Iterator[FakeBackend]:
    made = FakeBackend(context=4096)
    yield made
    assert made.closed


async def test_many_requests_at_once_get_their_own_answers(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.start()
    assert isinstance(await engine.info(), ModelInfo)
    requests = [ask(encode(f"{n}:{TEXT[: 20 + n]}"), key=str(n)) for n in range(12)]
    answers = await asyncio.gather(*(engine.complete(r, client=str(n % 3)) for n, r in enumerate(requests)))
    for request, answer in zip(requests, answers, strict=True):
        assert answer.candidates[0].text == cold(request)
    stats = await engine.stats()
    assert stats["state"] == "ready" and stats["running"] == 0
    await engine.close()


async def test_deltas_arrive_on_the_loop_and_add_up(backend: FakeBackend) -> None:
    backend.brain = scripted_brain("foo(1)\n", 10)
    engine = LocalEngine(OPTIONS, lambda o: backend)
    parts: list[bytes] = []
    thread: set[int] = set()

    def delta(text: bytes) -> None:
        parts.append(text)
        thread.add(threading.get_ident())

    answer = await engine.complete(ask(encode("0123456789"), stop=StopRules("line")), delta)
    assert b"".join(parts) == answer.candidates[0].text == b"foo(1)"
    assert thread == {threading.get_ident()} and len(parts) > 1
    await engine.close()


async def test_cancelling_the_task_aborts_the_evaluation(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()
    gate = Gate(backend)
    task = asyncio.create_task(engine.complete(ask(encode(TEXT))))
    await gate.inside()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    request = ask(encode("next"))
    assert (await engine.complete(request)).candidates[0].text == cold(request)
    counters = (await engine.stats())["counters"]
    assert isinstance(counters, dict) and (counters["aborted"], counters["cancelled"]) == (1, 1)
    await engine.close()


async def test_an_interactive_request_interrupts_background_work(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()
    gate = Gate(backend)
    slow = asyncio.create_task(engine.complete(ask(encode(TEXT), priority=Priority.BACKGROUND)))
    await gate.inside()
    quick = await engine.complete(ask(encode("quick")))
    assert quick.candidates[0].text == cold(ask(encode("quick")))
    assert (await slow).candidates[0].text == cold(ask(encode(TEXT)))
    counters = (await engine.stats())["counters"]
    assert isinstance(counters, dict) and counters["aborted"] == 1
    await engine.close()


async def test_the_time_limit_interrupts_an_evaluation(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()
    Gate(backend)
    answer = await engine.complete(ask(encode(TEXT), time_limit_ms=30.0))
    assert [c.stop for c in answer.candidates] == ["time"]
    await engine.close()


async def test_a_prefill_that_runs_out_of_time_is_answered_at_once_and_its_step_is_kept(backend: FakeBackend) -> None:
    """On a loaded machine a step may take longer than a request has. Aborted, its tokens would be lost each time anew."""
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()
    gate = Gate(backend)
    prompt = encode(TEXT)[:60]  # one step of four micro-batches
    answer = await engine.complete(ask(prompt, time_limit_ms=30.0))
    assert [c.stop for c in answer.candidates] == ["time"] and not gate.open.is_set()
    waiting = await engine.complete(ask(encode("waits"), key="w", priority=Priority.BACKGROUND, time_limit_ms=30.0))
    assert [c.stop for c in waiting.candidates] == ["time"] and not gate.open.is_set()
    gate.open.set()
    again = await engine.complete(ask(prompt))
    assert again.timing.reused >= 59 and again.timing.evaluated <= 1
    assert again.candidates[0].text == cold(ask(prompt))
    counters = (await engine.stats())["counters"]
    assert isinstance(counters, dict) and counters["aborted"] == 0 and counters["expired"] == 2
    await engine.close()


async def test_while_several_clients_type_a_turn_outlives_the_key_that_began_it(backend: FakeBackend) -> None:
    """Each key makes the last request stale. If the turn ended with it, of many windows none would ever get its prompt evaluated."""
    engine = LocalEngine(replace(OPTIONS, busy_window_ms=60_000.0), lambda o: backend)
    await engine.complete(ask(encode("b"), key="b"), client="b")
    gate, prompt = Gate(backend), encode(TEXT)[:60]
    stale = asyncio.create_task(engine.complete(ask(prompt, key="a"), client="a"))
    await gate.inside()
    stale.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stale
    assert not gate.open.is_set()
    gate.open.set()
    again = await engine.complete(ask(prompt, key="a"), client="a")
    assert again.timing.reused >= 59 and again.candidates[0].text == cold(ask(prompt))
    counters = (await engine.stats())["counters"]
    assert isinstance(counters, dict) and (counters["aborted"], counters["cancelled"]) == (0, 1)
    await engine.close()


async def test_closing_ends_what_runs(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()
    gate = Gate(backend)
    tasks = [asyncio.create_task(engine.complete(ask(encode(TEXT), key=str(n)))) for n in range(3)]
    await gate.inside()
    await engine.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(r, EngineUnavailable) for r in results)
    with pytest.raises(EngineUnavailable):
        await engine.complete(ask(encode("x")))


async def test_a_model_that_cannot_be_loaded_says_so_every_time() -> None:
    def broken(options: EngineOptions) -> FakeBackend:
        raise ModelError("no such model")

    engine = LocalEngine(OPTIONS, broken)
    for _ in range(2):
        with pytest.raises(ModelError, match="no such model"):
            await engine.complete(CompletionRequest((1,)))
    await engine.close()


async def test_what_fails_behind_loading_is_told_too(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*a: object, **more: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("lsp_complete.engine.runner.make_state", fail)
    engine = LocalEngine(OPTIONS, lambda o: backend)
    with pytest.raises(EngineUnavailable, match="ZeroDivisionError"):
        await asyncio.wait_for(engine.info(), 20)
    assert backend.closed
    await engine.close()


async def test_a_thread_that_fails_at_rest_says_that_it_is_broken(backend: FakeBackend) -> None:
    """Who watches the process then ends it; without that every request would be refused for ever."""
    engine = LocalEngine(OPTIONS, lambda o: backend)
    assert (await engine.complete(ask(encode("x")))).candidates

    def explode(seq: int) -> int:
        raise ZeroDivisionError

    backend.pos_min = explode  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises((RequestFailed, EngineUnavailable)):
            await engine.complete(ask(encode("y")))
    with pytest.raises(EngineUnavailable):
        await engine.complete(ask(encode("z")))
    stats = await engine.stats()
    assert stats["state"] == "broken" and "ZeroDivisionError" in str(stats["problem"])
    await engine.close()


async def test_a_refused_request_leaves_the_engine_running(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    with pytest.raises(RequestFailed):
        await engine.complete(ask(()))
    assert (await engine.complete(ask(encode("x")))).candidates
    await engine.close()


async def test_an_error_inside_a_step_fails_that_request_only(backend: FakeBackend) -> None:
    engine = LocalEngine(OPTIONS, lambda o: backend)
    await engine.info()

    def explode(number: int) -> None:
        backend.before_ubatch = lambda n: None
        raise ZeroDivisionError

    backend.before_ubatch = explode
    with pytest.raises(RequestFailed):
        await engine.complete(ask(encode("x")))
    assert (await engine.complete(ask(encode("x")))).candidates
    await engine.close()
