"""The recorder: with `record.enabled`, what happens goes into a recording on this machine (`measure.recording`).

Strategy: the event loop only puts frozen values on a list; a worker thread turns them into lines and writes them, every
FLUSH_S seconds. A file that has grown to a quarter of the limit is followed by a new one, in which each document is
opened again when it next matters, so old files can go without breaking newer ones.

Rules:
- Off unless asked for. A secret document is never mentioned: the service does not call for one.
- Trouble (no space, a folder that others reach) ends the recording with one warning; it never reaches a request.
- Several edits of one message are kept as the one edit over all of them: the text before and after is exact.
- Prompts are recorded for engines started while recording is on, as ids, those of the prompt before them left out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from .. import __version__
from ..config import RecordSettings, Settings
from ..engine.api import Completion, CompletionRequest, DeltaCallback, Engine, ModelInfo, Priority
from ..errors import LspCompleteError
from ..measure.recording import (
    MAX_BYTES,
    SUFFIX,
    Answered,
    Asked,
    Became,
    Changed,
    Closed,
    Event,
    Header,
    Moved,
    Opened,
    Prompted,
    line_of,
    private_folder,
    prune,
    without_content,
)
from ..text.document import Document
from ..text.edits import Edit, merge
from .brain import Opened as OpenedEngine
from .brain import Opener
from .types import Answer, Query

logger = logging.getLogger(__name__)

FLUSH_S = 2.0
KEEP_IDS = 200
SMALL_PROMPT = "#small"
"""How the engine's key of a small prompt ends; before it stands the document's address, which may hold that character itself."""
PARTS = 4
"""A file is followed by a new one at this part of the size limit, or at half of what can be read again."""


def folder_of(settings: RecordSettings) -> Path:
    """Where recordings lie."""
    return (
        Path(settings.dir)
        if settings.dir
        else Path(platformdirs.user_state_dir("lsp-complete")) / "recordings"
    )


class Recorder:
    """One server's recordings. Thread: the event loop; what a `_File` does, one worker thread does, in order."""

    def __init__(
        self, settings: RecordSettings, clock: Callable[[], float], flush_s: float = FLUSH_S
    ) -> None:
        self._settings, self._clock, self._flush_s = settings, clock, flush_s
        self._began = clock()
        self._waiting: list[Event] = []
        self._docs: dict[str, int] = {}
        self._numbers = 0
        self._requests: OrderedDict[str, int] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._pending: set[int] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[bool] | None = None
        self._file: _File | None = None

    @property
    def on(self) -> bool:
        """Whether events are taken."""
        return self._settings.enabled

    def configure(self, settings: RecordSettings) -> None:
        """New settings; they begin a new file."""
        if settings != self._settings:
            self._flush()
            self._settings, self._file = settings, None
            self._docs.clear()

    # -- what happens ----------------------------------------------------------------------------------

    def opened(self, document: Document) -> None:
        """A document was opened."""
        if self.on:
            self._docs.pop(document.uri, None)
            self._doc(document)

    def changed(self, old: Document, new: Document, edits: Sequence[Edit]) -> None:
        """A document was changed."""
        whole = merge(edits)
        if not self.on or whole is None:
            return
        doc = self._docs.get(new.uri)
        if doc is None:
            self._doc(new)
            return
        text = new.buffer.slice(whole.start, whole.new_end)
        self._put(Changed(self._at(), doc, ((whole.start, whole.old_end, text),), len(text)))

    def moved(self, document: Document, offset: int) -> None:
        """The cursor was placed."""
        if self.on:
            self._put(Moved(self._at(), self._doc(document), offset))

    def closed(self, uri: str) -> None:
        """A document was closed."""
        doc = self._docs.pop(uri, None)
        if self.on and doc is not None:
            self._put(Closed(self._at(), doc))

    def asked(self, query: Query, number: int) -> None:
        """A request came."""
        if self.on:
            self._newest[query.document.uri] = number
            self._pending.add(number)
            doc = self._doc(query.document)
            self._put(Asked(self._at(), doc, number, query.offset, query.trigger))

    def prompted(self, key: str, ids: tuple[int, ...]) -> None:
        """The engine is given a prompt for the newest request of the document that key begins with."""
        number = self._newest.get(key.removesuffix(SMALL_PROMPT))
        if self.on and number is not None:
            self._put(Prompted(self._at(), number, ids))

    def answered(self, number: int, answer: Answer) -> None:
        """A request was answered, or cancelled; one that was not `asked` here is passed over."""
        if number not in self._pending:
            return
        self._pending.discard(number)
        if not self.on:
            return
        for suggestion in answer.suggestions:
            self._requests[suggestion.id] = number
        while len(self._requests) > KEEP_IDS:
            self._requests.popitem(last=False)
        texts = tuple((each.start, each.end, each.text) for each in answer.suggestions)
        self._put(Answered(self._at(), number, texts, answer.stages.as_dict()))

    def became(self, suggestion_id: str, what: str, length: int = 0) -> None:
        """The editor told what became of a suggestion."""
        number = self._requests.get(suggestion_id)
        if self.on and number is not None:
            self._put(Became(self._at(), number, what, length))

    # -- lines -----------------------------------------------------------------------------------------

    def _at(self) -> float:
        return round((self._clock() - self._began) * 1000, 3)

    def _doc(self, document: Document) -> int:
        doc = self._docs.get(document.uri)
        if doc is None:
            doc = self._docs[document.uri] = self._numbers
            self._numbers += 1
            text = document.buffer.text() if self._settings.content else ""
            self._put(Opened(self._at(), doc, document.uri, document.language_id, text))
        return doc

    def _put(self, event: Event) -> None:
        self._waiting.append(event if self._settings.content else without_content(event))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_s, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        file = self._file = self._file or _File(self._settings)
        self._pool = self._pool or ThreadPoolExecutor(1, "recorder")
        events, self._waiting = self._waiting, []
        self._writing = asyncio.get_running_loop().run_in_executor(self._pool, file.write, events)
        self._writing.add_done_callback(lambda done: self._written(file, done))

    def _written(self, file: _File, done: asyncio.Future[bool]) -> None:
        if done.cancelled() or self._file is not file:
            return
        error = done.exception()
        if error is not None:
            system = error.strerror if isinstance(error, OSError) else None
            known = error if isinstance(error, LspCompleteError) else system
            logger.warning("recording ends: %s", known or type(error).__name__)
            self._settings = self._settings.model_copy(update={"enabled": False})
            self._waiting.clear()
        elif (
            done.result()
        ):  # the file is full: what waits belongs to it still, what comes next begins a new one
            self._flush()
            self._file = None
            self._docs.clear()

    async def close(self) -> None:
        """Write what is left."""
        self._flush()
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    # -- prompts ---------------------------------------------------------------------------------------

    def watching(self, opener: Opener) -> Opener:
        """The opener, with engines that tell their prompts while recording is on."""

        async def open_(settings: Settings, on_state: Callable[[str, str], None]) -> OpenedEngine:
            opened = await opener(settings, on_state)
            return replace(opened, engine=_Watched(opened.engine, self)) if self.on else opened

        return open_


