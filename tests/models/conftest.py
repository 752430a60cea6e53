"""Fixtures: an own models folder, and a pip that sees only a folder of the test's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsp_complete.models.paths import ENV_FOLDER


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder that the program takes for its own."""
    place = tmp_path / "models"
    place.mkdir(mode=0o700)
    monkeypatch.setenv(ENV_FOLDER, str(place))
    return place


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels: all that pip can see. The hub is a closed port."""
    place = tmp_path / "index"
    place.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    return place
