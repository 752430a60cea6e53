"""Behind a suggestion on screen: the next one, as if this one had been accepted (or typed to its end).

Strategy: the document is changed on a copy, the standing prompt grows by the suggestion (which the slot holds already), and the
model is asked at lower priority. What comes stands in the suggestion store at the place where it will count; so acceptance,
typing through and Enter all find it there. At the end of a line it may begin with a line end (unless `multiline` is "never"), so
the next line is on screen without another key, whatever its indentation. Where the model says nothing there, it is asked once more
as if Enter had been pressed. `full` goes on from there, as long as there is time.

Rules:
- It begins `START_S` after the answer: who types on within that time has decided otherwise, mostly.
- It ends `LIMIT_S` after the answer, done or not, so that an editor left alone leaves the processor alone.
- A text that no longer leads to the place stops the work at once, and what was stored for it goes.
- A request at the place while the work is under way takes it over instead of asking anew; where the model said nothing, a request
  need not ask again.
- One prediction per document. Event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from ..config import Settings
from ..errors import LspCompleteError
from ..measure.stages import StageRecord
from ..suggest.language import facts_for
from ..suggest.lines import is_closers, leading, opens_block, to_lf
from ..suggest.store import SuggestionStore
from ..suggest.typed import after_agrees, remaining, typed_since
from ..text.document import Document
from ..text.edits import Change, Edit
from ..text.positions import Encoding
from .completing import Attempt, Completer
from .documents import OpenDocument
from .generation import Generation
from .held import Held
from .surroundings import AFTER_CHARS, BEFORE_CHARS
from .types import Answer, Query, Suggestion

logger = logging.getLogger(__name__)

START_S = 0.1
LIMIT_S = 0.9
LEAST_S = 0.1
"""Less time than this is not worth a request."""
STEPS = {"off": 0, "light": 1, "full": 4}
"""Suggestions made ahead of the one on screen."""

Sleep = Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class Prediction:
    """before, after: windows around the place where the suggestion on screen stood first (`\\n` line ends). path: what is expected to be inserted
    there. asked: how much of it had been inserted where the model was asked last. holder: the copy of the document that this
    was asked for; joined: a request has taken its work over. nothing: where the model had nothing to show, and what was held back."""

    before: str
    after: str
    path: str
    tab_width: int
    deadline: float
    asked: int = -1
    holder: OpenDocument | None = None
    joined: bool = False
    nothing: dict[int, Held | None] = field(default_factory=dict)
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def left(self, before: str, after: str) -> str | None:
        """What of the path is still to come at a cursor; None if the text does not lead there. Any line ends."""
        typed = typed_since(self.before, to_lf(before), len(self.path))
        if typed is None or not after_agrees(self.after, to_lf(after)):
            return None
        return remaining(self.path, typed, self.tab_width)

    @property
    def generation(self) -> Generation | None:
        """The engine's work under way."""
        found = self.holder.generation if self.holder is not None else None
        return found if found is not None and found.running else None

    def stop(self) -> None:
        """Stop the work, unless a request waits for it."""
        if self.task is not None:
            self.task.cancel()
        if self.holder is not None and not self.joined:
            self.holder.stop_generation()


