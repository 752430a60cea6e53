"""The demo and the `bench` command line, against the fake server."""

from __future__ import annotations

import argparse
import json
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.measure import bench, bench_typing, demo
from lsp_complete.measure.corpus import Source
from lsp_complete.measure.envelope import envelope

from .conftest import FAKE, Options


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "rhythm_ms", lambda rng: repeat(0.0))


def run_demo(source: Source) -> int:
    return demo.main(["--file", str(source.path), "--lines", "1", "--server", *FAKE])


def test_the_demo_shows_suggestions(
    fake_options: Options, source: Source, at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_options([line for line in source.text.splitlines() if "compute" in line])
    assert run_demo(source) == 0
    printed = capsys.readouterr().out
    assert "with a suggestion" in printed and "2 evaluated" in printed and "compute(value" in printed
    assert "‹" in printed and "›" in printed  # no colours here: what is typed and what is suggested must differ


def test_the_demo_fails_without_suggestions(
    fake_options: Options, source: Source, at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_options([])
    assert run_demo(source) == 1
    printed = capsys.readouterr().out
    assert "No suggestion came" in printed and "no suggestion" in printed and "‹" not in printed


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *words])


def test_the_typing_command_passes_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[bench_typing.TypingOptions] = []

    def fake_run(options: bench_typing.TypingOptions, save: Path | None) -> dict[str, Any]:
        seen.append(options)
        return {"closed": {"p50_ms": 1.0}, "files": ["a", "b"]}

    monkeypatch.setattr(bench_typing, "run", fake_run)
    words = ["--places", "3", "--seed", "9", "--mode", "closed", "--no-standard", "--model", "/x/m.gguf"]
    arguments = parse(
        "typing", *words, "--set", "context.lines_above=40", "--set", "suggest.level=quiet", "--json"
    )
    assert arguments.run(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["bench"] == "typing" and printed["seed"] == 9 and printed["model"] == "m.gguf"
    assert printed["settings"] == {"context": {"lines_above": 40}, "suggest": {"level": "quiet"}}
    assert seen == [
        bench_typing.TypingOptions(
            places=3, seed=9, model="/x/m.gguf", rhythm=False, standard=False, settings=printed["settings"]
        )
    ]
    arguments = parse("typing")
    assert arguments.run(arguments) == 0
    assert "closed.p50_ms" in capsys.readouterr().out


def test_missing_input_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parse("quality", "--data", str(tmp_path / "none.jsonl"))
    assert arguments.run(arguments) == 2
    assert "none.jsonl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse("typing", "--set", "nonsense")


def test_an_envelope_names_no_host_or_folder() -> None:
    import os
    import socket

    text = json.dumps(envelope("x", {"a": 1}, model="/home/somebody/models/m.gguf", settings={}, seed=1))
    assert "somebody" not in text and os.getcwd() not in text and socket.gethostname() not in text
    assert {"product", "machine", "date", "seed", "repetitions"} <= set(json.loads(text))
