"""Parsing off the event loop: one thread, newest wins.

Strategy: the event loop keeps, per document, the newest buffer and a tree moved by every edit. One thread parses; when it is done its
tree is moved by what was typed meanwhile and takes the old one's place, and another parse follows if something was. Work for
files that are not open runs on the same thread when no open document waits.

Rules:
- Everything here runs on the event loop, everything in `jobs.py` on the thread; what crosses to the thread is immutable.
- A parse that an edit has overtaken stops, unless it is the document's first or its predecessor was stopped too: continuous
  typing must not starve it.
- A tree of broken text may depend on the way it came about (see `trees.py`); once nothing was typed for `settle_seconds` it is parsed
  afresh.
- A parse that ran out of time keeps the last good tree and is tried again only after a pause.
- Nothing raises into the event loop: a failing job gives None, and `problems` counts it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from lsp_complete.syntax.jobs import TOO_LONG, Job, Parsed, guarded
from lsp_complete.syntax.languages import LanguageFacts, language_for
from lsp_complete.syntax.nodes import Outline, shifted
from lsp_complete.syntax.trees import MAX_CHARS, SyntaxTree, edited, hull
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Edit

T = TypeVar("T")
SETTLE_SECONDS, PAUSE_SECONDS = 0.4, 5.0


class Moved:
    """An outline and the edits that it lacks, which move it when it is asked for: O(nodes) once, and never at a key that does
    not ask. Belongs to the event loop; a value for all who look at it."""

    __slots__ = ("_edits", "_outline")

    def __init__(self, outline: Outline, edits: tuple[Edit, ...] = ()) -> None:
        self._outline, self._edits = outline, edits

    def after(self, edits: Sequence[Edit]) -> Moved:
        """The same after further edits. O(edits)."""
        return Moved(self._outline, (*self._edits, *edits))

    @property
    def outline(self) -> Outline:
        """The outline of the text after the edits."""
        if self._edits:
            self._outline, self._edits = shifted(self._outline, self._edits), ()
        return self._outline


@dataclass(frozen=True, slots=True)
class SyntaxState:
    """What is known of a document's newest text. exact: tree and outline are of this very text; else the last good ones,
    moved. reason: why there is no tree ("" while the first parse runs)."""

    facts: LanguageFacts | None
    tree: SyntaxTree | None
    moved: Moved | None
    exact: bool
    reason: str = ""

    @property
    def outline(self) -> Outline | None:
        """The outline, moved to the newest text: O(nodes) the first time after an edit."""
        return None if self.moved is None else self.moved.outline


@dataclass(slots=True)
class _Entry:
    """One open document, on the event loop. edits: what came after the newest parse; since_sent: those
    a running parse lacks. moved: the outline for whoever asks."""

    document: Document
    facts: LanguageFacts | None
    tree: SyntaxTree | None = None
    parsed: bool = False
    afresh: bool = False
    raw: Outline | None = None
    outline: Outline | None = None
    moved: Moved | None = None
    edits: list[Edit] = field(default_factory=list)
    since_sent: list[Edit] = field(default_factory=list)
    running: bool = False
    stopped_before: bool = False
    reason: str = ""
    paused: bool = False
    stop: Event = field(default_factory=Event)
    settle: asyncio.TimerHandle | None = None


class SyntaxWorker:
    """Trees and outlines of the open documents. Create and use on one event loop; `close` it at the end.

    on_ready(uri) is called on the event loop whenever a document's tree became exact, or its outline was recalled.
    """

    def __init__(
        self,
        on_ready: Callable[[str], None] = lambda _uri: None,
        *,
        settle_seconds: float = SETTLE_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._on_ready = on_ready
        self._settle_seconds, self._pause_seconds = settle_seconds, pause_seconds
        self._entries: dict[str, _Entry] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="syntax")
        self._waiting: list[str] = []
        self._jobs: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.problems = 0

    def open(self, document: Document, recall: Callable[[], Outline | None] | None = None) -> None:
        """Start to follow a document; parse it soon. recall: gives the outline of this very text if it is known from an earlier
        session; called on the thread, before the parser is loaded and run."""
        self.close_document(document.uri)
        first = document.buffer.line_content(0)[:200]
        facts = language_for(document.language_id, document.uri, first)
        entry = self._entries[document.uri] = _Entry(document, facts, reason="" if facts else "unknown language")
        if facts:
            if recall is not None and document.buffer.length <= MAX_CHARS:
                task = asyncio.get_running_loop().run_in_executor(self._pool, guarded, recall)
                task.add_done_callback(lambda done: self._recalled(document.uri, entry, done))
            self._request(document.uri)

    def _recalled(self, uri: str, entry: _Entry, done: asyncio.Future[Outline | BaseException | None]) -> None:
        found = None if done.cancelled() else done.result()
        if isinstance(found, BaseException):
            self.problems += 1
            return
        length = entry.document.buffer.length - sum(edit.delta for edit in entry.edits)
        fits = found is not None and entry.facts is not None and found.language == entry.facts.key and found.length == length
        if found is not None and fits and self._entries.get(uri) is entry and entry.moved is None:
            entry.moved = Moved(found, tuple(entry.edits))
            self._tell(uri)

    def change(self, document: Document, edits: Sequence[Edit]) -> None:
        """The document's next version and the edits that led to it. Microseconds; the parse happens later."""
        entry = self._entries.get(document.uri)
        if entry is None:
            self.open(document)
            return
        old, entry.document = entry.document.buffer, document
        if not edits or entry.facts is None:
            return
        if len(edits) > 1 and (entry.tree is None or entry.tree.buffer is not old):
            edits = (hull(edits, old, document.buffer),)
        entry.edits += edits
        entry.since_sent += edits
        if entry.tree is not None:
            entry.tree = edited(entry.tree, edits, document.buffer)
        if entry.moved is not None:
            entry.moved = entry.moved.after(edits)
        if entry.running and entry.parsed and not entry.stopped_before:
            entry.stop.set()
        self._request(document.uri)

    def close_document(self, uri: str) -> None:
        """Forget a document; a running parse of it stops."""
        entry = self._entries.pop(uri, None)
        if entry is not None:
            entry.stop.set()
            if entry.settle is not None:
                entry.settle.cancel()
        if uri in self._waiting:
            self._waiting.remove(uri)

    def state(self, uri: str) -> SyntaxState | None:
        """Tree and outline of the newest text, exact or moved; None for a document that is not open. O(1)."""
        entry = self._entries.get(uri)
        if entry is None:
            return None
        exact = entry.tree is not None and not entry.edits
        return SyntaxState(entry.facts, entry.tree, entry.moved, exact, entry.reason)

    def exact(self, uri: str) -> bool | None:
        """Whether the tree is of the newest text; None for a document that is not open or has no language. O(1)."""
        entry = self._entries.get(uri)
        return None if entry is None or entry.facts is None else entry.tree is not None and not entry.edits

    def background(self, job: Callable[[], T], priority: int = 1) -> asyncio.Future[T | None]:
        """Run a job on the parse thread once no open document waits; smaller priorities first. None if it failed."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def run() -> None:
            task = asyncio.get_running_loop().run_in_executor(self._pool, guarded, job)
            task.add_done_callback(lambda done: self._finish_job(future, done))

        heapq.heappush(self._jobs, (priority, next(self._numbers), run))
        self._next()
        return future

    async def wait_idle(self) -> None:
        """Wait until every parse and job is done (settling included only once its time has come). For tests and warming."""
        await self._idle.wait()

    async def close(self) -> None:
        """Stop everything and end the thread."""
        for uri in list(self._entries):
            self.close_document(uri)
        self._jobs.clear()
        await self.wait_idle()
        self._pool.shutdown(wait=False)

    def settle(self, uri: str) -> None:
        """Parse a document afresh if its tree may depend on the way it came about. Called by itself at idle."""
        entry = self._entries.get(uri)
        if entry is None or entry.running or uri in self._waiting or entry.tree is None or entry.tree.settled:
            return
        entry.afresh = True
        self._waiting.insert(0, uri)
        self._next()

    def resume(self, uri: str) -> None:
        """Parse a document again whose last parse took too long. Called by itself after a pause."""
        entry = self._entries.get(uri)
        if entry is not None and entry.paused:
            entry.paused = False
            self._request(uri)

    def _request(self, uri: str) -> None:
        entry = self._entries[uri]
        entry.afresh = False
        if entry.paused:
            return
        if entry.settle is not None:
            entry.settle.cancel()
            entry.settle = None
        if uri not in self._waiting and not entry.running:
            self._waiting.append(uri)
        self._next()

    def _next(self) -> None:
        if self._busy:
            return
        if self._waiting:
            self._start(self._waiting.pop())  # the one touched last
        elif self._jobs:
            self._begin()
            heapq.heappop(self._jobs)[2]()
        else:
            self._idle.set()

    def _begin(self) -> None:
        self._busy = True
        self._idle.clear()

    def _start(self, uri: str) -> None:
        entry = self._entries[uri]
        assert entry.facts is not None
        self._begin()
        entry.running, entry.stop = True, Event()
        entry.since_sent = []
        job = Job(
            entry.facts,
            entry.document.buffer,
            None if entry.afresh else entry.tree,
            None if entry.afresh else entry.raw,
            entry.outline,
            tuple(entry.edits),
            entry.stop,
        )
        task = asyncio.get_running_loop().run_in_executor(self._pool, guarded, job.run)
        task.add_done_callback(lambda done: self._finish(uri, entry, done))

    def _finish(self, uri: str, entry: _Entry, done: asyncio.Future[Parsed | BaseException | None]) -> None:
        self._busy, entry.running = False, False
        result = None if done.cancelled() else done.result()
        if isinstance(result, BaseException):
            self.problems += 1
            entry.reason = f"the parser failed: {type(result).__name__}"
        if self._entries.get(uri) is entry and not isinstance(result, BaseException):
            self._take(uri, entry, result)
        self._next()

    def _take(self, uri: str, entry: _Entry, result: Parsed | None) -> None:
        entry.stopped_before = result is None
        if result is not None and result.reason == TOO_LONG and entry.tree is not None:
            entry.reason, entry.paused = (
                TOO_LONG,
                True,
            )  # the last good tree stays; no second attempt at every key
            entry.settle = asyncio.get_running_loop().call_later(self._pause_seconds, self.resume, uri)
            return
        if result is not None:
            entry.reason = result.reason
            entry.parsed = result.tree is not None
            replaced, entry.tree = [entry.tree], result.tree
            self._pool.submit(replaced.clear)  # the thread frees it: a moved tree may take a millisecond
            entry.raw, entry.outline = result.raw, result.outline
            entry.edits = list(entry.since_sent)
            entry.moved = None if result.outline is None else Moved(result.outline, tuple(entry.edits))
            if entry.tree is not None and entry.edits:
                entry.tree = edited(
                    entry.tree, _safe(entry.edits, entry.tree, entry.document), entry.document.buffer
                )
        if entry.since_sent:
            self._request(uri)
        elif result is not None:
            if result.tree is not None and not result.tree.settled:
                loop = asyncio.get_running_loop()
                entry.settle = loop.call_later(self._settle_seconds, self.settle, uri)
            self._tell(uri)

    def _tell(self, uri: str) -> None:
        try:
            self._on_ready(uri)
        except Exception:  # whoever listens must not keep the next document from being parsed
            self.problems += 1

    def _finish_job(self, future: asyncio.Future[T | None], done: asyncio.Future[T | BaseException]) -> None:
        self._busy = False
        result: T | BaseException | None = None if done.cancelled() else done.result()
        if isinstance(result, BaseException):
            self.problems += 1
            result = None
        if not future.done():
            future.set_result(result)
        self._next()


def _safe(edits: Sequence[Edit], tree: SyntaxTree, document: Document) -> Sequence[Edit]:
    """Edits whose points can be trusted one by one, or the one edit that covers them."""
    return edits if len(edits) == 1 else (hull(edits, tree.buffer, document.buffer),)