class Prefetch:
    """See the module's rules. sleep: waits so many seconds."""

    def __init__(
        self, completer: Completer, store: SuggestionStore, clock: Callable[[], float], sleep: Sleep = asyncio.sleep
    ) -> None:
        self._completer, self._store, self._clock, self._sleep = completer, store, clock, sleep
        self._predictions: dict[str, Prediction] = {}

    def changed(self, state: OpenDocument, edits: tuple[Edit, ...]) -> None:
        """A document was edited: go on only if that led towards the place. The cursor is where the edit ends, or before the
        closers that the editor put behind what was typed."""
        prediction = self._predictions.get(state.document.uri)
        if prediction is None or not edits:
            return
        buffer, last = state.document.buffer, edits[-1]
        inserted = buffer.slice(last.start, last.new_end)
        typed = len(inserted)
        while typed and is_closers(inserted[typed - 1]):
            typed -= 1
        ends = dict.fromkeys((len(inserted), *range(typed, min(len(inserted), typed + 3))))
        for at in (last.start + end for end in ends):
            after = buffer.slice(at, min(buffer.length, at + AFTER_CHARS))
            if prediction.left(buffer.slice(max(0, at - BEFORE_CHARS), at), after) is not None:
                return
        self.forget(state.document.uri)

    def asked(self, attempt: Attempt) -> None:
        """A request has come: let it take over the work that was meant for its place; stop work for another."""
        uri = attempt.query.document.uri
        prediction = self._predictions.get(uri)
        if prediction is None:
            return
        around = attempt.around
        if attempt.query.selected or prediction.left(around.before, around.after) is None:
            self.forget(uri)
            return
        generation, state = prediction.generation, attempt.state
        one_line = attempt.query.menu or attempt.query.single_line
        if generation is None or (one_line and generation.request.stop.max_lines > 1) or (state.generation is not None and state.generation.running):
            return
        typed = typed_since(generation.before, around.before, len(prediction.path) + 200)
        if typed is not None and not generation.contradicts(typed) and generation.after == around.after:
            state.generation, prediction.joined = generation, True

    def nothing(self, attempt: Attempt) -> bool:
        """Whether the model has said already that it has nothing for this request's place. What it held back there then stands for the
        keys to come."""
        prediction, around = self._predictions.get(attempt.query.document.uri), attempt.around
        if prediction is None or not prediction.nothing or attempt.query.trigger == "explicit":
            return False
        left = prediction.left(around.before, around.after)
        if left is None or len(prediction.path) - len(left) not in prediction.nothing:
            return False
        attempt.state.held = prediction.nothing[len(prediction.path) - len(left)]
        return True

    def answered(self, attempt: Attempt, answer: Answer, settings: Settings) -> None:
        """A suggestion is on its way to the screen: begin to prepare the next one. settings: as they count for work ahead now."""
        query = attempt.query
        steps = STEPS[settings.prefetch] if settings.suggest.typed_through else 0
        if not steps or not answer.suggestions or query.selected or settings.context.layout == "standard":
            return
        if attempt.state.anchor is None or attempt.state.anchor.small or attempt.state.document is not query.document:
            return
        shown, uri = answer.suggestions[0], query.document.uri
        old = self._predictions.get(uri)
        if old is not None and self._covers(old, attempt, shown.text):
            return
        self.forget(uri, leave=old is not None and old.left(attempt.around.before, attempt.around.after) is not None)
        around, until = attempt.around, self._clock() + LIMIT_S
        before, after = to_lf(around.before), to_lf(around.after)
        made = Prediction(before, after, to_lf(shown.text), around.indent.tab_width, until)
        made.task = asyncio.get_running_loop().create_task(self._work(made, attempt, shown, steps))
        made.task.add_done_callback(_note)
        self._predictions[uri] = made

    def forget(self, uri: str, *, leave: bool = False) -> None:
        """Stop a document's prediction. leave: what is stored may still count."""
        prediction = self._predictions.pop(uri, None)
        if prediction is not None:
            prediction.stop()
            if not leave:
                self._store.forget_ahead(uri)

    def stop(self) -> None:
        """Stop all work."""
        for uri in list(self._predictions):
            self.forget(uri)

    @staticmethod
    def _covers(old: Prediction, attempt: Attempt, text: str) -> bool:
        """Whether the suggestion that follows this one has been asked for."""
        left = old.left(attempt.around.before, attempt.around.after)
        text = to_lf(text)
        if left is None or not left.startswith(text):
            return False
        place = len(old.path) - len(left) + len(text)
        waiting = old.asked < 0 and old.task is not None and not old.task.done()
        return place <= old.asked or (waiting and place == len(old.path))

    async def _work(self, made: Prediction, attempt: Attempt, shown: Suggestion, steps: int) -> None:
        await self._sleep(START_S)
        state, query, entered = attempt.state, attempt.query, False
        while steps:
            left_s = made.deadline - self._clock()
            if left_s < LEAST_S:
                return
            state, query = accepted(state, query, shown, self._clock())
            made.holder, made.asked, made.joined = state, len(made.path), False
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ahead = Attempt(query, state, attempt.settings, StageRecord(request=0), future, left_s * 1000)
            try:
                text = await self._completer.foresee(ahead)
            except LspCompleteError as error:
                logger.debug("nothing was prepared: %s", type(error).__name__)
                return
            if text == "":
                made.nothing[len(made.path)] = state.held
                text = "" if entered else enter_at(ahead)
                entered = True
            else:
                steps, entered = steps - 1, False
            if not text:
                return
            made.path += to_lf(text)
            shown = Suggestion("", text, query.offset, query.offset)


def enter_at(attempt: Attempt) -> str:
    """What Enter inserts at the end of a line: its line end and indentation, one level more behind an opener. "" elsewhere."""
    around, document = attempt.around, attempt.query.document
    line = to_lf(around.before).rpartition("\n")[2]
    if not line.strip() or around.rest.strip():
        return ""
    deeper = around.indent.unit if opens_block(line, facts_for(document.language_id)) else ""
    return document.newline + leading(line) + deeper


def accepted(state: OpenDocument, query: Query, shown: Suggestion, now: float) -> tuple[OpenDocument, Query]:
    """A copy of the document as it is once the suggestion is accepted, and a request at the cursor's place then."""
    buffer = query.document.buffer
    change = Change((buffer.position(shown.start), buffer.position(shown.end)), shown.text)
    copy = replace(state, table=None, next_anchor=None, generation=None, stopped=None, held=None)
    copy.change([change], Encoding.UTF32, query.document.version + 1, now)
    offset = shown.start + len(shown.text)
    copy.cursor = offset
    document: Document = copy.document
    return copy, replace(query, document=document, offset=offset, trigger="automatic", candidates=1, received=now)


def _note(task: asyncio.Task[None]) -> None:
    """An error of work ahead is nobody's business, but it is told."""
    if not task.cancelled() and task.exception() is not None:
        logger.info("work ahead failed: %s", type(task.exception()).__name__)


