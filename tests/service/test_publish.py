"""A server's published figures, and the command that shows them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lsp_complete import cli
from lsp_complete.commands import stats
from lsp_complete.measure.stages import StageRecord
from lsp_complete.measure.statistics import Statistics
from lsp_complete.service.publish import Figures, Publisher, plain, published


def figures(roots: tuple[str, ...] = ("/home/someone/secret-project",)) -> Figures:
    statistics = Statistics()
    for number in range(5):
        statistics.add(StageRecord(number, source="model", outcome="shown", total_ms=100.0 + number), 1.0)
    return Figures(statistics, 2.0, {"accepted": 3}, 2, "model.gguf", "", roots, 0.9)


async def publish(directory: Path) -> list[dict[str, Any]]:
    made: list[Figures] = []
    begun = asyncio.Event()

    def make() -> Figures:
        begun.set()
        made.append(figures())
        return made[-1]

    publisher = Publisher(make, lambda: directory)
    for _ in range(3):
        publisher.noted()
    await begun.wait()
    assert publisher._writing is not None
    await publisher._writing
    publisher.noted()  # too soon for a second file
    await asyncio.sleep(0)
    found = published(directory)
    await publisher.close()
    publisher.noted()
    assert len(made) == 1
    return found


def test_figures_are_published_seldom_and_go_with_the_server(tmp_path: Path) -> None:
    (found,) = asyncio.run(publish(tmp_path))
    assert found["pid"] == os.getpid() and found["server"]["requests"] == 5 and found["server"]["hit_rates"]["token_table"] == 0.9 and len(found["recent"]) == 5
    assert "secret-project" not in json.dumps(found) and list(tmp_path.iterdir()) == []


def test_no_directory_is_nobodys_trouble(tmp_path: Path) -> None:
    async def run() -> None:
        publisher = Publisher(figures, lambda: tmp_path / "missing")
        publisher.noted()
        await asyncio.sleep(0)
        await publisher.close()

    asyncio.run(run())


def test_what_a_killed_server_left_is_removed_and_rubbish_is_not_read(tmp_path: Path) -> None:
    for number, text in (("1", "{}"), ("2", "{"), ("3", json.dumps(plain(figures(), 0.0))), ("x", "{}")):
        (tmp_path / f"stats-{number}.json").write_text(text)
    (tmp_path / "e-0123456789abcdef.lock").write_text("")
    found = published(tmp_path, alive=lambda pid: pid != 1)
    assert [each["model"] for each in found] == ["model.gguf"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "e-0123456789abcdef.lock", "stats-2.json", "stats-3.json",
    ]  # fmt: skip


def test_the_command_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(json.dumps(plain(figures(), 0.0)))
    monkeypatch.setattr(stats, "gather", lambda: ([value], []))
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["stats"]) == 0
    shown = capsys.readouterr().out
    assert (
        "model.gguf" in shown and "102" in shown and "3 accepted" in shown and "no engine is running" in shown
    )
    assert cli.main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["servers"] == [value]
    monkeypatch.setattr(stats, "gather", lambda: ([], []))
    assert cli.main(["stats"]) == 0 and "No server" in capsys.readouterr().out
