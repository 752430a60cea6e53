"""What is done in the pause behind an answer: prompts that are likely to be asked for next are evaluated, and so get saved.

Strategy: in this order, a slice at a time: the next prompt of the document at hand, if the code at the cursor needs what the
standing one lacks; with `prefetch = "full"` the open documents used last, each where its cursor is, then the definitions in
imported files that the code at the cursor names (`imported`), then sentences for functions of other files (`summaries`). The engine's slots hold what was evaluated, so the next pause goes on
where this one stopped; evicted prompts go to its memory, and at rest to disk, both within their limits.

Rules:
- It begins `BEGIN_S` after an answer and is over `END_S` after it, done or not: an editor left alone leaves the processor alone.
- No slice is begun that the measured rate does not let end in time. Background priority; a key stops it.
- A document's standing prompt stays in its slot meanwhile: what is evaluated here has a slot of its own until it is asked for.
- A place that was made ready is passed over until its text or its cursor changes. One task for all documents. Event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from ..config import Settings
from ..engine.api import Priority
from ..text.document import Document
from .ahead import Ahead
from .brain import Brain
from .documents import DocumentSet, OpenDocument
from .planning import Framer, LoadedModel, plan, plan_ahead, plan_fresh
from .slices import LARGEST, SMALLEST, Slices
from .summaries import KEY as SUMMARIES
from .summaries import Summaries
from .windows import window_for

logger = logging.getLogger(__name__)

BEGIN_S = 0.3
END_S = 0.9
RECENT = 3
"""Open documents, beside the one at hand, whose prompts are made ready."""
WRITE_MS = 250.0
"""A sentence is not begun with less time left."""
_KEPT = 64
"""Places that are remembered as ready, and prompts on their way."""

Sleep = Callable[[float], Awaitable[object]]
Imported = Callable[[OpenDocument], Awaitable[Sequence[tuple[Document, int]]]]
"""Files that are not open and are likely to be opened from a document, with the offset where."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A prompt worth evaluating. key: of its slot; place: what it was made for, unique; ready: called once all of it is evaluated."""

    key: str
    ids: tuple[int, ...]
    place: object
    ready: Callable[[], None] = lambda: None


async def _none(_state: OpenDocument) -> Sequence[tuple[Document, int]]:
    return ()


