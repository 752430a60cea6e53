"""The whole product with the real 0.5B model: real server process, real engine process, real client."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from lsp_complete.measure.client import LspClient, connect
from lsp_complete.measure.edits import Edit, Position
from lsp_complete.measure.session import Session, SessionOptions, environment, session, warm_up

MODEL = "qwen2.5-coder-0.5b"
TEXT = "def mean(values):\n    total = sum(values)\n    return total / \n\n\nprint(mean([1, 2, 3]))\n"
CURSOR = Position(2, 19)

pytestmark = [pytest.mark.model, pytest.mark.slow]


def engine_of(running: Session) -> psutil.Process:
    """The engine process of a private session."""
    (found,) = [p for p in running.processes() if "lsp_complete.engine.serve" in " ".join(p.cmdline())]
    return found


async def until_shown(client: LspClient, uri: str, cursor: Position) -> str:
    """Ask until something is shown (the engine may be starting); at most 300 times."""
    for _ in range(300):
        answer = await client.inline(uri, cursor)
        if answer.items:
            return answer.items[0].text
        await asyncio.sleep(0.1 if answer.stages.get("outcome") == "unavailable" else 0)
    raise AssertionError(f"nothing was shown; messages: {list(client.messages)}")


async def test_a_suggestion_and_typing_through_it(tmp_path: Path) -> None:
    async with session(SessionOptions(model=MODEL)) as running:
        await warm_up(running, tmp_path)
        uri, client = (tmp_path / "a.py").as_uri(), running.client
        client.open(uri, "python", TEXT)
        text = await until_shown(client, uri, CURSOR)
        assert text.startswith("len(")
        client.change(uri, [Edit(CURSOR, CURSOR, "le")])
        answer = await client.inline(uri, Position(2, 21))
        assert answer.items[0].text == text[2:]
        assert answer.stages["source"] == "typed_through"


async def test_a_key_costs_few_tokens(tmp_path: Path) -> None:
    settings = {"suggest": {"typed_through": False, "level": "eager", "min_chars": 1}}
    async with session(SessionOptions(settings, model=MODEL)) as running:
        await warm_up(running, tmp_path)
        uri, client = (tmp_path / "a.py").as_uri(), running.client
        client.open(uri, "python", TEXT)
        await until_shown(client, uri, CURSOR)
        column, evaluated = CURSOR.character, []
        for char in "sum(values) / 2":
            client.change(uri, [Edit(Position(2, column), Position(2, column), char)])
            column += 1
            answer = await client.inline(uri, Position(2, column))
            evaluated.append(answer.stages["evaluated"])
        assert max(evaluated) <= 10
        assert sorted(evaluated)[len(evaluated) // 2] <= 3


async def test_crlf_emoji_and_fim_tokens_in_the_text(tmp_path: Path) -> None:
    settings = {"suggest": {"level": "eager", "multiline": "always"}}
    async with session(SessionOptions(settings, model=MODEL)) as running:
        await warm_up(running, tmp_path)
        uri, client = (tmp_path / "b.py").as_uri(), running.client
        client.open(uri, "python", "x = '😀<|fim_middle|>'\r\ndef double(value):\r\n    return \r\n")
        answer = await client.inline(uri, Position(2, 11))
        assert answer.code == 0
        for item in answer.items:
            assert "<|" not in item.text
            assert "\n" not in item.text.replace("\r\n", "")


async def test_the_engine_killed_in_mid_request(tmp_path: Path) -> None:
    async with session(SessionOptions({"suggest": {"typed_through": False}}, model=MODEL)) as running:
        await warm_up(running, tmp_path)
        uri, client = (tmp_path / "a.py").as_uri(), running.client
        client.open(uri, "python", "".join(f"value_{n} = {n} * 2\n" for n in range(60)) + TEXT)
        cursor = Position(62, 19)
        engine = engine_of(running)
        engine.send_signal(signal.SIGSTOP)  # whatever it is doing, the next request is in the middle when it dies
        call = client.ask(uri, cursor)
        client.notify("$/setTrace", {"value": "off"})
        engine.send_signal(signal.SIGKILL)
        answer = await client.answer(call, cursor)
        assert answer.items == () and answer.code == 0
        assert answer.stages["outcome"] == "unavailable"
        assert await until_shown(client, uri, cursor)
        assert engine_of(running).pid != engine.pid


@pytest.mark.parametrize("kind", ["truncated", "no_gguf", "missing"])
async def test_a_model_file_that_cannot_be_used(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad.gguf"
    if kind == "truncated":
        from lsp_complete.models.installed import resolve

        path.write_bytes(memoryview(resolve(MODEL).read_bytes())[:30_000_000])
    elif kind == "no_gguf":
        path.write_bytes(b"this is no model" * 1000)
    async with session(SessionOptions(model=str(path))) as running:
        uri, client = (tmp_path / "a.py").as_uri(), running.client
        client.open(uri, "python", TEXT)
        for _ in range(200):
            answer = await client.inline(uri, CURSOR)
            assert answer.items == () and answer.code == 0
            if client.messages:
                break
            await asyncio.sleep(0.1)
        assert any("bad.gguf" in message for message in client.messages)
        assert not client.process_ended()


async def test_over_tcp(tmp_path: Path) -> None:
    mark = "tcp-test"
    (tmp_path / "r").mkdir(mode=0o700)
    (tmp_path / "lsp-complete.toml").touch()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lsp_complete",
        "--tcp",
        "0",
        stderr=asyncio.subprocess.PIPE,
        env=environment(SessionOptions(model=MODEL), tmp_path, mark),
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    client = await connect("127.0.0.1", int(line.rsplit(":", 1)[1]))
    try:
        await client.initialize(None, {"stageNotifications": True})
        uri = (tmp_path / "a.py").as_uri()
        client.open(uri, "python", TEXT)
        assert (await until_shown(client, uri, CURSOR)).startswith("len(")
    finally:
        await client.shutdown()
        await asyncio.wait_for(process.wait(), 20)
        for left in Session(client, mark, tmp_path / "log").processes():
            os.kill(left.pid, signal.SIGTERM)
