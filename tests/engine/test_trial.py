"""What may end the process is tried in a copy of it."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from lsp_complete.engine.trial import survives

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGILL, signal.SIGBUS])
def test_work_that_ends_the_process_ends_only_the_copy(number: int) -> None:
    assert not survives(lambda: os.kill(os.getpid(), number))


def test_work_that_returns_or_raises_is_survived_and_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    assert survives(lambda: seen.append(1))
    assert survives(lambda: sys.exit(3))
    assert survives(lambda: 1 // 0)
    assert not seen  # it happened in the copy
    assert capfd.readouterr() == ("", "")
