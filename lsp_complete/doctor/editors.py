"""Which editors are here, and whether their configuration mentions this program.

Rules: an editor is only asked for its version. Configuration files are searched for the program's name, nothing else
of them is kept or shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lsp_complete.doctor.findings import Finding

NAMES = ("lsp-complete", "lsp_complete")
MOST_FILES, MOST_BYTES = 400, 1 << 20


@dataclass(frozen=True, slots=True)
class Editor:
    """commands: names on the PATH. ghost: how it shows suggestions. least: version needed for that, () for any.

    places: configuration files or folders below the user's configuration or home folder (`~/`).
    setup: what `lsp-complete editor` takes for it, "" if it has nothing. asks: it can be asked for its version without opening a window.
    """

    name: str
    commands: tuple[str, ...]
    ghost: str
    places: tuple[str, ...]
    least: tuple[int, ...] = ()
    setup: str = ""
    asks: bool = True


EDITORS = (
    Editor("Neovim", ("nvim",), "ghost text", ("nvim",), (0, 10), "neovim --install"),
    Editor(
        "VS Code",
        ("code", "codium", "code-oss", "code-server"),
        "ghost text, by the extension",
        ("~/.vscode/extensions", "~/.vscode-oss/extensions", "~/.local/share/code-server/extensions", "~/.vscode-server/extensions"),
        setup="vscode",
    ),
    Editor("Cursor", ("cursor",), "ghost text, by the extension for VS Code", ("~/.cursor/extensions",), setup="vscode"),
    Editor("Helix", ("hx", "helix"), "completion menu", ("helix",), setup="helix --install"),
    Editor(
        "Emacs",
        ("emacs",),
        "ghost text with lsp-mode 10, completion menu with Eglot",
        ("emacs", "~/.emacs.d", "~/.emacs"),
        setup="emacs --install",
    ),
    Editor("Zed", ("zed", "zeditor"), "by its own completion endpoint", ("zed",), setup="zed"),
    Editor("Vim", ("vim",), "by an LSP plug-in's completion menu", ("~/.vimrc", "~/.vim")),
    Editor("Sublime Text", ("subl",), "completion menu", ("sublime-text/Packages/User",), setup="sublime --install"),
    Editor("Kate", ("kate",), "completion menu", ("kate", "katerc"), setup="kate --install"),
    Editor(
        "JetBrains IDE",
        ("idea", "pycharm", "webstorm", "goland", "clion", "rustrover", "phpstorm", "rubymine", "rider"),
        "ghost text, by the plug-in LSP4IJ",
        ("JetBrains",),
        setup="jetbrains --install",
        asks=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """An editor on this machine. version: as it says, "" if it does not. set_up: its configuration names this program."""

    name: str
    command: str
    version: str
    ghost: str
    set_up: bool
    new_enough: bool
    setup: str = ""


def look(
    which: Callable[[str], str | None] = shutil.which, ask: Callable[[str], str] | None = None
) -> tuple[Found, ...]:
    """The editors on the PATH. Asks each for its version (a fraction of a second each)."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found = []
    for editor in EDITORS:
        command = next((path for name in editor.commands if (path := which(name))), None)
        if command is None:
            continue
        version = version_in((ask or _ask)(command)) if editor.asks else ""
        numbers = tuple(int(number) for number in re.findall(r"\d+", version))
        enough = not editor.least or not numbers or numbers >= editor.least
        places = [
            Path(place).expanduser() if place.startswith("~") else config / place for place in editor.places
        ]
        found.append(Found(editor.name, command, version, editor.ghost, any(map(mentions, places)), enough, editor.setup))
    return tuple(found)


def findings(found: tuple[Found, ...], on_path: bool, program: str) -> tuple[Finding, ...]:
    """What to say about them. on_path: `lsp-complete` can be started by its name. program: a full command that works."""
    results = []
    if not on_path:
        results.append(
            Finding(
                "warn",
                "command",
                "lsp-complete is not on the PATH, so editors cannot start it by its name",
                f"Add its folder to the PATH, or write {program} as the command in the editor's settings.",
            )
        )
    for editor in found:
        text = f"{editor.version or 'version unknown'}, {editor.ghost}"
        if not editor.new_enough:
            results.append(
                Finding(
                    "note",
                    editor.name,
                    f"{text}; this version has no ghost text",
                    'Ghost text needs Neovim 0.10 or newer; older ones can use the completion menu (`surface = "menu"`).',
                )
            )
        elif editor.set_up:
            results.append(Finding("ok", editor.name, f"{text}, set up"))
        else:
            results.append(
                Finding(
                    "note",
                    editor.name,
                    f"{text}, not set up",
                    f"lsp-complete editor {editor.setup}" if editor.setup else "Its LSP plug-in's command is `lsp-complete`.",
                )
            )
    if not found:
        results.append(
            Finding(
                "note",
                "editors",
                "none of the known editors is on the PATH",
                "Any editor that speaks LSP works: its command is `lsp-complete`.",
            )
        )
    return tuple(results)


def version_in(text: str) -> str:
    """The first dotted number of an editor's version text."""
    match = re.search(r"\d+\.\d+(?:\.\d+)*", text)
    return match.group() if match else ""


def mentions(place: Path) -> bool:
    """A file, or a file in a folder or its name, says the program's name. Reads a bounded number of files."""
    if place.is_file():
        return _file_mentions(place)
    seen = 0
    for folder, folders, files in os.walk(place):
        folders[:] = [
            name for name in folders if name not in (".git", "node_modules", "undo", "backup", "elpa", "site")
        ]
        for name in (*folders, *files):
            if any(word in name for word in NAMES):
                return True
        for name in files:
            seen += 1
            if seen > MOST_FILES:
                return False
            if _file_mentions(Path(folder) / name):
                return True
    return False


def _file_mentions(path: Path) -> bool:
    try:
        if path.stat().st_size > MOST_BYTES:
            return False
        text = path.read_text("utf-8", "ignore")
    except OSError:
        return False
    return any(word in text for word in NAMES)


def _ask(command: str) -> str:
    try:
        done = subprocess.run(
            [command, "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout or done.stderr
