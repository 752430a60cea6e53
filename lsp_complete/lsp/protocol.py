"""pygls' protocol, changed where it loses messages, answers late, or keeps a second copy of every document.

Strategy: subclass and override; pygls itself is not patched.

Rules:
- A handler marked with `@at_dispatch` runs when its message is dispatched and may return an awaitable: the
  document snapshot it takes belongs to its message, whatever arrives in the same buffer behind it.
- Text synchronization goes to our own store only; pygls' workspace never sees document text.
- Every request gets one answer, malformed ones and those after `shutdown` too.
- Nothing that a user typed reaches a log: pygls' loggers print whole messages and are silenced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import JsonRPCNotification, LanguageServerProtocol, lsp_method

from . import lenient

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_TRIGGERED = {types.TEXT_DOCUMENT_INLINE_COMPLETION}
_IGNORED = "$/lsp-complete/malformed"

SETTLE_S = 2.0
"""Longest wait for the last answers when the client wants the process to end."""


def at_dispatch(handler: F) -> F:
    """Mark a handler that runs at dispatch and may return an awaitable."""
    handler.at_dispatch = True  # type: ignore[attr-defined]
    return handler


def silence_pygls() -> None:
    """pygls logs whole messages, at INFO and in error reports. Keep all of it out of the logs."""
    for name in ("pygls", "pygls.protocol.json_rpc", "pygls.protocol", "pygls.server", "pygls.feature_manager"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class Protocol(LanguageServerProtocol):
    """See the module's rules."""

    zero_based_triggers = False
    """True once a client has numbered trigger kinds from 0 (vscode-languageclient 9)."""

    told_to_shut_down = False

    # -- dispatch ---------------------------------------------------------------------------------

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Any,
        callback: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not getattr(handler, "at_dispatch", False) and not getattr(
            getattr(handler, "func", None), "at_dispatch", False
        ):
            super()._execute_handler(msg_id, handler, callback, args, kwargs)
            self._forget_when_done(msg_id)
            return
        future: Any
        try:
            result = handler(*(args or ()), **(kwargs or {}))
        except Exception as error:
            future = Future()
            future.add_done_callback(callback)
            future.set_exception(error)
            return
        if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
            future = asyncio.ensure_future(result)
            self._request_futures[msg_id] = future
            future.add_done_callback(callback)
            return
        future = Future()
        future.add_done_callback(callback)
        future.set_result(result)

    def _forget_when_done(self, msg_id: Any) -> None:
        """pygls keeps the results of commands and some notifications, which have ids of its own making, for ever."""
        future: Any = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda _done: self._request_futures.pop(msg_id, None))

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Any:
        """As pygls, but known from its arrival on."""
        self.told_to_shut_down = True
        return (yield from super().lsp_shutdown(*args))

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_args: Any) -> Any:
        """As pygls, but a `shutdown` under way, and what it cancels, gets its answer first: some clients send `exit` right behind it."""
        futures: list[Any] = list(self._request_futures.values())
        waiting = [future for future in futures if isinstance(future, asyncio.Future)]
        if self.told_to_shut_down and waiting:
            answered = asyncio.ensure_future(asyncio.wait(waiting, timeout=SETTLE_S))
            answered.add_done_callback(lambda _done: self._leave())
        else:
            self._leave()

    def _leave(self) -> None:
        for _ in super().lsp_exit():
            pass

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        """A cancel that comes after the answer is ordinary, not a warning."""
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.cancel()

    def handle_message(self, message: Any) -> None:
        """As pygls, but a request after `shutdown` is answered instead of dropped."""
        method = getattr(message, "method", "")
        if self._shutdown and method and hasattr(message, "id") and method != types.EXIT:
            self._send_response(message.id, None, JsonRpcInvalidRequest("the server is shutting down").to_response_error())
            return
        super().handle_message(message)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """As pygls, but tolerant of old clients, and a request that cannot be read gets an error answer."""
        if "jsonrpc" not in data:
            return data
        method = data.get("method")
        if isinstance(method, str):
            lenient.mend(method, data.get("params"))
            if method in _TRIGGERED:
                self._mend_trigger(data)
            elif self.get_message_type(method) is None:
                data.setdefault("params", None)  # may be left out; an unknown method is to be answered as one
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], None, error.to_response_error())
            else:
                logger.warning("ignored a malformed %s message", method or "response")
            return JsonRPCNotification(method=_IGNORED, jsonrpc=self.VERSION, params=None)

    def _mend_trigger(self, data: dict[str, Any]) -> None:
        """LSP counts Invoked = 1, Automatic = 2; VS Code's own numbers, sent by old clients, are 0 and 1."""
        params = data.get("params")
        if not isinstance(params, dict):
            return
        context = params.get("context")
        if not isinstance(context, dict):
            params["context"] = {"triggerKind": 2}
            return
        kind = context.get("triggerKind")
        if kind == 0:
            self.zero_based_triggers = True
        if self.zero_based_triggers and kind in (0, 1):
            context["triggerKind"] = kind + 1
        elif kind not in (1, 2):
            context["triggerKind"] = 2

    # -- text synchronization without pygls' workspace -----------------------------------------------

    def _forward(self, method: str, params: Any) -> Any:
        handler = self.fm.features.get(method)
        if handler is not None:
            handler(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: Any) -> None:
        """To our own store only."""
        self._forward(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: Any) -> None:
        """To our own store only: pygls' costs the whole file per key and splits lines at form feeds."""
        self._forward(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: Any) -> None:
        """To our own store only."""
        self._forward(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: Any) -> None:
        """To our own store only."""
        self._forward(types.NOTEBOOK_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: Any) -> None:
        """To our own store only."""
        self._forward(types.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: Any) -> None:
        """To our own store only."""
        self._forward(types.NOTEBOOK_DOCUMENT_DID_CLOSE, params)
