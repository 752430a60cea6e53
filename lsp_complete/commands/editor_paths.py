"""Where the editors' files lie: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def editors_dir() -> Path:
    """The folder that holds one folder per editor. It may be missing in a damaged installation."""
    inside = _PACKAGE / "_editors"
    return inside if inside.is_dir() else _PACKAGE.parent / "editors"
