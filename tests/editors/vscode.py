"""VS Code (code-server) in a headless Chromium: the packed extension installed, one file open, keys typed into the page."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .sandbox import DEADLINE_S, EDITORS, ROOT, Sandbox, program, until

VSIX = ROOT / "editors" / "vscode" / "lsp-complete.vsix"
DRIVER = Path(__file__).with_name("vscode_driver.mjs")

ACCEPT_LINE = "Control+Alt+l"
"""VS Code has the command but no key for it."""

GHOST = """[...document.querySelectorAll('.editor-instance .ghost-text, .editor-instance .ghost-text-decoration, .editor-instance .suggest-preview-text')]
  .filter((e) => !e.parentElement.closest('.ghost-text')).map((e) => e.textContent).join('').replace(/\\u00a0/g, ' ')"""
LINES = """[...document.querySelectorAll('.editor-instance .view-lines .view-line')]
  .sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))
  .map((line) => [...line.querySelectorAll(':scope > span > span')].filter((e) => !/ghost-text/.test(e.className))
  .map((e) => e.textContent).join('')).join('\\n').replace(/\\u00a0/g, ' ')"""
NEXT_FRAME = "new Promise((done) => requestAnimationFrame(() => done(null)))"
NOTES = "[...document.querySelectorAll('.notification-toast')].map((e) => e.textContent).join('\\n')"
POPUP = "document.querySelector('.suggest-widget.visible .monaco-list-rows')?.textContent ?? ''"
STATUS = "document.querySelector('[id*=\"lsp-complete.status\"] a')?.getAttribute('aria-label') ?? ''"


class Code:
    """A page of VS Code."""

    def __init__(self, driver: subprocess.Popen[str], box: Sandbox) -> None:
        self._driver, self._box = driver, box

    def do(self, op: str, **values: object) -> Any:
        """One operation of the driver; fails with its error."""
        assert self._driver.stdin is not None and self._driver.stdout is not None
        self._driver.stdin.write(json.dumps({"op": op, **values}) + "\n")
        self._driver.stdin.flush()
        answer = json.loads(self._driver.stdout.readline() or '{"error": "the browser has gone"}')
        assert "error" not in answer, f"{op}: {answer.get('error')}"
        return answer["value"]

    def wait(self, code: str, what: str) -> None:
        """Wait until a JavaScript expression holds in the page."""
        try:
            self.do("wait", code=code)
        except AssertionError as error:
            path = os.environ.get("EDITOR_TEST_SHOT", "")
            if path:
                self.do("shot", path=path)
            raise AssertionError(f"{what}; ghost {self.ghost()!r}, text {self.text()!r}, {self.status()!r}") from error

    def ghost(self) -> str:
        return str(self.do("look", code=GHOST))

    def text(self) -> str:
        return str(self.do("look", code=LINES))

    def status(self) -> str:
        return str(self.do("look", code=STATUS))

    def shows(self, text: str) -> None:
        self.wait(f"({GHOST}) === {json.dumps(text)}", f"ghost text {text!r}")

    def has(self, text: str) -> None:
        self.wait(f"({LINES}) === {json.dumps(text)}", f"text {text!r}")

    def type(self, text: str) -> None:
        self.do("type", text=text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.do("press", key=key)

    def command(self, title: str) -> None:
        """Run a command by its title in the palette."""
        self.press("F1")
        self.wait("!!document.querySelector('.quick-input-widget input')?.offsetParent", "the palette")
        self.type(title)
        self.wait(f"document.querySelector('.quick-input-list .focused')?.textContent.includes({json.dumps(title)})", title)
        self.press("Enter")

    def saved(self, path: Path) -> bytes:
        """Save; the file's bytes once they are others."""
        before = path.read_bytes()
        self.press("Control+s")
        until(lambda: path.read_bytes() not in (before, b""), lambda: self.do("look", code=NEXT_FRAME), "the file is saved")
        return path.read_bytes()


def write_settings(box: Sandbox, more: dict[str, object]) -> None:
    """VS Code's settings, also while it runs. One that is None is left out."""
    settings = {
        "lsp-complete.server.command": str(box.server),
        "workbench.startupEditor": "none",
        "workbench.tips.enabled": False,
        "security.workspace.trust.enabled": False,
        "telemetry.telemetryLevel": "off",
        "chat.disableAIFeatures": True,
        "workbench.colorTheme": "Default Light Modern",
        "editor.minimap.enabled": False,
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        **more,
    }
    for place in ("User", "Machine"):
        folder = box.home / "code" / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps({k: v for k, v in settings.items() if v is not None}))
    keys = [{"key": ACCEPT_LINE.lower().replace("control", "ctrl"), "command": "editor.action.inlineSuggest.acceptNextLine"}]
    (box.home / "code" / "User" / "keybindings.json").write_text(json.dumps(keys))


