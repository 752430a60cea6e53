"""Recorded editing sessions over a real connection: in the end the server has exactly the texts that the editor had."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.measure import import_vscode
from lsp_complete.measure.recording import Changed, Moved, Opened, Texts
from lsp_complete.measure.replay_points import lsp_edits, position_at

from .harness import session

SAMPLES = Path(__file__).resolve().parents[1] / "measure" / "recordings"
DIGESTS: dict[str, list[list[object]]] = json.loads((SAMPLES / "digests.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(DIGESTS))
async def test_the_server_ends_with_the_known_texts(name: str) -> None:
    state, uris = Texts(), dict[int, str]()
    async with session(ScriptedEngine([b"value"])) as (client, server, _):
        for event in import_vscode.read(SAMPLES / name).events:
            if isinstance(event, Changed):
                client.change(uris[event.doc], lsp_edits(state.text[event.doc], event.edits))
            state.apply(event)
            if isinstance(event, Opened):
                uris[event.doc] = f"file:///project/{event.doc}"
                client.open(uris[event.doc], event.language_id, event.text)
            elif isinstance(event, Moved):
                await client.inline(uris[event.doc], position_at(state.text[event.doc], event.offset))
        await client.request("workspace/executeCommand", {"command": "lsp-complete.stats", "arguments": []})
        seen = []
        for doc, uri in uris.items():
            document = server.service.snapshot(uri)
            assert document is not None
            text = document.buffer.text()
            seen.append((state.opened[doc].path, len(text), hashlib.sha256(text.encode()).hexdigest()[:16]))
    assert sorted(seen) == sorted(map(tuple, DIGESTS[name]))
