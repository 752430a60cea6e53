"""Driving Neovim over its own RPC. What is waited for is announced by the editor: buffer changes and the plugin's events."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvim

from .sandbox import DEADLINE_S, ROOT, Sandbox, program, until

PLUGIN = ROOT / "editors" / "neovim"

ANNOUNCE = """
local channel = ...
vim.api.nvim_create_autocmd('User', { pattern = 'LspComplete*', callback = function(event)
  vim.rpcnotify(channel, 'told', event.match)
end })
vim.api.nvim_create_autocmd({ 'TextChangedI', 'TextChanged', 'CursorMovedI', 'ModeChanged', 'LspAttach', 'CompleteChanged' }, { callback = function(event)
  vim.rpcnotify(channel, 'told', event.event)
end })
"""

HEARTBEAT = """
local channel = ...
vim.uv.new_timer():start(50, 50, vim.schedule_wrap(function() vim.rpcnotify(channel, 'told', 'heartbeat') end))
"""

STATUS = "return require('lsp_complete').status()"

GHOST = """
local space = vim.api.nvim_create_namespace('lsp_complete')
local marks = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
local out = {}
for _, mark in ipairs(marks) do
  local lines = { '' }
  for _, chunk in ipairs(mark[4].virt_text or {}) do lines[1] = lines[1] .. chunk[1] end
  for _, line in ipairs(mark[4].virt_lines or {}) do
    local all = ''
    for _, chunk in ipairs(line) do all = all .. chunk[1] end
    table.insert(lines, all)
  end
  table.insert(out, { mark[2], mark[3], table.concat(lines, '\\n') })
end
return out
"""


class Vim:
    """One running Neovim. Deadlines: a watchdog ends the editor, and the read that waits for it fails."""

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim
        self.pid = int(nvim.funcs.getpid())
        self.nvim.exec_lua(ANNOUNCE, nvim.channel_id)

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def keys(self, keys: str) -> None:
        """Type, as a user does."""
        self.nvim.input(keys)

    def ghost(self) -> str:
        """The ghost text that is drawn, "" if none."""
        marks = self.lua(GHOST)
        return marks[0][2] if marks else ""

    def place(self) -> tuple[int, int]:
        """Where the ghost text is drawn: row and byte column from 0."""
        row, col, _ = self.lua(GHOST)[0]
        return row, col

    def text(self) -> str:
        return "\n".join(self.nvim.current.buffer[:])

    def mode(self) -> str:
        return str(self.nvim.api.get_mode()["mode"])

    def heartbeat(self) -> None:
        """An event now and then, for what the editor does not announce."""
        self.lua(HEARTBEAT, self.nvim.channel_id)

    def messages(self) -> str:
        return str(self.lua("return vim.api.nvim_exec2('messages', { output = true }).output"))

    def screen(self, row: int) -> str:
        """A line of the screen as a user sees it."""
        self.nvim.command("redraw!")
        width = self.nvim.options["columns"]
        return "".join(self.nvim.funcs.screenstring(row, c) for c in range(1, width + 1)).rstrip()

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for the editor's events until `ready()` holds."""
        dog = threading.Timer(DEADLINE_S, self._end)
        dog.daemon = True
        dog.start()
        try:
            until(ready, self._event, what)
        except (OSError, EOFError) as error:
            raise AssertionError(f"not within {DEADLINE_S:.0f} s: {what}") from error
        finally:
            dog.cancel()

    def _event(self) -> None:
        if self.nvim.next_message() is None:
            raise EOFError

    def _end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def shows(self, text: str) -> None:
        self._same(self.ghost, text, "ghost text")

    def has(self, text: str) -> None:
        self._same(self.text, text, "text")

    def _same(self, read: Callable[[], str], wanted: str, what: str) -> None:
        seen = ""

        def same() -> bool:
            nonlocal seen
            seen = read()
            return seen == wanted

        try:
            self.until(same, what)
        except AssertionError as error:
            raise AssertionError(f"{what} {wanted!r} was wanted, {seen!r} was there") from error

    def is_ready(self) -> None:
        self.until(lambda: self.lua(STATUS) == "ready", "the server is ready")

    def in_mode(self, mode: str) -> None:
        self.until(lambda: self.mode().startswith(mode), f"mode {mode}")


@contextmanager
def started(
    name: str, box: Sandbox, file: Path, options: str = "", before: str = "", *, ready: bool = True
) -> Iterator[Vim]:
    """A Neovim with the plugin and one file open, its server ready. options: further fields of setup{}, in Lua."""
    init = box.base / "init.lua"
    init.write_text(
        f"vim.opt.runtimepath:prepend('{PLUGIN}')\nvim.opt.swapfile = false\n{before}\n"
        f"require('lsp_complete').setup {{ cmd = {{ '{box.server}' }}, {options} }}\n"
    )
    with opened(name, box, ["-u", str(init), str(file)]) as vim:
        if ready:
            vim.is_ready()
        yield vim


@contextmanager
def opened(name: str, box: Sandbox, words: list[str]) -> Iterator[Vim]:
    """A Neovim started with these arguments in the sandbox; closed afterwards."""
    argv = ["env", "-i", *(f"{k}={v}" for k, v in box.environment().items()), program(name)]
    nvim = pynvim.attach("child", argv=[*argv, "--embed", "--headless", *words])
    try:
        yield Vim(nvim)
    finally:
        with contextlib.suppress(OSError, EOFError):
            nvim.command("qall!", async_=True)
        nvim.close()