@dataclass(frozen=True, slots=True)
class _Watched:
    """An engine whose prompts are recorded."""

    engine: Engine
    recorder: Recorder

    async def info(self) -> ModelInfo:
        return await self.engine.info()

    async def complete(self, request: CompletionRequest, on_delta: DeltaCallback | None = None) -> Completion:
        if request.max_tokens and request.priority is Priority.INTERACTIVE:
            self.recorder.prompted(request.key, request.prompt)
        return await self.engine.complete(request, on_delta)

    async def stats(self) -> dict[str, object]:
        return await self.engine.stats()

    async def close(self) -> None:
        await self.engine.close()


class _File:
    """One recording being written. Thread: the worker's, one write at a time."""

    def __init__(self, settings: RecordSettings) -> None:
        self._settings = settings
        self._path: Path | None = None
        self._prompt: tuple[int, ...] = ()

    def write(self, events: Sequence[Event]) -> bool:
        """Append; True if the file is full. Raises OSError, RecordingError."""
        text = "".join(line_of(self._shared(event)) for event in events)
        most, flags = self._settings.max_mb << 20, 0
        if self._path is None:
            folder = private_folder(folder_of(self._settings))
            prune(folder, most, self._settings.days)
            now = time.time()
            stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
            path = folder / f"{stamp}-{os.getpid()}-{time.monotonic_ns() % 10**9:09d}{SUFFIX}"
            text = line_of(Header("server", self._settings.content, now, __version__)) + text
            self._path = path
            flags = os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(self._path, flags | os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:
            if flags:
                raise
            return True  # the user removed it, or another server's limit did: without its beginning it would be no recording
        with os.fdopen(descriptor, "a", encoding="utf-8") as out:
            out.write(text)
            size = out.tell()
        if size < min(most // PARTS, MAX_BYTES // 2):
            return False
        prune(self._path.parent, most, self._settings.days)
        return True

    def _shared(self, event: Event) -> Event:
        if not isinstance(event, Prompted) or not event.ids:
            return event
        shared, before = 0, self._prompt
        most = min(len(before), len(event.ids))
        while shared < most and before[shared] == event.ids[shared]:
            shared += 1
        self._prompt = event.ids
        return replace(event, ids=event.ids[shared:], shared=shared)
