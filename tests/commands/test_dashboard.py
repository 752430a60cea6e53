"""The dashboard: who may read it, what is on it, and the metrics' form."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.commands.dashboard import Dashboard
from lsp_complete.commands.dashboard_page import metrics, page
from lsp_complete.commands.stats import plain_engine
from lsp_complete.engine.control import EngineStatus
from lsp_complete.measure.recording import SUFFIX
from lsp_complete.measure.stages import StageRecord
from lsp_complete.measure.statistics import Statistics
from lsp_complete.service.publish import Figures, plain

TOKEN = "a-token"


def server() -> dict[str, Any]:
    statistics = Statistics()
    for number in range(8):
        record = StageRecord(
            number, source="model", outcome="shown", total_ms=50.0, decode_ms=40.0, transfer_ms=10.0
        )
        statistics.add(record, 1.0)
    value: dict[str, Any] = json.loads(
        json.dumps(plain(Figures(statistics, 2.0, {}, 1, "<model>", "", ()), 0.0))
    )
    return value


def engine() -> dict[str, Any]:
    slots = [{"slot": 0, "key": "file:///home/someone/secret.py", "tokens": 300, "busy": True}]
    stats: dict[str, object] = {"slots": slots, "waiting": 2, "running": 1, "process": {"rss_bytes": 1 << 30}}
    return plain_engine(EngineStatus('e-"1"', "ready", 7, stats=stats))


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def request(url: str, method: str = "GET", path: str | None = None, host: str | None = None) -> bytes:
    found = re.fullmatch(r"http://(127\.0\.0\.1:(\d+))(/.*)", url)
    assert found
    reader, writer = await asyncio.open_connection("127.0.0.1", int(found[2]))
    writer.write(f"{method} {path or found[3]} HTTP/1.1\r\nHost: {host or found[1]}\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


def test_only_who_has_the_address_reads_it(tmp_path: Path) -> None:
    (tmp_path / f"20260101-000000-1-1{SUFFIX}").write_text("x")

    async def run() -> None:
        board = Dashboard(TOKEN, lambda: ([server()], [engine()]), tmp_path, clock=iter(range(100)).__next__)
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(board.serve(0, url.set_result))
        address = await url
        await board.sample()
        await board.sample()
        good = await request(address)
        assert status_of(good) == 200 and b"latency over time" in good and SUFFIX.encode() in good
        assert b"&lt;model&gt;" in good and b"secret" not in good and b"<script" not in good
        numbers = await request(address, path=f"/{TOKEN}/metrics")
        assert b"openmetrics-text" in numbers and numbers.endswith(b"# EOF\n")
        port = address.split(":")[2].split("/")[0]
        assert status_of(await request(address, host=f"evil.example:{port}")) == 403
        assert status_of(await request(address, path="/wrong/")) == 403
        assert status_of(await request(address, path="/")) == 403
        assert status_of(await request(address, method="POST")) == 405
        assert status_of(await request(address, path=f"/{TOKEN}/other")) == 404
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(run())


SAMPLE = re.compile(r'lspc_[a-z_]+\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\} -?[0-9.e+]+')


def test_metrics_are_well_formed() -> None:
    lines = metrics([server()], [engine()]).splitlines()
    assert lines[-1] == "# EOF" and 'lspc_engine_waiting{engine="e-\\"1\\""} 2' in lines
    assert any(line.startswith("lspc_requests_total{") and line.endswith(" 8") for line in lines)
    for line in lines[:-1]:
        assert line.startswith(("# TYPE ", "# HELP ")) or SAMPLE.fullmatch(line), line
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


@pytest.mark.parametrize("servers", [[], [{"pid": 1}]])
def test_a_page_without_figures(servers: list[dict[str, Any]]) -> None:
    html = page(servers, [], {}, [])
    assert "No engine is running" in html and "http:" not in html and "https:" not in html
    assert metrics(servers, []).endswith("# EOF\n")
