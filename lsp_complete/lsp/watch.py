"""The parent-process watch: an editor that was killed must leave no server behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import psutil

logger = logging.getLogger(__name__)

INTERVAL_S = 2.0


async def watch_parent(pid: int, gone: Callable[[], None], interval_s: float = INTERVAL_S) -> None:
    """Call `gone` once when process `pid` no longer exists or has become a zombie. Event loop."""
    try:
        process = psutil.Process(pid)
    except (psutil.Error, ValueError, OverflowError):  # none, or no process id at all
        logger.warning("the editor's process %d does not exist; leaving", pid)
        gone()
        return
    while _alive(process):  # noqa: ASYNC110 (there is no event to wait for: the parent is not our child)
        await asyncio.sleep(interval_s)
    logger.warning("the editor's process %d has gone; leaving", pid)
    gone()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
