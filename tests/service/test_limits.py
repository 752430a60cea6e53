"""Documents beyond the limits: what still works, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete.service import core
from lsp_complete.syntax import jobs
from tests.service.test_context_join import MARK, window


async def test_beyond_the_largest_size_nothing_is_asked_and_nothing_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with window(tmp_path, {}) as view:
        uri = view.open("main.py", f"x = 1\ny = {MARK}\n")
        assert await view.ask(uri)
        monkeypatch.setattr(core, "MAX_TABLE_CHARS", 10)
        assert await view.ask(uri) == ""
        view.type(uri, "2")
        assert await view.ask(uri) == "" and len(view.engine.requests) == 1
        monkeypatch.undo()
        assert (await view.ask(uri)).endswith("y = ")


@pytest.mark.parametrize("content", ["\0\x01\x02\x7fELF" * 40, "\ufffd" * 200 + "\n"])
async def test_binary_content_and_files_without_a_tree_are_answered_from_their_text(tmp_path: Path, content: str) -> None:
    async with window(tmp_path, {}) as view:
        uri = view.open("main.py", f"{content}\nvalue = {MARK}")
        assert (await view.ask(uri)).endswith("value =")
        state = view.service.context.syntax.state(uri)
        assert state is not None and state.tree is None and state.reason == "binary content"


async def test_too_large_for_a_tree_is_answered_from_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "why_not_parsed", lambda _buffer: "larger than 10 characters")
    async with window(tmp_path, {}) as view:
        uri = view.open("main.py", f"def f():\n    return 1\n\n\nvalue = {MARK}")
        prompt = await view.ask(uri)
        assert "def f():" in prompt and prompt.endswith("value =")
