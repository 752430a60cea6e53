"""The service: open documents, one answer per request, the newest request of a document wins.

Strategy: `answer` is the only way in for requests. It tries the cheap sources in order (stored suggestion, work in
flight), then asks the engine, and records the stages of whatever happened.

Rules:
- Thread: the event loop. Nothing here blocks; the engine and the parser work elsewhere.
- An overtaken request is answered at once and empty. Its engine work goes on only if the newer one joins it.
- No text of a document reaches a log or an exception message.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..config import Settings
from ..errors import EngineUnavailable, LspCompleteError
from ..index.manifest import Cache
from ..measure.stages import StageRecord
from ..measure.statistics import Statistics
from ..suggest.store import SuggestionStore
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding
from .ahead import Ahead
from .brain import Brain, Opener, Show, Status
from .completing import Attempt, Completer
from .context_join import ContextJoin, path_of
from .documents import MAX_TABLE_CHARS, DocumentSet, OpenDocument
from .idle import Idle
from .imported import Imports
from .judging import Judging
from .kept_anchors import KeptAnchors
from .likelihood import Likelihood, likelihood
from .lookups import Lookups
from .notebooks import CellFramer, Notebooks
from .outcomes import Outcomes
from .power import Thrift
from .prefetch import Prefetch
from .publish import Figures, Publisher, with_rate
from .recorder import Recorder
from .reference import Reference
from .request_log import RequestLog
from .types import Answer, Query

logger = logging.getLogger(__name__)

CANCEL_GRACE_S = 0.06
PREFILL_GRACE_S = 0.03
"""A cancelled request's work may be joined by the next key for this long, while text comes and before it does."""


