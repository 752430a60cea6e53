"""editors/neovim in real Neovims: the newest and an older one."""

from __future__ import annotations

import signal
import time

import psutil
import pytest

from lsp_complete.engine.launch import ServeRules

from .neovim import STATUS, Vim, started
from .sandbox import DEADLINE_S, GONE_S, Sandbox

pytestmark = pytest.mark.editor
both = pytest.mark.parametrize("name", ["nvim", "nvim-old"])

MANY = "settings = { suggest = { multiline = 'always' } }"
LOOP = "\n    total += item.price * item.count\n    seen.add(item.name)"


def events(vim: Vim) -> list[str]:
    """The plugin's events from now on, kept in the editor."""
    return list(vim.lua("return _G.told or {}"))


def listen(vim: Vim) -> None:
    vim.lua(
        "_G.told = {}; vim.api.nvim_create_autocmd('User', { pattern = 'LspComplete*', "
        "callback = function(e) table.insert(_G.told, e.match) end })"
    )


@both
def test_ghost_text_appears_and_accepting_inserts_exactly(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "price = 1\n")) as vim:
        vim.keys("Gototal = pri")
        vim.shows("ce * quantity + shipping_cost")
        assert vim.screen(2).startswith("total = price * quantity + shipping_cost")
        vim.keys("<Tab>")
        vim.has("price = 1\ntotal = price * quantity + shipping_cost")
        assert vim.ghost() == ""
        vim.keys("!")
        vim.has("price = 1\ntotal = price * quantity + shipping_cost!")


@both
def test_typing_through_keeps_it_and_another_key_takes_it_away(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "")) as vim:
        vim.keys("itotal = pri")
        vim.shows("ce * quantity + shipping_cost")
        listen(vim)
        for typed, left in (("c", "e * quantity + shipping_cost"), ("e * q", "uantity + shipping_cost")):
            vim.keys(typed)
            vim.shows(left)
        assert "LspCompleteHidden" not in events(vim)
        vim.keys("X")
        vim.shows("")


@both
def test_what_was_typed_while_the_engine_started_gets_its_suggestion(box: Sandbox, name: str) -> None:
    release = box.gate()
    with started(name, box, box.write("a.py", ""), ready=False) as vim:
        vim.until(lambda: vim.lua(STATUS) == "working", "the engine is starting")
        vim.keys("itotal = pri")
        vim.has("total = pri")
        assert vim.ghost() == ""
        release()
        vim.shows("ce * quantity + shipping_cost")


