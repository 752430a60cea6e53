"""From nothing to an accepted suggestion of the real model, by the commands of editors/README.md, in an empty home."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lsp_complete.models.paths import ENV_FOLDER, models_dir

from . import sandbox
from .neovim import opened
from .sandbox import ROOT, Sandbox
from .vscode import code

pytestmark = [pytest.mark.editor, pytest.mark.model, pytest.mark.slow]

CODE = "def add(first, second):\n    return first + second\n\n\ndef subtract(first, second):\n    return first"
MODEL = "qwen2.5-coder-0.5b"


@pytest.fixture
def fresh() -> Iterator[Sandbox]:
    """An empty home; the installed program (this checkout) and the model that is on this machine already."""
    if not any(models_dir().glob(f"{MODEL}*.gguf")):
        pytest.skip(f"the model is not here; lsp-complete models pull {MODEL} fetches it")
    box = sandbox.make(f"'{sys.executable}' -m lsp_complete")
    box.more |= {
        "PYTHONPATH": str(ROOT),
        ENV_FOLDER: str(models_dir()),
        "LSP_COMPLETE_MODEL": MODEL,
        "LSP_COMPLETE_ENGINE_IDLE_EXIT_S": "1",
        "LSP_COMPLETE_ENGINE_DISK_CACHE_MB": "0",
    }
    yield box
    sandbox.remove(box)


def steps(heading: str) -> list[str]:
    """The commands under a heading of editors/README.md, without their comments."""
    text = (ROOT / "editors" / "README.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    block = re.findall(r"```\n(.*?)```", section, re.DOTALL)[0]
    return [line.split("  #")[0].strip() for line in block.splitlines() if line.strip()]


def do(box: Sandbox, command: str) -> None:
    """One step, `lsp-complete` being the sandbox's."""
    words = shlex.split(command)
    assert words[0] == "lsp-complete"
    subprocess.run([str(box.server), *words[1:], "--command", str(box.server)], check=True, env=box.environment(), cwd=box.project)


@pytest.mark.parametrize("name", ["nvim", "nvim-old"])
def test_neovim_with_the_real_model(fresh: Sandbox, name: str) -> None:
    sandbox.program(name)
    began = time.monotonic()
    for step in steps("Neovim"):
        do(fresh, step)
    path = fresh.write("sums.py", CODE)
    with opened(name, fresh, [str(path)]) as vim:
        vim.is_ready()
        vim.keys("GA ")
        vim.until(lambda: vim.ghost() != "", "ghost text of the real model")
        print(f"\n{name}: from nothing to ghost text {vim.ghost()!r} in {time.monotonic() - began:.1f} s")
        wanted = CODE + " " + vim.ghost()
        vim.keys("<Tab>")
        vim.has(wanted)
    assert fresh.left_after(5) == []


def test_vscode_with_the_real_model(fresh: Sandbox) -> None:
    assert steps("VS Code")[0] == "scripts/package-vscode"  # done before: its archive is what `code` installs
    began = time.monotonic()
    with code(fresh, fresh.write("sums.py", CODE)) as page:
        page.press("Control+End")
        page.type(" ")
        page.wait("[...document.querySelectorAll('.ghost-text, .ghost-text-decoration')].some((e) => e.textContent)", "ghost text of the real model")
        ghost = page.ghost()
        print(f"\nVS Code: from nothing to ghost text {ghost!r} in {time.monotonic() - began:.1f} s")
        page.press("Tab")
        page.wait(f"({GHOST_FREE}).includes('return first -')", "the accepted text")


GHOST_FREE = "document.querySelector('.editor-instance .view-lines').textContent.replace(/\\u00a0/g, ' ')"
