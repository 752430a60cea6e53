"""What all tests share: the same examples at every run, none that fails because the machine is busy, and none that meets what another
run has left in the user's caches."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from lsp_complete.lsp import server

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def no_index_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of this process keep nothing between runs."""
    monkeypatch.setattr(server, "open_index_cache", lambda: None)
