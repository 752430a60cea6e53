"""Work done before it is asked for: warming the prompt of a file just opened or a place just visited, moving the anchor, the
full prompt behind a small one. What is done in the pause behind an answer is in `idle`.

Rules:
- Everything here runs at background or prefetch priority and is thrown away without trace if the user does otherwise.
- One task per document; a newer one replaces the older, and it ends when the document is closed.
- Of many documents opened at once (a session is restored) the newest MAX_WARM are made ready: an engine keeps no more prompts at hand,
  and takes a limited number of requests, among which the one that somebody waits for must find a place.
- With nothing to do, nothing runs: no timers tick while the editor is idle.
- Thread: the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..config import Settings
from ..context.anchor import why_moved
from ..engine.api import Priority
from .brain import Brain
from .documents import OpenDocument
from .planning import Framer, LoadedModel, plan, plan_ahead, plan_fresh
from .slices import LARGEST, Evaluator, Slices
from .types import Answer, Query
from .windows import window_for

logger = logging.getLogger(__name__)

Future = asyncio.Future[Any]

SOFT_TAIL = 0.7
"""The anchor is moved in the background once the tail holds this share of its limit."""
SLICE_MS = 250.0
"""Milliseconds that a slice of a full prompt is to take behind a small one."""
WAIT_MS = 4000.0
"""A key may wait for a full prompt that is expected to be ready within this time; on a slower machine it waits for a slice."""
SMALL_KEYS = 3
"""Keys at one place that the small prompt answers although they contradict what was suggested; the next one waits."""
MAX_WARM = 8
"""Documents that are made ready at a time: as many as an engine has slots by default."""


class Ahead:
    """See the module's rules. settings.prefetch: "off" does nothing here."""

    def __init__(self, brain: Brain, clock: Callable[[], float], framer: Framer | None = None) -> None:
        self._brain, self._clock, self._framer = brain, clock, framer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slices: dict[str, Slices] = {}
        self.evaluator = Evaluator(brain)

    def opened(self, state: OpenDocument, settings: Settings) -> None:
        """Make the prompt at the document's last known cursor ready: also that of an anchor which stood before the document was closed."""
        self.moved(state, settings, evaluated=False)

    def moved(self, state: OpenDocument, settings: Settings, *, evaluated: bool = True) -> None:
        """Make the prompt at `state.cursor` ready unless the standing anchor serves it. evaluated: whether its prompt was."""
        if settings.prefetch == "off" or self._brain.model is None:
            return
        window = window_for(self._brain.model, settings)
        moved = why_moved(state.anchor, state.document.buffer, state.cursor, window)
        if (moved or not evaluated) and not window.standard:
            self._make_room()
            self._begin(state, self._warm(state, settings))

    def _make_room(self) -> None:
        """Stop the oldest of what is being made ready, so that one more may begin."""
        warm = [uri for uri, task in self._tasks.items() if task.get_name() == "warm"]
        for uri in warm[: max(0, len(warm) - MAX_WARM + 1)]:
            self._tasks.pop(uri).cancel()

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._slices.pop(uri, None)
        task = self._tasks.pop(uri, None)
        if task is not None:
            task.cancel()

    def typed(self, state: OpenDocument) -> None:
        """A key was pressed: what was being made ready for elsewhere in this document is stale."""
        task = self._tasks.get(state.document.uri)
        if task is not None and task.get_name() == "warm":
            task.cancel()

    async def full_prompt(
        self, state: OpenDocument, query: Query, settings: Settings, overtaken: Future, *, agrees: bool
    ) -> None:
        """Behind a small answer the full prompt is being evaluated. A key that agrees with what was suggested needs no other
        answer soon and waits for it; so does one after several that contradicted, since small answers do not help here. Else
        the evaluation makes way and the small prompt answers at once. What takes too long is waited for by the slice."""
        uri = state.document.uri
        task, model, slices = self._tasks.get(uri), self._brain.model, self._slices.get(uri)
        if state.anchor is None or not state.anchor.small or task is None or model is None or slices is None:
            return
        moved = why_moved(state.next_anchor, query.document.buffer, query.offset, window_for(model, settings))
        if moved or not (agrees or slices.keys >= SMALL_KEYS or slices.left <= self.evaluator.size(SLICE_MS)):
            slices.keys += 1
            task.cancel()
            return
        waited: set[Future] = {task, overtaken}
        if slices.left > self.evaluator.fit(WAIT_MS):
            slices.pause = True
            slices.step = asyncio.get_running_loop().create_future()
            waited.add(slices.step)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    def answered(self, state: OpenDocument, _query: Query, _answer: Answer, settings: Settings) -> None:
        """Behind an answer: move an anchor whose tail has grown long, while the old prompt still serves."""
        model = self._brain.model
        if model is None or state.anchor is None:
            return
        if state.anchor.small:  # the second rung of the ladder; no luxury that a setting turns off
            task, slices = self._tasks.get(state.document.uri), self._slices.get(state.document.uri)
            if task is None or slices is None or slices.pause or state.next_anchor is None:
                self._begin(state, self._full_behind_small(state, settings))
            return
        if settings.prefetch == "off":
            return
        window = window_for(model, settings)
        buffer = state.document.buffer
        line = buffer.position(min(state.cursor, buffer.length))[0]
        tail = line - buffer.position(min(state.anchor.anchor, buffer.length))[0]
        soft = window.anchor_lines + SOFT_TAIL * (window.max_tail_lines - window.anchor_lines)
        if window.standard or state.document.uri in self._tasks:
            return
        if tail > soft:
            self._begin(state, self._move_anchor(state, settings))

    def busy(self, uri: str) -> bool:
        """Whether a prompt of this document is being made ready."""
        return uri in self._tasks

    def stop(self) -> None:
        """Stop everything."""
        for task in list(self._tasks.values()):
            task.cancel()
        self._tasks.clear()
        self._slices.clear()

    def _begin(self, state: OpenDocument, work: object) -> None:
        uri = state.document.uri
        old = self._tasks.pop(uri, None)
        if old is not None:
            old.cancel()
        name = "warm" if getattr(work, "__name__", "") == "_warm" else "anchor"
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)  # type: ignore[arg-type]
        self._tasks[uri] = task

        def done(finished: asyncio.Task[None]) -> None:
            if self._tasks.get(uri) is finished:
                del self._tasks[uri]
            if not finished.cancelled() and isinstance(finished.exception(), Exception):
                logger.info("work ahead failed: %s", type(finished.exception()).__name__)

        task.add_done_callback(done)

    async def _warm(self, state: OpenDocument, settings: Settings) -> None:
        """Evaluate the prompt at the cursor, without decoding, and let the document keep its anchor."""
        model = self._brain.model
        if model is None:
            return
        window = window_for(model, settings)
        if self._framer is not None:
            await self._framer.ready(state)
        cursor = min(state.cursor, state.document.buffer.length)
        anchor = state.anchor
        stands = anchor is not None and not why_moved(anchor, state.document.buffer, cursor, window)
        if anchor is not None and stands and not anchor.small:
            trial = replace(state, next_anchor=None, generation=None)
            planned = plan(trial, cursor, model, window, self._framer)
            stands = state.head is not None
        else:
            planned, trial = plan_fresh(state, cursor, model, window, self._framer)
        if not stands:
            state.take_over(trial, trial.anchor)
        await self.evaluator.evaluate(planned.prompt.prompt, state.document.uri, Priority.BACKGROUND)

    async def _full_behind_small(self, state: OpenDocument, settings: Settings) -> None:
        """Evaluate the full prompt slice by slice behind the small one that answers meanwhile, then change over. What was
        evaluated stays in the document's slot, so a task that was stopped loses no more than its slice."""
        model, uri = self._brain.model, state.document.uri
        if model is None or state.table is None:
            return
        cursor = min(state.cursor, state.document.buffer.length)
        planned, trial = plan_ahead(state, cursor, model, window_for(model, settings), self._framer)
        slices = self._slices.setdefault(uri, Slices())
        slices.follow(planned.prompt.prompt)
        state.next_anchor = trial.anchor  # follows the edits that come meanwhile
        size = self.evaluator.size(SLICE_MS)
        try:
            while slices.left:
                end = slices.next_end(size)
                timing = await self.evaluator.evaluate(slices.ids[:end], uri, Priority.INTERACTIVE)
                if timing is None:
                    return
                self.evaluator.learn(timing)
                slices.done, size = end, min(2 * size, LARGEST)
                if slices.pause and slices.left:
                    return
            self._change_over(state, trial, settings, model)
            self._slices.pop(uri, None)
        finally:
            self._let_go(state)
            slices.stepped()

    async def _move_anchor(self, state: OpenDocument, settings: Settings) -> None:
        """Evaluate the next anchor's prompt behind the standing one, then change over if it still fits."""
        model = self._brain.model
        if model is None or state.table is None:
            return
        cursor = min(state.cursor, state.document.buffer.length)
        planned, trial = plan_ahead(state, cursor, model, window_for(model, settings), self._framer)
        state.next_anchor = trial.anchor  # follows the edits that come meanwhile
        try:
            await self.evaluator.evaluate(planned.prompt.prompt, state.document.uri, Priority.PREFETCH)
            self._change_over(state, trial, settings, model)
        finally:
            self._let_go(state)

    def _let_go(self, state: OpenDocument) -> None:
        """The next anchor is no longer being made ready, unless by a task that has replaced this one."""
        if self._tasks.get(state.document.uri) in (None, asyncio.current_task()):
            state.next_anchor = None

    def _change_over(self, state: OpenDocument, trial: OpenDocument, settings: Settings, model: LoadedModel) -> None:
        """Put the prompt that was made ready in force if it still serves the cursor."""
        moved, buffer = state.next_anchor, state.document.buffer
        if not why_moved(moved, buffer, min(state.cursor, buffer.length), window_for(model, settings)):
            state.take_over(trial, moved)
