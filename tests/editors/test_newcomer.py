"""A newcomer's path: each step of the README in an empty home, timed, until a suggestion of the real model is accepted.

By itself the program is this checkout and the model the one that is on this machine, so that getting it only looks. With EDITOR_TEST_FROM_NOTHING=1
(scripts/test-editors --from-nothing) both are had anew: pipx compiles llama.cpp, and the model is downloaded.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lsp_complete.models.paths import ENV_FOLDER, models_dir

from . import sandbox, test_emacs, test_helix, vscode
from .neovim import opened
from .sandbox import ROOT, Sandbox

pytestmark = [pytest.mark.editor, pytest.mark.model, pytest.mark.slow]

CODE = "def add(first, second):\n    return first + second\n\n\ndef subtract(first, second):\n    return first"
REST = "- second"
MODEL = "qwen2.5-coder-0.5b"
DOWNLOAD_S = 3600.0

INSTALL = ("pipx install .", "lsp-complete models pull qwen2.5-coder-0.5b")
STEPS = {
    "Neovim": ("lsp-complete editor neovim --install",),
    "VS Code": ("scripts/package-vscode", "code --install-extension editors/vscode/lsp-complete.vsix"),
    "Helix": ("lsp-complete editor helix --install",),
    "Emacs": ("lsp-complete editor emacs --install", "lsp-complete editor eglot --install"),
}


def commands(text: str) -> tuple[str, ...]:
    """The lines of the first block of commands in a text, without their comments."""
    block = re.findall(r"```\n(.*?)```", text, re.DOTALL)[0]
    return tuple(line.split("  #")[0].strip() for line in block.splitlines() if line.strip())


def test_the_steps_are_those_of_the_readme() -> None:
    editors = (ROOT / "editors" / "README.md").read_text("utf-8")
    assert commands(editors) == INSTALL
    sections = {part.split("\n", 1)[0]: part for part in editors.split("\n## ")}
    assert {name: commands(sections[name]) for name in STEPS} == STEPS
    readme = (ROOT / "README.md").read_text("utf-8")
    assert commands(readme.split("\n## Install\n", 1)[1])[:2] == INSTALL
    assert commands(readme.split("\n## In your editor\n", 1)[1]) == STEPS["Neovim"]


@dataclass
class Installed:
    """The program, had by the steps of INSTALL. more: environment variables that go with it. seconds: what they took, if from nothing."""

    bin: Path
    more: dict[str, str]
    say: Callable[[str], None]
    seconds: float = 0.0

    def do(self, step: str, environment: dict[str, str]) -> str:
        """One step, word for word, in the checkout; what it printed."""
        began = time.monotonic()
        words = shlex.split(step)
        words[0] = shutil.which(words[0], path=environment["PATH"]) or words[0]
        done = subprocess.run(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DOWNLOAD_S, check=False
        )
        assert done.returncode == 0, f"{step}: {done.stdout[-2000:]}"
        self.say(f"  {time.monotonic() - began:6.1f} s  {step}")
        return done.stdout


def as_it_is(base: Path, say: Callable[[str], None]) -> Installed:
    """This checkout, and the model that is here."""
    if not any(models_dir().glob(f"{MODEL}*.gguf")):
        pytest.skip(f"the model is not here; lsp-complete models pull {MODEL} fetches it")
    command = base / "bin" / "lsp-complete"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m lsp_complete \"$@\"\n")
    command.chmod(0o755)
    say("a newcomer, the program being this checkout and the model being here:")
    more = {"PYTHONPATH": str(ROOT), ENV_FOLDER: str(models_dir()), "LSP_COMPLETE_MODEL": MODEL}
    made = Installed(command.parent, more, say)
    made.do(INSTALL[1], {**os.environ, **more, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"})
    return made


def from_nothing(base: Path, say: Callable[[str], None]) -> Installed:
    """All of INSTALL in an empty home. pipx itself is what the README takes for granted."""
    subprocess.run([sys.executable, "-m", "venv", str(base / "tools")], check=True)
    subprocess.run([str(base / "tools" / "bin" / "python"), "-m", "pip", "install", "-q", "pipx"], check=True)
    places = {"HOME": "home", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "XDG_CACHE_HOME": "cache"}
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", ENV_FOLDER)}
    environment |= {name: str(base / folder) for name, folder in places.items()}
    environment["PATH"] = os.pathsep.join((str(base / "bin"), str(base / "tools" / "bin"), environment["PATH"]))
    say("a newcomer, from nothing:")
    made = Installed(base / "bin", {ENV_FOLDER: str(base / "cache" / "lsp-complete" / "models")}, say)
    began = time.monotonic()
    for step in INSTALL:
        made.do(step, environment)
    made.seconds = time.monotonic() - began
    return made


@pytest.fixture(scope="session")
def installed(say: Callable[[str], None]) -> Iterator[Installed]:
    """The program, once for all editors."""
    base = Path(tempfile.mkdtemp(prefix="lcn"))
    try:
        yield (from_nothing if os.environ.get("EDITOR_TEST_FROM_NOTHING") else as_it_is)(base, say)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class Newcomer:
    """Somebody with an empty home before the steps of one editor."""

    box: Sandbox
    installed: Installed
    began: float = field(default_factory=time.monotonic)

    def follow(self, steps: tuple[str, ...]) -> str:
        """Do the steps; what they printed."""
        return "".join(self.installed.do(step, {**self._outside(), **self.box.environment()}) for step in steps)

    def _outside(self) -> dict[str, str]:
        """What a step may need of the machine it runs on: where npm fetches from."""
        npmrc = Path.home() / ".npmrc"
        kept = {k: v for k, v in os.environ.items() if k.lower().startswith("npm_config")}
        return {**kept, **({"NPM_CONFIG_USERCONFIG": str(npmrc)} if npmrc.exists() else {})}

    def sees(self, editor: str) -> None:
        """The suggestion is on screen: say how long that took."""
        took = time.monotonic() - self.began
        whole = f"; {self.installed.seconds + took:.1f} s from nothing" if self.installed.seconds else ""
        self.installed.say(f"  {took:6.1f} s  from the first of these steps to the suggestion in {editor}{whole}")

    def all_gone(self) -> None:
        """Nothing is left 5 s after the editor was closed; the engine was told to leave 1 s after the last."""
        assert self.box.left() == []


@pytest.fixture
def newcomer(installed: Installed) -> Iterator[Newcomer]:
    box = sandbox.make(f"'{installed.bin / 'lsp-complete'}'")
    path = os.pathsep.join((str(installed.bin), str(box.base / "bin"), os.environ["PATH"]))
    box.more |= {**installed.more, "PATH": path, "LSP_COMPLETE_ENGINE_IDLE_EXIT_S": "1"}
    (box.home / ".profile").write_text(f"PATH='{path}'\n")  # as `pipx ensurepath` leaves it; VS Code asks the login shell
    yield Newcomer(box, installed)
    sandbox.remove(box)


@pytest.mark.timeout(DOWNLOAD_S)
@pytest.mark.parametrize("name", ["nvim", "nvim-old"])
def test_neovim_with_the_real_model(name: str, newcomer: Newcomer) -> None:
    sandbox.program(name)
    newcomer.follow(STEPS["Neovim"])
    path = newcomer.box.write("sums.py", CODE)
    with opened(name, newcomer.box, [str(path)]) as vim:
        vim.is_ready()
        vim.keys("GA ")
        vim.shows(REST)
        newcomer.sees(name)
        vim.keys("<Tab>")
        vim.has(f"{CODE} {REST}")
    newcomer.all_gone()


@pytest.mark.timeout(DOWNLOAD_S)
def test_vscode_with_the_real_model(newcomer: Newcomer) -> None:
    """The command is found on the PATH, not by a setting."""
    vscode.command(newcomer.box)
    if not shutil.which("npm"):
        pytest.skip("npm is not here; it packs the extension")
    newcomer.follow(STEPS["VS Code"])
    path = newcomer.box.write("sums.py", CODE)
    with vscode.started(newcomer.box, path, {"lsp-complete.server.command": None}) as page:
        page.press("Control+End")
        page.type(" ")
        page.shows(REST)
        newcomer.sees("VS Code")
        page.press("Tab")
        page.has(f"{CODE} {REST}")
    newcomer.all_gone()


@pytest.mark.timeout(DOWNLOAD_S)
def test_helix_with_the_real_model(newcomer: Newcomer) -> None:
    hx = Path(sandbox.program("hx"))
    newcomer.box.more["PATH"] += f"{os.pathsep}{hx.parent}"
    newcomer.follow(STEPS["Helix"])
    path = newcomer.box.write("sums.py", CODE)
    with test_helix.started(newcomer.box, path) as screen:
        screen.keys("g", "e", "A")
        test_helix.typed(screen, "", " ", REST)
        newcomer.sees("Helix")
        screen.keys("Tab", "Enter")
        assert test_helix.saved(screen, path).decode() == f"{CODE} {REST}\n"
        screen.text(":q!")
        screen.keys("Enter")
        newcomer.all_gone()


@pytest.mark.timeout(DOWNLOAD_S)
@pytest.mark.parametrize("name", ["emacs", "eglot"])
def test_emacs_with_the_real_model(name: str, newcomer: Newcomer) -> None:
    sandbox.program("emacs")
    said = newcomer.follow(tuple(step for step in STEPS["Emacs"] if name in step))
    path = newcomer.box.write("sums.py", CODE)
    with test_emacs.started(newcomer.box, path, said) as screen:
        screen.keys("M->")
        screen.text(" ")
        if name == "eglot":
            screen.keys("C-M-i")
        screen.shows(f"return first {REST}")
        newcomer.sees(name)
        if name == "emacs":
            screen.keys("Tab")
        assert test_emacs.saved(screen, path).decode().rstrip("\n") == f"{CODE} {REST}"
        screen.keys("C-x", "C-c")
        newcomer.all_gone()
