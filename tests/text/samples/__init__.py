"""Small source files in ten languages, and variants of them with other line endings and untidy blanks."""

from __future__ import annotations

from pathlib import Path

_FILES = {path.name: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("sample.*")}
SAMPLES = {
    **_FILES,
    "crlf.py": _FILES["sample.py"].replace("\n", "\r\n"),
    "crlf.cs": _FILES["sample.cs"].replace("\n", "\r\n"),
    "cr.js": _FILES["sample.js"].replace("\n", "\r"),
    "trailing.go": _FILES["sample.go"].replace("\n", "  \n"),
    "blank_runs.rs": _FILES["sample.rs"].replace("\n", "\n\n   \n\n"),
    "no_last_newline.sql": _FILES["sample.sql"].rstrip("\n"),
    "mixed_endings.py": _FILES["sample.py"].replace(":\n", ":\r\n").replace(")\n", ")\r"),
}
