"""One request from snapshot to answer: stored suggestion, joined work, or the model; then polishing.

Strategy: an `Attempt` carries what belongs to the request; each step is a function of it. What a step costs is
noted in the stage record on the way.

Rules:
- Thread: the event loop. The only waiting is for the engine.
- The document window looked at is bounded, whatever the size of the file or of one line.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..config import Settings
from ..context.anchor import Window, why_moved
from ..engine.api import Candidate, Completion, CompletionRequest, Priority, StopRules
from ..errors import PromptCold
from ..measure.stages import StageRecord
from ..suggest import pace
from ..suggest.choose import Choice, Policy, choose, habits_of
from ..suggest.confidence import Scored, level_of
from ..suggest.filters.worth import not_worth
from ..suggest.how_much import Amount, decide, situation
from ..suggest.language import facts_for
from ..suggest.pipeline import PolishContext
from ..suggest.store import Entry, SuggestionStore
from ..suggest.typed import typed_since
from .brain import Brain
from .documents import OpenDocument
from .generation import Generation
from .held import Held
from .judging import Judging
from .lookups import Lookups
from .planning import Framer, LoadedModel, Planned, plan
from .selected import as_meant
from .small import small_room, small_window
from .surroundings import Surroundings, look_around
from .types import Answer, Considered, Query, Suggestion
from .windows import SMALL, PrefillRate, window_for

MIN_EVALUATE = 48
"""A prompt that needs no more tokens than this evaluated is never called cold."""
AHEAD_EVALUATE = 160
"""A prompt for a place that may come is worth so many tokens of evaluation."""
BEYOND_LINES = 3
"""The rest of the line, a blank line, a line."""
HOPELESS = -6.0
"""A line whose summed log-probability is below this (1 in 400) is not decoded further, whatever the level."""
_LAST_WORD = re.compile(rb"[\w\x80-\xff]+\Z")
JOIN_CHARS = 200
"""Most characters typed since a generation began that a later request may still join."""


@dataclass(slots=True)
class Attempt:
    """One request on its way. `record` grows. virtual: document and cursor with the popup's selected item in
    place (the real ones without one); around: the text around that cursor. ahead_ms: above 0 for a place that may come: asked
    at lower priority, within so many milliseconds, and what comes goes into the store only. background: it is asked of the
    reference model. flat: what is shown consists of habits, as far as that was looked at."""

    query: Query
    state: OpenDocument
    settings: Settings
    record: StageRecord
    overtaken: asyncio.Future[None]
    ahead_ms: float = 0.0
    background: bool = False
    flat: bool = field(default=False, init=False)
    around: Surroundings = field(init=False)
    virtual: tuple[OpenDocument, Query] = field(init=False)
    considered: Considered | None = None

    def __post_init__(self) -> None:
        self.virtual = as_meant(self.state, self.query)
        self.around = look_around(self.virtual[1].document, self.virtual[1].offset)

    def note(self, **values: object) -> None:
        """Add to the stage record."""
        self.record = replace(self.record, **values)  # type: ignore[arg-type]  # names are the record's own

    def spent(self, **ms: float) -> None:
        """Add times to the stage record's: a stage may come about twice in one request."""
        self.record = replace(self.record, **{name: getattr(self.record, name) + value for name, value in ms.items()})

    def empty(self, outcome: str, reason: str = "") -> Answer:
        """An answer without suggestions."""
        return Answer((), replace(self.record, outcome=outcome, reason=reason), self.considered)


class Better(Protocol):
    """What a reference model said (`service.reference`)."""

    @property
    def on(self) -> bool:
        """One is configured."""
        ...

    def text_for(self, attempt: Attempt) -> str:
        """Its latest suggestion that still holds at the attempt's cursor; "" without one."""
        ...

    def offered(self) -> None:
        """Such a text is shown."""
        ...


