"""How likely the model finds what was written: the request, what the engine is asked, and the figure of a model that is known."""

from __future__ import annotations

import math
from typing import Any

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import RequestFailed
from lsp_complete.measure.edits import Position

from .harness import URI, prompt_text, session
from .test_server import CODE, CURSOR, ready


def told(*masses: float, stop: str = "forced") -> Completion:
    return Completion((Candidate(b"", tuple(range(len(masses))), (0.0,) * len(masses), masses, (0,) * len(masses), stop),), EngineTiming())


async def test_the_text_is_forced_behind_the_places_own_prompt() -> None:
    def script(request: CompletionRequest) -> Any:
        return told(0.5, 0.25, 0.0) if request.stop.forced_only else b"value"

    async with session(ScriptedEngine(script)) as (client, server, engine):
        client.open(URI, "python", CODE)
        assert await client.likelihood(URI, CURSOR, "value\n") is None  # nothing listens yet
        await ready(client, server)
        await client.inline(URI, CURSOR)
        found = await client.likelihood(URI, CURSOR, "välue\n")
        assert found is not None
        assert found["tokens"] == 3 and found["bytes"] == len(" välue\n".encode())
        assert math.isclose(found["logprob"], math.log(0.5 * 0.25 * 1e-9))
        asked = engine.requests[-1]
        assert asked.forced == " välue\n".encode() and asked.drafts == (tuple(asked.forced),)
        assert asked.prompt == engine.requests[-2].prompt and prompt_text(asked.prompt).endswith("result +=")


async def test_what_cannot_be_told_is_null() -> None:
    answers = iter([told(0.5, stop="time"), RequestFailed("no")])

    async with session(ScriptedEngine(lambda request: next(answers) if request.stop.forced_only else b"value")) as (client, server, engine):
        client.open(URI, "python", CODE)
        await ready(client, server)
        for _ in range(2):
            assert await client.likelihood(URI, CURSOR, "value") is None
        asked = len(engine.requests)
        assert await client.likelihood("file:///nowhere.py", CURSOR, "value") is None
        assert await client.likelihood(URI, CURSOR, "") is None
        assert await client.likelihood(URI, CURSOR, "x" * 2000) is None
        client.open("file:///project/.env", "python", "KEY = 1\n")
        assert await client.likelihood("file:///project/.env", Position(0, 6), "1") is None
        assert len(engine.requests) == asked
