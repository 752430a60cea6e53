"""How the server's process ends: by `exit`, by a signal. Real processes, no model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.lsp.logs import report_loop_trouble
from lsp_complete.measure.client import LspClient
from lsp_complete.measure.jsonrpc import encode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

TEXT = "def secret_name(value):\n    return \n"


@asynccontextmanager
async def server(folder: Path, **variables: str) -> AsyncIterator[tuple[LspClient, asyncio.subprocess.Process]]:
    """A server over standard input and output in a private place, initialized. Standard error goes to `folder/log`."""
    (folder / "r").mkdir(mode=0o700)
    (folder / "own.toml").touch()
    private = {
        "XDG_RUNTIME_DIR": str(folder / "r"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "LSP_COMPLETE_CONFIG": str(folder / "own.toml"),
        "LSP_COMPLETE_MODEL_DIR": str(folder / "models"),
    }
    pipe = asyncio.subprocess.PIPE
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lsp_complete", stdin=pipe, stdout=pipe, stderr=log, env={**os.environ, **private, **variables}
        )
    assert process.stdin is not None and process.stdout is not None
    client = LspClient(process.stdout, process.stdin, process)
    try:
        await client.initialize(None, {})
        yield client, process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        client._task.cancel()


async def test_exit_right_behind_shutdown_ends_well_and_all_is_answered(tmp_path: Path) -> None:
    async with server(tmp_path) as (client, process):
        shut = client._connection.call("shutdown", None)
        client.notify("exit", None)
        assert (await asyncio.wait_for(shut.reply, 60)).code == 0
        assert await asyncio.wait_for(process.wait(), 60) == 0
    assert (tmp_path / "log").read_text() == ""


async def test_exit_without_shutdown_fails_in_silence(tmp_path: Path) -> None:
    async with server(tmp_path) as (client, process):
        client.notify("exit", None)
        assert await asyncio.wait_for(process.wait(), 60) == 1
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_is_an_orderly_end(tmp_path: Path, number: signal.Signals) -> None:
    async with server(tmp_path, LSP_COMPLETE_RECORD_ENABLED="true") as (client, process):
        client.open("file:///p/a.py", "python", TEXT)
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats"})
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    (recording,) = (tmp_path / "state").rglob("*.jsonl")
    assert any(TEXT in json.dumps(json.loads(line), ensure_ascii=False).replace("\\n", "\n") for line in recording.open())
    assert "secret_name" not in (tmp_path / "log").read_text()


async def test_the_level_counts_and_errors_show_no_values(tmp_path: Path) -> None:
    """`log.level = debug` shows what is below a warning; an error is told by type and place (a list is no message)."""
    async with server(tmp_path, LSP_COMPLETE_LOG_LEVEL="debug") as (client, process):
        odd: Any = [{"secret_name": 1}]
        client._connection._writer.write(encode(odd))
        client.notify("initialized", {})
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats"})
        await client.shutdown(60)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    log = (tmp_path / "log").read_text()
    assert "AttributeError" in log and "json_rpc.py:" in log
    assert "secret_name" not in log


def test_the_loops_own_reports_name_no_values(caplog: pytest.LogCaptureFixture) -> None:
    told: Any = None

    def fails() -> None:
        raise ValueError("secret_name = 5")

    try:
        fails()
    except ValueError as error:
        context = {"message": "Exception in callback f('secret_name')", "exception": error}
        report_loop_trouble(told, context)
    report_loop_trouble(told, {"message": "secret_name"})
    report_loop_trouble(told, {"message": "x", "exception": asyncio.CancelledError("secret_name")})
    assert "ValueError at test_ending.py:" in caplog.text
    assert "secret_name" not in caplog.text
    assert len(caplog.records) == 2
