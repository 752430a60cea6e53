"""Real source files that are on any machine that runs the tests: this project's own, Python's, and those of what the tests install."""

from __future__ import annotations

import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_STDLIB, _PACKAGES = (Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platlib"))
_FILES = {
    "python": (_STDLIB / "textwrap.py",),
    "typescript": (ROOT / "editors/vscode/src/track.ts",),
    "lua": (ROOT / "editors/neovim/lua/lsp_complete/track.lua",),
    "bash": (ROOT / "scripts/lib.sh",),
    "c": (_PACKAGES / "tree_sitter_lua/binding.c",),
    "cpp": (_PACKAGES / "greenlet/TGreenlet.cpp", _PACKAGES / "greenlet/greenlet.cpp"),
    "toml": (ROOT / "pyproject.toml",),
    "json": (ROOT / "editors/vscode/package.json",),
    "css": (_STDLIB / "pydoc_data/_pydoc.css",),
    "html": (_STDLIB / "idlelib/help.html", _PACKAGES / "pip/_vendor/rich/_export_format.html"),
}
LANGUAGES = tuple(_FILES)
MAX_LINES = 160


def _text(paths: tuple[Path, ...]) -> str:
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        return ""
    lines = found.read_bytes().decode("utf-8").splitlines(keepends=True)
    return "".join(lines[:MAX_LINES])


REAL = {language: text for language, paths in _FILES.items() if (text := _text(paths))}
"""Language → text. C++ and HTML come with packages that may be missing; the others are always there."""
