"""Log lines of requests: JSON, no code, one for each, only when asked for."""

from __future__ import annotations

import io
import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from lsp_complete.config import Settings
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.measure.stages import StageRecord
from lsp_complete.service import Query
from lsp_complete.service.request_log import RequestLog, line, to_stderr
from lsp_complete.text.document import Document

from .test_context_join import MARK, window

NOW = datetime(2026, 1, 2, 5, 4, 5, 678000, timezone(timedelta(hours=2)))


def test_a_line_is_json_without_code() -> None:
    document = Document.open("file:///home/someone/secret.py", "python", 7, "password = 'hunter2'\n")
    told = line(StageRecord(3, source="model", outcome="shown", total_ms=12.34567), Query(document, 5, 0.0), NOW)
    value = json.loads(told)
    assert "\n" not in told and not {"secret", "someone", "hunter2", "password"} & set(told.replace('"', " ").split())
    assert "secret" not in told and "hunter2" not in told
    assert (value["time"], value["event"], value["request"]) == ("2026-01-02T03:04:05.678+00:00", "request", 3)
    assert (value["total_ms"], value["outcome"], value["language"], value["version"]) == (12.346, "shown", "python", 7)
    assert set(StageRecord.__dataclass_fields__) < set(value)


async def test_one_line_for_each_request_and_none_unless_asked_for(tmp_path: Path) -> None:
    lines: list[str] = []
    async with window(tmp_path, {}, log={"requests": True}) as view:
        view.service.brain.engine = view.engine = ScriptedEngine([b"value * 2"])
        view.service.request_log._write = lines.append
        uri = view.open("a.py", f"def total(values):\n    return {MARK}\n")
        await view.ask(uri)
        await view.ask(uri)
        assert [json.loads(each)["outcome"] for each in lines] == ["shown", "shown"]
        assert "value * 2" not in "".join(lines)
        view.service.configure(Settings.model_validate({"prefetch": "off"}))
        await view.ask(uri)
        assert len(lines) == 2 and not RequestLog().on


def test_a_closed_standard_error_is_nobodys_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    to_stderr("{}")
    assert stream.getvalue() == "{}\n"
    stream.close()
    to_stderr("{}")