class Completer:
    """See the module's rules."""

    def __init__(
        self,
        brain: Brain,
        store: SuggestionStore,
        clock: Callable[[], float],
        framer: Framer | None = None,
        lookups: Lookups | None = None,
        judging: Judging | None = None,
        better: Better | None = None,
    ) -> None:
        self._brain, self._store, self._clock, self._framer = brain, store, clock, framer
        self._lookups, self._judging, self._better = lookups, judging, better
        self._ids = itertools.count(1)
        self._rate = PrefillRate()
        self._pace = pace.Pace()

    # -- without the model -------------------------------------------------------------------------------

    def from_store(self, attempt: Attempt) -> Answer | None:
        """An earlier suggestion that still begins with what was typed."""
        query = attempt.query
        if query.trigger != "explicit":
            self._pace = pace.key(self._pace, query.received * 1000)
        if not attempt.settings.suggest.typed_through or query.candidates > 1 or query.selected:
            return None
        began = self._clock()
        hit = self._store.lookup(query.document.uri, attempt.around.before, attempt.around.after)
        if hit is None or (query.trigger == "explicit" and not hit.typed):
            return None
        if not hit.judged and not_worth(hit.text, attempt.settings.suggest.min_chars, attempt.around.before.rpartition("\n")[2]):
            return None
        if (query.menu or query.single_line) and hit.text[:1] in ("\n", "\r"):
            return None  # a menu's item has one line to show itself in
        suggestion = Suggestion(self._id(), hit.text, query.offset, query.offset)
        source = "typed_through" if hit.typed else "store"
        source = "prefetched" if hit.origin == "prefetch" and hit.fresh else source
        attempt.note(source=source, outcome="shown", post_ms=(self._clock() - began) * 1000)
        return Answer((suggestion,), attempt.record)

    def from_held(self, attempt: Attempt) -> Answer | None:
        """The last answer was held back and the typing agrees with it: what the model would say now is known."""
        query, state, around, suggest = attempt.query, attempt.state, attempt.around, attempt.settings.suggest
        held, running = state.held, state.generation is not None and state.generation.running
        if held is None or running or not suggest.typed_through or query.trigger == "explicit" or query.candidates > 1 or query.selected:
            return None
        began = self._clock()
        left = held.left(around.before, around.after, began)
        amount = self._amount(attempt) if left is not None else None
        if left is None or amount is None or not amount.request or amount.mode != held.mode:
            return None
        choice = choose(*scored([left]), self._polish_context(attempt, held), self._policy(attempt))[0]
        if choice.reason != "unsure" and (left.stop == "unsure" or not choice.text):
            return None
        attempt.note(source="typed_through", post_ms=(self._clock() - began) * 1000)
        if not choice.text:
            return attempt.empty("held_back", choice.reason)
        self._remember(attempt, held, choice, current=True)
        attempt.note(outcome="shown")
        return Answer((Suggestion(self._id(), choice.text, query.offset, query.offset, choice.mean),), attempt.record)

    def expected(self, attempt: Attempt) -> bool:
        """Whether an earlier suggestion still agrees with the text, so that the model will be verifying rather than writing."""
        hit = self._store.lookup(attempt.query.document.uri, attempt.around.before, attempt.around.after)
        return hit is not None and bool(hit.text.strip())

    # -- with the model ----------------------------------------------------------------------------------

    async def complete(self, attempt: Attempt) -> Answer:
        """Ask the engine, or join work in flight that agrees with the typing."""
        began = self._clock()
        amount = self._amount(attempt)
        attempt.spent(syntax_ms=(self._clock() - began) * 1000)
        if not amount.request:
            return attempt.empty("held_back", amount.reason)
        joined, typed = self._join(attempt)
        if joined is not None:
            answer = await self._joined(attempt, joined, typed)
            if answer is not None:
                return answer
            attempt.note(source="none")
        attempt.state.stop_generation()
        debounce = max(attempt.settings.suggest.debounce_ms, pace.delay_ms(self._pace))
        if debounce and attempt.query.trigger != "explicit":
            await asyncio.wait({attempt.overtaken}, timeout=debounce / 1000)
            if attempt.overtaken.done():
                return attempt.empty("superseded")
            attempt.spent(queue_ms=debounce)
        if self._framer is not None:
            began = self._clock()
            await self._framer.ready(attempt.state)
            attempt.spent(syntax_ms=(self._clock() - began) * 1000)
            if attempt.overtaken.done():
                return attempt.empty("superseded")
        planned = self._plan(attempt, small=False)
        generation = self._ask(attempt, amount, planned, self._evaluate_limit(attempt, planned))
        began = self._clock()
        try:
            return await self._finish(attempt, generation, "", began)
        except PromptCold:
            if attempt.overtaken.done():
                return attempt.empty("superseded")
            attempt.spent(queue_ms=(self._clock() - began) * 1000)
        planned = self._plan(attempt, small=True)
        generation = self._ask(attempt, amount, planned, 0)
        return await self._finish(attempt, generation, "", self._clock())

    async def foresee(self, attempt: Attempt, evaluate: int = AHEAD_EVALUATE) -> str | None:
        """The suggestion for a place that may come, kept in the store; "" if there is none, None if time was too short to tell. At the end
        of a line it may begin with a line end. evaluate: prompt tokens that it is worth, 0 for any number. Raises PromptCold where it
        would take more, and what the engine raises."""
        uri, around = attempt.query.document.uri, attempt.around
        known = self._store.lookup(uri, around.before, around.after, look_only=True)
        if known is not None:
            return known.text
        amount = self._amount(attempt) if attempt.background else beyond(self._amount(attempt), attempt)
        if not amount.request:
            return ""
        planned = self._plan(attempt, small=False)
        generation = self._ask(attempt, amount, planned, evaluate)
        answer = await self._finish(attempt, generation, "", self._clock())
        if answer.suggestions:
            return answer.suggestions[0].text
        whole = answer.stages.outcome != "superseded" and generation.task.result().candidates[0].stop != "time"
        return "" if whole else None

    def planned(self, query: Query, state: OpenDocument, settings: Settings) -> Planned:
        """The prompt that a request at this place would have."""
        nobody: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        return self._plan(Attempt(query, state, settings, StageRecord(request=0), nobody), small=False)

    async def _joined(self, attempt: Attempt, generation: Generation, typed: str) -> Answer | None:
        """The answer from work in flight; None once it contradicts the typing, or ends without an answer for it."""
        began = self._clock()
        while not generation.task.done():
            news = asyncio.ensure_future(generation.changed.wait())
            waited: set[asyncio.Future[Any]] = {generation.task, attempt.overtaken, news}
            try:
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if attempt.overtaken.done():
                return attempt.empty("superseded")
            if generation.contradicts(typed):
                attempt.spent(queue_ms=(self._clock() - began) * 1000)
                return None
        if generation.task.cancelled() or generation.task.exception() is not None:
            attempt.spent(queue_ms=(self._clock() - began) * 1000)
            return None
        answer = await self._finish(attempt, generation, typed, began)
        return None if answer.stages.reason == "typed_otherwise" else answer

    def _evaluate_limit(self, attempt: Attempt, planned: Planned) -> int:
        """Prompt tokens that can be evaluated within the deadline for a cold place; 0 is no limit."""
        deadline = attempt.settings.first_deadline_ms
        if not deadline or planned.anchor.standard or planned.anchor.small:
            return 0
        return max(MIN_EVALUATE, int(self._rate.tokens_per_s * deadline / 1000))

    def _amount(self, attempt: Attempt) -> Amount:
        query, suggest, around = attempt.query, attempt.settings.suggest, attempt.around
        amount = decide(
            situation(
                query.document.language_id,
                around.before,
                around.after,
                query.trigger,
                multiline="never" if query.single_line else suggest.multiline,
                max_lines=suggest.max_lines,
                in_strings=suggest.in_strings,
                in_comments=suggest.in_comments,
                indent=around.indent.columns,
                tab_width=around.indent.tab_width,
            )
        )
        limit = suggest.max_tokens if amount.mode == "line" else suggest.max_tokens * 2
        return replace(amount, max_tokens=min(amount.max_tokens, limit))

    def _join(self, attempt: Attempt) -> tuple[Generation | None, str]:
        """Work in flight that does not contradict what was typed since it began, and that typing. Who asks explicitly gets an answer of
        their own: what was asked for automatically is one line, mostly, and given up where the model is unsure."""
        generation = attempt.state.generation
        if generation is not None and attempt.query.trigger == "explicit" and not generation.explicit:
            return None, ""
        if generation is None or attempt.query.candidates > 1 or attempt.query.selected or not generation.running:
            return None, ""
        typed = typed_since(generation.before, attempt.around.before, JOIN_CHARS)
        if typed is None or generation.contradicts(typed) or attempt.around.after != generation.after:
            return None, ""
        attempt.note(source="joined")
        return generation, typed

    def _ask(self, attempt: Attempt, amount: Amount, planned: Planned, limit: int) -> Generation:
        model, engine = self._brain.model, self._brain.engine
        assert model is not None and engine is not None
        query, state = attempt.query, attempt.state
        speculate = attempt.settings.engine.speculation and query.candidates == 1
        lookup, lookup_key = self._lookups.attach(state, engine) if self._lookups and speculate else ((), "")
        request = CompletionRequest(
            prompt=planned.prompt.prompt,
            forced=planned.prompt.forced,
            key=query.document.uri + ("#small" if planned.anchor.small else ""),
            max_tokens=amount.max_tokens + (len(planned.prompt.forced) + 3) // 4,
            time_limit_ms=attempt.ahead_ms or attempt.settings.suggest.time_limit_ms,
            priority=_priority(attempt),
            stop=StopRules(
                mode=amount.mode,
                base_indent=amount.base_indent,
                tab_width=attempt.around.indent.tab_width,
                suffix_head=amount.suffix_head,
                max_lines=amount.max_lines,
                min_sum=self._min_sum(attempt),
                no_blank=attempt.around.on_blank_line,
            ),
            candidates=query.candidates,
            lookup=lookup,
            lookup_key=lookup_key,
            drafts=self._drafts(attempt, planned.prompt.forced, model),
            evaluate_limit=limit,
        )
        frozen = planned.anchor.suffix
        if planned.anchor.at_cursor and frozen:
            frozen = frozen[len(attempt.around.rest) :]
        generation = Generation(
            request,
            query.offset,
            attempt.around.before,
            attempt.around.after,
            amount.mode,
            base_indent=amount.base_indent,
            frozen_suffix=frozen,
            explicit=query.trigger == "explicit",
        )
        generation.begin(engine)
        state.generation = generation
        attempt.note(source="model", prompt_tokens=len(request.prompt), reuse_break=planned.differs)
        return generation

    def _min_sum(self, attempt: Attempt) -> float:
        """Below which summed log-probability decoding a first line is pointless: it would not be shown, or hardly be
        right. An explicit request is always answered in full."""
        if attempt.query.trigger == "explicit" or attempt.query.candidates > 1:
            return 0.0
        floor = level_of(attempt.settings.suggest.level).sum
        return HOPELESS if floor is None else max(floor, HOPELESS)

    def _drafts(self, attempt: Attempt, forced: bytes, model: LoadedModel) -> tuple[tuple[int, ...], ...]:
        """What the model is expected to say, for verification in one batch: what is left of an earlier suggestion, or
        of the text that had come when the last key stopped it."""
        uri, around = attempt.query.document.uri, attempt.around
        hit = self._store.lookup(uri, around.before, around.after, look_only=bool(attempt.ahead_ms))
        text = hit.text if hit is not None else ""
        stopped = attempt.state.stopped
        if not text and stopped is not None:
            typed = typed_since(stopped.before, around.before, JOIN_CHARS)
            so_far = bytes(stopped.partial).decode("utf-8", "ignore")
            if typed is not None and so_far.startswith(typed):
                text = so_far[len(typed) :]
        if not text.strip():
            return ()
        text = text.rstrip(" \t") + attempt.query.document.newline  # the stop is verified in the same batch
        try:
            return (tuple(model.spans.ids(forced.decode() + text)),)
        except UnicodeDecodeError:
            return ()

    def _plan(self, attempt: Attempt, *, small: bool) -> Planned:
        """The prompt for this cursor; small: the near-cursor one that answers first in a cold place, and on while its
        anchor stands and no full prompt is ready."""
        model = self._brain.model
        assert model is not None
        began = self._clock()
        state, query = attempt.virtual
        if small:
            state.anchor = state.head = None
        elif state.anchor is not None and state.anchor.small:
            small = not why_moved(state.anchor, state.document.buffer, query.offset, SMALL)
        window = self._small(attempt, model) if small else window_for(model, attempt.settings)
        planned = plan(state, query.offset, model, window, None if attempt.ahead_ms else self._framer)
        total = self._clock() - began
        attempt.spent(context_ms=(total - planned.tokenize_s) * 1000, tokenize_ms=planned.tokenize_s * 1000)
        return planned

    def _small(self, attempt: Attempt, model: LoadedModel) -> Window:
        """The window of the small prompt: the standing one's, or as much as the deadline allows."""
        state, query = attempt.virtual
        if state.anchor is not None:
            return SMALL
        return small_window(state, query.offset, model, small_room(self._rate.tokens_per_s, attempt.settings.first_deadline_ms))

    async def _finish(self, attempt: Attempt, generation: Generation, typed: str, began: float) -> Answer:
        """began: when this request began to wait for the generation."""
        waited: set[asyncio.Future[Any]] = {generation.task, attempt.overtaken}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if attempt.overtaken.done() or generation.task.cancelled():
            return attempt.empty("superseded")
        completion = generation.task.result()
        if attempt.state.generation is generation:
            attempt.state.generation = None
        self._note_engine(attempt, completion, (self._clock() - began) * 1000)
        if self._lookups is not None:
            self._lookups.answered(generation.request, completion.timing.decoded)
        post = self._clock()
        suggestions, reason = self._polished(attempt, generation, completion, typed)
        attempt.state.held = self._held(attempt, generation, completion) if reason == "unsure" and not suggestions else None
        attempt.spent(post_ms=(self._clock() - post) * 1000)
        if not suggestions:
            return attempt.empty("empty" if reason in ("", "empty") else "held_back", reason)
        attempt.note(outcome="shown")
        return Answer(suggestions, attempt.record, attempt.considered)

    def _held(self, attempt: Attempt, generation: Generation, completion: Completion) -> Held | None:
        """An answer that was held back, unless it came from the small prompt or its time was over."""
        first, anchor = completion.candidates[0], attempt.virtual[0].anchor
        if attempt.query.selected or first.stop == "time" or anchor is None or anchor.small:
            return None
        return Held(
            generation.before, generation.after, first, generation.mode, generation.base_indent, generation.frozen_suffix, self._clock()
        )

    def _note_engine(self, attempt: Attempt, completion: Completion, waited_ms: float) -> None:
        """The engine's stage times; for a joined request only what it waited for."""
        t = completion.timing
        self._rate = self._rate.learned(t.evaluated, t.prefill_ms)
        if not attempt.ahead_ms:
            self._pace = pace.answered(self._pace, waited_ms)
        share = min(1.0, waited_ms / t.total_ms) if t.total_ms > 0 else 1.0
        attempt.spent(queue_ms=t.queue_ms * share, prefill_ms=t.prefill_ms * share, decode_ms=t.decode_ms * share)
        attempt.note(
            reused=t.reused,
            evaluated=t.evaluated,
            restored=t.restored,
            decoded=t.decoded,
            drafted=t.drafted,
            accepted=t.accepted,
        )

    def _polished(
        self, attempt: Attempt, generation: Generation, completion: Completion, typed: str
    ) -> tuple[tuple[Suggestion, ...], str]:
        """Suggestions worth showing, best first, and the reason if there are none. All that may hold later is kept."""
        query, candidates = attempt.query, completion.candidates
        attempt.considered = Considered(
            candidates, typed, generation.mode, generation.base_indent, generation.frozen_suffix
        )
        place, better = self._polish_context(attempt, generation), self._better
        reference = better.text_for(attempt) if better is not None and better.on else ""
        choices = choose(*scored(candidates), place, self._policy(attempt), reference, typed)
        if better is not None and better.on and choices[0].text and not attempt.ahead_ms:
            if choices[0].index < 0:
                better.offered()
            attempt.flat = habits_of([choices[0].text], place)[0].flat
        suggestions: list[Suggestion] = []
        for choice in choices:
            if not query.selected and choice.may_hold_later:
                self._remember(attempt, generation, choice, current=bool(choice.text) and not suggestions)
            if choice.text:
                start = query.selected_start if query.selected else query.offset
                text = query.selected + choice.text if query.selected else choice.text
                suggestions.append(Suggestion(self._id(), text, start, query.offset, choice.mean))
        return tuple(suggestions), choices[0].reason

    def _policy(self, attempt: Attempt) -> Policy:
        """How to choose here. Whether names exist is asked only where somebody waits for the answer."""
        level = attempt.settings.suggest.level
        if self._judging is None or (attempt.ahead_ms and not attempt.background):
            return Policy(level=level)
        document = attempt.virtual[1].document
        return Policy(level=level, known=self._judging.known(document, attempt.around))

    def _polish_context(self, attempt: Attempt, generation: Generation | Held) -> PolishContext:
        around, document, suggest = attempt.around, attempt.query.document, attempt.settings.suggest
        judged = (not attempt.ahead_ms or attempt.background) and not attempt.query.selected
        return PolishContext(
            document.language_id,
            around.before,
            around.after,
            newline=document.newline,
            indent=around.indent,
            mode=generation.mode,
            base_indent=generation.base_indent,
            explicit=attempt.query.trigger == "explicit",
            min_chars=suggest.min_chars,
            in_strings=suggest.in_strings,
            in_comments=suggest.in_comments,
            frozen_suffix=generation.frozen_suffix,
            parses_ok=self._judging.parses_ok(document, attempt.query.offset) if judged and self._judging else None,
        )

    def _remember(self, attempt: Attempt, generation: Generation | Held, choice: Choice, *, current: bool) -> None:
        """Into the store; a text that has nothing to show now may have something once a closer is typed over."""
        document = attempt.query.document
        entry = Entry(
            document.uri,
            attempt.around.before,
            attempt.around.after,
            choice.text,
            choice.full,
            facts=facts_for(document.language_id),
            frozen_suffix=generation.frozen_suffix,
            newline=document.newline,
            tab_width=attempt.around.indent.tab_width,
            origin="prefetch" if attempt.ahead_ms else "model",
        )
        self._store.add(entry, current and not attempt.ahead_ms)

    def _id(self) -> str:
        return f"s{next(self._ids)}"


