"""Clients that do not keep to the protocol's types: their documents stay exact all the same."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.lsp.lenient import mend
from lsp_complete.measure.edits import Position

from .harness import URI, session

WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 2**40, "character": 2**70}}
START = {"start": {"line": -1, "character": -7}, "end": {"line": 0, "character": 0}}


@pytest.mark.parametrize("version", [None, "missing", 2**50, "7", -3])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"range": WHOLE, "text": "new\n"}, "new\n"),
        ({"range": START, "text": "# "}, "# a = 1\nb = 2\n"),
        ({"range": None, "text": "all\n"}, "all\n"),
        ({"range": START, "rangeLength": -1, "text": ""}, "a = 1\nb = 2\n"),
        ({"rangeLength": None, "text": "x"}, "x"),
    ],
)
async def test_a_change_is_never_lost(version: Any, change: dict[str, Any], expected: str) -> None:
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        item = {"uri": URI, "languageId": None, "version": version, "text": "a = 1\nb = 2\n"}
        document = {"uri": URI, "version": version}
        if version == "missing":
            del item["version"], item["languageId"], document["version"]
        client.notify("textDocument/didOpen", {"textDocument": item})
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        assert (await client.inline(URI, Position(0, 0))).code == 0
        snapshot = server.service.snapshot(URI)
        assert snapshot is not None and snapshot.buffer.text() == expected


@pytest.mark.parametrize("params", [None, [], 5, {}, {"textDocument": 1, "contentChanges": 2}, {"contentChanges": [1, {"range": 3}, {"range": {"start": []}}]}, {"change": 1}, {"change": {"cells": {"textContent": [0, {}]}}}])
def test_what_is_hopeless_stays_as_it_is(params: Any) -> None:
    for method in ("textDocument/didOpen", "textDocument/didChange", "notebookDocument/didOpen", "notebookDocument/didChange"):
        mend(method, params)
