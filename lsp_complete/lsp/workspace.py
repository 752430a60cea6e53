"""What the server asks of the client about the workspace: to be told of changed files, and to show how far the index is.

Rules:
- Both are asked for only of clients that say they can; a client that refuses is not asked again.
- Progress comes from the index thread and is handed to the event loop. Short work shows no bar: it begins at the first report that
  is not the last.
- Nothing here names a file to the user or to a log.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from .server import CompletionServer

logger = logging.getLogger(__name__)

WATCH_ID = "lsp-complete-watch"
TOKEN = "lsp-complete-index"  # noqa: S105 (a progress token, no secret)


@dataclass(slots=True)
class _Bar:
    """One work's bar. token: "" while the client has not answered whether it shows one. ended: meanwhile the work did."""

    token: str = ""
    ended: bool = False


class IndexProgress:
    """`window/workDoneProgress` for one scan after the other. Event loop, but for `report`.

    Each work (an index worker) has a bar of its own: a worker that was stopped still says that it has ended, perhaps while its successor
    runs, and must end no bar but its own.
    """

    def __init__(self, server: CompletionServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._bars: dict[int, _Bar] = {}
        self._asking: set[asyncio.Future[None]] = set()
        self.refused = False

    def report(self, work: int, done: int, total: int) -> None:
        """This work has done so many files of so many. Any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take, work, done, total)
        except RuntimeError:  # the loop has ended
            return

    def _take(self, work: int, done: int, total: int) -> None:
        if self.refused:
            return
        bar = self._bars.get(work)
        if done >= total:
            self._end(work, bar, total)
        elif bar is None:
            bar = self._bars[work] = _Bar()
            asking = asyncio.ensure_future(self._begin(bar))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        elif bar.token:
            value = types.WorkDoneProgressReport(message=f"{done}/{total} files", percentage=100 * done // total)
            self._server.work_done_progress.report(bar.token, value)

    def _end(self, work: int, bar: _Bar | None, total: int) -> None:
        if bar is None:
            return
        del self._bars[work]
        bar.ended = True
        if bar.token:
            self._server.work_done_progress.end(bar.token, types.WorkDoneProgressEnd(message=f"{total} files"))

    async def _begin(self, bar: _Bar) -> None:
        self._number += 1
        token = f"{TOKEN}.{self._number}"
        try:
            await self._server.work_done_progress.create_async(token)
        except Exception as error:  # whatever a client answers, the index goes on
            logger.info("the client shows no progress: %s", type(error).__name__)
            self.refused = True
            return
        if bar.ended:  # while the client made up its mind: a bar begun now would never end
            return
        self._server.work_done_progress.begin(
            token, types.WorkDoneProgressBegin(title="Indexing the workspace", percentage=0, cancellable=False)
        )
        bar.token = token


def register(server: CompletionServer) -> None:
    """Add the workspace's handlers to a server."""
    wishes = {"watch": False, "progress": False}

    def note(capabilities: types.ClientCapabilities) -> None:
        workspace, window = capabilities.workspace, capabilities.window
        watched = getattr(workspace, "did_change_watched_files", None)
        wishes["watch"] = bool(getattr(watched, "dynamic_registration", False))
        wishes["progress"] = bool(getattr(window, "work_done_progress", False))

    server.note_capabilities = note

    @server.feature(types.INITIALIZED)
    async def initialized(_params: Any) -> None:
        if wishes["progress"]:
            server.service.context.progress = IndexProgress(server).report
        if wishes["watch"]:
            await _watch(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        server.service.watched([change.uri for change in params.changes])


async def _watch(server: CompletionServer) -> None:
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers=[types.FileSystemWatcher(glob_pattern="**/*")])
    registration = types.Registration(
        id=WATCH_ID, method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES, register_options=options
    )
    try:
        await server.client_register_capability_async(types.RegistrationParams(registrations=[registration]))
    except Exception as error:  # a client that will not: saves and the slow rescan remain
        logger.info("the client does not watch files: %s", type(error).__name__)
