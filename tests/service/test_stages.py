"""The stages of a request add up to what it took, whatever way it went: by a clock that stands still but for the engine's work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, DeltaCallback, EngineTiming
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import PromptCold
from lsp_complete.measure.edits import Position
from lsp_complete.measure.stages import StageRecord
from lsp_complete.measure.statistics import STAGES
from lsp_complete.service import Answer, Query
from tests.lsp.harness import URI, session

from .test_context_join import MARK, Window_, window
from .test_prefetch import Clock

TEXT = f"def total(values):\n    result = 0\n    for value in values:\n        result += {MARK}\n    return result\n"
ANSWER = b"value * 2"
QUEUE, PREFILL, DECODE = 0.010, 0.050, 0.040
REFUSAL = 0.007


class TimedEngine(ScriptedEngine):
    """Takes 10 ms of queue, 50 of prefill and 40 of decoding by the clock, in steps that a test lets happen one by one."""

    def __init__(self, clock: Clock, cold: bool = False, stepped: bool = False) -> None:
        super().__init__()
        self.clock, self.cold, self.stepped = clock, cold, stepped
        self.steps: asyncio.Queue[None] = asyncio.Queue()

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        if self.cold and request.evaluate_limit:
            self.clock.now += REFUSAL
            raise PromptCold("cold")
        for stage in (QUEUE, PREFILL, DECODE):
            if self.stepped:
                await self.steps.get()
            self.clock.now += stage
            if stage == PREFILL and on_delta is not None:
                on_delta(ANSWER[:1])
        times = (1000 * stage for stage in (QUEUE, PREFILL, DECODE, QUEUE + PREFILL + DECODE))
        return Completion((Candidate(ANSWER),), EngineTiming(*times, prompt=len(request.prompt), evaluated=1, decoded=4))

    async def step(self) -> None:
        self.steps.put_nowait(None)
        for _ in range(10):
            await asyncio.sleep(0)


class Desk:
    """One document, and a clock that all of the service goes by."""

    def __init__(self, view: Window_, engine: TimedEngine, uri: str) -> None:
        self.view, self.engine, self.uri, self.clock = view, engine, uri, engine.clock

    def ask(self, **how: Any) -> asyncio.Task[Answer]:
        document = self.view.service.snapshot(self.uri)
        assert document is not None
        query = Query(document, self.view.cursors[self.uri], self.clock.now, **how)
        return asyncio.ensure_future(self.view.service.answer(query))


@asynccontextmanager
async def desk(root: Path, cold: bool = False, stepped: bool = False, **values: Any) -> AsyncIterator[Desk]:
    settings = {"suggest": {"level": "eager", "min_chars": 1}, "context": {"cross_file": False}, **values}
    async with window(root, {}, **settings) as view:
        clock = Clock()
        engine = TimedEngine(clock, cold, stepped)
        view.service.brain.engine = engine
        view.service._clock = view.service._completer._clock = view.service._ahead._clock = clock
        uri = view.open("a.py", TEXT)
        await view.settled()
        yield Desk(view, engine, uri)


def parts(record: StageRecord) -> dict[str, float]:
    return {name: round(getattr(record, f"{name}_ms"), 6) for name in STAGES if name != "total"}


def adds_up(record: StageRecord, total_ms: float) -> bool:
    """Every millisecond belongs to a stage, and none is left over for the transfer (the clock stands still there)."""
    told = parts(record)
    return record.total_ms == pytest.approx(total_ms) == pytest.approx(sum(told.values())) and told["transfer"] == pytest.approx(0)


async def test_a_request_to_the_model(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        answer = await at.ask()
        assert answer.suggestions and adds_up(answer.stages, 100)
        assert [parts(answer.stages)[name] for name in ("queue", "prefill", "decode")] == [10, 50, 40]


async def test_a_cold_place_is_asked_twice(tmp_path: Path) -> None:
    async with desk(tmp_path, cold=True, first_deadline_ms=800) as at:
        answer = await at.ask()
        assert answer.suggestions and adds_up(answer.stages, 107) and parts(answer.stages)["queue"] == 17


async def test_typed_through_takes_nothing_here(tmp_path: Path) -> None:
    async with desk(tmp_path, suggest={"level": "eager", "min_chars": 1, "typed_through": True}) as at:
        await at.ask()
        at.view.type(at.uri, "v")
        answer = await at.ask()
        assert answer.stages.source == "typed_through" and adds_up(answer.stages, 0)


async def test_a_joined_request_has_its_share(tmp_path: Path) -> None:
    async with desk(tmp_path, stepped=True) as at:
        first = at.ask()
        await at.engine.step()  # 10 ms of queue
        await at.engine.step()  # 50 of prefill; the first letter is there
        at.view.type(at.uri, "v")
        second = at.ask()
        await asyncio.sleep(0)
        await at.engine.step()
        answers = await asyncio.gather(first, second)
        assert [a.stages.outcome for a in answers] == ["superseded", "shown"]
        assert answers[1].stages.source == "joined" and adds_up(answers[1].stages, 40)


async def test_what_was_waited_for_in_vain_is_queue(tmp_path: Path) -> None:
    async with desk(tmp_path, stepped=True) as at:
        first = at.ask()
        await at.engine.step()
        at.view.type(at.uri, "x")  # nothing has come yet that contradicts it
        second = at.ask()
        await asyncio.sleep(0)
        await at.engine.step()  # now it has, after 50 ms
        for _ in range(3):
            await at.engine.step()
        answers = await asyncio.gather(first, second)
        assert answers[1].stages.source == "model" and parts(answers[1].stages)["queue"] == 60
        assert adds_up(answers[1].stages, 150)


@pytest.mark.parametrize("trigger", ["automatic", "explicit"])
async def test_over_the_wire_the_stages_are_the_servers_time_within_the_clients(trigger: str) -> None:
    async with session(ScriptedEngine([ANSWER]), {"stageNotifications": True}) as (client, server, _):
        client.open(URI, "python", TEXT.replace(MARK, ""))
        while not server.service.brain.ready:  # noqa: ASYNC110
            await asyncio.sleep(0)
        answer = await client.inline(URI, Position(3, 18), 1 if trigger == "explicit" else 2)
        stages = answer.stages
        total = sum(stages[f"{name}_ms"] for name in STAGES if name != "total")
        assert stages["outcome"] in ("shown", "empty", "held_back") and total == pytest.approx(stages["total_ms"], abs=0.01)
        assert stages["total_ms"] <= (answer.received - answer.sent) * 1000
