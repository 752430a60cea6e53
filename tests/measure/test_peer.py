"""The peer: llama.vim's requests and chunks, and closed mode against a toy `/infill`."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.errors import EngineUnavailable
from lsp_complete.measure.bench_typing import TypingOptions, measure
from lsp_complete.measure.corpus import Place, Source
from lsp_complete.measure.edits import Edit, Position
from lsp_complete.measure.peer import TOKENS, Peer, PeerClient, address, peer_session
from lsp_complete.measure.peer_vim import Chunk, Ring, local, request, shown, similarity
from lsp_complete.suggest.how_much import LINE_TOKENS

from .conftest import Options

KNOWN = "    result = compute(value, 20, [1, 2])"
LINES = [f"line {n}" for n in range(600)]


class Infill(BaseHTTPRequestHandler):
    """Knows one line: answers with what is left of it where the cursor's line begins like it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply({"model_path": "/somewhere/fake.gguf"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        middle = asked["prompt"]
        content = KNOWN[len(middle) :] if KNOWN.startswith(middle) else ""
        timings = {"prompt_n": 250, "cache_n": 50, "predicted_n": 7, "prompt_ms": 900.5, "predicted_ms": 100.0}
        self._reply({"content": content, "timings": timings})

    def _reply(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = self.server.hurried  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def infill() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Infill)
    server.asked, server.hurried = [], False  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


# -- values ----------------------------------------------------------------------------------------------


def test_the_local_context_is_lines_around_the_cursor() -> None:
    where = local(LINES, 300, 4)
    assert where.prefix.startswith("line 44\n") and where.prefix.endswith("line 299\n")
    assert where.middle == "line" and where.suffix.startswith(" 300\nline 301\n")
    assert where.suffix.endswith("line 364\n") and where.indent == 0
    blank = local(["a", "    ", "b"], 1, 4)
    assert (blank.middle, blank.suffix, blank.indent) == ("", "\nb\n", 0)
    assert local(["    x"], 0, 5).indent == 4


def test_a_request_has_llama_vims_defaults_and_our_stop() -> None:
    asked = request(local(["a"], 0, 1), [Chunk("f.py", ("x", "y"))], tokens=TOKENS, stop=["\n"], seed=1)
    assert (asked["top_k"], asked["top_p"], asked["samplers"]) == (40, 0.9, ["top_k", "top_p", "infill"])
    assert asked["id_slot"] == 0 and asked["cache_prompt"] and asked["t_max_predict_ms"] == 250
    assert asked["stop"] == ["\n"] and asked["n_predict"] == TOKENS == LINE_TOKENS
    assert asked["input_extra"] == [{"text": "x\ny\n", "filename": "f.py"}]


def test_what_repeats_is_not_shown() -> None:
    lines = ["foo(", "    ", "bar(1)"]
    assert shown("x)\n\n", lines, 0, 4) == "x)"
    assert shown("", lines, 0, 4) == shown("\n", lines, 0, 4) == shown("  ", ["a"], 0, 1) == ""
    assert shown("    y = 1", lines, 1, 4) == "y = 1"  # the request began at the line's start
    assert shown(")", ["foo()"], 0, 4) == ""
    assert shown("bar(1)", ["", "", "bar(1)"], 0, 0) == ""
    assert shown("(1)", ["bar", "", "bar(1)"], 0, 3) == ""


def test_chunks_are_gathered_after_a_far_move_and_wait_for_a_pause() -> None:
    ring = Ring(random.Random(1))
    ring.asked("f.py", LINES, 500)
    assert not ring.chunks and [len(chunk.lines) for chunk in ring.queued] == [33, 36]  # a part, and all there is
    ring.asked("f.py", LINES, 520)
    assert len(ring.queued) == 2  # not far enough
    while ring.update():
        pass
    assert len(ring.chunks) == 2 and int(ring.chunks[0].lines[-1].split()[1]) <= 244
    row = int(ring.chunks[1].lines[10].split()[1])
    ring.near(LINES, row)
    assert len(ring.chunks) == 1  # one was around the cursor


