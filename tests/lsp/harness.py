"""A real server and a real client in one loop, joined by a socket pair, with a scripted engine behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lsp_complete.context.anchor import Window
from lsp_complete.context.prompt import FimTokens
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import ModelError
from lsp_complete.lsp.server import CompletionServer, _serve, create_server
from lsp_complete.measure.client import LspClient
from lsp_complete.service.brain import Opened
from lsp_complete.service.planning import LoadedModel

URI = "file:///project/a.py"


class ByteTokenizer:
    """One token per byte; three special tokens above them."""

    pre = ""
    size = 300
    SPECIAL = {"<P>": 256, "<S>": 257, "<M>": 258}

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def special(self, text: str) -> int | None:
        return self.SPECIAL.get(text)


MODEL = LoadedModel(
    ByteTokenizer(),
    FimTokens((256,), (257,), (258,)),
    Window(lines_above=20, lines_below=5, anchor_lines=6, max_tail_lines=12),
    "",
    "fake",
)


def prompt_text(prompt: tuple[int, ...]) -> str:
    """A byte prompt as text, special tokens spelled out."""
    names = {256: "<P>", 257: "<S>", 258: "<M>"}
    out = b"".join(names[t].encode() if t in names else bytes([t]) for t in prompt)
    return out.decode("utf-8", "replace")


@asynccontextmanager
async def session(
    engine: ScriptedEngine | None = None,
    options: dict[str, Any] | None = None,
    client_name: str = "test",
    no_model: bool = False,
) -> AsyncIterator[tuple[LspClient, CompletionServer, ScriptedEngine]]:
    """A running server with an initialized client."""
    engine = engine or ScriptedEngine()
    left, right = socket.socketpair()
    server_reader, server_writer = await asyncio.open_connection(sock=left)
    client_reader, client_writer = await asyncio.open_connection(sock=right)
    server = create_server()

    async def opener(_settings: Any, _on_state: Any) -> Opened:
        if no_model:
            raise ModelError("No model is installed. Run `lsp-complete models pull qwen2.5-coder-0.5b`.")
        return Opened(engine, lambda _info: MODEL)

    server.service.brain._opener = opener
    task = asyncio.ensure_future(_serve(server, server_reader, server_writer))
    client = LspClient(client_reader, client_writer)
    try:
        options = options or {}
        settings = {"prefetch": "off", **options.get("settings", {})}
        await client.initialize(None, {"stageNotifications": True, **options, "settings": settings}, client_name)
        yield client, server, engine
    finally:
        client_writer.close()
        await asyncio.wait({task}, timeout=10)
        client._task.cancel()
        server_writer.close()
