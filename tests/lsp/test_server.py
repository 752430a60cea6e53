"""The server over a real connection: one answer per request, exact documents, newest request wins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.measure.client import INVOKED, LspClient
from lsp_complete.measure.edits import Edit, Position
from lsp_complete.measure.jsonrpc import encode

from .harness import URI, prompt_text, session

CODE = "import os\n\n\ndef total(values):\n    result = 0\n    for value in values:\n        result += \n    return result\n"
CURSOR = Position(6, 18)


async def ready(client: LspClient, server: Any) -> None:
    """Wait until the scripted engine has been opened."""
    while not server.service.brain.ready:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_a_suggestion_with_its_stage_record() -> None:
    async with session(ScriptedEngine([b"value"])) as (client, server, engine):
        client.open(URI, "python", CODE)
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        await ready(client, server)
        answer = await client.inline(URI, CURSOR)
        assert [item.text for item in answer.items] == ["value"]
        assert answer.items[0].start == answer.items[0].end == CURSOR
        request = engine.requests[-1]
        assert prompt_text(request.prompt).endswith("result +=")
        assert request.forced == b" "
        assert "<S>    return result\n<M>" in prompt_text(request.prompt)
        stages = answer.stages
        assert stages["outcome"] == "shown" and stages["source"] == "model"
        parts = [stages[k] for k in stages if k.endswith("_ms") and k != "total_ms"]
        assert abs(sum(parts) - stages["total_ms"]) <= max(2.0, 0.05 * stages["total_ms"])


async def test_typing_through_needs_no_engine() -> None:
    async with session(ScriptedEngine([b"value * 2"])) as (client, server, engine):
        client.open(URI, "python", CODE)
        await ready(client, server)
        await client.inline(URI, CURSOR)
        asked = len(engine.calls)
        column = CURSOR.character
        for typed in "valu":
            here = Position(6, column)
            client.change(URI, [Edit(here, here, typed)])
            column += 1
            answer = await client.inline(URI, Position(6, column))
            assert answer.stages["source"] == "typed_through"
            assert answer.items[0].text == "value * 2"[column - CURSOR.character :]
        assert len(engine.calls) == asked


async def test_the_newest_request_wins_and_the_older_is_answered_at_once() -> None:
    engine = ScriptedEngine([b"one", b"two"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        first = client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        second = client.ask(URI, Position(4, 14))
        old = await client.answer(first, CURSOR)
        assert old.items == () and old.stages["outcome"] == "superseded"
        await engine.wait_calls(2)
        await engine.wait_for(lambda: engine.calls[0].outcome == "cancelled")
        engine.release(1)
        new = await client.answer(second, CURSOR)
        assert [item.text for item in new.items] == ["two"]


async def test_cancel_stops_the_engine_and_is_answered() -> None:
    engine = ScriptedEngine(hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        call = client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        client.cancel(call)
        answer = await client.answer(call, CURSOR)
        assert answer.cancelled
        await engine.wait_for(lambda: engine.calls[0].outcome == "cancelled")


async def test_the_snapshot_belongs_to_its_message() -> None:
    """A change right behind the request, in the same packet, must not change what the request saw."""
    async with session(ScriptedEngine([b"value"])) as (client, server, engine):
        client.open(URI, "python", CODE)
        await ready(client, server)
        call = client.ask(URI, CURSOR)
        client.change(URI, [Edit(Position(0, 0), Position(0, 6), "IMPORT")])
        await client.answer(call, CURSOR)
        assert "import os" in prompt_text(engine.requests[-1].prompt)


async def test_no_model_says_so_once_and_goes_on() -> None:
    async with session(no_model=True) as (client, _server, _):
        client.open(URI, "python", CODE)
        for _ in range(3):
            answer = await client.inline(URI, CURSOR)
            assert answer.items == () and answer.code == 0
        told = [m for m in client.messages if "models pull" in m]
        assert len(told) == 1


async def test_engine_trouble_is_no_suggestion() -> None:
    from lsp_complete.errors import EngineUnavailable

    engine = ScriptedEngine([EngineUnavailable("gone"), b"value"])
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        answer = await client.inline(URI, CURSOR)
        assert answer.items == () and answer.stages["outcome"] == "unavailable"
        answer = await client.inline(URI, CURSOR)
        assert answer.items[0].text == "value"


NASTY = {
    "crlf": "a = 1\r\nb = \r\nc = 3\r\n",
    "form feed": "a = 1\n\x0cdef f():\n    return \n",
    "u2028": "a = '\u2028'\nb = \n",
    "emoji": "a = '😀'; b = \n",
    "tabs": "def f():\n\treturn \n",
    "long line": "x = '" + "ab" * 1_000_000 + "'\ny = \n",
    "no newline": "a = ",
    "fim tokens": "x = '<|fim_middle|><|fim_prefix|><|endoftext|>'\ny = \n",
    "lone cr": "a\rb\rc = ",
    "empty": "",
    "nul": "a\0b = \n",
}


@pytest.mark.parametrize("name", NASTY)
async def test_bad_texts_stay_exact_and_are_answered(name: str) -> None:
    text = NASTY[name]
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        client.open(URI, "python", text)
        await ready(client, server)
        for position in (Position(0, 0), Position(1, 4), Position(0, 10**6), Position(10**6, 3)):
            answer = await client.inline(URI, position)
            assert answer.code == 0
        client.change(URI, [Edit(Position(0, 0), Position(0, 0), "é😀")])
        client.change(URI, [Edit(Position(0, 1), Position(0, 3), "")])
        await client.inline(URI, Position(0, 1))
        assert server.service.snapshot(URI).buffer.text() == "é" + text


async def test_odd_requests_get_one_answer_each() -> None:
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///not-open", "version": 3}, "contentChanges": [{"text": "x"}]},
        )
        assert (await client.inline("file:///not-open", Position(0, 0))).items == ()
        client.open(URI, "no-such-language", CODE)
        await ready(client, server)
        assert (await client.inline(URI, CURSOR, trigger=0)).items
        assert (await client.inline(URI, CURSOR, trigger=77)).code == 0
        with pytest.raises(RuntimeError, match="-32602"):
            await client.request("textDocument/inlineCompletion", {"textDocument": 3})
        with pytest.raises(RuntimeError, match="-32601"):
            await client.request("no/suchMethod", {})
        connection, left_out = client._connection, asyncio.get_running_loop().create_future()
        connection._pending[900] = left_out
        connection._writer.write(encode({"jsonrpc": "2.0", "id": 900, "method": "no/suchMethod"}))
        assert (await left_out).code == -32601
        client.notify("no/suchNotification", {"a": 1})
        assert (await client.inline(URI, CURSOR)).code == 0


@pytest.mark.parametrize("uri", ["file://[scratch", "file:///tmp/%00.py", "", "[No Name]", "term://~//7:sh"])
async def test_a_document_may_have_any_name(uri: str) -> None:
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        client.open(uri, "python", CODE)
        await ready(client, server)
        assert (await client.inline(uri, CURSOR)).items
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
        folder = {"event": {"added": [{"uri": uri, "name": "x"}], "removed": [{"uri": uri, "name": "x"}]}}
        client.notify("workspace/didChangeWorkspaceFolders", folder)
        client.change(uri, [Edit(Position(0, 0), Position(0, 0), "#")])
        assert (await client.inline(uri, CURSOR)).code == 0
        assert server.service.snapshot(uri).buffer.text() == "#" + CODE


async def test_results_of_commands_are_not_kept() -> None:
    async with session() as (client, server, _):
        for _ in range(5):
            await client.request("workspace/executeCommand", {"command": "lsp-complete.stats"})
        assert not server.protocol._request_futures


async def test_requests_after_shutdown_get_an_error() -> None:
    async with session() as (client, _server, _engine):
        client.open(URI, "python", CODE)
        await client.request("shutdown", None)
        answer = await client.inline(URI, CURSOR)
        assert answer.code == -32600


async def test_menu_clients_get_menu_items() -> None:
    engine = ScriptedEngine([b"lue\n    more"])
    async with session(engine, {"settings": {"suggest": {"surface": "menu"}}}, client_name="helix") as (client, server, _):
        client.open(URI, "python", CODE.replace("result += ", "result += va"))
        await ready(client, server)
        params = {"textDocument": {"uri": URI}, "position": {"line": 6, "character": 20}}
        reply = await client.request("textDocument/completion", params)
        assert reply["isIncomplete"] is True
        (item,) = reply["items"]
        assert item["kind"] == 1 and item["filterText"] == "value" and item["insertTextMode"] == 1
        assert item["textEdit"]["range"]["start"] == {"line": 6, "character": 18}
        assert item["textEdit"]["newText"].startswith("value")
        assert (await client.inline(URI, CURSOR)).items == ()


async def test_ghost_clients_keep_their_menu_to_themselves() -> None:
    async with session(client_name="Visual Studio Code") as (client, _server, _engine):
        client.open(URI, "python", CODE)
        params = {"textDocument": {"uri": URI}, "position": {"line": 6, "character": 18}}
        with pytest.raises(RuntimeError, match="-32601"):
            await client.request("textDocument/completion", params)


async def test_settings_problems_are_told_by_name() -> None:
    async with session(options={"settings": {"suggest": {"max_lines": "many"}, "no_such": 1}}) as (client, _, _e):
        client.open(URI, "python", CODE)
        await client.inline(URI, CURSOR)
        assert any("suggest.max_lines" in m for m in client.messages)
        assert any("no_such" in m for m in client.messages)


async def test_a_disabled_language_is_silent() -> None:
    async with session(ScriptedEngine([b"x"]), {"settings": {"languages": {"python": False}}}) as (client, server, e):
        client.open(URI, "python", CODE)
        await ready(client, server)
        assert (await client.inline(URI, CURSOR)).items == ()
        assert e.calls == []


async def test_a_key_that_agrees_joins_the_work_in_flight() -> None:
    engine = ScriptedEngine([b"value * 2"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        first = client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        server.service.documents.get(URI).generation.partial.extend(b"valu")
        client.change(URI, [Edit(CURSOR, CURSOR, "v")])
        second = client.ask(URI, Position(6, 19))
        assert (await client.answer(first, CURSOR)).stages["outcome"] == "superseded"
        engine.release(0)
        answer = await client.answer(second, Position(6, 19))
        assert answer.stages["source"] == "joined"
        assert [item.text for item in answer.items] == ["alue * 2"]
        assert len(engine.calls) == 1


async def test_a_key_joins_work_that_has_not_said_anything_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluating a prompt must get done however quickly one types, also where the client cancels at each key."""
    monkeypatch.setattr("lsp_complete.service.core.PREFILL_GRACE_S", 60.0)  # the clock plays no part in this test
    engine = ScriptedEngine([b"value * 2"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        calls, column = [client.ask(URI, CURSOR)], CURSOR.character
        await engine.wait_calls(1)
        for typed in "val":
            client.cancel(calls[-1])
            client.change(URI, [Edit(Position(6, column), Position(6, column), typed)])
            column += 1
            calls.append(client.ask(URI, Position(6, column)))
        for call in calls[:-1]:
            assert (await client.answer(call, CURSOR)).items == ()
        engine.release(0)
        answer = await client.answer(calls[-1], Position(6, column))
        assert [item.text for item in answer.items] == ["ue * 2"]
        assert len(engine.calls) == 1


async def test_who_asks_explicitly_does_not_get_what_was_asked_for_automatically() -> None:
    engine = ScriptedEngine([b"value", b"value * 2"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        first = client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        second = client.ask(URI, CURSOR, INVOKED)
        await engine.wait_calls(2)
        assert (await client.answer(first, CURSOR)).stages["outcome"] == "superseded"
        engine.release(1)
        answer = await client.answer(second, CURSOR)
        assert [item.text for item in answer.items] == ["value * 2"] and answer.stages["source"] == "model"
        assert engine.calls[0].outcome == "cancelled" and engine.calls[0].request.stop.min_sum < 0.0 == engine.calls[1].request.stop.min_sum


async def test_work_that_contradicts_the_typing_is_stopped_at_once() -> None:
    engine = ScriptedEngine([b"value * 2", b"00 * 2"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        client.change(URI, [Edit(CURSOR, CURSOR, "1")])
        call = client.ask(URI, Position(6, 19))
        await client.execute("lsp-complete.stats")  # by its answer the request before it has begun
        server.service.documents.get(URI).generation.came(b"val")
        await engine.wait_calls(2)
        await engine.wait_for(lambda: engine.calls[0].outcome == "cancelled")
        engine.release(1)
        assert (await client.answer(call, Position(6, 19))).items[0].text == "00 * 2"


async def test_what_is_left_of_a_stopped_suggestion_becomes_a_draft() -> None:
    engine = ScriptedEngine([b"value * 2", b"ue * 3"], hold=True)
    async with session(engine) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        client.ask(URI, CURSOR)
        await engine.wait_calls(1)
        server.service.documents.get(URI).generation.partial.extend(b"value *")
        server.service.documents.get(URI).stop_generation()
        client.change(URI, [Edit(CURSOR, CURSOR, "val")])
        call = client.ask(URI, Position(6, 21))
        await engine.wait_calls(2)
        request = engine.requests[1]
        (draft,) = request.drafts
        assert bytes(draft) == request.forced + b"ue *\n"
        engine.release(1)
        assert (await client.answer(call, Position(6, 21))).items[0].text == "ue * 3"


async def test_the_selected_popup_item_is_continued() -> None:
    async with session(ScriptedEngine([b"(values)"])) as (client, server, engine):
        client.open(URI, "python", CODE.replace("result += ", "result += s"))
        await ready(client, server)
        span = {"start": {"line": 6, "character": 18}, "end": {"line": 6, "character": 19}}
        params = {
            "textDocument": {"uri": URI},
            "position": {"line": 6, "character": 19},
            "context": {"triggerKind": 2, "selectedCompletionInfo": {"range": span, "text": "sum"}},
        }
        reply = await client.request("textDocument/inlineCompletion", params)
        (item,) = reply["items"]
        assert item["insertText"] == "sum(values)" and item["range"] == span
        request = engine.requests[-1]
        assert prompt_text(request.prompt) + request.forced.decode() == prompt_text(request.prompt) + "m"
        assert prompt_text(request.prompt).endswith("result += su")


async def test_opening_makes_the_prompt_ready_at_background_priority() -> None:
    from lsp_complete.engine.api import Priority

    async with session(options={"settings": {"prefetch": "light"}}) as (client, server, engine):
        client.open(URI, "python", CODE)
        await ready(client, server)
        client.move_cursor(URI, CURSOR)
        await engine.wait_for(lambda: any(prompt_text(r.prompt).endswith("result +=") for r in engine.requests))
        warm = engine.requests[-1]
        assert warm.max_tokens == 0 and warm.priority is Priority.BACKGROUND
        answer = await client.inline(URI, CURSOR)
        assert answer.stages["reuse_break"] == ""
        assert engine.requests[-1].prompt == warm.prompt


async def test_of_many_documents_opened_at_once_the_newest_are_made_ready_and_a_closed_one_is_let_go() -> None:
    from lsp_complete.service.ahead import MAX_WARM

    def running() -> list[str]:
        return [call.request.key for call in engine.calls if call.outcome == "running"]

    uris = [f"file:///project/{n}.py" for n in range(5 * MAX_WARM)]
    async with session(ScriptedEngine([b"value"], hold=True), {"settings": {"prefetch": "light"}}) as (client, server, engine):
        client.open(URI, "python", CODE)
        await ready(client, server)
        for uri in uris:
            client.open(uri, "python", CODE)
        await engine.wait_for(lambda: running() == uris[-MAX_WARM:])
        client.close(uris[-1])
        await engine.wait_for(lambda: running() == uris[-MAX_WARM:-1])
        call = client.ask(uris[-2], CURSOR)
        await engine.wait_for(lambda: engine.requests[-1].max_tokens > 0)
        engine.release()
        assert (await client.answer(call, CURSOR)).items


LONG = "".join(f"line_{n} = {n}\n" for n in range(60)) + "last = \n" + "".join(f"below_{n} = 1\n" for n in range(9))


class Cold(ScriptedEngine):
    """Refuses full prompts as cold; evaluates them on request. The test holds what it wants to."""

    def __init__(self) -> None:
        from lsp_complete.engine.api import Completion, CompletionRequest, EngineTiming
        from lsp_complete.errors import PromptCold

        def script(request: CompletionRequest) -> bytes | Completion:
            if request.evaluate_limit and request.prompt not in self.warm:
                raise PromptCold("cold")
            self.warm.add(request.prompt)
            return b"one + two" if request.max_tokens else Completion((), EngineTiming())

        self.warm: set[tuple[int, ...]] = set()
        super().__init__(script)

    def slices(self) -> list[int]:
        return [n for n, r in enumerate(self.requests) if not r.max_tokens and r.key == URI]

    async def next_slice(self, after: int) -> int:
        await self.wait_for(lambda: bool(self.slices()) and self.slices()[-1] > after)
        return self.slices()[-1]

    async def small(self) -> None:
        """Let the small prompt's request that comes next end."""
        await self.wait_for(lambda: self.calls[-1].request.key.endswith("#small") and self.calls[-1].outcome == "running")
        self.release()


async def first_answer(client: LspClient, server: Any, engine: Cold) -> int:
    """Open, ask in the cold place; gives the number of the first slice, which is held."""
    client.open(URI, "python", LONG)
    await ready(client, server)
    engine.hold = True
    asking = asyncio.ensure_future(client.inline(URI, Position(60, 7)))
    await engine.wait_for(lambda: bool(engine.requests) and engine.requests[-1].evaluate_limit > 0)
    engine.release()
    await engine.small()
    await asking
    return await engine.next_slice(0)


def press(client: LspClient, column: int, text: str) -> asyncio.Future[Any]:
    here = Position(60, column)
    client.change(URI, [Edit(here, here, text)])
    return asyncio.ensure_future(client.inline(URI, Position(60, column + 1)))


COLD_SETTINGS = {"settings": {"prefetch": "light", "suggest": {"typed_through": False}}}


async def test_a_key_that_contradicts_is_answered_at_once_and_one_that_agrees_by_the_full_prompt() -> None:
    async with session(Cold(), COLD_SETTINGS) as (client, server, engine):
        first = await first_answer(client, server, engine)
        other = press(client, 7, "x")
        await engine.small()
        assert engine.calls[first].outcome == "cancelled"
        await other
        second = await engine.next_slice(first)
        assert engine.requests[second].prompt == engine.requests[first].prompt

        agreeing = press(client, 8, "o")  # of the answer that was given after the x
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        assert engine.calls[-1] is engine.calls[second] and engine.calls[second].outcome == "running"
        engine.release(second)
        third = await engine.next_slice(second)
        one, two = engine.requests[second].prompt, engine.requests[third].prompt
        assert two[: len(one)] == one and len(two) >= 2 * len(one)
        engine.hold = False
        engine.release(third)
        answer = await agreeing
        assert answer.items and not server.service.documents.get(URI).anchor.small
        assert len(engine.requests[-1].prompt) > len(two) and engine.requests[-1].key == URI


async def test_after_some_keys_that_contradict_the_full_prompt_is_waited_for() -> None:
    async with session(Cold(), COLD_SETTINGS) as (client, server, engine):
        last = await first_answer(client, server, engine)
        for n in range(3):
            other = press(client, 7 + n, "x")
            await engine.small()
            await other
            last = await engine.next_slice(last)
        fourth = press(client, 10, "x")
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        assert engine.calls[last].outcome == "running"
        engine.hold = False
        engine.release(last)
        await fourth
        assert engine.requests[-1].key == URI and not server.service.documents.get(URI).anchor.small


async def test_where_the_full_prompt_takes_long_a_key_waits_for_a_slice_only() -> None:
    async with session(Cold(), COLD_SETTINGS) as (client, server, engine):
        server.service._ahead.evaluator.tokens_per_ms = 0.001
        first = await first_answer(client, server, engine)
        agreeing = press(client, 7, "o")
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        assert engine.calls[first].outcome == "running"
        engine.release(first)
        await engine.small()
        await agreeing
        second = await engine.next_slice(first)
        one, two = engine.requests[first].prompt, engine.requests[second].prompt
        assert two[: len(one)] == one and len(two) > len(one)


async def test_a_cold_place_is_answered_from_a_small_prompt_and_the_full_one_is_built_behind() -> None:
    """The ladder: refused as cold, asked small; the full prompt is evaluated behind and takes over."""
    from lsp_complete.engine.api import Completion, CompletionRequest, EngineTiming, Priority
    from lsp_complete.errors import PromptCold

    text = "".join(f"line_{n} = {n}\n" for n in range(60)) + "last = \n" + "".join(f"below_{n} = 1\n" for n in range(9))
    cursor = Position(60, 7)

    def script(request: CompletionRequest) -> bytes | Completion:
        if request.evaluate_limit:
            raise PromptCold("cold")
        return b"one" if request.max_tokens else Completion((), EngineTiming())

    settings = {"prefetch": "light", "suggest": {"typed_through": False}}
    async with session(ScriptedEngine(script), {"settings": settings}) as (client, server, engine):
        client.open(URI, "python", text)
        await ready(client, server)
        answer = await client.inline(URI, cursor)
        assert [item.text for item in answer.items] == ["one"]
        tried, small = [r for r in engine.requests if r.max_tokens][-2:]
        assert tried.evaluate_limit and not small.evaluate_limit
        assert len(small.prompt) < len(tried.prompt) and small.key != tried.key
        await engine.wait_for(lambda: engine.calls[-1].outcome == "done" and engine.requests[-1].max_tokens == 0)
        full = engine.requests[-1]
        assert full.priority is Priority.INTERACTIVE and full.prompt == tried.prompt
        while server.service.documents.get(URI).anchor.small:  # noqa: ASYNC110
            await asyncio.sleep(0)
