"""What each editor needs: text with this machine's command in it, and where it goes. Pure but for reading `editors/`.

Strategy: the files in `editors/` work as they are where `lsp-complete` is on the PATH. Here the command's one place in each is
replaced by an absolute path.

Rules: a file that is not there, or lacks that place, is an error that says so, never a half-right snippet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import LspCompleteError
from . import editor_helix

MARK = "lsp-complete"


@dataclass(frozen=True, slots=True)
class Snippet:
    """One file for one editor. target: where it goes, None where a person has to put it there. comment: what begins a comment."""

    text: str
    target: Path | None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """All that an editor needs. folders: (from, to) to copy as they are. after: what is left to do by hand."""

    title: str
    snippets: tuple[Snippet, ...] = ()
    folders: tuple[tuple[Path, Path], ...] = ()
    after: str = ""


KATE = "In Kate: Settings > Configure Kate > Plugins > LSP Client. Kate has one server per language: this takes Python's place; copy the entry for others"

NAMES = ("vscode", "neovim", "helix", "emacs", "eglot", "zed", "sublime", "kate", "jetbrains")


def setup_for(name: str, command: str, editors: Path, places: Mapping[str, Path], helix: str | None = None) -> Setup:
    """The setup of an editor. command: absolute path of the server. helix: the Helix to ask for its servers, if there is one.

    places: what `places()` gives. Raises LspCompleteError if a file of the installation is missing.
    """
    config, home = places["config"], places["home"]

    def text(file: str, needle: str) -> str:
        return filled(read(editors / file), needle, command, file)

    if name == "neovim":
        pack = places["neovim"] / "site" / "pack" / MARK / "start" / MARK
        snippet = Snippet(text("neovim/init.lua", '{ "lsp-complete" }'), config / "nvim" / "plugin" / "lsp-complete.lua", "--")
        return Setup("Neovim 0.10 or newer", (snippet,), ((editors / "neovim" / "lua", pack / "lua"),), "Check: :checkhealth lsp_complete")
    if name == "helix":
        servers = editor_helix.asked(helix) if helix else editor_helix.shipped(editors / "helix")
        fragment = editor_helix.fragment(command, servers)
        return Setup("Helix", (Snippet(fragment, places["helix"] / "languages.toml", "#"),), after="Check: hx --health python")
    if name in ("emacs", "eglot"):
        file = "lsp-mode" if name == "emacs" else "eglot"
        folder = home / ".emacs.d" if (home / ".emacs.d").is_dir() else config / "emacs"
        target = folder / f"lsp-complete-{file}.el"
        snippet = Snippet(text(f"emacs/{file}.el", '("lsp-complete")'), target, ";")
        init = home / ".emacs" if (home / ".emacs").is_file() else folder / "init.el"  # with ~/.emacs, Emacs reads no init.el
        return Setup("Emacs with " + file, (snippet,), after=f'In {init}: (load "{target}")')
    if name == "zed":
        after = (
            "1. Run this and leave it running; it prints a token: lsp-complete serve-http --port 8543\n"
            "2. Merge the above into Zed's settings.json (zed: open settings file).\n"
            "3. Give Zed the token as the API key, in its settings under Edit Predictions, or start it with the token in ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY."
        )
        return Setup("Zed", (Snippet(read(editors / "zed" / "settings.json"), None),), after=after)
    if name == "sublime":
        snippet = Snippet(text("sublime/LSP.sublime-settings", '["lsp-complete"]'), places["sublime"] / "Packages" / "User" / "LSP.sublime-settings")
        return Setup("Sublime Text with the package LSP", (snippet,), after="In Sublime Text: Package Control: Install Package, LSP")
    if name == "kate":
        snippet = Snippet(text("kate/settings.json", '["lsp-complete"]'), config / "kate" / "lspclient" / "settings.json")
        return Setup("Kate", (snippet,), after=KATE)
    if name == "jetbrains":
        return _jetbrains(text, editors / "jetbrains" / MARK, places["data"] / MARK / "jetbrains")
    raise LspCompleteError(f"there is no editor `{name}`; there are {', '.join(NAMES)}")


def _jetbrains(text: Callable[[str, str], str], source: Path, target: Path) -> Setup:
    """LSP4IJ imports a folder of three files; the command stands in the first."""
    template = Snippet(text("jetbrains/lsp-complete/template.json", '"default": "lsp-complete"'), target / "template.json")
    others = tuple(Snippet(read(source / name), target / name) for name in ("initializationOptions.json", "settings.json"))
    after = (
        "With the plug-in LSP4IJ: Settings > Languages & Frameworks > Language Servers > + > Template > Import from custom template..., "
        f"and choose the folder {target} (--install makes it)"
    )
    return Setup("JetBrains IDEs", (template, *others), after=after)


def read(path: Path) -> str:
    """A file of the installation. Raises LspCompleteError if it is missing."""
    try:
        return path.read_text("utf-8")
    except OSError:
        raise LspCompleteError(f"{path} is missing; install lsp-complete again, or run this from a checkout") from None


def filled(text: str, needle: str, command: str, file: str = "") -> str:
    """`text` with the command in the one place of `needle`. Raises LspCompleteError if that is not there exactly once."""
    if text.count(needle) != 1:
        raise LspCompleteError(f"{file or 'the snippet'} has no place for the command ({needle}); install lsp-complete again")
    escaped = command.replace("\\", "\\\\").replace('"', '\\"')
    return text.replace(needle, needle.replace("lsp-complete", escaped))


def places(environ: Mapping[str, str] = os.environ, home: Path | None = None, platform: str = sys.platform) -> dict[str, Path]:
    """The user's folders, as these editors look for them: "home", "config" and "data", and those of editors that go other ways.

    Windows' and macOS' are as the editors document them, not tried.
    """
    home = home or Path.home()
    if platform == "win32":
        local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        own = {"neovim": local / "nvim-data", "helix": roaming / "helix", "sublime": roaming / "Sublime Text"}
        return {"home": Path(environ.get("HOME") or roaming), "config": local, "data": local, **own}  # home: Emacs'
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    sublime = home / "Library" / "Application Support" / "Sublime Text" if platform == "darwin" else config / "sublime-text"
    return {"home": home, "config": config, "data": data, "neovim": data / "nvim", "helix": config / "helix", "sublime": sublime}
