"""The engine's life as the service sees it, with a scripted engine and a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

from lsp_complete.config import Settings
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import LspCompleteError, MemoryPlanError, ModelError
from lsp_complete.service.brain import MEMORY_RETRY_S, Brain, Opened


class Loaded:
    name = "toy"


class Life:
    """A brain whose engines fail with the given errors, one after the other (None: one that loads)."""

    def __init__(self, *errors: LspCompleteError | None) -> None:
        self.errors, self.now, self.messages, self.engines = list(errors), 0.0, [], []
        self.brain = Brain(self.open, lambda *m: self.messages.append(m), lambda *a, **k: None, lambda: self.now)

    async def open(self, settings: Settings, on_state: Any) -> Opened:
        error = self.errors.pop(0)
        self.engines.append(ScriptedEngine(info_error=error) if error else ScriptedEngine())
        return Opened(self.engines[-1], lambda info: Loaded())  # type: ignore[arg-type, return-value]

    async def start(self) -> None:
        self.brain.start(Settings(), lambda: None)
        assert self.brain._task is not None
        await asyncio.wait([self.brain._task])


async def test_a_model_that_did_not_fit_is_tried_again_without_another_message() -> None:
    life = Life(MemoryPlanError("too large"), MemoryPlanError("still too large"), None)
    await life.start()
    await life.start()  # every key asks for it
    assert len(life.engines) == 1 and not life.brain.ready and life.brain.problem == "too large"
    for _ in range(2):
        life.now += MEMORY_RETRY_S
        await life.start()
    assert life.brain.ready and life.brain.problem == "" and len(life.messages) == 1
    assert [engine.closed for engine in life.engines] == [True, True, False]
    life.now += 10 * MEMORY_RETRY_S
    await life.start()
    assert len(life.engines) == 3


async def test_a_model_that_cannot_be_used_is_not_tried_again() -> None:
    life = Life(ModelError("damaged"))
    await life.start()
    life.now += 10 * MEMORY_RETRY_S
    await life.start()
    assert len(life.engines) == 1 and life.messages == [("error", "lsp-complete: damaged")]
