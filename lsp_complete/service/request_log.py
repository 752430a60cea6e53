"""One JSON object per answered request on standard error, for those who collect logs: `log.requests`. Off unless asked for.

Rules:
- Times, counts and fixed words only (`measure.stages`): no text of a document, no path. A document is a digest of its address.
- A line is written at once and whole; a standard error that nobody reads any more is nobody's trouble.
- Thread: the event loop.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from datetime import datetime, timezone

from ..measure.recording import digest
from ..measure.stages import StageRecord
from .types import Query

DIGITS = 3
"""Of a millisecond's fraction."""


def line(stages: StageRecord, query: Query, now: datetime) -> str:
    """The line of one request, without its end."""
    plain = {k: round(v, DIGITS) if isinstance(v, float) else v for k, v in stages.as_dict().items()}
    about = {
        "time": now.astimezone(timezone.utc).isoformat(timespec="milliseconds"),
        "event": "request",
        "document": digest(query.document.uri),
        "language": query.document.language_id,
        "version": query.document.version,
        "trigger": query.trigger,
    }
    return json.dumps({**about, **plain}, separators=(",", ":"))


def to_stderr(text: str) -> None:
    """Write a line."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class RequestLog:
    """See the module's rules. `on` follows the setting."""

    def __init__(
        self, write: Callable[[str], None] = to_stderr, clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    ) -> None:
        self.on = False
        self._write, self._clock = write, clock

    def answered(self, stages: StageRecord, query: Query) -> None:
        """A request was answered, or cancelled."""
        if self.on:
            self._write(line(stages, query, self._clock()))
