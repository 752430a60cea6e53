"""Fixtures of the editor tests, and a line at the end that says how many ran in which editor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from . import sandbox

_ran: Counter[str] = Counter()
_skipped: dict[str, str] = {}


@pytest.fixture
def box() -> Iterator[sandbox.Sandbox]:
    """A sandbox; nothing of it is left afterwards."""
    made = sandbox.make()
    yield made
    sandbox.remove(made)


def _editor(nodeid: str) -> str:
    name = nodeid.rpartition("/")[2].partition(".py")[0].removeprefix("test_")
    old = "[nvim-old" in nodeid
    return "neovim (older)" if old else name


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count."""
    if "tests/editors/test_" not in report.nodeid:
        return
    if report.when == "call" and not report.skipped:
        _ran[_editor(report.nodeid)] += 1
    elif report.skipped and isinstance(report.longrepr, tuple):
        _skipped[_editor(report.nodeid)] = report.longrepr[2].removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many ran in each editor; why others did not."""
    if not _ran and not _skipped:
        return
    terminalreporter.section("in real editors")
    for name in sorted({*_ran, *_skipped}):
        why = f"; skipped: {_skipped[name]}" if name in _skipped else ""
        terminalreporter.write_line(f"{name}: {_ran[name]} tests ran{why}")
