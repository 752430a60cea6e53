"""When a client of the engine tries again, when it gives up, and how it ends a hung engine.

Strategy: the times are values and the back-off is a pure function; `client` does the waiting.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lsp_complete.errors import EngineUnavailable

Sleep = Callable[[float], Awaitable[None]]


class Busy(EngineUnavailable):
    """Another process holds the engine's lock but does not listen (yet, or any more)."""


class Replaced(EngineUnavailable):
    """The program that starts engines is of another version than this process by now."""


class ToldToStop(EngineUnavailable):
    """The user stopped the engine."""


@dataclass(frozen=True, slots=True)
class ClientRules:
    """Times in seconds. first_delay_s doubles with every early death up to max_delay_s (max_busy_s while another process
    holds the lock). stable_s: life after which an engine's death counts as the first again. max_failures: tries
    without ever getting ready. grace_s: beyond a request's own limit (more than the
    engine's own, which ends it in a better way). handshake_s: for an engine to say welcome. memory_retry_s: after which a model that did not
    fit the memory may be tried again.
    """

    first_delay_s: float = 0.1
    max_delay_s: float = 30.0
    max_busy_s: float = 1.0
    stable_s: float = 60.0
    max_failures: int = 5
    grace_s: float = 45.0
    handshake_s: float = 15.0
    memory_retry_s: float = 60.0


def back_off(rules: ClientRules, deaths: int, busy: bool) -> float:
    """Seconds to wait after the `deaths`-th early death in a row (from 1)."""
    limit = rules.max_busy_s if busy else rules.max_delay_s
    return min(rules.first_delay_s * 2.0 ** min(max(deaths - 1, 0), 30), limit)


def kill(pid: int) -> None:
    """End a hung engine process of ours."""
    if pid > 1 and pid != os.getpid():
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
