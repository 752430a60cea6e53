"""Engines for real engine processes in tests, named by `--factory`. Each takes the options as `serve` read them."""

from __future__ import annotations

import asyncio
import mmap
import os
import time
from pathlib import Path
from typing import Any

from lsp_complete.engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo
from lsp_complete.engine.fake import FAKE_INFO, ScriptedEngine
from lsp_complete.errors import ModelError


def scripted(options: dict[str, Any]) -> ScriptedEngine:
    """Answers at once with options["text"]."""
    return ScriptedEngine([str(options.get("text", "answer")).encode()])


class Holding(ScriptedEngine):
    """A request with max_tokens above 1 gives one delta and never ends; others are answered."""

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        if request.max_tokens > 1:
            if on_delta is not None:
                on_delta(b"x")
            await asyncio.Event().wait()
        return await super().complete(request, on_delta, client=client)


def holding(options: dict[str, Any]) -> ScriptedEngine:
    """See Holding."""
    return Holding()


class Blocking(ScriptedEngine):
    """A request with max_tokens above 1 stops the event loop itself."""

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        while request.max_tokens > 1:
            time.sleep(3600)  # noqa: ASYNC251 - a stopped event loop is what it is for
        return await super().complete(request, on_delta, client=client)


def blocking(options: dict[str, Any]) -> ScriptedEngine:
    """See Blocking."""
    return Blocking()


class Crashing(ScriptedEngine):
    """The process aborts while it loads, as on a failed assertion in native code."""

    async def info(self) -> ModelInfo:
        os.abort()


def crashing(options: dict[str, Any]) -> ScriptedEngine:
    """See Crashing."""
    return Crashing()


def is_gguf(path: str) -> bool:
    """Whether a file begins as GGUF files do."""
    return Path(path).read_bytes()[:4] == b"GGUF"


class Checking(ScriptedEngine):
    """Loads only a file that says GGUF."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    async def info(self) -> ModelInfo:
        if not is_gguf(self._path):
            raise ModelError("the file is no GGUF file; get it again")
        return FAKE_INFO


def checking(options: dict[str, Any]) -> ScriptedEngine:
    """See Checking."""
    return Checking(options["model_path"])


class Mapped(Checking):
    """Maps the model file as llama.cpp does, and reads its last page for every answer: cut short, that is SIGBUS."""

    async def info(self) -> ModelInfo:
        info = await super().info()
        self._map = await asyncio.to_thread(mapped, self._path)
        if len(self._map) < MAPPED_BYTES:
            raise ModelError(f"the file is truncated: it has {len(self._map)} of {MAPPED_BYTES} bytes")
        return info

    async def complete(
        self, request: CompletionRequest, on_delta: DeltaCallback | None = None, *, client: str = ""
    ) -> Completion:
        assert self._map[MAPPED_BYTES - 1] == 0
        return await super().complete(request, on_delta, client=client)


MAPPED_BYTES = 1 << 20


def mapped(path: str) -> mmap.mmap:
    """The whole file, read-only."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def mapping(options: dict[str, Any]) -> ScriptedEngine:
    """See Mapped."""
    return Mapped(options["model_path"])