@both
def test_a_word_then_a_line_then_the_rest(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", ""), MANY) as vim:
        vim.keys("ifor item in bas")
        vim.shows("ket:" + LOOP)
        vim.keys("<M-Right>")
        vim.has("for item in basket")
        vim.shows(":" + LOOP)
        vim.keys("<M-Down>")
        vim.has("for item in basket:")
        vim.shows(LOOP)
        vim.keys("<M-Down>")
        vim.has("for item in basket:\n    total += item.price * item.count")
        vim.shows("\n    seen.add(item.name)")
        vim.keys("<Tab>")
        vim.has("for item in basket:" + LOOP)


@both
def test_tab_indents_when_nothing_is_shown_and_goes_on_to_older_mappings(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.txt", ""), before="vim.opt.expandtab = false") as vim:
        vim.keys("i<Tab>x")
        vim.has("\tx")
    older = "vim.keymap.set('i', '<Tab>', function() return 'older' end, { expr = true })"
    with started(name, box, box.write("b.py", ""), before=older) as vim:
        vim.keys("i<Tab>")
        vim.has("older")
        vim.keys("<C-u>total = pri")
        vim.shows("ce * quantity + shipping_cost")
        vim.keys("<Tab>")
        vim.has("total = price * quantity + shipping_cost")


@both
def test_one_undo_takes_back_what_was_accepted_and_no_more(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", ""), MANY) as vim:
        vim.keys("ifor item in bas")
        vim.shows("ket:" + LOOP)
        vim.keys("<Tab>")
        vim.has("for item in basket:" + LOOP)
        vim.keys("x<Esc>")
        vim.in_mode("n")
        vim.keys("u")
        vim.has("for item in basket:" + LOOP)
        vim.keys("u")
        vim.has("for item in bas")
        vim.keys("<C-r>")
        vim.has("for item in basket:" + LOOP)


@both
def test_crlf_stays_crlf(box: Sandbox, name: str) -> None:
    path = box.write("a.py", "first = 1\r\nlast = 2\r\n")
    with started(name, box, path, MANY) as vim:
        vim.keys("ofor item in bas")
        vim.shows("ket:" + LOOP)
        vim.keys("<Tab>")
        vim.has("first = 1\nfor item in basket:" + LOOP + "\nlast = 2")
        vim.keys("<Esc>")
        vim.in_mode("n")
        vim.nvim.command("write")
    wanted = ("first = 1\nfor item in basket:" + LOOP + "\nlast = 2\n").replace("\n", "\r\n")
    assert path.read_bytes() == wanted.encode()


@both
def test_text_behind_an_emoji_lands_at_its_column(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "")) as vim:
        vim.keys('ilabel = "\U0001f600 \u00fc" + na')
        vim.shows("me_of_user")
        assert vim.place() == (0, len('label = "\U0001f600 \u00fc" + na'.encode()))
        vim.keys("<Tab>")
        vim.has('label = "\U0001f600 \u00fc" + name_of_user')


@both
def test_enter_between_braces(box: Sandbox, name: str) -> None:
    indent = "vim.opt.shiftwidth = 4; vim.opt.expandtab = true"
    with started(name, box, box.write("a.c", "int main(void) {}\n"), before=indent) as vim:
        vim.keys("f}i<CR><Up><End><CR>")
        vim.shows("return run_all_tests();")
        vim.keys("<Tab>")
        vim.has("int main(void) {\n    return run_all_tests();\n}")


@both
def test_a_menu_with_a_chosen_entry_has_the_key_first(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "quarter = 1\nquarrel = 2\n")) as vim:
        vim.keys("Gototal = price * qua")
        vim.shows("ntity + shipping_cost")
        vim.keys("<C-n>")
        vim.until(lambda: vim.lua("return vim.fn.complete_info({'selected'}).selected") >= 0, "a chosen entry")
        chosen = vim.text()
        vim.keys("<Tab>")
        vim.until(lambda: vim.text() != chosen, "Tab went to the menu")
        assert "shipping_cost" not in vim.text()


@both
def test_other_completion_menus_are_asked(box: Sandbox, name: str) -> None:
    """nvim-cmp and blink.cmp by the functions that they document; stand-ins, since neither can be had here."""
    with started(name, box, box.write("a.py", "")) as vim:
        choice = "return require('lsp_complete.keys').menu_has_choice()"
        assert vim.lua(choice) is False
        vim.lua("_G.entry = nil; package.loaded['cmp'] = { visible = function() return true end, get_active_entry = function() return _G.entry end }")
        assert vim.lua(choice) is False
        vim.lua("_G.entry = {}")
        assert vim.lua(choice) is True
        vim.lua("package.loaded['cmp'] = nil; package.loaded['blink.cmp'] = { is_menu_visible = function() return true end }")
        assert vim.lua(choice) is True


@both
def test_dismiss_and_the_trigger_key(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", ""), "auto = false") as vim:
        vim.keys("itotal = pri")
        vim.has("total = pri")
        assert vim.ghost() == ""
        vim.keys("<M-Bslash>")
        vim.shows("ce * quantity + shipping_cost")
        vim.keys("<C-]>")
        vim.shows("")
        vim.has("total = pri")


@both
def test_commands_statusline_and_health(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "")) as vim:
        assert vim.lua("return require('lsp_complete').statusline()") == "lsp-complete: ready"
        vim.nvim.command("LspComplete pause")
        assert vim.lua("return require('lsp_complete').status()") == "off"
        vim.keys("itotal = pri")
        vim.has("total = pri")
        vim.keys("<Esc>")
        vim.in_mode("n")
        vim.nvim.command("LspComplete resume")
        vim.keys("A")
        vim.shows("ce * quantity + shipping_cost")
        vim.keys("<Esc>")
        vim.in_mode("n")
        vim.nvim.command("LspComplete language")
        vim.until(lambda: vim.lua("return require('lsp_complete').statusline()") == "", "off for Python")
        vim.nvim.command("LspComplete language")
        vim.nvim.command("LspComplete stats")
        vim.until(lambda: "server.requests" in vim.text(), "statistics")
        assert vim.lua("return vim.fn.getcompletion('LspComplete pa', 'cmdline')") == ["pause"]
        vim.nvim.command("checkhealth lsp_complete")
        report = vim.text()
        assert "the server runs: ready" in report and "ERROR" not in report, report


@both
def test_a_missing_server_and_wrong_options_are_told_once(box: Sandbox, name: str) -> None:
    file = box.write("a.py", "")
    with started(name, box, file, "ghots = 1, cmd = { '/nowhere/lsp-complete' }", ready=False) as vim:
        vim.until(lambda: "pipx install" in vim.messages(), "the message")
        assert "there is no option ghots" in vim.messages()
        vim.nvim.command("edit b.py")
        vim.keys("ix<Tab>")
        vim.until(lambda: vim.text().startswith("x") and len(vim.text()) > 1, "Tab works without a server")
        assert vim.messages().count("pipx install") == 1


@both
def test_a_server_that_dies_is_started_again(box: Sandbox, name: str) -> None:
    box.idle_s = 30.0  # as in life, the new server finds the engine still there
    with started(name, box, box.write("a.py", "")) as vim:
        first = [p for p in box.processes() if any("fake_server" in word for word in p.cmdline())]
        assert len(first) == 1
        first[0].send_signal(signal.SIGKILL)
        vim.until(
            lambda: vim.lua("local c = require('lsp_complete.client'); return c.get() ~= nil and c.id ~= 1"),
            "a new server",
        )
        vim.keys("itotal = pri")
        vim.shows("ce * quantity + shipping_cost")


@both
def test_what_was_paused_stays_so_when_the_server_is_started_again(box: Sandbox, name: str) -> None:
    box.idle_s = 30.0
    with started(name, box, box.write("a.py", "")) as vim:
        vim.nvim.command("LspComplete pause")
        (first,) = [p for p in box.processes() if any("fake_server" in word for word in p.cmdline())]
        first.send_signal(signal.SIGKILL)
        new = "local c = require('lsp_complete.client'); return c.get() ~= nil and c.id ~= 1 and c.get().initialized == true"
        vim.heartbeat()
        vim.until(lambda: vim.lua(new), "a new server")
        vim.keys("itotal = pri")
        vim.has("total = pri")
        listen(vim)
        vim.keys("c")
        vim.until(lambda: "LspCompleteAnswered" in events(vim), "the server's answer")
        assert vim.ghost() == ""
        vim.nvim.command("LspComplete resume")
        vim.keys("e")
        vim.shows(" * quantity + shipping_cost")


@both
def test_an_engine_that_dies_is_started_again(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "")) as vim:
        (engine,) = [p for p in box.processes() if "lsp_complete.engine.serve" in p.cmdline()]
        engine.send_signal(signal.SIGKILL)
        vim.keys("itotal = pri")
        vim.shows("ce * quantity + shipping_cost")
        assert engine.pid not in [p.pid for p in box.processes()]