def browser() -> str:
    own = EDITORS / "chromium" / "bin" / "chromium"
    found = str(own) if own.exists() else shutil.which("chromium") or ""
    if not found:
        pytest.skip("Chromium is not here; scripts/get-editors vscode fetches it")
    return found


def _listening(server: subprocess.Popen[str]) -> str:
    """The address that code-server says it listens at."""
    dog = threading.Timer(DEADLINE_S * 2, server.kill)
    dog.start()
    try:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"listening on (\S+//127\.0\.0\.1:\d+)", line)
            if found:
                threading.Thread(target=server.stdout.read, daemon=True).start()
                return found.group(1)
    finally:
        dog.cancel()
    raise AssertionError("code-server did not start")


def drive(box: Sandbox) -> subprocess.Popen[str]:
    """A browser that is driven by lines on its standard input."""
    place = Path(program("vscode")).parent.parent
    words = [str(place / "bin" / "node"), str(DRIVER), str(place / "driver"), browser(), str(box.base / "profile"), str(int(DEADLINE_S * 1000))]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=box.environment(), cwd=box.project)


def packed() -> Path:
    """The extension. Skips the test if it is not packed, or older than what it is made of."""
    if not VSIX.exists():
        pytest.skip("editors/vscode/lsp-complete.vsix is not here; scripts/package-vscode makes it")
    made_of = [VSIX.parent / "package.json", *(VSIX.parent / "src").iterdir()]
    if any(path.stat().st_mtime > VSIX.stat().st_mtime for path in made_of):
        pytest.skip("editors/vscode/lsp-complete.vsix is older than its source; scripts/package-vscode makes it again")
    return VSIX


def command(box: Sandbox) -> Path:
    """The sandbox's `code`, as a user has it on the PATH: its settings and extensions are the sandbox's."""
    name = program("vscode")
    path = box.base / "bin" / "code"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexec '{name}' --user-data-dir='{box.home / 'code'}' --extensions-dir='{box.home / 'extensions'}' \"$@\"\n")
    path.chmod(0o755)
    return path


@contextmanager
def code(box: Sandbox, file: Path, *, ready: bool = True, **settings: object) -> Iterator[Code]:
    """VS Code with the packed extension and the file open, the server ready or (`ready` false) as it comes."""
    name = command(box)
    subprocess.run([str(name), "--install-extension", str(packed())], check=True, capture_output=True, env=box.environment(), cwd=box.project)
    with started(box, file, settings, ready=ready) as page:
        yield page


@contextmanager
def started(box: Sandbox, file: Path, settings: dict[str, object], *, ready: bool = True) -> Iterator[Code]:
    """VS Code as it is installed in the sandbox, the file open, the server ready. A setting that is None is left out."""
    browser()
    write_settings(box, settings)
    options = ["--auth=none", "--bind-addr=127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
    server = subprocess.Popen(
        [str(command(box)), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=box.environment(), cwd=box.project,
    )  # fmt: skip
    driver = drive(box)
    try:
        page = Code(driver, box)
        page.do("open", url=f"{_listening(server)}/?folder={box.project}")
        page.wait("!!document.querySelector('.explorer-folders-view .monaco-list-row')", "the explorer")
        page.press("Control+p")
        page.wait("!!document.querySelector('.quick-input-widget input')?.offsetParent", "the file picker")
        page.type(file.name)
        page.wait(f"document.querySelector('.quick-input-list .focused')?.textContent.includes({json.dumps(file.name)})", "the file")
        page.press("Enter")
        page.wait("!!document.querySelector('.editor-instance .view-lines')", "the editor")
        if ready:
            until(box.engine_ready, lambda: page.do("look", code=NEXT_FRAME), "the engine is ready")
            page.wait(f"({STATUS}).includes('ready')", "the extension is ready")
        yield page
    finally:
        with contextlib.suppress(OSError):
            driver.stdin.close()  # type: ignore[union-attr]
        for process in (driver, server):
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process is server:
                    process.terminate()
                process.wait(DEADLINE_S)
