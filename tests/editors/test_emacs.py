"""Emacs in a terminal, with what `lsp-complete editor emacs --install` and `editor eglot --install` write for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .sandbox import ROOT, Sandbox, program
from .terminal import Terminal, terminal

pytestmark = [pytest.mark.editor, pytest.mark.slow]

QUIET = """
(setq native-comp-jit-compilation nil native-comp-deferred-compilation nil) ; a new home would compile lsp-mode in processes of its own
(load "lsp-mode-autoloads" t t)
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil create-lockfiles nil ring-bell-function #'ignore)
(setq lsp-warn-no-matched-clients nil lsp-auto-guess-root t lsp-enable-snippet nil lsp-enable-file-watchers nil lsp-keep-workspace-alive nil)
(setq-default indent-tabs-mode nil)
(column-number-mode 1)
"""


@contextmanager
def emacs(box: Sandbox, file: Path, name: str = "emacs") -> Iterator[Terminal]:
    """Installed as the instructions say, with one file open and the engine ready."""
    program("emacs")
    words = [sys.executable, "-m", "lsp_complete", "editor", name, "--install", "--command", str(box.server)]
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, env={**box.environment(), "PYTHONPATH": str(ROOT)}, cwd=box.project
    )
    with started(box, file, done.stdout) as screen:
        yield screen


@contextmanager
def started(box: Sandbox, file: Path, said: str) -> Iterator[Terminal]:
    """Emacs with the line in init.el that the installation said, one file open, the engine ready."""
    editor = program("emacs")
    file_and_line = next(line for line in said.splitlines() if line.startswith("In ") and "init.el: " in line)
    load = file_and_line.split("init.el: ", 1)[1]
    init = box.base / "init.el"
    init.write_text(QUIET + load + "\n", "utf-8")
    with terminal(box) as screen:
        screen.start([editor, "-nw", "-Q", "-l", str(init), str(file)])
        screen.shows(file.name)
        screen.until(box.engine_ready, "the engine is ready")
        yield screen


def saved(screen: Terminal, path: Path) -> bytes:
    screen.keys("C-x", "C-s")
    screen.shows("Wrote")
    return path.read_bytes()


def test_ghost_text_from_typing_to_accepting(box: Sandbox) -> None:
    path = box.write("a.py", "price = 1\n")
    with emacs(box, path) as screen:
        screen.keys("M->")
        screen.text("total = pri")
        screen.shows("total = price * quantity + shipping_cost")
        screen.text("ce")
        screen.shows("(2,13)")  # the line looks the same before and after these keys
        screen.shows("total = price * quantity + shipping_cost")
        screen.keys("Tab")
        screen.text("!")
        screen.shows("shipping_cost!")
        assert saved(screen, path).rstrip(b"\n") == b"price = 1\ntotal = price * quantity + shipping_cost!"


def test_tab_indents_one_undo_and_several_lines(box: Sandbox) -> None:
    box.write("lsp-complete.toml", '[suggest]\nmultiline = "always"\n')
    path = box.write("a.py", "if one:\n")
    with emacs(box, path) as screen:
        screen.keys("M->", "Tab")
        screen.text("x")
        screen.shows("    x")  # Tab indents when nothing is shown
        screen.keys("Enter", "C-a", "C-k")
        screen.text("for item in bas")
        screen.shows("seen.add(item.name)")
        screen.keys("Tab")
        screen.text("!")
        screen.shows("seen.add(item.name)!")
        screen.keys("C-/", "C-/")
        screen.until(lambda: "seen.add" not in screen.screen() and "for item in bas" in screen.screen(), "two undo steps")


def test_crlf_emoji_and_braces(box: Sandbox) -> None:
    path = box.write("a.c", "int main(void) {\r\n}\r\n")
    with emacs(box, path) as screen:
        screen.keys("C-e", "Enter")
        screen.shows("return run_all_tests();")
        screen.keys("Tab", "M->")
        screen.text('label = "\U0001f600 \u00fc" + na')
        screen.shows("name_of_user")
        screen.keys("Tab")
        text = saved(screen, path).decode()
    lines = [line.strip() for line in text.rstrip("\r\n").split("\r\n")]
    assert lines == ["int main(void) {", "return run_all_tests();", "}", 'label = "\U0001f600 \u00fc" + name_of_user']


def test_eglot_offers_it_in_its_menu(box: Sandbox) -> None:
    path = box.write("a.py", "price = 1\n")
    with emacs(box, path, "eglot") as screen:
        screen.keys("M->")
        screen.text("total = pri")
        screen.keys("C-M-i")
        screen.shows("price * quantity + shipping_cost")
        assert saved(screen, path).rstrip(b"\n") == b"price = 1\ntotal = price * quantity + shipping_cost"


def test_eglot_tab_undo_crlf_emoji_and_nothing_left_behind(box: Sandbox) -> None:
    path = box.write("a.py", "if one:\r\n")
    with emacs(box, path, "eglot") as screen:
        screen.keys("M->", "Tab")
        screen.text("x")
        screen.shows("    x")  # Tab indents
        screen.keys("Enter", "C-a", "C-k")
        screen.text('label = "\U0001f600 \u00fc" + na')
        screen.keys("C-M-i")
        screen.shows("name_of_user")
        screen.keys("C-/")
        screen.until(lambda: "name_of_user" not in screen.screen() and "+ na" in screen.screen(), "one undo step")
        screen.text("me")  # typed on, it is offered again
        screen.keys("C-M-i")
        screen.shows("name_of_user")
        text = saved(screen, path).decode()
        assert text.rstrip("\r\n") == 'if one:\r\n    x\r\nlabel = "\U0001f600 \u00fc" + name_of_user'
        assert len(box.processes()) >= 4
        screen.keys("C-x", "C-c")
        assert box.left() == []


def test_closing_the_editor_leaves_nothing_behind(box: Sandbox) -> None:
    with emacs(box, box.write("a.py", "")) as screen:
        screen.text("total = pri")
        screen.shows("price * quantity + shipping_cost")
        assert len(box.processes()) >= 4
        screen.keys("C-x", "C-c")
        screen.shows("Save file")
        screen.text("n")
        screen.shows("Modified buffers exist")
        screen.text("yes")
        screen.keys("Enter")
        assert box.left() == []
