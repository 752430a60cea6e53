"""Notebooks, file operations, trace lines and the menu that comes and goes, over a real connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.lsp.server import CompletionServer, _serve, create_server
from lsp_complete.measure.jsonrpc import Connection
from lsp_complete.service.brain import Opened

from .harness import MODEL, prompt_text

CELL, OTHER, NOTEBOOK = "vscode-notebook-cell:/p/a.ipynb#1", "vscode-notebook-cell:/p/a.ipynb#2", "file:///p/a.ipynb"


class Client:
    """Raw messages; what the server sends is kept, and can be waited for."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._news = asyncio.Event()
        self.connection = Connection(reader, writer, self._hear, self._hear)
        self.capabilities: Any = None

    def _hear(self, method: str, params: Any) -> None:
        self.heard.append((method, params))
        self._news.set()

    async def until(self, method: str) -> Any:
        """The params of the next message of that method, not heard before."""
        while True:
            for index, (name, params) in enumerate(self.heard):
                if name == method:
                    del self.heard[index]
                    return params
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)

    async def request(self, method: str, params: Any) -> Any:
        reply = await asyncio.wait_for(self.connection.call(method, params).reply, 30)
        assert not reply.code, reply
        return reply.result

    def notify(self, method: str, params: Any) -> None:
        self.connection.notify(method, params)

    async def inline(self, uri: str, line: int, character: int) -> list[str]:
        params = {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": 2},
        }
        found = await self.request("textDocument/inlineCompletion", params)
        return [item["insertText"] for item in found["items"]]


@asynccontextmanager
async def session(
    engine: ScriptedEngine, text_document: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[tuple[Client, CompletionServer]]:
    left, right = socket.socketpair()
    ends = await asyncio.open_connection(sock=left), await asyncio.open_connection(sock=right)
    server = create_server()

    async def opener(_settings: Any, _on_state: Any) -> Opened:
        return Opened(engine, lambda _info: MODEL)

    server.service.brain._opener = opener
    task = asyncio.ensure_future(_serve(server, *ends[0]))
    client = Client(*ends[1])
    running = asyncio.ensure_future(client.connection.run())
    try:
        params = {
            "processId": None,
            "rootUri": None,
            "capabilities": {
                "textDocument": text_document or {"inlineCompletion": {}},
                "notebookDocument": {"synchronization": {}},
                "workspace": {"fileOperations": {"didCreate": True, "didRename": True, "didDelete": True}},
            },
            "initializationOptions": {"settings": {"prefetch": "off"}},
            **more,
        }
        client.capabilities = (await client.request("initialize", params))["capabilities"]
        client.notify("initialized", {})
        yield client, server
    finally:
        ends[1][1].close()
        await asyncio.wait({task}, timeout=10)
        running.cancel()
        ends[0][1].close()


async def ready(client: Client, server: CompletionServer) -> None:
    while not server.service.brain.ready:
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})


def cell(uri: str, text: str) -> dict[str, Any]:
    return {"uri": uri, "languageId": "python", "version": 1, "text": text}


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    document = {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1}
    return {
        "notebookDocument": {**document, "cells": [{"kind": 2, "document": entry["uri"]} for entry in cells]},
        "cellTextDocuments": list(cells),
    }


