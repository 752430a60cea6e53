"""Work that may end the process, tried in a copy of it first.

Why: GCC before 13 compiles the AMX part of llama.cpp into code that faults (its `_tile_loadconfig` names 8 of the 64 bytes it
reads), so an engine on a new server processor and an older Linux would die at its first prompt. A virtual machine that
announces instructions which it does not carry out looks the same.

Rules: the copy is a fork of the engine thread before it has started any worker thread. It runs the work and ends at once,
without cleaning up. Where there is no `fork` nothing is tried.
"""

from __future__ import annotations

import faulthandler
import os
import warnings
from collections.abc import Callable

RISKY = frozenset({"AMX_INT8"})
"""Features of a llama.cpp build, in its own spelling, that are tried before they are used."""


def survives(work: Callable[[], object]) -> bool:
    """Whether a copy of this process comes through `work` alive; an exception in it counts as surviving (the caller will
    meet it, too). Blocks for as long as the work takes."""
    if not hasattr(os, "fork"):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # "may deadlock": the copy takes no lock of another thread
        child = os.fork()
    if child == 0:
        status = 0
        try:
            faulthandler.disable()  # the log is not the copy's
            work()
        except BaseException:
            status = 1
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return not os.WIFSIGNALED(ended)
