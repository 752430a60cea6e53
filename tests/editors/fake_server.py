"""What the editors of these tests start as their server: the real one, whose engine process holds the crib.

Everything but the model is real: the process, standard input and output, the service, the engine process and its
socket. The engine leaves EDITOR_TEST_IDLE seconds after its last client. Where EDITOR_TEST_GATE names a pipe, it starts when the test has opened that.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lsp_complete.cli import main
from lsp_complete.config import Settings
from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.launch import EngineLaunch, ServeRules
from lsp_complete.lsp import server
from lsp_complete.service.brain import Opened
from tests.lsp.harness import MODEL


async def open_crib(_settings: Settings, on_state: Callable[[str, str], None]) -> Opened:
    """As `service.startup.open_engine`, with the scripted engine and its byte tokenizer."""
    gate = os.environ.get("EDITOR_TEST_GATE")
    if gate:
        await asyncio.to_thread(Path(gate).read_bytes)
    rules = ServeRules(idle_s=float(os.environ.get("EDITOR_TEST_IDLE", "1")))
    launch = EngineLaunch("crib.gguf", rules=rules, factory="tests.editors.crib:engine")
    return Opened(EngineClient(launch, on_state), lambda _info: MODEL)


if __name__ == "__main__":
    server.open_engine = open_crib
    sys.exit(main())