async def test_a_cell_is_a_document_through_its_whole_life() -> None:
    engine = ScriptedEngine([b"price"])
    async with session(engine) as (client, server):
        assert client.capabilities["notebookDocumentSync"]["notebookSelector"]
        client.notify("notebookDocument/didOpen", notebook(cell(CELL, "price = 1\ntotal = ")))
        await ready(client, server)
        assert await client.inline(CELL, 1, 8) == ["price"]
        end = {"line": 1, "character": 8}
        text = {"document": {"uri": CELL, "version": 2}, "changes": [{"range": {"start": end, "end": end}, "text": "2 * "}]}
        structure = {"array": {"start": 1, "deleteCount": 0}, "didOpen": [cell(OTHER, "count = ")]}
        change = {"cells": {"structure": structure, "textContent": [text]}}
        client.notify("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": change})
        assert await client.inline(CELL, 1, 12) == ["price"]
        assert prompt_text(engine.requests[-1].prompt).endswith("total = 2 *")
        assert await client.inline(OTHER, 0, 8) == ["price"]
        gone = {"cells": {"structure": {"array": {"start": 1, "deleteCount": 1}, "didClose": [{"uri": OTHER}]}}}
        client.notify("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 3}, "change": gone})
        assert await client.inline(OTHER, 0, 8) == []
        client.notify("notebookDocument/didClose", {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": CELL}]})
        assert await client.inline(CELL, 1, 12) == []


async def test_a_change_of_a_cell_that_is_not_open_is_ignored() -> None:
    async with session(ScriptedEngine([b"price"])) as (client, server):
        client.notify("notebookDocument/didOpen", notebook(cell(CELL, "total = ")))
        unknown = {"document": {"uri": OTHER, "version": 2}, "changes": [{"text": "x"}]}
        change = {"cells": {"textContent": [unknown]}}
        client.notify("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": change})
        await ready(client, server)
        assert await client.inline(CELL, 0, 8) == ["price"]


async def test_renamed_created_and_deleted_files_reach_the_index() -> None:
    told: list[list[str]] = []
    async with session(ScriptedEngine()) as (client, server):
        server.service.watched = lambda uris: told.append(list(uris))  # type: ignore[method-assign]
        operations = client.capabilities["workspace"]["fileOperations"]
        assert {"didCreate", "didRename", "didDelete"} <= set(operations)
        client.notify("workspace/didRenameFiles", {"files": [{"oldUri": "file:///a.py", "newUri": "file:///b.py"}]})
        client.notify("workspace/didCreateFiles", {"files": [{"uri": "file:///c.py"}]})
        client.notify("workspace/didDeleteFiles", {"files": [{"uri": "file:///d.py"}]})
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
    assert told == [["file:///a.py", "file:///b.py"], ["file:///c.py"], ["file:///d.py"]]


@pytest.mark.parametrize("at_start", [True, False])
async def test_trace_lines_say_what_an_answer_took_and_no_text(at_start: bool) -> None:
    async with session(ScriptedEngine([b"secret_price"]), trace="messages" if at_start else "off") as (client, server):
        client.notify("textDocument/didOpen", {"textDocument": cell("file:///p/a.py", "secret_total = ")})
        if not at_start:
            await ready(client, server)
            await client.inline("file:///p/a.py", 0, 15)
            assert not [method for method, _ in client.heard if method == "$/logTrace"]
            client.notify("$/setTrace", {"value": "verbose"})
        await ready(client, server)
        await client.inline("file:///p/a.py", 0, 15)
        line = await client.until("$/logTrace")
    assert "shown" in line["message"] or "unavailable" in line["message"]
    assert ("verbose" in line and line["verbose"] is not None) is not at_start
    assert "secret" not in str(line) and "a.py" not in str(line)


async def test_the_menu_comes_and_goes_with_the_setting() -> None:
    dynamic = {"inlineCompletion": {}, "completion": {"dynamicRegistration": True}}
    async with session(ScriptedEngine([b"price"]), dynamic) as (client, server):
        assert "completionProvider" not in client.capabilities
        client.notify("textDocument/didOpen", {"textDocument": cell("file:///p/a.py", "total = ")})
        await ready(client, server)
        client.notify("workspace/didChangeConfiguration", {"settings": {"suggest": {"surface": "both"}}})
        registered = await client.until("client/registerCapability")
        assert registered["registrations"][0]["method"] == "textDocument/completion"
        place = {"textDocument": {"uri": "file:///p/a.py"}, "position": {"line": 0, "character": 8}}
        found = await client.request("textDocument/completion", place)
        assert [item["textEdit"]["newText"] for item in found["items"]] == ["price"]
        client.notify("workspace/didChangeConfiguration", {"settings": {"suggest": {"surface": "ghost"}}})
        gone = await client.until("client/unregisterCapability")
        assert gone["unregisterations"][0]["id"] == registered["registrations"][0]["id"]


async def test_a_client_without_dynamic_registration_is_left_alone() -> None:
    async with session(ScriptedEngine([b"price"])) as (client, server):
        client.notify("workspace/didChangeConfiguration", {"settings": {"suggest": {"surface": "both"}}})
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        assert not [method for method, _ in client.heard if method.startswith("client/")]
        assert server.surface == "both"