class Idle:
    """See the module's rules. ahead: which prompts are being made ready already; private: whether nothing may be done with a
    document's text; sleep: waits so many seconds."""

    def __init__(
        self,
        brain: Brain,
        documents: DocumentSet,
        ahead: Ahead,
        clock: Callable[[], float],
        framer: Framer,
        imported: Imported = _none,
        private: Callable[[str], bool] = lambda _uri: False,
        summaries: Summaries | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._brain, self._documents, self._ahead, self._evaluator = brain, documents, ahead, ahead.evaluator
        self._clock, self._framer, self._sleep = clock, framer, sleep
        self._imported, self._private, self._summaries = imported, private, summaries
        self._ready: OrderedDict[str, object] = OrderedDict()
        self._on_their_way: OrderedDict[str, Slices] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    def answered(self, state: OpenDocument, settings: Settings) -> None:
        """An answer is on its way to the screen. settings: as they count for work ahead now."""
        self.stop()
        if settings.prefetch != "off" and settings.context.layout != "standard":
            self._task = asyncio.get_running_loop().create_task(self._work(state, settings, self._clock() + END_S))
            self._task.add_done_callback(_note)

    def stop(self) -> None:
        """A key was pressed, the cursor moved, or the end has come."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def forget(self) -> None:
        """Another engine: nothing is ready."""
        self.stop()
        self._ready.clear()
        self._on_their_way.clear()

    async def _work(self, state: OpenDocument, settings: Settings, until: float) -> None:
        await self._sleep(BEGIN_S)
        model = self._brain.model
        if model is None:
            return
        async for wanted in self._wanted(state, settings, model):
            if self._ready.get(wanted.key) == wanted.place:
                continue
            if not await self._evaluated(wanted, until):
                return
            self._remember(wanted)
            wanted.ready()
        if settings.prefetch == "full" and self._summaries is not None:
            await self._write(self._summaries, model, until)

    async def _write(self, summaries: Summaries, model: LoadedModel, until: float) -> None:
        """Sentences for functions of other files, as long as there is time."""
        while (task := summaries.next(model)) is not None and self._brain.engine is not None:
            wanted = Wanted(SUMMARIES, task.prompt, task.key)
            if not await self._evaluated(wanted, until):
                return
            left_ms = (until - self._clock()) * 1000
            if left_ms < WRITE_MS or not await summaries.write(self._brain.engine, task, left_ms):
                return

    async def _wanted(self, state: OpenDocument, settings: Settings, model: LoadedModel) -> AsyncIterator[Wanted]:
        """What to evaluate, the most likely first."""
        uri = state.document.uri
        if state.anchor is not None and not state.anchor.small and not self._ahead.busy(uri):
            cursor = min(state.cursor, state.document.buffer.length)
            if self._framer.wanting(state, cursor, model):
                planned, trial = plan_ahead(state, cursor, model, window_for(model, settings), self._framer)
                yield Wanted(f"{uri}#next", planned.prompt.prompt, object(), lambda: state.take_over(trial, trial.anchor))
        if settings.prefetch != "full":
            return
        others = [one for one in self._documents if one.document.uri != uri and not self._private(one.document.uri)]
        for other in others[: -RECENT - 1 : -1]:
            if not self._ahead.busy(other.document.uri) and not self._framer.stale(other):
                yield self._elsewhere(other, settings, model)
        if settings.context.cross_file:  # what stands before such a file's window depends on what is open then
            return
        for document, offset in await self._imported(state):
            planned, _ = plan_fresh(OpenDocument(document, 0.0), offset, model, window_for(model, settings), self._framer)
            yield Wanted(document.uri, planned.prompt.prompt, (document.buffer.length, offset))

    def _elsewhere(self, other: OpenDocument, settings: Settings, model: LoadedModel) -> Wanted:
        """The prompt at the cursor of another open document: the standing one, or the one that would stand there."""
        document = other.document
        cursor = min(other.cursor, document.buffer.length)
        standing = None if other.anchor is None or other.anchor.small else other.anchor
        trial = replace(other, anchor=standing, head=other.head if standing else None, next_anchor=None, generation=None)
        planned = plan(trial, cursor, model, window_for(model, settings), self._framer)

        def ready() -> None:
            if other.document is document and other.anchor in (standing, None) and trial.anchor is not standing:
                other.take_over(trial, trial.anchor)

        return Wanted(document.uri, planned.prompt.prompt, (document.version, cursor), ready)

    async def _evaluated(self, wanted: Wanted, until: float) -> bool:
        """Evaluate as much as there is time for; whether that was all of it."""
        slices = self._on_their_way.setdefault(wanted.key, Slices())
        self._on_their_way.move_to_end(wanted.key)
        slices.follow(wanted.ids)
        while slices.left:
            left_ms = (until - self._clock()) * 1000
            fit = self._evaluator.fit(left_ms)
            if fit < 2 * SMALLEST:
                return False
            end = slices.next_end(min(LARGEST, fit - SMALLEST))  # the last one may be so much longer
            timing = await self._evaluator.evaluate(wanted.ids[:end], wanted.key, Priority.BACKGROUND, left_ms)
            if timing is None or self._clock() >= until:
                return False
            self._evaluator.learn(timing)
            slices.done = end
        return True

    def _remember(self, wanted: Wanted) -> None:
        self._ready[wanted.key] = wanted.place
        self._ready.move_to_end(wanted.key)
        self._on_their_way.pop(wanted.key, None)
        for kept in (self._ready, self._on_their_way):
            while len(kept) > _KEPT:
                kept.popitem(last=False)


def _note(task: asyncio.Task[None]) -> None:
    """An error of work ahead is nobody's business, but it is told."""
    if not task.cancelled() and task.exception() is not None:
        logger.info("work at idle failed: %s", type(task.exception()).__name__)
