"""Driving a terminal program through tmux: keys in, the screen out. The screen is looked at until it shows what is wanted, or the deadline comes."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from .sandbox import Sandbox, until

LOOK_S = 0.05


class Terminal:
    """One program in a tmux of its own."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box
        self._socket = str(box.base / "tmux")

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, check=True, env=self._box.environment(),
        )  # fmt: skip
        return done.stdout

    def start(self, words: list[str], columns: int = 110, lines: int = 30) -> None:
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", str(self._box.project), *words)
        self.tmux("set-option", "-s", "escape-time", "0")

    def text(self, typed: str) -> None:
        """Type characters."""
        self.tmux("send-keys", "-l", typed)

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Tab, Escape, C-n."""
        self.tmux("send-keys", *names)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, text: str) -> str:
        """Wait until the screen shows a text; gives the screen."""
        self.until(lambda: text in self.screen(), text)
        return self.screen()

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Look at it again and again: a screen announces nothing."""
        pause = threading.Event()
        try:
            until(ready, lambda: pause.wait(LOOK_S) and None, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.screen().rstrip()}") from error

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False, env=self._box.environment()
        )


@contextmanager
def terminal(box: Sandbox) -> Iterator[Terminal]:
    """A terminal that is closed afterwards. Skips the test where tmux is missing."""
    if not shutil.which("tmux"):
        pytest.skip("tmux is not here")
    made = Terminal(box)
    try:
        yield made
    finally:
        made.close()
