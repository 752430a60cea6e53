"""`$/logTrace`: for each answer a line on what it took, once the client has asked for it by `$/setTrace` or at the start.

Rules: times, counts and outcomes only; never a path, never text. Nothing is sent while the value is `off`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lsprotocol import types

from ..service import Answer

if TYPE_CHECKING:
    from .server import CompletionServer


def register(server: CompletionServer) -> None:
    """Send trace lines after answers. (pygls keeps the value that the client set.)"""

    def answered(answer: Answer) -> None:
        value = server.protocol.trace
        if value == types.TraceValue.Off:
            return
        stages = answer.stages
        message = f"request {stages.request}: {stages.outcome} by {stages.source} in {stages.total_ms:.0f} ms"
        verbose = json.dumps(stages.as_dict()) if value == types.TraceValue.Verbose else None
        server.protocol.notify(types.LOG_TRACE, types.LogTraceParams(message=message, verbose=verbose))

    server.observers.append(answered)
