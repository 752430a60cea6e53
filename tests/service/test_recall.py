"""Outlines of documents that were open before: there at once after a restart, and only of what may be kept. And what the index hurries."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.service.recall import OutlineMemory
from lsp_complete.store.disk import DiskCache
from lsp_complete.syntax import jobs
from lsp_complete.syntax.outline import outline_text
from lsp_complete.text.buffer import TextBuffer
from tests.service.test_context_join import CLIENT, window

EDITED = CLIENT + "\n\ndef more() -> None:\n    pass\n"


def names(outline: Any) -> list[str]:
    return [node.name for node in outline.nodes if node.name]


def kept(tmp_path: Path, name: str, text: str) -> bool:
    """Whether a new session would know the outline of a text."""
    disk, memory = DiskCache(tmp_path / "cache"), OutlineMemory()
    memory.use(disk)
    found = memory.recall(str(tmp_path / "work" / name), TextBuffer.from_text(text))
    disk.close()
    return found is not None


async def test_after_a_restart_the_outline_is_there_before_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    async with window(work, {"client.py": CLIENT}, disk=DiskCache(tmp_path / "cache")) as view:
        view.open("client.py", CLIENT)
        await view.settled()
    assert kept(tmp_path, "client.py", CLIENT) and not kept(tmp_path, "client.py", EDITED)
    held = threading.Event()
    real = jobs.Job.run

    def holding(job: jobs.Job) -> Any:
        assert held.wait(30)
        return real(job)

    async with window(work, {}, disk=DiskCache(tmp_path / "cache")) as view:
        monkeypatch.setattr(jobs.Job, "run", holding)
        uri = view.open("client.py", CLIENT)
        context = view.service.context
        followed = context._followed[uri]
        followed.parsed = asyncio.Event()
        await followed.parsed.wait()
        state = context.syntax.state(uri)
        held.set()  # the loop has not turned since: what follows is what was known before the parse
        assert state is not None and state.tree is None and state.outline is not None
        assert names(state.outline) == ["Client", "__init__", "fetch"]
        await view.settled()
        state = context.syntax.state(uri)
        assert state is not None and state.exact


async def test_an_edited_document_is_kept_once_it_is_saved(tmp_path: Path) -> None:
    async with window(tmp_path / "work", {"client.py": CLIENT}, disk=DiskCache(tmp_path / "cache")) as view:
        uri = view.open("client.py", CLIENT)
        await view.settled()
        view.type(uri, EDITED[len(CLIENT) :], view.service.snapshot(uri).buffer.position(len(CLIENT)))  # type: ignore[union-attr]
        await view.settled()
        assert view.service.snapshot(uri).buffer.text() == EDITED  # type: ignore[union-attr]
        assert not kept(tmp_path, "client.py", EDITED)
        view.service.saved(uri)
        await view.settled()
        assert kept(tmp_path, "client.py", EDITED)


async def test_what_must_not_be_kept_is_not(tmp_path: Path) -> None:
    work = tmp_path / "work"
    files = {".gitignore": "ignored.py\n", "ignored.py": CLIENT, "client.py": CLIENT, "broken.py": "def f(:\n"}
    async with window(work, files, disk=DiskCache(tmp_path / "cache")) as view:
        view.open("ignored.py", CLIENT)
        view.open("../outside.py", CLIENT)
        view.open("broken.py", "def f(:\n")
        view.open("id_rsa.py", CLIENT)
        await view.settled()
    for name, text in (("ignored.py", CLIENT), ("../outside.py", CLIENT), ("broken.py", "def f(:\n")):
        assert not kept(tmp_path, name, text), name


async def test_without_context_from_other_files_nothing_is_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    async with window(tmp_path / "work", {"client.py": CLIENT}, context={"cross_file": False}, disk=cache) as view:
        view.open("client.py", CLIENT)
        await view.settled()
    cache.close()
    assert not kept(tmp_path, "client.py", CLIENT)


def test_a_language_that_the_name_does_not_tell_is_not_kept(tmp_path: Path) -> None:
    disk, memory = DiskCache(tmp_path / "cache"), OutlineMemory()
    memory.use(disk)
    text = "struct Point {\n  int x;\n};\n"
    for language, name, known in (("cpp", "a.h", False), ("cpp", "a.cpp", True), ("c", "b.h", True)):
        outline = outline_text(language, name, text)
        assert outline is not None and outline.language == language
        buffer = TextBuffer.from_text(text)
        memory.keep(name, buffer, outline)
        assert (memory.recall(name, buffer) == outline) is known
    disk.close()


async def test_what_open_documents_import_is_hurried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        worker = view.service.context.worker
        assert worker is not None
        asked: list[str] = []
        monkeypatch.setattr(worker, "hurry", asked.extend)
        view.open("main.py", "import os.path\nfrom app.client import Client, other\n\n\nClient()\n")
        await view.settled()
        assert {"client", "Client", "other", "os", "path"} <= set(asked)