def _priority(attempt: Attempt) -> Priority:
    if attempt.background:
        return Priority.BACKGROUND
    return Priority.PREFETCH if attempt.ahead_ms else Priority.INTERACTIVE


def scored(candidates: Sequence[Candidate]) -> tuple[list[Scored], list[str]]:
    """The candidates and their stops as `suggest.choose` wants them. Pure."""
    texts = [Scored(_whole_words(c), c.logprobs, c.masses, c.offsets) for c in candidates]
    return texts, ["tokens" if c.stop == "unsure" else c.stop for c in candidates]


def beyond(amount: Amount, attempt: Attempt) -> Amount:
    """At the end of a line that has text: what comes next, be it on the next line or the one after a blank one."""
    line = attempt.around.before.rpartition("\n")[2]
    allowed = attempt.settings.suggest.multiline != "never" and not attempt.query.single_line and not attempt.query.menu
    if amount.mode != "line" or not allowed or not line.strip() or attempt.around.rest.strip():
        return amount
    return replace(amount, max_lines=BEYOND_LINES)


def _whole_words(candidate: Candidate) -> bytes:
    """The text; one that was given up in the middle, or whose time was over, ends before its last, perhaps half, word."""
    if candidate.stop not in ("unsure", "time"):
        return candidate.text
    return _LAST_WORD.sub(b"", candidate.text) or candidate.text
