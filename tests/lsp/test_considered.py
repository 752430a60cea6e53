"""What the model said, for sessions that ask for it, and that what was held back does not come back from the store."""

from __future__ import annotations

from typing import Any

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.measure.client import LspClient
from lsp_complete.measure.edits import Edit, Position

from .harness import URI, session
from .test_server import CODE, CURSOR, ready


async def ask(client: LspClient, server: Any, text: str = CODE, cursor: Position = CURSOR) -> Any:
    client.open(URI, "python", text)
    await ready(client, server)
    return await client.inline(URI, cursor)


async def test_what_the_model_said_goes_only_to_who_asks() -> None:
    options = {"candidateNotifications": True}
    async with session(ScriptedEngine(["värde\nmore".encode()]), options) as (client, server, _):
        answer = await ask(client, server)
        assert answer.considered["candidates"][0]["text"] == "värde\nmore"
        assert answer.considered["mode"] == "line" and answer.considered["typed"] == ""
        assert [item.text for item in answer.items] == ["värde"]
        assert "candidates" not in str(answer.stages)
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        assert (await ask(client, server)).considered == {}


async def test_a_text_that_was_too_short_does_not_come_back_at_the_next_key() -> None:
    async with session(ScriptedEngine([b"a", b"value"])) as (client, server, engine):
        answer = await ask(client, server)
        assert answer.items == () and answer.stages["reason"] == "too_short"
        client.change(URI, [Edit(CURSOR, CURSOR, "a")])
        answer = await client.inline(URI, Position(6, CURSOR.character + 1))
        assert answer.stages["source"] == "model" and len(engine.calls) == 2


async def test_what_stood_right_of_the_cursor_shows_what_is_left_if_it_is_worth_a_key() -> None:
    for said, source in ((b") + rate", "typed_through"), (b");", "model")):
        text = CODE.replace("result += ", "result += call()")
        inside, behind = Position(6, CURSOR.character + 5), Position(6, CURSOR.character + 6)
        async with session(ScriptedEngine([said, b"value"])) as (client, server, _):
            answer = await ask(client, server, text, inside)
            assert answer.items == () and answer.stages["reason"] == "already_there"
            client.change(URI, [Edit(inside, behind, ")")])
            answer = await client.inline(URI, behind)
            assert answer.stages["source"] == source