def test_the_ring_keeps_the_newest_and_no_doubles() -> None:
    ring = Ring(random.Random(1), limit=3)
    for number in range(5):
        ring.entered(f"{number}.py", [f"{number}:{n}" for n in range(20)], 0)
        ring.update()
    assert [chunk.name for chunk in ring.chunks] == ["2.py", "3.py", "4.py"]
    ring.entered("4.py", [f"4:{n}" for n in range(20)], 0)
    assert not ring.queued
    none = Ring(random.Random(1), limit=0)
    none.asked("f.py", LINES, 300)
    assert not none.update()
    assert similarity(["a", "b"], ["b", "c"]) == 0.5 and similarity([], []) == 0.0


@pytest.mark.parametrize("bad", ["https://127.0.0.1:1", "http://example.org", "http://10.0.0.1:80", "127.0.0.1:8099"])
def test_only_this_machine_is_asked(bad: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        address(bad)
    with pytest.raises(ValueError, match="loopback"):
        TypingOptions(peer=Peer(bad))
    with pytest.raises(ValueError, match="closed mode"):
        TypingOptions(peer=Peer("http://localhost:1"), closed=False)
    assert address("http://[::1]:99") == ("::1", 99)


# -- over HTTP -------------------------------------------------------------------------------------------


async def test_a_document_is_kept_and_asked_about(infill: ThreadingHTTPServer) -> None:
    client = PeerClient(Peer(url(infill)))
    uri = "file:///somewhere/a%20b.py"
    client.open(uri, "python", "\n".join(LINES))
    client.change(uri, [Edit(Position(300, 0), Position(300, 8), KNOWN[:10])])
    answer = await client.inline(uri, Position(300, 10))
    assert answer.items[0].text == KNOWN[10:] and answer.received > answer.sent
    assert answer.stages["evaluated"] == 250 and answer.stages["prompt_tokens"] == 300
    await client.rest()
    asked = infill.asked  # type: ignore[attr-defined]
    assert asked[0]["input_extra"] == [] and asked[0]["prompt"] == KNOWN[:10]
    assert [each["n_predict"] for each in asked[1:]] == [0, 0, 0]  # entering the file, far above, far below
    assert asked[-1]["input_extra"][0]["filename"] == "a b.py"
    client.close(uri)
    client.close_connection()


async def test_a_connection_that_the_server_has_closed_is_opened_again(infill: ThreadingHTTPServer) -> None:
    infill.hurried = True  # type: ignore[attr-defined]
    client = PeerClient(Peer(url(infill)))
    assert [await client.model() for _ in range(3)] == ["fake.gguf"] * 3
    client.close_connection()


async def test_nothing_there_is_said(infill: ThreadingHTTPServer) -> None:
    infill.shutdown()
    infill.server_close()
    with pytest.raises(EngineUnavailable, match="does not answer"):
        async with peer_session(Peer(url(infill))):
            pass


async def test_closed_mode_types_into_both(
    infill: ThreadingHTTPServer, fake_options: Options, source: Source, tmp_path: Path
) -> None:
    options = TypingOptions(
        command=fake_options([KNOWN]).command, rhythm=False, standard=False, peer=Peer(url(infill))
    )
    said: list[str] = []
    save = tmp_path / "keys.jsonl"
    result = await measure(options, [Place(source, 1), Place(source, 61)], said.append, save)
    samples = [json.loads(line) for line in save.read_text().splitlines()]
    assert result["closed"]["settings"]["suggest"]["multiline"] == "never"
    assert result["closed"]["settings"]["suggest"]["max_tokens"] == result["peer"]["max_tokens"]
    peer = result["peer"]
    assert peer["p50_ratio"] > 0 and peer["p95_ratio"] > 0 and peer["model"] == "fake.gguf"
    assert peer["line_exact"] == {"lsp-complete": result["closed"]["line_exact"], "peer": peer["figures"]["line_exact"]}
    assert peer["figures"]["evaluated_per_key_p50"] == 250 and peer["figures"]["line_exact"] > 0
    assert not [text for text in said if "compares two models" in text]
    sides = {name: [(s["place"], s["key"], s["opening"], s["expects"]) for s in samples if s["variant"] == name] for name in ("lsp-complete", "peer")}
    assert sides["lsp-complete"] == sides["peer"]  # the same keys
