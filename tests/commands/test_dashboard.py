"""The dashboard: who may read it, what is on it, and the metrics' form."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.commands.dashboard import Dashboard
from lsp_complete.commands.dashboard_charts import RECENT, age, ms, nice, over_time, waterfalls
from lsp_complete.commands.dashboard_judged import comparisons_list, recordings_list
from lsp_complete.commands.dashboard_page import metrics, page
from lsp_complete.commands.stats import plain_engine
from lsp_complete.engine.control import EngineStatus
from lsp_complete.measure import kept
from lsp_complete.measure.recording import SUFFIX, Header, Recording, write
from lsp_complete.measure.replay_compare import compare
from lsp_complete.measure.stages import StageRecord
from lsp_complete.measure.statistics import Statistics
from lsp_complete.service.publish import Figures, plain
from tests.measure.test_recording import EVENTS
from tests.measure.test_replay import rows

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
    name = f"20260101-000000-1-1{SUFFIX}"
    write(tmp_path / name, Recording(Header("server"), EVENTS))
    (tmp_path / f"20260101-000000-1-0{SUFFIX}").write_text("no recording")
    entry = kept.keep(compare(rows(), rows(exact=0.0)), ("<before>", "after"), ("a", "b"), "worse", tmp_path / "c", 1e9)

    async def run() -> None:
        clock = iter(range(100)).__next__
        board = Dashboard(TOKEN, lambda: ([server()], [engine()]), tmp_path, tmp_path / "c", clock=clock)
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(board.serve(0, url.set_result))
        address = await url
        await board.sample()
        await board.sample()
        good = await request(address)
        assert status_of(good) == 200 and b"latency over time" in good and SUFFIX.encode() in good
        assert b"&lt;model&gt;" in good and b"secret" not in good and b"<script" not in good
        assert b"&lt;before&gt; \xe2\x86\x92 after" in good and b">worse<" in good and b"Areas: the median" in good
        one = await request(address, path=f"/{TOKEN}/recording/{name}")
        assert status_of(one) == 200 and b"characters typed" in one and b"shown" in one
        assert b"secret" not in one and b"123" not in one and b"<script" not in one
        other = await request(address, path=f"/{TOKEN}/comparison/{entry.stem}")
        assert status_of(other) == 200 and b"exact" in other and b"<svg" in other and b"&lt;before&gt;" in other
        for bad in ("recording/../c", "recording/", f"recording/{name.replace('-1-1', '-1-0')}", "comparison/none", "comparison/"):
            assert status_of(await request(address, path=f"/{TOKEN}/{bad}")) == 404
        numbers = await request(address, path=f"/{TOKEN}/metrics")
        assert b"openmetrics-text" in numbers and numbers.endswith(b"# EOF\n")
        port = address.split(":")[2].split("/")[0]
        assert status_of(await request(address, host=f"evil.example:{port}")) == 403
        for host in ("127.0.0.1.evil.example", "localhost.evil", f"evil@127.0.0.1:{port}", "127.0.0.1:", "0.0.0.0"):
            assert status_of(await request(address, host=host)) == 403
        assert status_of(await request(address, host="localhost:9")) == 200  # forwarded
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
    html = page(servers, [], {}, recordings_list([]) + comparisons_list({}))
    assert "record.enabled" in html and "replay gate" in html
    assert "No engine is running" in html and "http:" not in html and "https:" not in html
    assert metrics(servers, []).endswith("# EOF\n")


def test_metrics_have_all_their_digits() -> None:
    value = server()
    value["server"]["outcomes"]["shown"] = 1_234_567
    lines = metrics([value], [engine()]).splitlines()
    assert any(line.endswith(" 1234567") for line in lines) and any(line.endswith(" 1073741824") for line in lines)


ODD_ENTRIES = (
    {"created": "x", "names": [], "result": {}}, {"created": 1e300, "names": [], "result": {}}, {"created": 1.0, "names": 5, "result": {}},
    {"created": 1.0, "names": ["<a>"], "result": {"wall": 5}}, {"created": 1.0, "names": [], "result": {"wall": {}, "quality": ["x"]}}, [],
)  # fmt: skip


def test_odd_files_and_figures_spoil_no_other_page(tmp_path: Path) -> None:
    recordings, comparisons = tmp_path / "r", tmp_path / "c"
    recordings.mkdir()
    comparisons.mkdir()
    for number, entry in enumerate(ODD_ENTRIES):
        (comparisons / f"{number}.json").write_text(json.dumps(entry), encoding="utf-8")
    (comparisons / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    write(recordings / f"a 'b' #1%{SUFFIX}", Recording(Header("server"), EVENTS))
    if os.name == "posix":
        write(Path(os.fsdecode(os.fsencode(recordings) + b"/\xff" + SUFFIX.encode())), Recording(Header("server"), EVENTS))
    server_of_another_version = {"pid": 7, "server": {"all": {"ms": {"total": {"p50": 1, "p95": 2}}}}}

    async def run() -> None:
        board = Dashboard(TOKEN, lambda: ([{"pid": "x"}, server_of_another_version, server()], [engine()]), recordings, comparisons)
        await board.sample()
        await board.sample()
        assert [len(points) for points in board._history.values()] == [2]
        board._servers = [server()]
        main = board.answer("GET", f"/{TOKEN}/", "localhost", {})
        assert status_of(main) == 200 and b"&lt;a&gt;" in main
        links = re.findall(rb'href="((?:recording|comparison)/[^"]*)"', main)
        assert len(links) == (4 if os.name == "posix" else 3)
        found = {link: status_of(board.answer("GET", f"/{TOKEN}/{link.decode()}", "localhost", {})) for link in links}
        assert all(status == (200 if link.startswith(b"recording") else 404) for link, status in found.items())

    asyncio.run(run())


def test_a_page_that_cannot_be_made_is_an_answer(tmp_path: Path) -> None:
    async def run() -> None:
        board = Dashboard(TOKEN, lambda: ([{"pid": 1, "server": {"all": {"ms": {"total": 5}}}}], []), tmp_path, tmp_path)
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(board.serve(0, url.set_result))
        address = await url
        await board.sample()
        assert status_of(await request(address)) == 500
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(run())


def test_curves_fill_their_drawing_and_the_scale_holds_them() -> None:
    parts = (1.0,) * 9
    drawn = over_time([(ago, 20.0, 90.0, parts) for ago in (63.0, 33.0, 3.0)])
    assert "63 s ago" in drawn and ">now<" in drawn and "100 ms" in drawn and "50 ms" in drawn
    (line,) = re.findall(r'stroke="#c05621"[^>]*points="([^"]+)"', drawn)
    dots = [tuple(map(float, dot.split(","))) for dot in line.split()]
    assert [x for x, _ in dots] == [58.0, 345.0, 632.0] and {y for _, y in dots} == {23.6}
    assert over_time([(1.0, 1.0, 1.0, parts)]) == ""
    assert [nice(value) for value in (0.0, 0.4, 99.0, 101.0, 4_100.0)] == [0.001, 0.4, 100.0, 150.0, 5000.0]
    assert (age(90), age(600), ms(0.25), ms(9.96), ms(123.4)) == ("90 s ago", "10 min ago", "0.2", "10", "123")


def test_only_the_newest_requests_are_drawn() -> None:
    drawn = waterfalls([{"total_ms": 10.0 + n, "decode_ms": 10.0, "outcome": "<b>"} for n in range(40)])
    assert drawn.count('class="bar"') == RECENT and "10 ms" in drawn and "<b>" not in drawn and "width:" in drawn


def test_kept_comparisons_hold_no_names_of_code_and_the_newest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "comparisons"
    monkeypatch.setattr(kept, "KEEP", 3)
    for number in range(5):
        kept.keep(compare(rows(), rows(exact=0.0, text="secret_name")), ("a", str(number)), ("m", "m"), "worse", where, 1e9 + number)
    found = kept.comparisons(where)
    assert [entry["names"][1] for entry in found.values()] == ["4", "3", "2"]
    assert "secret_name" not in json.dumps(found) and "result" in next(iter(found.values()))
    assert '"gained_names"' not in json.dumps(found)
    if os.name == "posix":
        assert where.stat().st_mode & 0o777 == 0o700 and {p.stat().st_mode & 0o777 for p in where.iterdir()} == {0o600}
    (where / "99999999.json").write_text("{", encoding="utf-8")
    assert len(kept.comparisons(where)) <= 3 and kept.comparisons(tmp_path / "none") == {}


def test_a_recording_in_figures() -> None:
    told = kept.counted(Recording(Header("server"), EVENTS))
    assert (told["requests"], told["accepted"], told["documents"], told["characters typed"]) == (1, 1, 1, 3)
    assert told["p50_ms"] == 0.5 and told["outcomes"] == {"shown": 1}
    assert kept.counted(Recording(Header("git"), ()))["p50_ms"] is None


def test_it_ends_with_its_standard_input() -> None:
    command = [sys.executable, "-m", "lsp_complete", "dashboard", "--port", "0", "--until-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert re.match(r"lsp-complete dashboard: http://127\.0\.0\.1:\d+/\S+/ ", process.stdout.readline())
        process.stdin.close()
        assert process.wait(60) == 0
