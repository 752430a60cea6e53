"""Requests that come while the engine starts: they wait for it, but never for long and never in a newer one's way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lsp_complete.config import Settings
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import ModelError
from lsp_complete.service import Query, Service
from lsp_complete.service.brain import Opened
from lsp_complete.text.document import Document
from tests.service.test_context_join import MODEL

URI = "file:///a.py"
TEXT = "total = "


class Starting:
    """A service whose engine is there once the gate opens."""

    def __init__(self, problem: str = "", **suggest: Any) -> None:
        self.gate, self.problem, self.engine = asyncio.Event(), problem, ScriptedEngine([b"price"])
        settings = Settings.model_validate({"prefetch": "off", "first_deadline_ms": 0, "suggest": {"level": "eager", **suggest}})
        self.service = Service(settings, self._open, lambda _l, _m: None, lambda _k, _m, busy=False: None)
        self.service.configure(settings)

    async def _open(self, _settings: Settings, _state: Any) -> Opened:
        await self.gate.wait()
        if self.problem:
            raise ModelError(self.problem)
        return Opened(self.engine, lambda _info: MODEL)

    def ask(self) -> asyncio.Task[Any]:
        document = self.service.snapshot(URI)
        assert document is not None
        return asyncio.create_task(self.service.answer(Query(document, len(TEXT), 0.0)))


async def opened(problem: str = "", **suggest: Any) -> Starting:
    made = Starting(problem, **suggest)
    made.service.open(Document.open(URI, "python", 1, TEXT + "\n"))
    return made


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_request_waits_for_the_engine_that_starts() -> None:
    at = await opened()
    asked = at.ask()
    await turns()
    assert not asked.done() and not at.engine.calls
    at.gate.set()
    answer = await asked
    assert [s.text for s in answer.suggestions] == ["price"] and answer.stages.queue_ms > 0
    await at.service.close()


async def test_a_newer_request_does_not_wait_behind_it() -> None:
    at = await opened()
    older = at.ask()
    await turns()
    newer = at.ask()
    assert (await older).stages.outcome == "superseded"
    at.gate.set()
    assert [s.text for s in (await newer).suggestions] == ["price"] and len(at.engine.calls) == 1
    await at.service.close()


async def test_what_cannot_start_is_told_at_once_and_what_takes_too_long_is_given_up() -> None:
    at = await opened("no model is installed")
    asked = at.ask()
    await turns()
    at.gate.set()
    stages = (await asked).stages
    assert (stages.outcome, stages.reason) == ("unavailable", "no model is installed")
    await at.service.close()
    at = await opened(time_limit_ms=50)
    stages = (await at.ask()).stages
    assert (stages.outcome, stages.reason) == ("unavailable", "starting")
    await at.service.close()


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_request_leaves_the_start_alone(times: int) -> None:
    at = await opened()
    for _ in range(times):
        asked = at.ask()
        await turns()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    at.gate.set()
    assert [s.text for s in (await at.ask()).suggestions] == ["price"]
    await at.service.close()
