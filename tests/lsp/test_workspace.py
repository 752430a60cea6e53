"""Watched files and progress: asked for only of clients that can, and what comes of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.lsp.server import CompletionServer, _serve, create_server
from lsp_complete.measure.client import LspClient
from lsp_complete.service.brain import Opened
from tests.index.test_walk import put

from .harness import MODEL

CAN_ALL: dict[str, Any] = {
    "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}},
    "window": {"workDoneProgress": True},
}


class Editor(LspClient):
    """A client that notes what the server asks of it."""

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.asked: list[tuple[str, Any]] = []
        self.told: list[Any] = []
        self.bars: list[Any] = []
        self.new = asyncio.Event()

    def _on_request(self, method: str, params: Any) -> Any:
        self.asked.append((method, params))
        self.new.set()
        return super()._on_request(method, params)

    def _on_notification(self, method: str, params: Any) -> None:
        if method == "$/progress":
            self.told.append(params["value"])
            self.bars.append(params["token"])
            self.new.set()
        super()._on_notification(method, params)

    async def until(self, seen: Any) -> None:
        async with asyncio.timeout(20) if hasattr(asyncio, "timeout") else _forever():
            while not seen():
                self.new.clear()
                await self.new.wait()


@asynccontextmanager
async def _forever() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def editor(root: Path, capabilities: dict[str, Any]) -> AsyncIterator[tuple[Editor, CompletionServer]]:
    left, right = socket.socketpair()
    server_streams, client_streams = await asyncio.open_connection(sock=left), await asyncio.open_connection(sock=right)
    server = create_server()
    server.service.context._make_cache = lambda: None

    async def opener(_settings: Any, _state: Any) -> Opened:
        return Opened(ScriptedEngine(), lambda _info: MODEL)

    server.service.brain._opener = opener
    task = asyncio.ensure_future(_serve(server, *server_streams))
    client = Editor(*client_streams)
    folder = {"uri": root.as_uri(), "name": root.name}
    try:
        await client.request(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri(),
                "workspaceFolders": [folder],
                "capabilities": capabilities,
                "initializationOptions": {"settings": {"prefetch": "off", "context": {"cross_file": True}}},
            },
        )
        client.notify("initialized", {})
        yield client, server
    finally:
        client_streams[1].close()
        await asyncio.wait({task}, timeout=10)
        client._task.cancel()
        server_streams[1].close()


@pytest.fixture(autouse=True)
def _user_wants_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSP_COMPLETE_CONTEXT_CROSS_FILE", "true")


async def test_a_client_that_can_is_asked_to_watch_and_its_news_reach_the_index(tmp_path: Path) -> None:
    put(tmp_path, {"a.py": "def old(): pass\n"})
    async with editor(tmp_path, CAN_ALL) as (client, server):
        await client.until(lambda: any(method == "client/registerCapability" for method, _ in client.asked))
        (registration,) = next(p for m, p in client.asked if m == "client/registerCapability")["registrations"]
        assert registration["method"] == "workspace/didChangeWatchedFiles"
        assert registration["registerOptions"]["watchers"][0]["globPattern"] == "**/*"
        worker = server.service.context.worker
        assert worker is not None
        await asyncio.to_thread(worker.wait_idle, 20)
        put(tmp_path, {"b.py": "def fresh(): pass\n"})
        (tmp_path / "a.py").unlink()
        changes = [{"uri": (tmp_path / name).as_uri(), "type": kind} for name, kind in (("b.py", 1), ("a.py", 3))]
        client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        await asyncio.to_thread(worker.wait_idle, 20)
        assert len(server.service.context.index.lookup("fresh")) == 1
        assert server.service.context.index.lookup("old") == []


async def test_a_client_that_cannot_is_asked_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"a.py": "def f(): pass\n"})
    async with editor(tmp_path, {}) as (client, server):
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        worker = server.service.context.worker
        assert worker is not None
        await asyncio.to_thread(worker.wait_idle, 20)
        assert client.asked == [] and client.told == []


WORK, OTHER = 101, 102  # numbers that no worker of the server's own has: its scan of the (empty) workspace may end at any time


async def test_progress_begins_grows_and_ends(tmp_path: Path) -> None:
    async with editor(tmp_path, CAN_ALL) as (client, server):
        await client.until(lambda: any(method == "client/registerCapability" for method, _ in client.asked))
        report = server.service.context.progress
        report(WORK, 10, 100)
        await client.until(lambda: client.told)
        report(WORK, 50, 100)
        report(WORK, 100, 100)
        await client.until(lambda: len(client.told) == 3)
        assert [one["kind"] for one in client.told] == ["begin", "report", "end"]
        assert client.told[1]["percentage"] == 50
        report(WORK, 100, 100)  # short work shows no bar
        report(WORK, 5, 10)
        await client.until(lambda: len(client.told) == 4)
        tokens = [p["token"] for m, p in client.asked if m == "window/workDoneProgress/create"]
        assert len(tokens) == len(set(tokens)) == 2


async def test_a_worker_that_ends_late_leaves_the_bar_of_the_next_one_alone(tmp_path: Path) -> None:
    async with editor(tmp_path, CAN_ALL) as (client, server):
        await client.until(lambda: any(method == "client/registerCapability" for method, _ in client.asked))
        report = server.service.context.progress
        report(WORK, 10, 100)
        report(OTHER, 1, 50)
        await client.until(lambda: len(client.told) == 2)
        report(WORK, 100, 100)
        report(OTHER, 25, 50)
        report(OTHER, 50, 50)
        await client.until(lambda: len(client.told) == 5)
        assert [one["kind"] for one in client.told] == ["begin", "begin", "end", "report", "end"]
        first, second = (p["token"] for m, p in client.asked if m == "window/workDoneProgress/create")
        assert client.bars == [first, second, first, second, second]


async def test_work_that_ends_before_the_client_agreed_to_a_bar_leaves_none_standing(tmp_path: Path) -> None:
    async with editor(tmp_path, CAN_ALL) as (client, server):
        await client.until(lambda: any(method == "client/registerCapability" for method, _ in client.asked))
        report = server.service.context.progress
        report(WORK, 10, 100)  # both are taken before the answer to the request that the first one sends
        report(WORK, 100, 100)
        report(OTHER, 1, 50)  # asked for later, so answered later
        await client.until(lambda: client.told)
        report(OTHER, 50, 50)
        await client.until(lambda: len(client.told) == 2)
        assert [one["kind"] for one in client.told] == ["begin", "end"]
        _first, second = (p["token"] for m, p in client.asked if m == "window/workDoneProgress/create")
        assert client.bars == [second, second]
