"""A scripted editor: a real LSP client that starts a real server and notes when each answer came.

Strategy: a thin layer over `jsonrpc`; it does what an editor does, no more: open, change, ask, cancel, execute. Every
inline completion becomes an `Answer` with client-side times and, if the server was started with
`stageNotifications`, the server's own stage record, joined by the request's id.

Rules:
- Positions are UTF-16, the encoding that every editor offers.
- A change and the request after it are written without waiting in between, as an editor does.
- What the server asks of its client is answered with "nothing": no configuration, no registration kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .edits import Edit, Position
from .jsonrpc import Call, Connection

INVOKED = 1
AUTOMATIC = 2
STAGE_WAIT_S = 2.0
CANCELLED = -32800


@dataclass(frozen=True, slots=True)
class Item:
    """One suggestion: text replaces start..end."""

    text: str
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one inline completion. Times in `perf_counter` seconds; stages is {} if none came. considered: what
    the model said, if the session asked for "candidateNotifications"."""

    request: int
    items: tuple[Item, ...]
    sent: float
    received: float
    code: int
    message: str
    stages: Mapping[str, Any]
    considered: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cancelled(self) -> bool:
        """True if the server confirmed a cancellation."""
        return self.code == CANCELLED


def parse_items(result: Any, cursor: Position) -> tuple[Item, ...]:
    """Items of a list, an `InlineCompletionList`, or null. An item without a range stands at the cursor."""
    raw = result.get("items", []) if isinstance(result, dict) else result or []
    items = []
    for entry in raw:
        text = entry.get("insertText", "")
        if isinstance(text, dict):  # a snippet or StringValue
            text = text.get("value", "")
        span = entry.get("range")
        ends = (
            [Position(span[k]["line"], span[k]["character"]) for k in ("start", "end")]
            if span
            else [cursor] * 2
        )
        items.append(Item(text, ends[0], ends[1]))
    return tuple(items)


