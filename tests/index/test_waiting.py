"""What a scan reads first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsp_complete.index import worker as module
from lsp_complete.index.extract import Extracted, extract_file
from lsp_complete.index.index import SymbolIndex
from lsp_complete.index.waiting import Waiting
from lsp_complete.index.walk import FileEntry, Guard
from lsp_complete.index.worker import IndexWorker
from tests.index.test_walk import put


def taken(waiting: Waiting) -> list[str]:
    return [entry.path for entry in iter(waiting.take, None)]


ENTRIES = [FileEntry(f"/w/{name}", mtime, 10) for name, mtime in (("b.py", 5), ("a.py", 5), ("new.py", 9), ("pkg/__init__.py", 1))]


def test_the_file_edited_last_comes_first() -> None:
    assert taken(Waiting(ENTRIES)) == ["/w/new.py", "/w/a.py", "/w/b.py", "/w/pkg/__init__.py"]
    assert taken(Waiting([])) == []


def test_what_is_imported_comes_before_that_and_once() -> None:
    waiting = Waiting(ENTRIES)
    waiting.hurry(["nothing", "b"])
    first = waiting.take()
    assert first is not None and first.path == "/w/b.py"
    waiting.hurry(["pkg", "b", "new"])
    assert taken(waiting) == ["/w/pkg/__init__.py", "/w/new.py", "/w/a.py"]


@pytest.mark.parametrize("helpers", [0, 1])
def test_a_scan_reads_what_is_wanted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helpers: int) -> None:
    """Asked for before the scan has begun to read, and while it stands still."""
    monkeypatch.setattr(module, "HELPERS_FROM", 4)
    order: list[str] = []

    def reading(path: str, max_bytes: int) -> Extracted | None:
        order.append(Path(path).name)
        return extract_file(path, max_bytes)

    class Here:
        """A helper in this process."""

        def __init__(self, max_bytes: int) -> None:
            self.max_bytes = max_bytes

        def extract(self, path: str) -> Extracted | None:
            return reading(path, self.max_bytes)

        def close(self) -> None:
            """Nothing."""

    monkeypatch.setattr(module, "extract_file", reading)
    monkeypatch.setattr(module, "Helper", Here)
    put(tmp_path, {f"{name}.py": f"def {name}(): pass\n" for name in "abcdef"})
    for number, name in enumerate("abcdef"):
        os.utime(tmp_path / f"{name}.py", (1e9 + number, 1e9 + number))
    worker = IndexWorker(SymbolIndex(), Guard([tmp_path], None, tmp_path / "none"), helpers=helpers)
    worker.hurry(["c"])
    worker.pause(True)
    worker.scan()
    worker.hurry(name for name in "ac")
    worker.pause(False)
    assert worker.wait_idle(60)
    worker.close()
    assert order == [f"{name}.py" for name in "cafedb"] and worker.problems == 0
