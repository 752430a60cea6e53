"""`lsp-complete models`: what it prints and returns."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.models.cli_models import add_parser, plain_progress
from lsp_complete.models.paths import part_path

from . import builders


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["models", *words])
    code: int = args.run(args)
    return code


def test_list_shows_every_model_and_what_is_here(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    default = load_catalogue().default_model
    part_path(folder / default.file.name).write_bytes(b"x")
    (folder / "mine.gguf").write_bytes(builders.tiny_gguf())
    assert run("list") == 0
    text = capsys.readouterr().out
    assert all(model.short_name in text for model in load_catalogue().models)
    assert "fetched in part" in text and "mine" in text and "Research licence" in text


def test_list_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.gguf").write_bytes(builders.tiny_gguf())
    assert run("list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [*(model.name for model in load_catalogue().models), "mine"]
    assert (
        rows[0]["state"] == "absent"
        and rows[0]["sources"] == ["hub", "registry"]
        and rows[0]["memory"] > rows[0]["size"]
    )


def test_path_of_a_missing_model_fails_with_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("path", "qwen2.5-coder-1.5b") == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "lsp-complete models pull qwen2.5-coder-1.5b" in captured.err


def test_path_and_remove(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder / "mine.gguf"
    own.write_bytes(builders.tiny_gguf())
    assert run("path", "mine") == 0
    assert capsys.readouterr().out.strip() == str(own)
    default = load_catalogue().default_model
    (folder / default.file.name).write_bytes(b"damaged")
    assert run("verify") == 1
    assert "damaged" in capsys.readouterr().out
    assert run("remove", default.name) == 0
    assert run("remove", default.name) == 1


def test_verify_with_nothing_here(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify") == 0
    assert "No catalogue model is here" in capsys.readouterr().out


def test_pull_says_the_licence_and_fails_cleanly(
    folder: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("pull", "qwen2.5-coder-3b") == 1
    captured = capsys.readouterr()
    assert "no commercial use" in captured.err and "cannot be reached" in captured.err and captured.out == ""


def test_unknown_names_and_sources(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pull", "nonesuch") == 1
    assert "No model is called" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run("pull", "qwen2.5-coder-3b", "--source", "moon")
    assert caught.value.code == 2


def test_plain_progress_is_a_line_per_step_and_tenth() -> None:
    lines: list[str] = []
    show = plain_progress("tiny", lines.append)
    for done in range(0, 1001, 10):
        show(done, 1000, "from the hub")
    show(1000, 1000, "checking")
    show(0, 0, "waiting")
    assert len(lines) == 13
    assert lines[0].startswith("tiny: from the hub: 0 MB")