class LspClient:
    """One connection to one server. All methods belong to one event loop."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        process: asyncio.subprocess.Process | None = None,
    ) -> None:
        self.process = process
        self.messages: deque[str] = deque(maxlen=200)
        self._stages: dict[int, Mapping[str, Any]] = {}
        self._considered: dict[int, Mapping[str, Any]] = {}
        self._stage_waiters: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._wants_stages = False
        self._versions: dict[str, int] = {}
        self._connection = Connection(reader, writer, self._on_notification, self._on_request)
        self._task = asyncio.create_task(self._connection.run())

    async def initialize(
        self, root: Path | None, options: Mapping[str, Any], client_name: str = "lsp-complete-bench"
    ) -> Mapping[str, Any]:
        """Handshake. options go out as initializationOptions. Returns the server's capabilities."""
        self._wants_stages = bool(options.get("stageNotifications"))
        root_uri = root.as_uri() if root else None
        capabilities = {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {"inlineCompletion": {}, "synchronization": {"didSave": True}},
            "window": {"workDoneProgress": False},
        }
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": client_name, "version": "1"},
            "rootUri": root_uri,
            "workspaceFolders": [{"uri": root_uri, "name": root.name}] if root and root_uri else None,
            "capabilities": capabilities,
            "initializationOptions": dict(options),
        }
        reply = await self.request("initialize", params, timeout=60)
        self.notify("initialized", {})
        result: Mapping[str, Any] = reply["capabilities"]
        return result

    def notify(self, method: str, params: Any) -> None:
        """Any notification."""
        self._connection.notify(method, params)

    async def request(self, method: str, params: Any, timeout: float = 30) -> Any:
        """Any request. Raises RuntimeError on an error reply, TimeoutError, ConnectionError."""
        reply = await asyncio.wait_for(self._connection.call(method, params).reply, timeout)
        if reply.code:
            raise RuntimeError(f"{method} failed with {reply.code}: {reply.message}")
        return reply.result

    def open(self, uri: str, language_id: str, text: str) -> None:
        """didOpen with version 1."""
        self._versions[uri] = 1
        document = {"uri": uri, "languageId": language_id, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, edits: Iterable[Edit]) -> int:
        """didChange with the edits in order. Returns the new version."""
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        changes = [edit.as_lsp() for edit in edits]
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        return self._versions[uri]

    def close(self, uri: str) -> None:
        """didClose."""
        del self._versions[uri]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def move_workspace(self, old: Path | None, new: Path) -> None:
        """Replace the workspace folder."""
        removed = [{"uri": old.as_uri(), "name": old.name}] if old else []
        event = {"added": [{"uri": new.as_uri(), "name": new.name}], "removed": removed}
        self.notify("workspace/didChangeWorkspaceFolders", {"event": event})

    def move_cursor(self, uri: str, position: Position) -> None:
        """Our own editor modules' notification that the cursor moved."""
        self.notify("lsp-complete/didMoveCursor", {"uri": uri, "position": position.as_lsp()})

    def ask(self, uri: str, cursor: Position, trigger: int = AUTOMATIC) -> Call:
        """Send an inline completion request without waiting for it."""
        params = {
            "textDocument": {"uri": uri},
            "position": cursor.as_lsp(),
            "context": {"triggerKind": trigger},
        }
        return self._connection.call("textDocument/inlineCompletion", params)

    async def likelihood(self, uri: str, cursor: Position, text: str, limit_s: float = 120) -> Mapping[str, Any] | None:
        """How likely the server's model finds `text` at the cursor: {"logprob", "bytes", "tokens"}; None if it cannot tell. Raises as `request`."""
        params = {"textDocument": {"uri": uri}, "position": cursor.as_lsp(), "text": text}
        found = await self.request("lsp-complete/likelihood", params, limit_s)
        return found if isinstance(found, Mapping) else None

    def cancel(self, call: Call) -> None:
        """Cancel a request under way; its answer still comes."""
        self.notify("$/cancelRequest", {"id": call.id})

    async def answer(self, call: Call, cursor: Position, limit_s: float = 120) -> Answer:
        """Wait for the answer of `ask`, and for its stage record if the server sends them."""
        reply = await asyncio.wait_for(asyncio.shield(call.reply), limit_s)
        stages = await self._stage_record(call.id) if not reply.code else {}
        items = parse_items(reply.result, cursor)
        considered = self._considered.pop(call.id, {})
        return Answer(call.id, items, call.sent, reply.received, reply.code, reply.message, stages, considered)

    async def inline(
        self, uri: str, cursor: Position, trigger: int = AUTOMATIC, limit_s: float = 120
    ) -> Answer:
        """Ask and wait."""
        return await self.answer(self.ask(uri, cursor, trigger), cursor, limit_s)

    async def execute(self, command: str, arguments: Sequence[Any] = (), limit_s: float = 30) -> Any:
        """workspace/executeCommand."""
        params = {"command": command, "arguments": list(arguments)}
        return await self.request("workspace/executeCommand", params, limit_s)

    def process_ended(self) -> bool:
        """True if the server is a child process of ours that is gone."""
        return self.process is not None and self.process.returncode is not None

    async def shutdown(self, limit_s: float = 5) -> None:
        """Shut the server down politely, then make sure that it is gone."""
        with contextlib.suppress(ConnectionError, TimeoutError, asyncio.TimeoutError, RuntimeError):
            await self.request("shutdown", None, limit_s)
            self.notify("exit", None)
        self._connection.close()
        if self.process is not None:
            try:
                await asyncio.wait_for(self.process.wait(), limit_s)
            except (TimeoutError, asyncio.TimeoutError):
                self.process.kill()
                await self.process.wait()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _stage_record(self, request: int) -> Mapping[str, Any]:
        if request in self._stages or not self._wants_stages:
            return self._stages.pop(request, {})
        waiter: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._stage_waiters[request] = waiter
        try:
            return await asyncio.wait_for(waiter, STAGE_WAIT_S)
        except (TimeoutError, asyncio.TimeoutError):
            return {}
        finally:
            self._stage_waiters.pop(request, None)

    def _on_notification(self, method: str, params: Any) -> None:
        if method == "lsp-complete/didAnswer":
            if "considered" in params:
                self._considered[params["requestId"]] = params["considered"]
            waiter = self._stage_waiters.get(params["requestId"])
            if waiter is not None and not waiter.done():
                waiter.set_result(params["stages"])
            else:
                self._stages[params["requestId"]] = params["stages"]
        elif method in ("window/showMessage", "window/logMessage"):
            self.messages.append(params.get("message", ""))

    def _on_request(self, method: str, params: Any) -> Any:
        if method == "workspace/configuration":
            return [None] * len(params.get("items", []))
        return None


async def spawn(
    command: Sequence[str], env: Mapping[str, str] | None = None, stderr: Path | None = None
) -> LspClient:
    """Start a stdio server as a child process; its standard error goes to the file `stderr` (or nowhere)."""
    with open(stderr if stderr else os.devnull, "ab") as sink:  # noqa: ASYNC230 (once, before anything is measured)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            env=dict(env) if env is not None else None,
        )
    assert process.stdin is not None and process.stdout is not None
    return LspClient(process.stdout, process.stdin, process)


async def connect(host: str, port: int) -> LspClient:
    """Connect to a server that already listens on TCP."""
    reader, writer = await asyncio.open_connection(host, port)
    return LspClient(reader, writer)
