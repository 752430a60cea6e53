"""Fixtures of the editor tests, and lines at the end that say how many ran in which editor, why others did not, and what was timed."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from _pytest.runner import runtestprotocol

from . import sandbox

EDITORS = {
    "nvim-old": "Neovim (older)",
    "neovim": "Neovim",
    "helix": "Helix",
    "eglot": "Emacs with Eglot",
    "emacs": "Emacs with lsp-mode",
    "vscode": "VS Code",
    "dashboard": "the dashboard in Chromium",
}
"""What a test's name holds → the editor; the first that fits counts."""

_ran: Counter[str] = Counter()
_skipped: Counter[tuple[str, str]] = Counter()
_said: list[str] = []


@pytest.fixture
def box() -> Iterator[sandbox.Sandbox]:
    """A sandbox; nothing of it is left afterwards."""
    made = sandbox.make()
    yield made
    sandbox.remove(made)


@pytest.fixture(scope="session")
def say() -> Callable[[str], None]:
    """Have a line printed at the end of the run."""
    return _said.append


def _editor(nodeid: str) -> str | None:
    """The editor that a test is about; None for one that drives none."""
    found = re.search(r"tests/editors/test_(.*)", nodeid)
    return next((title for name, title in EDITORS.items() if name in found.group(1)), None) if found else None


def pytest_runtest_protocol(item: pytest.Function, nextitem: pytest.Item | None) -> bool | None:
    """Where EDITOR_TEST_AGAIN is set (the whole suite), a test in a real editor that fails is run once more, and the end says so: what
    is typed into a screen can meet the editor busy with something else. What is broken fails twice."""
    if not os.environ.get("EDITOR_TEST_AGAIN") or _editor(item.nodeid) is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        _said.append(f"failed once and was run again: {item.nodeid}")
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count."""
    name = _editor(report.nodeid)
    if name is None:
        return
    if report.when == "call" and not report.skipped:
        _ran[name] += 1
    elif report.skipped and isinstance(report.longrepr, tuple):
        _skipped[name, report.longrepr[2].removeprefix("Skipped: ")] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many ran in each editor; each reason why others did not."""
    if not _ran and not _skipped:
        return
    terminalreporter.section("in real editors")
    for name in EDITORS.values():
        reasons = {why: n for (of, why), n in _skipped.items() if of == name}
        if name in _ran or reasons:
            terminalreporter.write_line(f"{name}: {_ran[name]} ran" + "".join(f"; {n} skipped: {why}" for why, n in reasons.items()))
    for line in _said:
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{_ran.total()} tests ran in real editors, {_skipped.total()} were skipped")
