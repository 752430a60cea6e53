"""Starting the fake server the way the benchmarks start the real one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.measure.corpus import Source
from lsp_complete.measure.session import SessionOptions

HERE = Path(__file__).resolve().parent
FAKE = (sys.executable, str(HERE / "fake_server.py"))

Options = Callable[..., SessionOptions]


@pytest.fixture(autouse=True)
def no_comparisons_at_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands keep for the dashboard stays out of the user's state."""
    monkeypatch.setattr("lsp_complete.measure.kept.folder", lambda: tmp_path_factory.mktemp("state") / "comparisons")


@pytest.fixture
def fake_options(monkeypatch: pytest.MonkeyPatch) -> Options:
    """Session options for a fake server that knows the given lines."""

    def make(crib: Sequence[str] = (), refuse: int = 0, **settings: Any) -> SessionOptions:
        variables = {
            "FAKE_PATH": str(HERE.parents[1]),
            "FAKE_CRIB": json.dumps(list(crib)),
            "FAKE_REFUSE": str(refuse),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return SessionOptions(settings=settings, command=FAKE, variables=variables)

    return make


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A file of 120 lines in which every third line is long enough to be retyped."""
    lines = []
    for number in range(40):
        lines += [
            f"def function_{number}(value):",
            f"    result = compute(value, {number}, [1, 2])",
            "    return result",
        ]
    text = "\n".join(lines) + "\n"
    path = tmp_path / "sample.py"
    path.write_text(text, encoding="utf-8")
    return Source("sample.py", path, tmp_path, "python", text)
