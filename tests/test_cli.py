"""The command line's frame: dispatch, errors in one line, quick start."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lsp_complete import __version__, cli
from lsp_complete.commands import complete as complete_command
from lsp_complete.commands import serve as serve_command
from lsp_complete.errors import ModelError, RequestFailed
from lsp_complete.models.paths import models_dir


def parse(*words: str) -> argparse.Namespace:
    return cli.build_parser(cli.command_of(words)).parse_args(words)


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_parser_with_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hasattr(importlib.import_module(cli.COMMANDS[name][0]), "add_parser")
    with pytest.raises(SystemExit) as stopped:
        cli.main([name, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: lsp-complete")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.strip() == f"lsp-complete {__version__}"


@pytest.mark.parametrize(("encoding", "shown"), [("latin-1", "caf\xe9 \\u2026 \\udcff"), ("utf-8", "caf\xe9 \u2026 \udcff")])
def test_what_a_terminal_cannot_show_ends_no_command(monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str) -> None:
    raw = io.BytesIO()
    output = io.TextIOWrapper(raw, encoding)
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(cli, "_run", lambda _arguments: print("caf\xe9 \u2026 \udcff"))
    assert not cli.main([])
    output.flush()
    assert raw.getvalue().decode(encoding, "surrogateescape") == shown + "\n"


def test_no_command_is_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []
    monkeypatch.setattr(serve_command, "_run", lambda args: seen.append(args))
    for words in (
        [],
        ["--stdio"],
        ["serve"],
        ["--tcp", "0"],
        ["serve", "--tcp=7"],
        ["--clientProcessId=1", "--stdio"],
    ):
        assert cli.main(words) == 0
    assert [args.tcp for args in seen] == [None, None, None, 0, 7, None]


@pytest.mark.parametrize(
    "words",
    [
        ["--tcp", "70000"],
        ["--tcp", "x"],
        ["--stdio", "--tcp", "1"],
        ["--nonsense"],
        ["complete", "f", "--line", "0"],
    ],
)
def test_wrong_usage_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["models", "engine", "replay", "bench"])
def test_a_group_alone_lists_its_commands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"usage: lsp-complete {name}") and shown.err.count("\n") > 5


def test_an_unknown_command_lists_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["complte"]) == 2
    line = capsys.readouterr().err
    assert "complte" in line and "doctor" in line and line.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModelError("no model; run lsp-complete models pull"), "no model; run lsp-complete models pull"),
        (FileNotFoundError(2, "No such file or directory", "x.py"), "x.py: No such file or directory"),
        (ValueError("odd"), "internal error, ValueError: odd; "),
    ],
)
def test_errors_are_one_line(
    error: Exception, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_args: argparse.Namespace) -> int:
        raise error

    monkeypatch.delenv("LSP_COMPLETE_DEBUG", raising=False)
    monkeypatch.setattr(serve_command, "_run", fail)
    assert cli.main([]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"lsp-complete: {expected}") and shown.err.count("\n") == 1
    monkeypatch.setenv("LSP_COMPLETE_DEBUG", "1")
    with pytest.raises(type(error)):
        cli.main([])


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(serve_command, "_run", interrupt)
    assert cli.main([]) == cli.EXIT_INTERRUPTED
    assert capsys.readouterr().err == ""


def test_start_loads_only_what_the_command_needs() -> None:
    code = (
        "import sys; from lsp_complete import cli; cli.main(['version']); "
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in "
        "('pygls', 'pydantic', 'llama_cpp', 'tree_sitter', 'numpy', 'httpx', 'rich')))"
    )
    done = python("-c", code)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == ""


def test_version_names_what_a_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lsp-complete"] == __version__
    assert {"python", "llama-cpp-python", "pygls"} <= set(found)


def test_config_prints_values_origins_and_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text('model = "0.5b"\nsuggest.max_lines = 0\n', encoding="utf-8")
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "lsp-complete.toml").write_text('suggest.level = "quiet"\nmodel = "evil"\n', encoding="utf-8")
    monkeypatch.setenv("LSP_COMPLETE_CONFIG", str(own))
    assert cli.main(["config", str(repo)]) == 1
    shown = capsys.readouterr()
    rows = {line.split()[0]: line for line in shown.out.splitlines()}
    assert '"0.5b"' in rows["model"] and rows["model"].endswith("own.toml")
    assert rows["suggest.level"].endswith("repo/lsp-complete.toml")
    assert "`suggest.max_lines`" in shown.err and "`model`" in shown.err
    cli.main(["config", str(repo), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["suggest.level"]["value"] == "quiet"
    assert len(found["problems"]) == 2
    assert cli.main(["config", "--path"]) == 0
    assert capsys.readouterr().out.strip() == str(own)
    assert cli.main(["config", "--schema"]) == 0
    assert "properties" in json.loads(capsys.readouterr().out)


def test_config_without_problems_is_status_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSP_COMPLETE_CONFIG", str(tmp_path / "none.toml"))
    assert cli.main(["config", str(tmp_path)]) == 0


def test_complete_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.py"
    assert cli.main(["complete", str(path), "--line", "1"]) == 1
    assert "No such file" in capsys.readouterr().err
    path.write_bytes("é".encode("latin-1"))
    with pytest.raises(RequestFailed, match="not UTF-8"):
        complete_command.read_source(path)


def test_the_workspace_is_the_nearest_repository(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    inside = tmp_path / "repo" / "src" / "a.py"
    assert complete_command.workspace_of(inside) == tmp_path / "repo"


def test_module_and_broken_pipe() -> None:
    assert python("-m", "lsp_complete", "--version").stdout.strip() == f"lsp-complete {__version__}"
    script = f"{sys.executable} -m lsp_complete config --schema | head -c 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


@pytest.mark.model
def test_one_suggestion_from_the_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`complete` starts an engine of its own here, and `engine` sees it and ends it."""
    place = tempfile.mkdtemp(prefix="lspc-")  # pytest's own paths are too long for a socket
    file = tmp_path / "sums.py"
    file.write_text("def add(first, second):\n    return first + se\n", encoding="utf-8")
    private = {
        "XDG_RUNTIME_DIR": place,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LSP_COMPLETE_CONFIG": str(tmp_path / "none.toml"),
        "LSP_COMPLETE_MODEL_DIR": str(models_dir()),
        "LSP_COMPLETE_MODEL": "qwen2.5-coder-0.5b",
    }
    for name, value in private.items():
        monkeypatch.setenv(name, value)
    try:
        done = python("-m", "lsp_complete", "complete", str(file), "--line", "2", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["language"] == "python" and found["stages"]["evaluated"] > 0
        assert [item["text"] for item in found["suggestions"]][:1] == ["cond"]
        done = python("-m", "lsp_complete", "complete", str(file), "--line", "2", "--column", "24")
        assert done.stdout == "cond\n"
        done = python("-m", "lsp_complete", "complete", str(file), "--line", "9")
        assert done.returncode == 1 and "has 3 lines" in done.stderr
        (engine,) = json.loads(python("-m", "lsp_complete", "engine", "status", "--json").stdout)
        assert engine["state"] == "ready" and engine["info"]["parameters"] > 0
        assert "model loaded" in python("-m", "lsp_complete", "engine", "logs").stdout
    finally:
        ended = python("-m", "lsp_complete", "engine", "stop").stdout
        shutil.rmtree(place, ignore_errors=True)
    assert str(engine["pid"]) in ended
    assert python("-m", "lsp_complete", "engine", "status").stdout == "no engine is running\n"


def test_without_a_model_complete_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSP_COMPLETE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("LSP_COMPLETE_MODEL_DIR", str(tmp_path / "models"))
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    done = python("-m", "lsp_complete", "complete", str(tmp_path / "a.py"), "--line", "1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "lsp-complete models pull" in done.stderr and done.stderr.count("\n") == 1
