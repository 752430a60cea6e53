"""What `stats` tells of suggestions."""

from __future__ import annotations

import io

from rich.console import Console

from lsp_complete.commands.stats import SHOWN_STAGES, _head, show
from lsp_complete.engine.control import EngineStatus


def test_what_became_of_suggestions_is_told_once_some_were_shown() -> None:
    server = {"pid": 1, "model": "m", "outcomes": {"answered": 3}}
    assert "\n" not in _head(server)
    server["outcomes"] = {
        "answered": 9, "shown": 9, "accepted": 3, "typed_over": 4, "dismissed": 1, "still_there": {"30": 0.9, "120": 0.5}
    }  # fmt: skip
    told = _head(server).splitlines()
    assert "3 accepted" in told[0]
    assert "4 typed over" in told[1] and told[1].endswith("still there: 90% after 30 s, 50% after 120 s")


def test_a_long_line_stays_one_line_in_a_pipe() -> None:
    out = io.StringIO()
    path = "/home/somebody/.cache/lsp-complete/models/" + "m" * 90 + ".gguf"
    server = {
        "pid": 1,
        "model": path,
        "server": {"all": {"count": 1, "ms": {name: {q: 1.0 for q in ("p50", "p95", "p99")} for name in ("total", *SHOWN_STAGES)}}},
    }
    show(Console(file=out, width=80), [server], [EngineStatus("e", "failed", 1, message=path)])
    lines = out.getvalue().splitlines()
    assert sum(path in line for line in lines) == 2
    assert any("P95" in line and "prefill" in line and "send" in line for line in lines)


def test_the_table_of_times_fits_80_columns() -> None:
    out = io.StringIO()
    times = {name: {q: 4321.0 for q in ("p50", "p95", "p99")} for name in ("total", *SHOWN_STAGES)}
    server = {"pid": 1, "model": "m", "server": {"all": {"count": 999, "ms": times}, "scenarios": {"after_accept": {"count": 9, "ms": times}}}}
    show(Console(file=out, width=80), [server], [])
    told = out.getvalue()
    assert "…" not in told and "after accept" in told and told.count("4321") == 20


def test_the_reference_model_is_told_of_where_one_is_configured() -> None:
    server = {"pid": 1, "model": "m", "outcomes": {}}
    assert "reference" not in _head(server)
    told = {"model": "larger", "ready": True, "problem": "", "asked": 5, "kept": 3, "stopped": 1, "failed": 0, "offered": 2}
    assert _head({**server, "reference": told}).splitlines()[1] == (
        "  reference model larger: 5 asked, 3 kept, 1 stopped, 0 failed, 2 offered"
    )
    waiting = {**told, "ready": False}
    assert "larger (not needed yet): " in _head({**server, "reference": waiting})
    assert "larger (not used: too large): " in _head({**server, "reference": {**waiting, "problem": "too large"}})
