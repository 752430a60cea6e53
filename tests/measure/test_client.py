"""The scripted client and its sessions, against a small server that keeps documents exactly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from lsp_complete.errors import EngineUnavailable
from lsp_complete.measure.client import CANCELLED, INVOKED, parse_items
from lsp_complete.measure.edits import Edit, Position
from lsp_complete.measure.session import MARK, SessionOptions, run_to_end, session, warm_up

from .conftest import Options

URI = "file:///folder/a.py"


async def test_documents_answers_and_stages(fake_options: Options, tmp_path: Path) -> None:
    async with session(fake_options(["value = 12"], context={"layout": "standard"})) as running:
        client = running.client
        client.open(URI, "python", "a😀\nvalue\r\n")
        assert (
            client.change(
                URI, [Edit(Position(0, 1), Position(0, 3), "b"), Edit(Position(1, 5), Position(1, 5), " =")]
            )
            == 2
        )
        assert await client.execute("text", [URI]) == "ab\nvalue =\r\n"
        for _ in range(4):  # the stage record may come before or after the answer
            answer = await client.inline(URI, Position(1, 7), INVOKED)
            assert [item.text for item in answer.items] == [" 12"]
            assert answer.stages["evaluated"] == 2
            assert answer.received >= answer.sent
        client.close(URI)
        assert "hello" in client.messages
        with pytest.raises(RuntimeError, match="no such command"):
            await client.execute("unknown")


async def test_a_cancelled_request_is_answered(fake_options: Options) -> None:
    async with session(fake_options()) as running:
        client = running.client
        client.open(URI, "python", "SLOW")
        call = client.ask(URI, Position(0, 0))
        client.cancel(call)
        answer = await client.answer(call, Position(0, 0))
        assert answer.code == CANCELLED and answer.cancelled and not answer.items


async def test_a_session_is_private_and_leaves_nothing(fake_options: Options) -> None:
    async with session(fake_options()) as running:
        seen = await running.client.execute("environment")
        pids = [process.pid for process in running.processes()]
        assert len(pids) == 1 and running.cpu_seconds() > 0 and running.memory_mb() > 0
        assert seen[MARK] == running.mark
        folder = Path(seen["XDG_RUNTIME_DIR"]).parent
        assert folder.is_dir() and os.stat(seen["XDG_RUNTIME_DIR"]).st_mode & 0o777 == 0o700
        assert os.stat(seen["LSP_COMPLETE_CONFIG"]).st_size == 0
    assert not folder.exists() and not any(map(psutil.pid_exists, pids))


async def test_warm_up_waits_for_the_engine(
    fake_options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_complete.measure.session.RETRY_S", 0.0)
    async with session(fake_options(["    return first + second"], refuse=3)) as running:
        await warm_up(running, tmp_path)


async def test_a_server_that_dies_is_reported_with_its_last_words() -> None:
    script = "import sys; print('no grammar found', file=sys.stderr); sys.exit(3)"
    with pytest.raises(EngineUnavailable, match="no grammar found"):
        async with session(SessionOptions(command=(sys.executable, "-c", script))):
            pass


def test_items_come_in_every_shape_of_the_protocol() -> None:
    cursor = Position(2, 4)
    span = {"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 4}}
    assert parse_items(None, cursor) == ()
    assert parse_items([{"insertText": "a"}], cursor)[0].start == cursor
    found = parse_items({"items": [{"insertText": {"kind": "snippet", "value": "b"}, "range": span}]}, cursor)
    assert (found[0].text, found[0].start, found[0].end) == ("b", Position(2, 1), cursor)


def test_a_terminate_signal_ends_the_session(fake_options: Options) -> None:
    pids: list[int] = []

    async def work(options: SessionOptions) -> None:
        async with session(options) as running:
            pids.extend(process.pid for process in running.processes())
            for _ in range(3):  # `timeout` sends it to the process and then to its group
                asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run_to_end(work(fake_options()))
    assert pids and not any(map(psutil.pid_exists, pids))
