"""`lsp-complete doctor` as it is called, its editors, its child process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsp_complete import cli
from lsp_complete.doctor import editors
from lsp_complete.doctor.probe import run_probe
from lsp_complete.models.free import free_memory
from lsp_complete.models.installed import resolve
from lsp_complete.models.paths import ENV_FOLDER


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home with no models and no settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv(ENV_FOLDER, str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_editors_are_found_asked_and_searched(home: Path) -> None:
    (home / "config" / "nvim" / "lua").mkdir(parents=True)
    (home / "config" / "nvim" / "lua" / "lsp.lua").write_text("cmd = { 'lsp-complete' }")
    (home / ".vscode" / "extensions" / "someone.lsp-complete-0.1").mkdir(parents=True)
    paths = {"nvim": "/bin/nvim", "codium": "/bin/codium", "hx": "/bin/hx"}
    versions = {"/bin/nvim": "NVIM v0.9.5\n", "/bin/codium": "1.99.0\nabc", "/bin/hx": "helix 25.07.1 (x)"}
    found = editors.look(paths.get, versions.__getitem__)
    assert [(item.name, item.version, item.set_up, item.new_enough) for item in found] == [
        ("Neovim", "0.9.5", True, False),
        ("VS Code", "1.99.0", True, True),
        ("Helix", "25.07.1", False, True),
    ]
    said = editors.findings(found, False, "python -m lsp_complete")
    assert [item.level for item in said] == ["warn", "note", "ok", "note"]
    assert "python -m lsp_complete" in said[0].remedy and "0.10" in said[1].remedy
    assert said[3].remedy == "lsp-complete editor helix --install"


def test_each_editor_has_a_remedy_that_can_be_copied_and_ides_are_not_started(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = {editor.commands[0]: "/bin/" + editor.commands[0] for editor in editors.EDITORS}
    asked: list[str] = []

    def ask(command: str) -> str:
        asked.append(command)
        return "99.1"

    found = editors.look(every.get, ask)
    assert {item.name for item in found} == {editor.name for editor in editors.EDITORS} >= {"Cursor", "JetBrains IDE"}
    assert sorted(asked) == sorted(set(every.values()) - {"/bin/idea"})  # it would open its window
    for item in editors.findings(found, True, ""):
        name = item.remedy.removeprefix("lsp-complete ").split()
        if name[0] == "editor":
            assert cli.main([*name[:2], "--command", "/x/lsp-complete"]) == 0, item
            assert "/x/lsp-complete" in (said := capsys.readouterr().out) or name[1] in ("vscode", "zed"), said


def test_no_editor_is_no_failure() -> None:
    assert [item.level for item in editors.findings((), True, "x")] == ["note"]


def test_large_and_unreadable_configuration_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("lsp-complete" + " " * editors.MOST_BYTES)
    (tmp_path / "other").write_bytes(b"\xff\xfe")
    assert not editors.mentions(tmp_path)
    assert not editors.mentions(tmp_path / "none")


def test_without_a_model_it_fails_and_says_what_to_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--no-measure"]) == 1
    text = capsys.readouterr().out
    assert "FAIL  model" in text and "→ lsp-complete models pull qwen2.5-coder-0.5b" in text
    assert "llama.cpp: " in text and "best model" in text


def test_json_has_everything(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = home / "config" / "lsp-complete"
    config.mkdir(parents=True)
    (config / "lsp-complete.toml").write_text("no_such_setting = 1\n")
    assert cli.main(["doctor", "--no-measure", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert {"versions", "machine", "llama_cpp", "speed", "model", "editors", "findings", "ok"} == set(data)
    assert data["ok"] is False and data["speed"] is None and data["model"]["path"] is None
    assert data["llama_cpp"]["version"] and data["machine"]["cores"] >= 1
    assert any(item["topic"] == "settings" and "no_such_setting" in item["text"] for item in data["findings"])


def test_a_damaged_model_file_ends_the_child_not_the_doctor(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 64)
    found = run_probe(str(path))
    assert found.version and found.speed is None and "ModelError" in found.error


def test_a_pip_of_the_current_folder_is_not_imported_by_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llama_cpp.py").write_text("open('caught', 'w').close()")
    (tmp_path / "json.py").write_text("open('caught', 'w').close()")
    monkeypatch.chdir(tmp_path)
    assert run_probe().version
    assert not (tmp_path / "caught").exists()


def test_the_memory_table(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--memory"]) == 0
    text = capsys.readouterr().out
    assert "qwen2.5-coder-0.5b" in text and "q8_0" in text and "8,192" in text
    assert cli.main(["doctor", "--memory", "codestral-22b", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["models"][0]["model"] == "codestral-22b-v0.1-q4_k_m"
    assert (data["models"][0]["plan"] is None) == bool(data["models"][0]["refusal"])
    assert cli.main(["doctor", "--memory", "nonesuch"]) == 1


def test_free_memory_is_a_number_of_bytes() -> None:
    assert free_memory() > 1 << 20


@pytest.mark.model
def test_the_speed_of_the_real_model_is_measured() -> None:
    found = run_probe(str(resolve("qwen2.5-coder-0.5b")))
    assert found.error == "" and found.speed is not None
    assert found.speed.prefill_tps > 0 and found.speed.decode_ms > 0 and found.speed.threads >= 1
