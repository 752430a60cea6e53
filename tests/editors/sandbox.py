"""A place for one editor: home, project and sockets of its own, a server command, and its processes afterwards.

Rules: an editor that is not here is a skip with the reason. Every process started below a sandbox carries its mark in the environment,
so that what is left over can be found, however it was started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from platformdirs import user_cache_dir

ROOT = Path(__file__).resolve().parents[2]
EDITORS = Path(user_cache_dir("lsp-complete")) / "editors"
MARK = "EDITOR_TEST_MARK"
DEADLINE_S = float(os.environ.get("EDITOR_TEST_DEADLINE", "30"))
"""How long anything may take; longer on a machine that has no time for the tests."""
GONE_S = 5 * max(1.0, DEADLINE_S / 30)
"""How long after the editor something may still run: 5 s, stretched with DEADLINE_S."""


def program(name: str) -> str:
    """The command of an editor fetched by scripts/get-editors. Skips the test if it is not here."""
    path = EDITORS / name / "bin" / ("code-server" if name == "vscode" else name)
    if not path.exists():
        pytest.skip(f"{name} is not here; scripts/test-editors {name} fetches it and runs its tests")
    return str(path)


@dataclass
class Sandbox:
    """See the module's rules."""

    base: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    idle_s: float = 1.0
    more: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def server(self) -> Path:
        """The server's command: an executable with no arguments."""
        return self.base / "server"

    def environment(self) -> dict[str, str]:
        """Nothing of the user's own configuration; the engine's sockets in a private folder."""
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "SYSTEMROOT")}
        places = {f"XDG_{n}_HOME": str(self.home / n.lower()) for n in ("CONFIG", "DATA", "STATE", "CACHE")}
        return {
            **kept,
            **places,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.base / "run"),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            MARK: self.mark,
            "EDITOR_TEST_IDLE": str(self.idle_s),
            **self.more,
        }

    def write(self, name: str, text: str) -> Path:
        """A file of the project, byte for byte."""
        path = self.project / name
        path.write_bytes(text.encode())
        return path

    def processes(self) -> list[psutil.Process]:
        """All that runs with this sandbox's mark."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def gate(self) -> Callable[[], None]:
        """Hold the engine back until what is returned is called. Before the editor starts; the call waits for the server to want the engine."""
        pipe = self.base / "gate"
        os.mkfifo(pipe)
        self.more["EDITOR_TEST_GATE"] = str(pipe)
        return lambda: pipe.open("w").close()

    def engine_ready(self) -> bool:
        """The engine's log says that a server has joined it."""
        logs = (self.home / "state" / "lsp-complete").rglob("*.log")
        return any("joined" in log.read_text("utf-8", "replace") for log in logs)

    def left(self) -> list[str]:
        """Command lines of what still runs after GONE_S; [] as soon as nothing does."""
        psutil.wait_procs(self.processes(), timeout=GONE_S)
        left = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):  # it ended just now
                left.append(" ".join(process.cmdline()))
        return left


def make(real: str = "") -> Sandbox:
    """A sandbox with folders and the server's command; `real`: the installed command instead of the scripted one."""
    base = Path(tempfile.mkdtemp(prefix="lce"))
    box = Sandbox(base)
    for path in (box.home, box.project, base / "run"):
        path.mkdir()
    (base / "run").chmod(0o700)
    (box.project / ".git").mkdir()
    script = Path(__file__).parent / "fake_server.py"
    words = real or f"'{sys.executable}' '{script}'"
    box.server.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    box.server.chmod(box.server.stat().st_mode | stat.S_IXUSR)
    return box


def remove(box: Sandbox) -> None:
    """End what is left, by its id, and delete the folder."""
    left = box.processes()
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(left, timeout=5)
    shutil.rmtree(box.base, ignore_errors=True)


def until(ready: Callable[[], bool], pause: Callable[[], None], what: str) -> None:
    """Look until `ready()` holds; between looks, `pause()` waits for the editor's next event. Fails at the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not ready():
        assert time.monotonic() < end, f"not within {DEADLINE_S:.0f} s: {what}"
        pause()
