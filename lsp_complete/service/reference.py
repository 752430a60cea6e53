"""A second, larger or more precise model that is asked while the user rests. What it said takes the place of suggestions that
consist of a quantized model's flat habits (`suggest.flat`), where the text around still agrees.

Strategy: it has an engine process of its own, which takes only what of the machine others leave (`engine.giveway`). An answered request
starts a clock; if nothing is typed, moved or asked until it ends and the main engine has nothing to do, the same place is asked here. What
comes is kept in a `SuggestionStore` of its own, a few per file path, also over closing the file; so a look-up there agrees with
the text exactly where one among the recent suggestions does.

Rules:
- Without `reference_model` in the settings nothing here runs, starts or is asked.
- The main engine never waits: each key ends the work here, and its threads are chosen as if this process were not there.
- A model that is missing or does not fit is no trouble for suggestions: nothing is shown, `problem` says why (stats, doctor, log).
- A place whose suggestion consists of habits is asked sooner than one where nothing is wrong.
- On battery nothing is asked. Thread: the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

from ..config import Settings
from ..context.header import EMPTY
from ..errors import LspCompleteError
from ..measure.stages import StageRecord
from ..suggest.filters.worth import not_worth
from ..suggest.store import SuggestionStore
from .brain import Brain, Opened, Opener
from .completing import Attempt, Completer
from .documents import OpenDocument
from .judging import Judging

logger = logging.getLogger(__name__)

REST_S = 2.0
"""Who has done nothing for so long after an answer rests there."""
HABITS_S = 0.5
"""Where the answer consists of habits, less is enough."""
AGAIN_S, TRIES = 1.0, 5
"""How often the main engine is looked at if it is busy, and for how many times."""
LIMIT_MS = 120_000.0
PER_FILE, FILES = 32, 32
"""Suggestions kept per file path, and in how many files at most if each has as many."""

Sleep = Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class Counts:
    """asked: of the reference model; kept, nothing: what came of that; stopped: by a key; failed: by the engine; offered: shown."""

    asked: int = 0
    kept: int = 0
    nothing: int = 0
    stopped: int = 0
    failed: int = 0
    offered: int = 0


class Reference:
    """See the module's rules. opener: starts its engine (None: there is never one). main: whose engine comes first. saving: on battery."""

    def __init__(
        self, opener: Opener | None, settings: Settings, main: Brain, judging: Judging, clock: Callable[[], float],
        saving: Callable[[], bool] = lambda: False, sleep: Sleep = asyncio.sleep,
    ) -> None:  # fmt: skip
        self._settings, self._main, self._judging, self._clock = settings, main, judging, clock
        self._saving, self._sleep = saving, sleep
        self._can = opener is not None
        self.brain = Brain(opener or _nothing, _log, _no_status, clock)
        self._task: asyncio.Task[None] | None = None
        self._place: Attempt | None = None
        self.counts = Counts()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._store = SuggestionStore(self._clock, PER_FILE * FILES, PER_FILE, math.inf)
        self._completer = Completer(self.brain, self._store, self._clock, judging=self._judging)

    @property
    def on(self) -> bool:
        """A reference model is configured."""
        return self._can and bool(self._settings.reference_model)

    # -- life ------------------------------------------------------------------------------------------

    def configure(self, settings: Settings) -> None:
        """New settings. Where they name another model `stop` must follow."""
        self._settings = settings

    async def stop(self) -> None:
        """Stop all work, let go of the engine, and forget what another model may have said."""
        self.disturbed()
        await self.brain.stop()
        self._begin_anew()

    # -- what others tell --------------------------------------------------------------------------------

    def disturbed(self) -> None:
        """A key, a move or a request: no work now."""
        self._place = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def answered(self, attempt: Attempt) -> None:
        """A request was answered; whoever rests now rests there."""
        self.disturbed()
        if attempt.query.selected:
            return
        self._place = attempt
        self._begin(attempt, HABITS_S if attempt.flat else REST_S)

    def _begin(self, attempt: Attempt, after_s: float) -> None:
        self._task = asyncio.get_running_loop().create_task(self._rest(attempt, after_s))
        self._task.add_done_callback(_note)

    def _loaded(self) -> None:
        """The reference model is there: go on with the place for which it was started, if nothing has happened since."""
        if self._place is not None:
            self._begin(self._place, 0.0)

    # -- what it said ------------------------------------------------------------------------------------

    def text_for(self, attempt: Attempt) -> str:
        """Its latest suggestion that still holds at the attempt's cursor; "" without one."""
        query, around = attempt.query, attempt.around
        if query.selected:
            return ""
        hit = self._store.lookup(query.document.uri, around.before, around.after, look_only=True)
        if hit is None or not hit.judged or (query.single_line and "\n" in hit.text):
            return ""
        if query.trigger != "explicit" and not_worth(hit.text, attempt.settings.suggest.min_chars, around.before.rpartition("\n")[2]):
            return ""
        return hit.text

    def offered(self) -> None:
        """A text of it is shown."""
        self.counts.offered += 1

    def figures(self) -> dict[str, object]:
        """Plain JSON values; {} where none is configured. The model's name without a folder."""
        if not self.on:
            return {}
        counts = {name: getattr(self.counts, name) for name in Counts.__slots__}
        name = PurePath(self._settings.reference_model).name
        return {"model": name, "ready": self.brain.ready, "problem": self.brain.problem, **counts, "held": len(self._store)}

    # -- work --------------------------------------------------------------------------------------------

    async def _rest(self, attempt: Attempt, after_s: float) -> None:
        if after_s:
            await self._sleep(after_s)
        if self._saving() or not await self._others_rest():
            return
        if self.brain.ready:
            await self._ask(attempt)
        else:
            self.brain.start(self._beside(), self._loaded)

    def _beside(self) -> Settings:
        """The settings with the model that is in use: "auto" would now mean one that fits beside it."""
        info = self._main.info
        return self._settings if info is None else self._settings.model_copy(update={"model": info.path})

    async def _others_rest(self) -> bool:
        """Wait a little until the main engine, which other windows use too, has nothing to do. False if it goes on working."""
        for left in reversed(range(TRIES)):
            engine = self._main.engine
            try:
                found = await engine.stats() if engine is not None else {"waiting": 1}
            except LspCompleteError:
                return False
            if not found.get("waiting") and not found.get("running"):
                return True
            if left:
                await self._sleep(AGAIN_S)
        return False

    async def _ask(self, attempt: Attempt) -> None:
        held = apart(attempt.state)
        query = replace(attempt.query, trigger="automatic", candidates=1, single_line=False, received=self._clock())
        overtaken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        again = Attempt(query, held, attempt.settings, StageRecord(request=0), overtaken, LIMIT_MS, background=True)
        if self.text_for(again):
            return
        self.counts.asked += 1
        try:
            text = await self._completer.foresee(again, evaluate=0)
        except LspCompleteError as error:
            self.counts.failed += 1
            logger.info("the reference model gave no answer: %s", type(error).__name__)
            return
        except asyncio.CancelledError:
            self.counts.stopped += 1
            raise
        finally:
            held.stop_generation()
        if text:
            self.counts.kept += 1
        else:
            self.counts.nothing += 1


def apart(state: OpenDocument) -> OpenDocument:
    """A copy for another vocabulary. It keeps the anchor, which is text and follows the edits, so that successive prompts share
    their beginning; what is made of tokens goes."""
    anchor = state.anchor if state.anchor is not None and not state.anchor.small else None
    return replace(
        state, table=None, anchor=anchor, head=None, frame=EMPTY, parts=None, next_anchor=None, generation=None,
        stopped=None, lookup=None,
    )  # fmt: skip


async def _nothing(_settings: Settings, _on_state: Callable[[str, str], None]) -> Opened:
    raise AssertionError("no reference model can be opened here")


def _log(level: str, message: str) -> None:
    """What `Brain` would show: the user sees it in stats and doctor only."""
    logger.info("reference model: %s", message)


def _no_status(kind: str, message: str, busy: bool = False) -> None:
    """The editor's status belongs to the main model."""


def _note(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.info("asking the reference model failed: %s", type(task.exception()).__name__)
