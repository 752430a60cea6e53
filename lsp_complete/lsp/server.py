"""The language server: features, life cycle, transports.

Strategy: each handler converts, calls the service, converts back. Handlers that need the document as it stood
at their message are marked `at_dispatch`.

Rules:
- Every request gets one answer. Unknown documents and bad positions get an empty one.
- Messages to the user are shown once each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from .. import __version__
from ..config import Loaded, Source, editor_source, gather, load
from ..service import Answer, Query, Service
from ..service.publish import Publisher
from ..service.startup import open_engine, open_index_cache, open_reference
from ..text.document import Document, to_offset
from ..text.positions import Encoding, negotiate
from . import convert, dynamic, likelihood, notebooks, surface, trace, workspace
from .logs import configure_logging, log_to_stderr, report_loop_trouble
from .protocol import Protocol, at_dispatch, silence_pygls
from .watch import watch_parent

logger = logging.getLogger(__name__)

DID_FOCUS = "textDocument/didFocus"
DID_MOVE_CURSOR = "lsp-complete/didMoveCursor"
DID_ANSWER = "lsp-complete/didAnswer"
DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_CHANGE_STATUS = "didChangeStatus"

MENU = types.CompletionOptions(trigger_characters=list(".([{ =,:"))

COMMANDS = (convert.ACCEPT, "lsp-complete.stats", "lsp-complete.restartEngine", "lsp-complete.pause", "lsp-complete.resume")

_FLAGS = ("stageNotifications", "statusNotifications", "candidateNotifications")

_LEVELS = {"error": types.MessageType.Error, "warning": types.MessageType.Warning, "info": types.MessageType.Info}


class CompletionServer(LanguageServer):
    """The server's state: settings, service, and what the client can do."""

    def __init__(self) -> None:
        super().__init__(
            "lsp-complete",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        self.encoding = Encoding.UTF16
        self.surface = "both"
        self.client_name = ""
        self.declares_inline = False
        self.roots: list[Path] = []
        self.editor_values: list[Source] = []
        self.loaded: Loaded = load(gather())
        self.service = Service(
            self.loaded.settings, open_engine, self.show, self.status, index_cache=open_index_cache, reference=open_reference
        )
        self.stage_notifications = False
        self.status_notifications = False
        self.candidate_notifications = False
        self.watcher: asyncio.Task[None] | None = None
        self.shown_messages: set[str] = set()
        self.exit_code: int | None = None
        self.observers: list[Callable[[Answer], None]] = []
        self.menu = dynamic.Menu(self, _register_menu, MENU)
        self.note_capabilities: Callable[[types.ClientCapabilities], None] = lambda _capabilities: None

    # -- messages to the user ------------------------------------------------------------------------

    def show(self, level: str, message: str) -> None:
        """`window/showMessage`, once per message, and a log line."""
        logger.log(getattr(logging, level.upper(), logging.INFO), "%s", message)
        if message in self.shown_messages:
            return
        self.shown_messages.add(message)
        self.window_show_message(types.ShowMessageParams(_LEVELS.get(level, types.MessageType.Info), message))

    def status(self, kind: str, message: str, busy: bool = False) -> None:
        """`didChangeStatus`, as Copilot's server names it, for clients that asked for it."""
        if self.status_notifications:
            self.protocol.notify(DID_CHANGE_STATUS, {"kind": kind, "message": message, "busy": busy})

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log, by type only: an error's text may hold user text. No popups for internal trouble."""
        logger.error("internal error: %s", type(error).__name__, exc_info=logger.isEnabledFor(logging.DEBUG))

    # -- settings ------------------------------------------------------------------------------------

    def read_settings(self) -> None:
        """Read all sources again; tell about problems; hand the result to the service."""
        self.loaded = load(gather(self.roots, self.editor_values))
        for problem in self.loaded.problems:
            self.show("warning", f"lsp-complete: {problem}")
        configure_logging(self.loaded.settings.log.level)
        self.surface = surface.choose(self.loaded.settings.suggest.surface, self.client_name, self.declares_inline)
        self.menu.follow(self.surface)
        self.service.configure(self.loaded.settings)

    # -- queries -------------------------------------------------------------------------------------

    def query(self, params: Any, *, trigger: str, menu: bool) -> Query | None:
        """The request as it stands now, or None for a document that is not open."""
        received = time.perf_counter()
        document = self.service.snapshot(params.text_document.uri)
        if document is None:
            return None
        position = params.position
        offset = to_offset(document.buffer, (position.line, position.character), self.encoding)
        selected, selected_start = "", -1
        info = getattr(getattr(params, "context", None), "selected_completion_info", None)
        if info is not None:
            start = info.range.start
            selected_start = to_offset(document.buffer, (start.line, start.character), self.encoding)
            selected = info.text
        return Query(document, offset, received, trigger, selected, selected_start, menu)

    def place_and_text(self, params: Any) -> tuple[str, int, str]:
        """(uri, offset, text) of a message of ours; offset −1 or text "" if it has none."""
        text = _get(params, "text")
        return *_place(self, params), text if isinstance(text, str) else ""

    async def answer(self, query: Query, request_id: Any) -> Answer:
        """Ask the service; send the stage record to clients that want it."""
        answer = await self.service.answer(query)
        for observe in self.observers:
            observe(answer)
        if self.stage_notifications:
            told: dict[str, Any] = {
                "uri": query.document.uri,
                "version": query.document.version,
                "requestId": request_id,
                "stages": answer.stages.as_dict(),
            }
            if self.candidate_notifications and answer.considered is not None:
                told["considered"] = convert.considered(answer.considered)
            self.protocol.notify(DID_ANSWER, told)
        return answer


def create_server() -> CompletionServer:
    """A server with all features registered, not yet talking to anyone."""
    silence_pygls()
    server = CompletionServer()
    _register_lifecycle(server)
    _register_documents(server)
    _register_completion(server)
    _register_notifications(server)
    _register_commands(server)
    workspace.register(server)
    notebooks.register(server)
    trace.register(server)
    likelihood.register(server)
    return server


def _register_lifecycle(server: CompletionServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        announced = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)  # as pygls will say
        server.encoding = negotiate([str(getattr(announced, "value", announced))])
        server.client_name = params.client_info.name if params.client_info else ""
        server.note_capabilities(params.capabilities)
        text_document = params.capabilities.text_document
        server.declares_inline = getattr(text_document, "inline_completion", None) is not None
        folders = [f.uri for f in params.workspace_folders or []] or ([params.root_uri] if params.root_uri else [])
        server.roots = [Path(path) for path in map(convert.path_of, folders) if path]
        options = params.initialization_options
        server.stage_notifications = _flag(options, "stageNotifications")
        server.status_notifications = _flag(options, "statusNotifications")
        server.candidate_notifications = _flag(options, "candidateNotifications")
        source = editor_source(_settings_of(options))
        server.editor_values = [source] if source else []
        server.service.set_roots(server.roots)
        server.read_settings()
        if server.surface != "ghost":
            _register_menu(server)
        server.protocol.trace = params.trace or server.protocol.trace
        server.menu.announced(server.surface != "ghost", params.capabilities)
        if params.process_id:
            server.watcher = asyncio.ensure_future(watch_parent(params.process_id, lambda: leave(server)))

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: Any) -> None:
        await server.service.close()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        source = editor_source(_settings_of(params.settings))
        if source is not None:
            server.editor_values = [*server.editor_values[:1], source]
            server.read_settings()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {convert.path_of(folder.uri) for folder in params.event.removed}
        added = [convert.path_of(folder.uri) for folder in params.event.added]
        server.roots = [root for root in server.roots if str(root) not in gone] + [Path(p) for p in added if p]
        server.service.set_roots(server.roots)
        server.read_settings()


