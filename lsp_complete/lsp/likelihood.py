"""`lsp-complete/likelihood`: how likely the model finds a text at a place. For measurements; answered from no cache and shown to nobody.

Rules: every request gets one answer; `null` where no suggestion would be made (no such document, one with secrets, no engine yet).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from ..errors import LspCompleteError
from ..service import Query
from .protocol import at_dispatch

if TYPE_CHECKING:
    from .server import CompletionServer

logger = logging.getLogger(__name__)

LIKELIHOOD = "lsp-complete/likelihood"


def register(server: CompletionServer) -> None:
    """Add the request. Its parameters: `{textDocument: {uri}, position, text}`."""

    @server.feature(LIKELIHOOD)
    @at_dispatch
    def likelihood(params: Any) -> Any:
        uri, offset, text = server.place_and_text(params)
        document = server.service.snapshot(uri)
        if document is None or offset < 0 or not text:
            return None
        return _answer(server, Query(document, offset, time.perf_counter()), text)


async def _answer(server: CompletionServer, query: Query, text: str) -> dict[str, Any] | None:
    try:
        found = await server.service.likelihood(query, text)
    except LspCompleteError as error:
        logger.info("a likelihood could not be had: %s", type(error).__name__)
        return None
    return None if found is None else {"logprob": found.logprob, "bytes": found.bytes, "tokens": found.tokens}
