"""Making this process one that takes only what others leave: processor, disk, and at last memory.

Strategy: the lowest priority there is, in each way the system knows. Nice values alone are not enough on a Linux desktop, where each
session is a scheduling group of its own and niceness counts within the group only; so the group is lowered too, and within it the
idle policy leaves a core the moment another thread wants it.

Rules: what a system does not know or allow is left out; nothing here raises. Call it before threads are started: they inherit.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import psutil

NICEST = 19
KILLED_FIRST = "900"
"""Of 1000: the memory killer takes this process before the user's own engine (500) and editors (0)."""


def give_way() -> None:
    """Lower this process's priorities. See the module's rules."""
    process = psutil.Process()
    if sys.platform == "win32":
        with contextlib.suppress(OSError, psutil.Error):
            process.nice(psutil.IDLE_PRIORITY_CLASS)
        return
    with contextlib.suppress(OSError):
        os.nice(NICEST)
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError, psutil.Error):
        process.ionice(psutil.IOPRIO_CLASS_IDLE)
    for name, value in (("autogroup", str(NICEST)), ("oom_score_adj", KILLED_FIRST)):
        with contextlib.suppress(OSError):
            Path("/proc/self", name).write_text(value, encoding="ascii")
