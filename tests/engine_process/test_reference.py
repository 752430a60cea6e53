"""The reference model with real engines: two processes of the 0.5B, one of which takes only what the other leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from lsp_complete.config import Settings
from lsp_complete.service import Query, Service
from lsp_complete.service.startup import open_engine, open_reference
from lsp_complete.text.document import Document

from .test_model import MODEL
from .test_process import ended, lock_holders

pytestmark = pytest.mark.model
ABOVE = "def area(width: int, height: int) -> int:\n    return "
URI = "file:///project/a.py"


async def at_once(_seconds: float) -> None:
    """Whoever rests has rested long enough."""


async def test_it_answers_behind_the_main_model_from_a_process_that_gives_way(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run_dir))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "larger.gguf").symlink_to(MODEL)
    settings = Settings.model_validate(
        {
            "model": str(MODEL), "reference_model": str(tmp_path / "larger.gguf"), "prefetch": "off", "first_deadline_ms": 0,
            "engine": {"context": 2048, "slots": 4, "host_cache_mb": 0, "disk_cache_mb": 0, "threads": 1},
            "suggest": {"level": "eager", "typed_through": False, "time_limit_ms": 60000}, "context": {"cross_file": False},
        }
    )  # fmt: skip
    service = Service(settings, open_engine, lambda *_: None, lambda *_, busy=False: None, reference=open_reference)
    reference = service.reference
    reference._sleep = at_once
    service.thrift._look = lambda: False
    folder = run_dir / "lsp-complete"
    try:
        document = Document.open(URI, "python", 1, ABOVE + "\n")
        service.open(document)
        assert service.brain._task is not None
        await service.brain._task
        answer = await service.answer(Query(document, len(ABOVE), 0.0))
        assert [s.text for s in answer.suggestions] == ["width * height"], answer.stages
        main = set(lock_holders(folder))
        for step in range(200):  # to the engine's start, then from its readiness to its answer; each is waited for, not timed
            waiting = [t for t in (reference._task, reference.brain._task) if t is not None and not t.done()]
            if not waiting and step:
                break
            await asyncio.wait(waiting or [asyncio.ensure_future(asyncio.sleep(0))])
        figures = reference.figures()
        assert figures["problem"] == "" and figures["ready"] and figures["model"] == "larger.gguf"
        assert (figures["asked"], figures["kept"], figures["held"]) == (1, 1, 1)
        (pid,) = set(lock_holders(folder)) - main
        assert len(main) == 1 and psutil.Process(pid).nice() == 19
        if sys.platform == "linux":
            assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        (kept,) = reference._store._kept.values()
        assert kept.shown == "width * height"
    finally:
        await service.close()
        for pid in lock_holders(folder):
            os.kill(pid, signal.SIGKILL)
            await ended(pid)
