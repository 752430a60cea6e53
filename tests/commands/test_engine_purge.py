"""`lsp-complete engine purge`: what engines keep on disk goes, of all models, and the user is told of one that still runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lsp_complete.cli import main
from lsp_complete.engine import control
from lsp_complete.engine.diskprompts import DiskCache
from lsp_complete.service.startup import prompts_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("lsp_complete.service.startup.user_cache_dir", lambda name: str(tmp_path / name))
    monkeypatch.setattr(control, "status", list)
    return prompts_folder()


def keep(folder: Path, fingerprint: str) -> None:
    cache = DiskCache(str(folder), fingerprint, 1 << 20, 7.0)
    assert cache.save(np.arange(300, dtype=np.int32), b"state", "doc", wait_s=10)
    cache.close()


def test_prompts_of_all_models_and_the_key_go(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(folder, "a" * 32)
    keep(folder, "b" * 32)
    assert len(list(folder.glob("*.kv"))) == 2
    assert main(["engine", "purge"]) == 0
    assert list(folder.iterdir()) == [] and capsys.readouterr().out == "removed 3 files, 0.0 MB\n"
    assert main(["engine", "purge"]) == 0 and capsys.readouterr().out == "no prompts are kept on disk\n"


def test_a_running_engine_is_told_of(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "status", lambda: [object()])
    assert main(["engine", "purge"]) == 0 and "engine stop" in capsys.readouterr().out


def test_a_running_engines_entries_are_gone_too(folder: Path) -> None:
    keep(folder, "a" * 32)
    cache = DiskCache(str(folder), "a" * 32, 1 << 20, 7.0)
    found = cache.find(np.arange(300, dtype=np.int32), 100, True)
    assert found is not None and main(["engine", "purge"]) == 0
    assert cache.load(found[0]) is None and len(cache) == 0
    cache.close()