@both
def test_closing_the_editor_leaves_nothing_behind(box: Sandbox, name: str) -> None:
    with started(name, box, box.write("a.py", "")) as vim:
        vim.keys("itotal = pri")
        vim.shows("ce * quantity + shipping_cost")
        assert len(box.processes()) >= 3  # the editor, the server, the engine
    assert box.left() == []


@pytest.mark.slow
def test_the_engine_leaves_a_minute_after_the_last_editor(box: Sandbox) -> None:
    """The one test that waits as long as a user's engine does: two editors share it, and only the second one's end counts."""
    box.idle_s = ServeRules().idle_s
    assert box.idle_s == 60
    with started("nvim", box, box.write("a.py", "")) as first:
        with started("nvim", box, box.write("b.py", "")) as second:
            for vim in (first, second):
                vim.keys("itotal = pri")
                vim.shows("ce * quantity + shipping_cost")
            (engine,) = [p for p in box.processes() if "lsp_complete.engine.serve" in p.cmdline()]
        first.keys("ce")
        first.shows(" * quantity + shipping_cost")
    others = [p for p in box.processes() if p != engine]
    psutil.wait_procs(others, timeout=GONE_S)
    closed = time.monotonic()
    assert box.processes() == [engine]
    engine.wait(timeout=60 + DEADLINE_S)
    assert time.monotonic() - closed > 50
    assert box.processes() == []


def test_the_built_in_ghost_text_as_an_option(box: Sandbox) -> None:
    with started("nvim", box, box.write("a.py", ""), "ghost = 'builtin'") as vim:
        vim.heartbeat()
        vim.keys("itotal = pri")
        vim.until(lambda: vim.screen(1).startswith("total = price * quantity"), "built-in ghost text")
        vim.keys("<Tab>")
        vim.has("total = price * quantity + shipping_cost")
