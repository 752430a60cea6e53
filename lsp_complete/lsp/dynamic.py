"""The completion menu, registered and taken back at run time where the setting `suggest.surface` changes.

Strategy: at the start the menu is announced only if the surface uses it. Later changes go by `client/registerCapability`, to clients that take part in
that; others keep what they have, and a surface without the menu answers it with nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from .server import CompletionServer

logger = logging.getLogger(__name__)

ID = "lsp-complete-menu"  # a registration, no message of ours


class Menu:
    """Whether the client shows our menu. Event loop."""

    def __init__(self, server: CompletionServer, add: Callable[[CompletionServer], None], options: types.CompletionOptions) -> None:
        self._server, self._add, self._options = server, add, options
        self._shown = False
        self._work: asyncio.Future[None] | None = None
        self.possible = False

    def announced(self, shown: bool, capabilities: types.ClientCapabilities) -> None:
        """At the start: the menu is, or is not, among the server's capabilities."""
        completion = getattr(capabilities.text_document, "completion", None)
        self._shown, self.possible = shown, bool(getattr(completion, "dynamic_registration", False)) and not shown

    def follow(self, surface: str) -> None:
        """The surface was chosen anew. What was announced at the start cannot be taken back, what was registered can."""
        wanted = surface != "ghost"
        if self.possible and wanted != self._shown:
            self._shown = wanted
            self._work = asyncio.ensure_future(self._tell(wanted))

    async def _tell(self, wanted: bool) -> None:
        method = types.TEXT_DOCUMENT_COMPLETION
        try:
            if wanted:
                self._add(self._server)
                options = types.CompletionRegistrationOptions(
                    document_selector=None, trigger_characters=self._options.trigger_characters
                )
                registration = types.Registration(ID, method, options)
                await self._server.client_register_capability_async(types.RegistrationParams([registration]))
            else:
                gone = types.Unregistration(ID, method)
                await self._server.client_unregister_capability_async(types.UnregistrationParams([gone]))
        except Exception as error:  # a client that will not keeps what it has
            logger.info("the client did not change its menu: %s", type(error).__name__)