class Service:
    """See the module's rules."""

    def __init__(
        self,
        settings: Settings,
        opener: Opener,
        show: Show,
        status: Status,
        clock: Callable[[], float] = time.perf_counter,
        index_cache: Callable[[], Cache | None] = lambda: None,
        reference: Opener | None = None,
    ) -> None:
        self.settings, self._clock = settings, clock
        self.recorder = Recorder(settings.record, clock)
        self.publisher: Publisher | None = None
        self.request_log = RequestLog()
        self.request_log.on = settings.log.requests
        self.brain = Brain(self.recorder.watching(opener), show, status)
        self.documents = DocumentSet()
        self.store = SuggestionStore(clock)
        self.statistics = Statistics()
        self.outcomes = Outcomes(clock, self.snapshot, lambda delay, do: asyncio.get_running_loop().call_later(delay, do))
        self.roots: list[Path] = []
        self.paused = False
        self._numbers = itertools.count(1)
        self.context = ContextJoin(self.documents, index_cache, clock)
        self.lookups = Lookups(self.documents, self.context.shareable, self.context.retrieved)
        judging = Judging(self.context.syntax.state, lambda: self.context.index)
        self.notebooks = Notebooks()
        framer = CellFramer(self.context, self.notebooks, self.documents)
        self.thrift = Thrift(clock)
        self.reference = Reference(reference, settings, self.brain, judging, clock, self.thrift.saving)
        self._completer = Completer(self.brain, self.store, clock, framer, self.lookups, judging, self.reference)
        self._ahead = Ahead(self.brain, clock, framer)
        self._anchors = KeptAnchors(self.context.cache)
        self._prefetch = Prefetch(self._completer, self.store, clock)
        imports = Imports(self.context.outline, lambda: self.context.guard, path_of, self.documents.get)
        self._idle = Idle(self.brain, self.documents, self._ahead, clock, framer, imports.places, self.context.secret, self.context.summaries)
        self._restart: asyncio.Future[None] | None = None
        self._waiting: dict[str, asyncio.Future[None]] = {}

    # -- settings and life ---------------------------------------------------------------------------

    def configure(self, settings: Settings) -> None:
        """New settings; a change that concerns the engine restarts it at the next document or request."""
        old, self.settings = self.settings, settings
        self.recorder.configure(settings.record)
        self.request_log.on = settings.log.requests
        self.reference.configure(settings)
        if _engine_part(old) != _engine_part(settings):
            self._restart = asyncio.ensure_future(self.restart_engine())
        self.context.configure(settings, self.roots)

    def set_roots(self, roots: list[Path]) -> None:
        """Workspace folders. They count from the next `configure` on: a folder's own settings may say what is not to be read."""
        self.roots = list(roots)

    def pause(self, paused: bool) -> None:
        """Answer nothing until resumed."""
        self.paused = paused

    async def restart_engine(self) -> None:
        """Let go of the engine and start again if documents are open."""
        self._prefetch.stop()
        await self.reference.stop()
        self._idle.forget()
        await self.brain.stop()
        self.documents.forget_model()
        if len(self.documents):
            self._start()

    async def close(self) -> None:
        """Stop all work and let go of the engine."""
        self._ahead.stop()
        self._prefetch.stop()
        self._idle.stop()
        for state in self.documents:
            state.stop_generation()
            if self._keeps(state.document.uri):
                self._anchors.closed(state)
        await self.context.close()
        await self.recorder.close()
        if self.publisher is not None:
            await self.publisher.close()
        await self.reference.stop()
        await self.brain.stop()

    def _start(self) -> None:
        self.brain.start(self.settings, self._on_ready)

    def _on_ready(self) -> None:
        for state in self.documents:
            if not self.context.secret(state.document.uri):
                self._ahead.opened(state, self.thrift.settings(self.settings))

    # -- documents -------------------------------------------------------------------------------------

    def open(self, document: Document) -> None:
        """A document was opened; the first one starts the engine."""
        previous = self.documents.get(document.uri)
        if previous is not None:
            previous.stop_generation()
        state = self.documents.open(document, self._clock())
        self.context.opened(document)
        if self._keeps(document.uri):
            self._anchors.recall(state)
        self._start()
        if not self.context.secret(document.uri):
            self._ahead.opened(state, self.thrift.settings(self.settings))
            self.recorder.opened(document)

    def change(self, uri: str, changes: Iterable[Change], encoding: Encoding, version: int) -> bool:
        """Apply an editor's changes. False if the document is not open (the changes are ignored)."""
        state = self.documents.get(uri)
        if state is None:
            return False
        old, anchor = state.document, state.anchor
        edits = state.change(changes, encoding, version, self._clock())
        self.context.changed(old, state.document, edits, anchor)
        self.lookups.changed(uri, old.buffer, edits)
        self._ahead.typed(state)
        self.reference.disturbed()
        self._idle.stop()
        self._prefetch.changed(state, edits)
        if self.recorder.on:
            if self.context.secret(uri):
                self.recorder.closed(uri)  # it may have become so; once it is not, it is recorded afresh
            else:
                self.recorder.changed(old, state.document, edits)
        self.outcomes.changed(state.document, edits)
        return True

    def saved(self, uri: str) -> None:
        """A document was saved."""
        self.documents.touch(uri)
        self.context.saved(uri)

    def closed(self, uri: str) -> None:
        """A document was closed; its work stops."""
        state = self.documents.close(uri)
        if state is not None:
            self._idle.stop()
            state.stop_generation()
            if self._keeps(uri):
                self._anchors.closed(state)
            self._ahead.forget(uri)
            self.reference.disturbed()
            self.context.closed(uri)
            self.lookups.forget(uri)
            self._prefetch.forget(uri)
            self.recorder.closed(uri)
            self.outcomes.closed(uri)

    def watched(self, uris: Sequence[str]) -> None:
        """Files of the workspace were written, created or deleted outside of the editor's documents."""
        self.context.watched(uris)

    def snapshot(self, uri: str) -> Document | None:
        """The current snapshot of an open document."""
        state = self.documents.get(uri)
        return state.document if state is not None else None

    def focused(self, uri: str, offset: int) -> None:
        """The user looks at this document now."""
        self.documents.touch(uri)
        self.context.touched(uri)
        self.moved(uri, offset)

    def moved(self, uri: str, offset: int) -> None:
        """The cursor was placed here without typing; its prompt may be made ready."""
        state = self.documents.get(uri)
        if state is not None and offset >= 0 and not self.context.secret(uri):
            if offset != state.cursor:
                self.reference.disturbed()
            state.cursor = offset
            self._idle.stop()
            self._ahead.moved(state, self.thrift.settings(self.settings))
            self.recorder.moved(state.document, offset)
            self.outcomes.moved(uri, offset)

    # -- requests ----------------------------------------------------------------------------------------

    async def answer(self, query: Query) -> Answer:
        """One answer to one request. Raises only CancelledError (the client cancelled)."""
        number = next(self._numbers)
        uri = query.document.uri
        started = self._clock()
        record = StageRecord(request=number, read_ms=(started - query.received) * 1000)
        overtaken = self._overtake(uri)
        self.reference.disturbed()
        if self.recorder.on and not self.context.secret(uri):
            self.recorder.asked(query, number)
        try:
            answer = await self._answer(query, record, overtaken)
        except asyncio.CancelledError:
            self._cancelled(uri, overtaken)
            self._count(query, Answer((), replace(self._finished(record, query), outcome="cancelled")))
            raise
        except LspCompleteError as error:
            outcome = "unavailable" if isinstance(error, EngineUnavailable) else "error"
            answer = Answer((), replace(record, outcome=outcome, reason=type(error).__name__))
        except Exception as error:
            logger.error("a request failed: %s", type(error).__name__, exc_info=logger.isEnabledFor(logging.DEBUG))
            answer = Answer((), replace(record, outcome="error", reason=type(error).__name__))
        finally:
            if self._waiting.get(uri) is overtaken:
                del self._waiting[uri]
        answer = replace(answer, stages=self._finished(answer.stages, query))
        self._count(query, answer)
        self.outcomes.answered(query, answer.suggestions)
        return answer

    def _count(self, query: Query, answer: Answer) -> None:
        self.statistics.add(answer.stages, self._clock())
        self.request_log.answered(answer.stages, query)
        self.recorder.answered(answer.stages.request, answer)
        if self.publisher is not None:
            self.publisher.noted()

    def figures(self) -> Figures:
        """What this server tells of itself, for the publisher."""
        model = self.brain.model.name if self.brain.model is not None else ""
        roots = tuple(map(str, self.roots))
        return Figures(
            self.statistics.frozen(), self._clock(), self.outcomes.snapshot(), len(self.documents), model, self.brain.problem, roots,
            self._token_table(), self.reference.figures(),
        )  # fmt: skip

    def _token_table(self) -> float:
        """Share of the tokens asked for that the tables had, 0–1."""
        model = self.brain.model
        return model.spans.stats().reused if model is not None else 0.0

    def _overtake(self, uri: str) -> asyncio.Future[None]:
        """Answer the document's older request now; returns the future that a newer one will resolve."""
        older = self._waiting.get(uri)
        if older is not None and not older.done():
            older.set_result(None)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[uri] = future
        return future

    async def _answer(self, query: Query, record: StageRecord, overtaken: asyncio.Future[None]) -> Answer:
        state = self.documents.get(query.document.uri)
        if state is None or query.document.buffer.length > MAX_TABLE_CHARS:
            return Answer((), replace(record, outcome="disabled", reason="not_open" if state is None else "too_long"))
        record = replace(record, scenario=self._scenario(state, query))
        state.requests += 1
        state.cursor = query.offset
        exact = self.context.syntax.exact(query.document.uri)
        if exact is not None:
            self.statistics.tree(exact)
        if self.paused or not self._enabled(query.document.language_id):
            return Answer((), replace(record, outcome="disabled", reason="setting"))
        if self.context.secret(query.document.uri):
            return Answer((), replace(record, outcome="disabled", reason="secret"))
        attempt = Attempt(query, state, self.settings, record, overtaken)
        self._prefetch.asked(attempt)
        stored = self._completer.from_store(attempt)
        if stored is not None:
            state.stop_generation()
            self._look_ahead(attempt, stored)
            return stored
        if self._prefetch.nothing(attempt):
            attempt.note(source="prefetched")
            return attempt.empty("empty", "foreseen")
        known = self._completer.from_held(attempt)
        if known is not None:
            self._look_ahead(attempt, known)
            return known
        if not self.brain.ready:
            self._start()
            began = self._clock()
            await self.brain.soon(overtaken, self.settings.suggest.time_limit_ms / 1000)
            attempt.spent(queue_ms=(self._clock() - began) * 1000)
            if overtaken.done():
                return attempt.empty("superseded")
            if not self.brain.ready:
                return Answer((), replace(attempt.record, outcome="unavailable", reason=self.brain.problem or "starting"))
        began = self._clock()
        agrees = self._completer.expected(attempt)
        await self._ahead.full_prompt(state, query, self.settings, overtaken, agrees=agrees)
        attempt.spent(queue_ms=(self._clock() - began) * 1000)
        if overtaken.done():
            return attempt.empty("superseded")
        answer = await self._completer.complete(attempt)
        if not overtaken.done():
            self._look_ahead(attempt, answer)
            asyncio.get_running_loop().call_soon(self._behind, state)
        return answer

    async def likelihood(self, query: Query, text: str) -> Likelihood | None:
        """How likely the model finds a text at a place, by the full prompt there; None where no suggestion would be made. Raises what the
        engine raises."""
        uri, brain = query.document.uri, self.brain
        state = self.documents.get(uri)
        if state is None or self.context.secret(uri) or query.document.buffer.length > MAX_TABLE_CHARS or not brain.ready:
            return None
        assert brain.engine is not None and brain.model is not None
        planned = self._completer.planned(query, state, self.settings)
        return await likelihood(brain.engine, brain.model, planned, uri, text)

    def _look_ahead(self, attempt: Attempt, answer: Answer) -> None:
        """Begin what is done behind an answer, as far as settings and battery allow."""
        settings = self.thrift.settings(self.settings)
        self._ahead.answered(attempt.state, attempt.query, answer, settings)
        self._prefetch.answered(attempt, answer, settings)
        if self.reference.on:
            self.reference.answered(attempt)
        self._idle.answered(attempt.state, settings)

    def _keeps(self, uri: str) -> bool:
        """Whether the engine keeps this document's prompts on disk."""
        return self.settings.engine.disk_cache_mb > 0 and not self.context.secret(uri)

    def _behind(self, state: OpenDocument) -> None:
        """Once the answer is on its way: what the next key finds ready, and what a restart does."""
        if self.brain.model is not None and self.settings.engine.speculation:
            self.lookups.renew(state, self.brain.model)
        if self._keeps(state.document.uri):
            self._anchors.keep(state)

    def _cancelled(self, uri: str, overtaken: asyncio.Future[None]) -> None:
        """The client cancelled: stop the work unless the next key's request joins it within a moment."""
        state = self.documents.get(uri)
        if state is None or state.generation is None or overtaken.done():
            return
        generation = state.generation
        if not generation.running:
            state.stop_generation()
            return

        def unless_joined() -> None:
            if state.generation is generation and uri not in self._waiting:
                state.stop_generation()

        grace = CANCEL_GRACE_S if generation.partial else PREFILL_GRACE_S
        asyncio.get_running_loop().call_later(grace, unless_joined)

    def _scenario(self, state: OpenDocument, query: Query) -> str:
        if query.trigger == "explicit":
            return "explicit"
        if state.accepted_at >= 0 and state.accepted_at >= state.changed_at - 0.5:
            return "after_accept"
        return "new_file" if state.requests == 0 else "editing"

    def _enabled(self, language_id: str) -> bool:
        languages = self.settings.languages
        return languages.get(language_id, languages.get("*", True))

    def _since(self, query: Query) -> float:
        return (self._clock() - query.received) * 1000

    def _finished(self, stages: StageRecord, query: Query) -> StageRecord:
        total = self._since(query)
        parts = (
            stages.read_ms + stages.syntax_ms + stages.context_ms + stages.tokenize_ms + stages.queue_ms
            + stages.prefill_ms + stages.decode_ms + stages.post_ms
        )  # fmt: skip
        return replace(stages, total_ms=total, transfer_ms=max(0.0, total - parts))

    # -- what became of suggestions ------------------------------------------------------------------------

    def accepted(self, suggestion_id: str) -> None:
        """The user accepted a suggestion."""
        uri = self.outcomes.accepted(suggestion_id)
        self.recorder.became(suggestion_id, "accepted")
        state = self.documents.get(uri) if uri else None
        if state is not None:
            state.accepted_at = self._clock()

    def shown(self, suggestion_id: str) -> None:
        """The editor showed a suggestion."""
        self.outcomes.shown(suggestion_id)
        self.recorder.became(suggestion_id, "shown")

    def partially_accepted(self, suggestion_id: str, length: int) -> None:
        """The user accepted the first `length` UTF-16 units of a suggestion."""
        self.outcomes.partially_accepted(suggestion_id, length)
        self.recorder.became(suggestion_id, "partly", length)

    async def stats(self) -> dict[str, object]:
        """Statistics of this server and of its engine; plain JSON values."""
        engine: dict[str, object] = {}
        if self.brain.engine is not None:
            try:
                engine = await asyncio.wait_for(self.brain.engine.stats(), 2.0)
            except (LspCompleteError, asyncio.TimeoutError) as error:
                engine = {"problem": str(error) or type(error).__name__}
        return {
            "server": with_rate(self.statistics.snapshot(self._clock()), "token_table", self._token_table()),
            "outcomes": self.outcomes.snapshot(),
            "documents": len(self.documents),
            "engine": engine,
            "problem": self.brain.problem,
            **({"reference": self.reference.figures()} if self.reference.on else {}),
        }


def _engine_part(settings: Settings) -> tuple[object, ...]:
    """The settings that an engine is started with."""
    return settings.model, settings.draft_model, settings.reference_model, settings.engine, settings.model_dir