def _register_documents(server: CompletionServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        server.service.open(Document.open(item.uri, item.language_id, item.version, item.text))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        changes = convert.changes_of(params.content_changes)
        identifier = params.text_document
        if not server.service.change(identifier.uri, changes, server.encoding, identifier.version):
            logger.warning("ignored a change of a document that is not open")

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.service.saved(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.service.closed(params.text_document.uri)


def _register_completion(server: CompletionServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    @at_dispatch
    def inline_completion(params: types.InlineCompletionParams) -> Awaitable[types.InlineCompletionList]:
        explicit = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        query = None
        if server.surface != "menu":
            query = server.query(params, trigger="explicit" if explicit else "automatic", menu=False)
        return _inline(server, query, server.protocol.msg_id)


async def _inline(server: CompletionServer, query: Query | None, request_id: Any) -> types.InlineCompletionList:
    if query is None:
        return types.InlineCompletionList(items=[])
    answer = await server.answer(query, request_id)
    return types.InlineCompletionList(
        items=convert.inline_items(answer.suggestions, query.document.buffer, server.encoding)
    )


def _register_menu(server: CompletionServer) -> None:
    """`textDocument/completion`, only for surfaces that use it, so that other menus stay as they are."""
    if types.TEXT_DOCUMENT_COMPLETION in server.protocol.fm.features:
        return

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, MENU)
    @at_dispatch
    def completion(params: types.CompletionParams) -> Awaitable[types.CompletionList]:
        query = server.query(params, trigger="automatic", menu=True) if server.surface != "ghost" else None
        return _menu(server, query, server.protocol.msg_id)


async def _menu(server: CompletionServer, query: Query | None, request_id: Any) -> types.CompletionList:
    if query is None:
        return types.CompletionList(is_incomplete=False, items=[])
    answer = await server.answer(query, request_id)
    document = query.document
    items = convert.menu_items(answer.suggestions, document.buffer, server.encoding, document.language_id)
    return types.CompletionList(is_incomplete=True, items=items)


def _register_notifications(server: CompletionServer) -> None:
    @server.feature(DID_FOCUS)
    def did_focus(params: Any) -> None:
        uri, offset = _place(server, params)
        server.service.focused(uri, offset)

    @server.feature(DID_MOVE_CURSOR)
    def did_move_cursor(params: Any) -> None:
        uri, offset = _place(server, params)
        server.service.moved(uri, offset)

    @server.feature(DID_SHOW)
    def did_show(params: Any) -> None:
        server.service.shown(_suggestion_id(params))

    @server.feature(DID_PARTIALLY_ACCEPT)
    def did_partially_accept(params: Any) -> None:
        length = _get(params, "acceptedLength")
        server.service.partially_accepted(_suggestion_id(params), length if isinstance(length, int) else 0)


def _register_commands(server: CompletionServer) -> None:
    @server.command(convert.ACCEPT)
    def accept(*arguments: Any) -> None:
        if arguments and isinstance(arguments[0], str):
            server.service.accepted(arguments[0])

    @server.command("lsp-complete.stats")
    async def stats(*_arguments: Any) -> dict[str, object]:
        return await server.service.stats()

    @server.command("lsp-complete.restartEngine")
    async def restart_engine(*_arguments: Any) -> None:
        await server.service.restart_engine()

    @server.command("lsp-complete.pause")
    def pause(*_arguments: Any) -> None:
        server.service.pause(True)

    @server.command("lsp-complete.resume")
    def resume(*_arguments: Any) -> None:
        server.service.pause(False)


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _flag(options: Any, name: str) -> bool:
    return _get(options, name) is True


def _plain(value: Any) -> Any:
    """pygls turns unknown objects into named tuples; settings are wanted as dictionaries."""
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _settings_of(options: Any) -> Any:
    """Settings inside initialization options or didChangeConfiguration, whatever the client wraps them in."""
    plain = _plain(options)
    if not isinstance(plain, dict):
        return plain
    plain = {k: v for k, v in plain.items() if k not in _FLAGS}
    return plain["settings"] if set(plain) == {"settings"} else plain


def _place(server: CompletionServer, params: Any) -> tuple[str, int]:
    """(uri, offset) of a notification with a textDocument and perhaps a position; offset −1 without one."""
    document = _get(params, "textDocument") or params
    uri = _get(document, "uri")
    if not isinstance(uri, str):
        return "", -1
    snapshot, position = server.service.snapshot(uri), _get(params, "position")
    line, character = _get(position, "line"), _get(position, "character")
    if snapshot is None or not isinstance(line, int) or not isinstance(character, int):
        return uri, -1
    return uri, to_offset(snapshot.buffer, (line, character), server.encoding)


def _suggestion_id(params: Any) -> str:
    """The id that our items carry in their command, wherever the client repeats it."""
    command = _get(_get(params, "item") or params, "command")
    arguments = _get(command, "arguments")
    if isinstance(arguments, (list, tuple)) and arguments and isinstance(arguments[0], str):
        return arguments[0]
    identifier = _get(params, "id")
    return identifier if isinstance(identifier, str) else ""


def leave(server: CompletionServer) -> None:
    """Leave at once, without the client's consent: it has gone. The engine notices by the closed socket."""
    server.exit_code = 0
    stop = getattr(server, "stopped", None)
    if stop is not None:
        stop.set()


async def _serve(server: CompletionServer, reader: Any, writer: Any) -> None:
    server.protocol.set_writer(writer)
    stopped = asyncio.Event()
    server.stopped = stopped  # type: ignore[attr-defined]
    loop = asyncio.ensure_future(
        run_async(
            stop_event=_Never(),  # type: ignore[arg-type]
            reader=reader,
            protocol=server.protocol,
            error_handler=server.report_server_error,
        )
    )
    waiter = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({loop, waiter}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(server.service.close(), 2.0)


class _Never:
    """pygls' loop asks for an event that would stop it; ours is stopped by cancelling."""

    def is_set(self) -> bool:
        return False


def run_stdio() -> int:
    """Serve one client over standard input and output until it goes. Returns the exit status."""
    import os
    import threading

    protocol_out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not break the protocol

    async def main() -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 28)

        def pump() -> None:
            descriptor = sys.stdin.fileno()
            while chunk := os.read(descriptor, 1 << 16):
                loop.call_soon_threadsafe(reader.feed_data, chunk)
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(reader.feed_eof)

        threading.Thread(target=pump, daemon=True, name="stdin").start()
        await _serve(create_server_in_loop(), reader, _Writer(protocol_out))

    try:
        asyncio.run(main())
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


class _Writer:
    """pygls' writer over an unbuffered pipe: whole messages, even where the pipe takes only part."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._out.write(view) :]

    def close(self) -> None:
        self._out.close()


def create_server_in_loop() -> CompletionServer:
    """`create_server` for a process that serves a user: its figures are published, it ends orderly when told to by a signal
    (what is recorded gets written, its files go), and the loop's own reports name no values. Needs a running event loop."""
    loop = asyncio.get_running_loop()
    log_to_stderr()
    loop.set_exception_handler(report_loop_trouble)
    server = create_server()
    server.service.publisher = Publisher(server.service.figures)
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` stays what it is
                loop.add_signal_handler(number, _told_to_end, server, number)
    return server


def _told_to_end(server: CompletionServer, number: int) -> None:
    asyncio.get_running_loop().remove_signal_handler(number)  # who asks twice is not made to wait
    leave(server)


def run_tcp(port: int, host: str = "127.0.0.1") -> int:
    """Serve one client over loopback TCP; prints the port to standard error (port 0 picks a free one)."""

    async def main() -> None:
        done = asyncio.Event()
        busy = False

        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal busy
            if busy:
                writer.close()
                return
            busy = True
            try:
                await _serve(create_server_in_loop(), reader, writer)
            finally:
                writer.close()
                done.set()

        listener = await asyncio.start_server(client, host, port, limit=1 << 28)
        print(f"lsp-complete listens on {host}:{listener.sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
        async with listener:
            await done.wait()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        return 1
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0
