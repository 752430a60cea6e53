"""`lsp-complete editor`: every snippet is whole, holds this machine's command once, and nothing of the user's is overwritten."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_complete import cli
from lsp_complete.commands import editor, editor_files, editor_helix
from lsp_complete.commands.editor_paths import editors_dir
from lsp_complete.errors import LspCompleteError
from lsp_complete.syntax.languages import all_languages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
COMMAND = '/opt/a "b"/lsp-complete'
WITH_COMMAND = ("neovim", "helix", "emacs", "eglot", "sublime", "kate", "jetbrains")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path


def setup(name: str, command: str = COMMAND) -> editor_files.Setup:
    return editor_files.setup_for(name, command, editors_dir(), editor_files.places({}, Path("/home/u"), "linux"))


@pytest.mark.parametrize("name", WITH_COMMAND)
def test_the_command_stands_in_the_snippet(name: str) -> None:
    text = setup(name).snippets[0].text
    assert text.count('/opt/a \\"b\\"/lsp-complete') == 1


@pytest.mark.parametrize("name", ["sublime", "kate", "jetbrains", "zed"])
def test_json_snippets_are_json(name: str) -> None:
    json.loads(setup(name).snippets[0].text)


@pytest.mark.parametrize("name", [n for n in editor_files.NAMES if n != "vscode"])
def test_each_editor_stands_in_the_instructions(name: str) -> None:
    assert f"lsp-complete editor {name}" in (editors_dir() / "README.md").read_text("utf-8")


def test_helix_keeps_its_own_servers_and_knows_every_language() -> None:
    servers = editor_helix.shipped(editors_dir() / "helix")
    made = tomllib.loads(setup("helix").snippets[0].text)
    assert made["language-server"]["lsp-complete"]["command"] == COMMAND
    lists = {entry["name"]: entry["language-servers"] for entry in made["language"]}
    assert lists == {name: [*own, "lsp-complete"] for name, own in servers.items()}
    for facts in all_languages().values():
        assert any(editor_helix.OTHER_NAMES.get(i, i) in lists for i in facts.ids), facts.name


def test_the_helix_file_in_the_checkout_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "gen-helix", "--check"], check=False, timeout=60)
    assert done.returncode == 0


def test_a_report_of_helix_is_read() -> None:
    report = (
        "Configured language servers:\n  \x1b[31m\u2718\x1b[m ty: 'ty' not found\n  \u2713 ruff: /bin/ruff\n"
        "  \u2713 lsp-complete: /bin/lsp-complete\nConfigured debug adapter: None\n  \u2718 not-one: x\n"
    )
    assert editor_helix.servers_in(report) == ["ty", "ruff"]
    assert editor_helix.servers_in("Configured language servers: None\n") == []
    assert editor_helix.asked("hx", lambda words: report if words[-1] == "python" else "not found") == {"python": ["ty", "ruff"]}


@pytest.mark.parametrize(("name", "file"), [("helix", ".config/helix/languages.toml"), ("kate", ".config/kate/lspclient/settings.json"), ("jetbrains", ".local/share/lsp-complete/jetbrains/template.json"), ("neovim", ".config/nvim/plugin/lsp-complete.lua"), ("emacs", ".config/emacs/lsp-complete-lsp-mode.el")])
def test_install_writes_again_but_never_over_the_users_own(name: str, file: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["editor", name, "--install", "--command", "/x/lsp-complete"]
    assert cli.main(words) == 0
    path = home / file
    assert "/x/lsp-complete" in path.read_text("utf-8")
    assert cli.main(words) == 0
    path.write_text("mine", "utf-8")
    assert cli.main(words) == 1
    assert path.read_text("utf-8") == "mine"
    assert "stays as it is" in capsys.readouterr().err


def test_neovims_module_is_copied(home: Path) -> None:
    assert cli.main(["editor", "neovim", "--install", "--command", "/x/lsp-complete"]) == 0
    module = home / ".local/share/nvim/site/pack/lsp-complete/start/lsp-complete/lua/lsp_complete/init.lua"
    assert module.read_bytes() == (editors_dir() / "neovim/lua/lsp_complete/init.lua").read_bytes()


def test_emacs_is_told_in_the_file_that_it_reads(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said() -> str:
        assert cli.main(["editor", "emacs", "--install", "--command", "/x/lsp-complete"]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert said() == f'In {home}/.config/emacs/init.el: (load "{home}/.config/emacs/lsp-complete-lsp-mode.el")'
    (home / ".emacs.d").mkdir()
    assert said() == f'In {home}/.emacs.d/init.el: (load "{home}/.emacs.d/lsp-complete-lsp-mode.el")'
    (home / ".emacs").write_text("")
    assert said().startswith(f"In {home}/.emacs: ")


def test_the_folder_that_jetbrains_imports_is_whole(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["editor", "jetbrains", "--install", "--command", "/x/lsp-complete"]) == 0
    folder = home / ".local/share/lsp-complete/jetbrains"
    assert str(folder) in capsys.readouterr().out.splitlines()[-1]  # what to choose in the IDE
    source = editors_dir() / "jetbrains" / "lsp-complete"
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in source.iterdir())
    made = json.loads((folder / "template.json").read_text("utf-8"))
    assert made == {**json.loads((source / "template.json").read_text("utf-8")), "programArgs": {"default": "/x/lsp-complete"}}


def test_each_system_has_its_own_folders() -> None:
    home = Path("/home/u")

    def targets(platform: str, environ: dict[str, str]) -> dict[str, str]:
        places = editor_files.places(environ, home, platform)
        made = {name: editor_files.setup_for(name, "x", editors_dir(), places) for name in ("neovim", "helix", "sublime", "emacs")}
        module = made["neovim"].folders[0][1]
        return {**{name: str(setup.snippets[0].target) for name, setup in made.items()}, "module": str(module)}

    end = "site/pack/lsp-complete/start/lsp-complete/lua"
    assert targets("linux", {"XDG_DATA_HOME": "/d"})["module"] == f"/d/nvim/{end}"
    mac = targets("darwin", {})
    assert mac["sublime"] == "/home/u/Library/Application Support/Sublime Text/Packages/User/LSP.sublime-settings"
    assert mac["helix"] == "/home/u/.config/helix/languages.toml"
    windows = targets("win32", {"LOCALAPPDATA": "/l", "APPDATA": "/r"})
    assert windows["neovim"] == "/l/nvim/plugin/lsp-complete.lua" and windows["module"] == f"/l/nvim-data/{end}"
    assert windows["helix"] == "/r/helix/languages.toml"
    assert windows["sublime"] == "/r/Sublime Text/Packages/User/LSP.sublime-settings"


def test_what_is_missing_is_said(tmp_path: Path, home: Path) -> None:
    with pytest.raises(LspCompleteError, match="missing"):
        editor_files.setup_for("emacs", "x", tmp_path, editor_files.places())
    with pytest.raises(LspCompleteError, match="no place"):
        editor_files.filled("nothing", '"lsp-complete"', "x")
    with pytest.raises(LspCompleteError, match="--command"):
        editor.own_command([tmp_path / "lsp-complete"])


def test_vscodes_settings_are_those_of_the_server() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "gen-vscode", "--check"], check=False, timeout=60)
    assert done.returncode == 0, "run scripts/gen-vscode"


def test_vscodes_commands_are_declared_and_locked_packages_name_no_host() -> None:
    folder = ROOT / "editors" / "vscode"
    package = json.loads((folder / "package.json").read_text("utf-8"))
    declared = {entry["command"].removeprefix("lspComplete.") for entry in package["contributes"]["commands"]}
    source = (folder / "src" / "extension.ts").read_text("utf-8")
    assert declared == set(re.findall(r'^    \["(\w+)",', source, re.MULTILINE))
    assert '"resolved"' not in (folder / "package-lock.json").read_text("utf-8")
    assert package["contributes"]["configuration"]["properties"]["lsp-complete.server.command"]["scope"] == "machine"
