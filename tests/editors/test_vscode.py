"""The packed extension in VS Code (code-server), seen through a browser."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .sandbox import Sandbox
from .vscode import ACCEPT_LINE, GHOST, LINES, NOTES, STATUS, code

pytestmark = [pytest.mark.editor, pytest.mark.slow]

LOOP = "\n    total += item.price * item.count\n    seen.add(item.name)"


def shot(box: Sandbox) -> Path:
    """Where the screenshot of the ghost text goes."""
    return Path(os.environ.get("EDITOR_TEST_SHOT") or box.base / "ghost.png")


def test_ghost_text_from_typing_to_accepting(box: Sandbox) -> None:
    path = box.write("a.py", "price = 1\n")
    with code(box, path) as page:
        page.press("Control+End")
        page.type("total = pri")
        page.shows("ce * quantity + shipping_cost")
        page.do("shot", path=str(shot(box)))
        page.type("ce")
        page.shows(" * quantity + shipping_cost")
        page.press("Control+ArrowRight", "Control+ArrowRight")  # VS Code's own words
        page.has("price = 1\ntotal = price * ")
        page.shows("quantity + shipping_cost")
        page.press("Tab")
        page.has("price = 1\ntotal = price * quantity + shipping_cost")
        page.press("Control+z")
        page.has("price = 1\ntotal = price * ")


def test_what_was_typed_while_the_engine_started_gets_its_suggestion(box: Sandbox) -> None:
    release = box.gate()
    with code(box, box.write("a.py", ""), ready=False) as page:
        page.wait(f"({STATUS}).includes('working')", "the engine is starting")
        page.press("Control+End")
        page.type("total = pri")
        page.has("total = pri")
        assert page.ghost() == ""
        release()
        page.shows("ce * quantity + shipping_cost")


def test_several_lines_and_lines_accepted_one_by_one(box: Sandbox) -> None:
    path = box.write("a.py", "first = 1\r\n")
    with code(box, path, **{"lsp-complete.suggest.multiline": "always"}) as page:
        page.press("Control+End")
        page.type("for item in bas")
        for part in ("ket:", *LOOP.splitlines()):
            page.wait(f"({GHOST}).includes({json.dumps(part.strip())})", f"ghost text {part}")
        page.press(ACCEPT_LINE)
        page.wait(f"({LINES}).includes('basket:') && ({GHOST}).includes('total +=')", "the first line, and the rest as ghost text")
        page.press("Tab")  # VS Code's rule: at a line's start it goes to the suggestion's indentation first
        page.wait(f"({LINES}).endsWith('    ') && ({GHOST}).includes('total +=')", "the indentation")
        page.press("Tab")
        page.has("first = 1\nfor item in basket:" + LOOP)
        text = page.saved(path)  # CRLF stays CRLF
        assert text == ("first = 1\nfor item in basket:" + LOOP).replace("\n", "\r\n").encode()


def test_tab_emoji_braces_and_the_menu(box: Sandbox) -> None:
    path = box.write("a.c", "")
    with code(box, path) as page:
        page.press("Tab")
        page.type("x")
        page.has("    x")  # Tab indents when nothing is shown
        page.press("Control+a", "Delete")
        page.type("int main(void) {")  # VS Code closes the brace
        page.press("Enter")
        page.shows("return run_all_tests();")
        page.press("Tab")
        page.has("int main(void) {\n    return run_all_tests();\n}")
        page.press("Control+a", "Delete")
        page.type('label = "\U0001f600 \u00fc')
        page.press("End")
        page.type(" + na")
        page.shows("me_of_user")
        page.press("Tab")
        page.has('label = "\U0001f600 \u00fc" + name_of_user')
        page.command("lsp-complete: Pause")
        page.wait(f"({STATUS}).includes('paused')", "paused")
        page.command("lsp-complete: Resume")
        page.wait(f"({STATUS}).includes('ready')", "ready again")
        page.command("lsp-complete: Statistics")
        page.wait(f"({LINES}).includes('outcomes')", "statistics")
        page.command("lsp-complete: Menu")
        page.wait("document.querySelector('.quick-input-list')?.textContent.includes('Dashboard')", "the menu")
        page.do("shot", path=str(shot(box).with_name("vscode-menu.png")))
        page.press("Escape")
        page.command("lsp-complete: Dashboard")  # in a page of its own
        seen = page.do("beside")
        assert "Recent requests" in seen and "Engine e-" in seen, seen


def servers(box: Sandbox) -> int:
    return sum("fake_server" in " ".join(process.cmdline()) for process in box.processes())


def test_a_missing_server_is_asked_for_and_nothing_is_installed(box: Sandbox) -> None:
    lost: dict[str, object] = {"lsp-complete.server.command": str(box.base / "nowhere")}
    with code(box, box.write("a.py", ""), ready=False, **lost) as page:
        page.wait(f"({NOTES}).includes('Install a clone with pipx')", "the offer")
        page.wait(f"({STATUS}).includes('error')", "the state")
        words = [word for process in box.processes() for word in process.cmdline()]
        assert servers(box) == 0 and not any(Path(word).name in ("pipx", "uv", "pip") for word in words)
        page.do("click", selector=".notification-toast .monaco-button:has-text('Choose the command')")
        page.wait("!!document.querySelector('.quick-input-widget input')?.offsetParent", "the choice of a file")
        page.press("Control+a")
        page.type(str(box.server))
        page.press("Enter")
        page.wait(f"({STATUS}).includes('ready')", "ready")
        page.wait("!document.querySelector('.quick-input-widget')?.offsetParent", "the choice is made")
        page.do("click", selector=".editor-instance .view-lines")
        page.type("total = pri")
        page.shows("ce * quantity + shipping_cost")
        assert servers(box) == 1


def test_closing_leaves_nothing_behind(box: Sandbox) -> None:
    with code(box, box.write("a.py", "")) as page:
        page.type("total = pri")
        page.shows("ce * quantity + shipping_cost")
        assert len(box.processes()) >= 4
    assert box.left() == []
