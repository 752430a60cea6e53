"""Helix with the `languages.toml` that `lsp-complete editor helix --install` writes for it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lsp_complete.commands import editor_helix
from lsp_complete.commands.editor_paths import editors_dir

from .sandbox import DEADLINE_S, ROOT, Sandbox, program
from .terminal import Terminal, terminal

pytestmark = pytest.mark.editor


@contextmanager
def helix(box: Sandbox, file: Path) -> Iterator[Terminal]:
    """Installed as the instructions say, with one file open."""
    hx = program("hx")
    words = [sys.executable, "-m", "lsp_complete", "editor", "helix", "--install", "--command", str(box.server)]
    path = f"{Path(hx).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**box.environment(), "PYTHONPATH": str(ROOT), "PATH": path}
    subprocess.run(words, check=True, capture_output=True, env=environment, cwd=box.project)
    with started(box, file) as screen:
        yield screen


@contextmanager
def started(box: Sandbox, file: Path) -> Iterator[Terminal]:
    """Helix as it is installed in the sandbox, with one file open, the engine ready."""
    hx = program("hx")
    config = box.home / "config" / "helix" / "languages.toml"
    table = "[language-server.lsp-complete]\n"  # Helix gives up on a server after 20 s, which a loaded machine may need
    config.write_text(config.read_text("utf-8").replace(table, f"{table}timeout = {max(20, int(DEADLINE_S))}\n", 1), "utf-8")
    with terminal(box) as screen:
        screen.start([hx, str(file)])
        screen.shows("NOR")
        screen.until(box.engine_ready, "the engine is ready")
        yield screen


def typed(screen: Terminal, keys: str, text: str, label: str) -> None:
    """Go into insert mode by `keys` and type; the menu offers `label`."""
    if keys:
        screen.keys(*keys)
        screen.shows("INS")
    screen.text(text)
    looks = itertools.count(1)

    def offered() -> bool:
        if label in screen.screen():
            return True
        if next(looks) % 20 == 0:
            screen.keys("C-x")  # asks; on a blank line Helix does not by itself
        return False

    screen.until(offered, f"{label} in the menu")


def saved(screen: Terminal, path: Path) -> bytes:
    screen.keys("Escape")
    screen.shows("NOR")
    screen.text(":w")
    screen.keys("Enter")
    screen.shows("written")
    return path.read_bytes()


def test_the_menu_offers_it_and_accepting_inserts_exactly(box: Sandbox) -> None:
    path = box.write("a.py", "price = 1\n")
    with helix(box, path) as screen:
        typed(screen, "o", "total = pri", "price * quantity")
        screen.keys("Tab", "Enter")
        screen.shows("total = price * quantity + shipping_cost")
        assert saved(screen, path) == b"price = 1\ntotal = price * quantity + shipping_cost\n"
        screen.keys("u")
        screen.shows("price = 1")
        assert "shipping_cost" not in screen.screen()


def test_typing_on_keeps_it_and_tab_indents_without_it(box: Sandbox) -> None:
    path = box.write("a.py", "")
    with helix(box, path) as screen:
        typed(screen, "i", "total = pri", "price * quantity")
        screen.text("ce * q")
        screen.shows("uantity + shipping_cost")
        screen.shows("total = price * q")
        screen.keys("Tab", "Enter", "Enter", "Tab")
        screen.text("x")
        assert saved(screen, path).split(b"\n")[:2] == [b"total = price * quantity + shipping_cost", b"    x"]


def test_crlf_stays_crlf(box: Sandbox) -> None:
    box.write("lsp-complete.toml", '[suggest]\nmultiline = "always"\n')
    path = box.write("a.py", "first = 1\r\nlast = 2\r\n")
    with helix(box, path) as screen:
        typed(screen, "o", "for item in bas", "basket:")
        screen.keys("Tab", "Enter")
        text = saved(screen, path)
    loop = b"for item in basket:\r\n    total += item.price * item.count\r\n    seen.add(item.name)\r\n"
    assert text == b"first = 1\r\n" + loop + b"last = 2\r\n"


def test_text_behind_an_emoji_lands_at_its_column(box: Sandbox) -> None:
    path = box.write("a.py", "")
    with helix(box, path) as screen:
        typed(screen, "i", 'label = "\U0001f600 \u00fc" + na', "name_of_user")
        screen.keys("Tab", "Enter")
        assert saved(screen, path).decode() == 'label = "\U0001f600 \u00fc" + name_of_user\n'


def test_enter_between_braces(box: Sandbox) -> None:
    box.write(".editorconfig", "root = true\n[*]\nindent_style = space\nindent_size = 4\n")
    path = box.write("a.c", "")
    with helix(box, path) as screen:
        screen.keys("i")
        screen.text("int main(void) {")  # Helix closes the brace
        screen.keys("Enter")
        screen.until(lambda: screen.screen().count("}") == 1, "the closing brace on a line of its own")
        typed(screen, "", "", "return run_all_tests();")
        screen.keys("Tab", "Enter")
        lines = [line.strip() for line in saved(screen, path).decode().splitlines()]
        assert lines == ["int main(void) {", "return run_all_tests();", "}"]


def test_the_table_of_servers_is_what_helix_has(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in box.environment().items():
        monkeypatch.setenv(name, value)
    assert editor_helix.asked(program("hx")) == editor_helix.shipped(editors_dir() / "helix")


def test_closing_the_editor_leaves_nothing_behind(box: Sandbox) -> None:
    with helix(box, box.write("a.py", "")) as screen:
        typed(screen, "i", "total = pri", "price * quantity")
        assert len(box.processes()) >= 4  # tmux, the editor, the server, the engine
        screen.keys("Escape")
        screen.shows("NOR")
        screen.text(":q!")
        screen.keys("Enter")
        assert box.left() == []
