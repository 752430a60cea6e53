"""What the server's process writes to standard error: its own words, never a user's.

Rules:
- Of an exception its type and its place in the code are written; its message only if the program raised it itself
  (other messages may quote the text that caused them).
- pygls' loggers print whole messages and stay silent (`protocol.silence_pygls`); asyncio's reports show arguments, so ours takes their place.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from pathlib import Path
from typing import Any

from ..engine.logs import PlainFormatter
from .protocol import silence_pygls

logger = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Give the program's loggers a handler of their own (Python's last resort shows nothing below a warning). Once is enough."""
    ours = logging.getLogger("lsp_complete")
    if not any(isinstance(each.formatter, PlainFormatter) for each in ours.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(PlainFormatter("%(message)s"))
        ours.addHandler(handler)
        ours.propagate = False


def configure_logging(level: str) -> None:
    """Our own loggers at `level`; pygls' never speak."""
    logging.getLogger("lsp_complete").setLevel(level.upper())
    silence_pygls()


def report_loop_trouble(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler: the error's type and its place in the code."""
    error = context.get("exception")
    if isinstance(error, asyncio.CancelledError | SystemExit):  # the process is ending
        return
    frames = traceback.extract_tb(error.__traceback__) if isinstance(error, BaseException) else []
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    logger.error("internal error: %s%s", type(error).__name__ if error else "in the event loop", place)
