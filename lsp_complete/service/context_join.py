"""Joins index, syntax and context to the service: what stands around the window when an anchor is chosen.

Strategy: the syntax worker follows the open documents, the index worker the workspace; a frame is gathered from both when a new
prompt head is built anyway, and kept until then. Between anchor moves only one thing makes a frame anew: an edit outside the window
that changed what the frame says (a signature at the top of the file that the cursor's code calls).

Rules:
- Event loop, but for the workers' own threads. A frame costs some ten milliseconds, and is made at anchor moves or idle only.
- No text of a secret file is held, parsed, indexed or framed. Text of an ignored file, or of one outside the workspace, stays in its own prompts.
- While the user types the index worker stands still.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse
from urllib.request import url2pathname

from ..config import Settings
from ..context.anchor import Anchor
from ..context.budget import Choice, fit, header_tokens
from ..context.edits import EditLog
from ..context.extras import edit_chunks, outline_chunk, rules_chunk
from ..context.header import EMPTY, Frame, make_frame, opening_text
from ..context.layout import Placed, arrange
from ..context.modules import module_parts
from ..context.resolve import Place
from ..context.symbol import Chunk
from ..context.tiers import gather
from ..index.index import SymbolIndex
from ..index.manifest import Cache, NoCache
from ..index.symbols import imported_module, symbols_of
from ..index.walk import Guard, Rules
from ..index.worker import IndexWorker
from ..syntax.nodes import Outline
from ..syntax.worker import SyntaxState, SyntaxWorker
from ..text.document import Document
from ..text.edits import Edit
from .documents import DocumentSet, OpenDocument
from .places import IndexLookups, Own, own_of, place_at, shown_path
from .planning import LoadedModel
from .recall import OutlineMemory
from .summaries import Summaries

logger = logging.getLogger(__name__)

RESUME_S = 0.4
"""The index goes on this long after the last key."""
READY_S = 0.15
"""Longest wait for the first parse of a document, or for the one behind an edit elsewhere in it."""
TOUCHED = 3.0
"""Weight from which a chunk is what the cursor touches."""
RECENT_FILES = 3
RULE_FILES = ("AGENTS.md", "CONTRIBUTING.md", "CLAUDE.md", ".cursorrules")
OWN_SHARE = 0.5
"""Most of the budget for what of the open file the window does not show."""

Progress = Callable[[int, int, int], None]
"""Which worker (a number of its own), files done, files in all."""


def path_of(uri: str) -> str:
    """The path of a file URI; "" for any other, and for what is no URI or names no file."""
    try:
        parsed = urlparse(uri)
    except ValueError:
        return ""
    path = url2pathname(unquote(parsed.path)) if parsed.scheme == "file" else ""
    return "" if "\0" in path else path


@dataclass(slots=True)
class _Followed:
    """What is kept of an open document. dirty: its symbols in the index are older than its text. apart: an edit lay outside the
    window that its frame was made for. own: of the outline and buffer it was made from. uncut: whole texts of what its frame shows
    shortened."""

    path: str
    readable: bool
    dirty: bool = False
    apart: bool = False
    parsed: asyncio.Event | None = None
    own: Own = field(default_factory=Own)
    own_of: object = None
    layout: tuple[Placed, ...] = ()
    unsaved: bool = False
    kept_of: object = None
    uncut: tuple[str, ...] = ()


class ContextJoin:
    """See the module's rules. cache: for the index (None: nothing is kept). progress: called from the index thread."""

    def __init__(
        self,
        documents: DocumentSet,
        cache: Callable[[], Cache | None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._documents, self._make_cache, self._clock = documents, cache, clock
        self._cache: Cache | None = None
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self.guard = Guard(())
        self.index = SymbolIndex()
        self.outlines = OutlineMemory()
        self.worker: IndexWorker | None = None
        self.syntax = SyntaxWorker(self._parsed)
        self.progress: Progress = lambda _work, _done, _total: None
        self._works = 0
        self._edits = EditLog()
        self._followed: dict[str, _Followed] = {}
        self._order: list[str] = []
        self._rules: tuple[str, str] = ("", "")
        self._resume: asyncio.TimerHandle | None = None
        self.summaries = Summaries()
        self.problems = 0

    # -- life -----------------------------------------------------------------------------------------

    def configure(self, settings: Settings, roots: Sequence[Path]) -> None:
        """Settings and workspace folders in force. Starts, restarts or stops the index where they differ."""
        old = (self._settings.index, self._settings.context.cross_file, self._roots)
        self._settings, self._roots = settings, tuple(roots)
        if old == (settings.index, settings.context.cross_file, self._roots) and self.worker is not None:
            return
        self._stop_index()
        index = settings.index
        self.guard = Guard(self._roots, Rules(index.exclude, index.secrets, index.max_file_kb << 10, index.max_files))
        for uri, followed in list(self._followed.items()):
            followed.readable = self.guard.readable(followed.path)
            if self.guard.secret(followed.path):
                self._forget(uri)
        self._rules = ("", "")
        if index.enabled and settings.context.cross_file and self._roots:
            self.index = SymbolIndex()
            self._cache = self._cache or self._make_cache()
            self.outlines.use(self._cache)
            self.summaries.cache = self._cache or self.summaries.cache
            self._works = work = self._works + 1
            self.worker = IndexWorker(
                self.index, self.guard, self._cache, lambda done, total: self.progress(work, done, total)
            )
            self._rules = self._read_rules()
            self.worker.scan()

    def cache(self) -> Cache:
        """What is kept on disk between runs; opened when it is first asked for."""
        self._cache = self._cache or self._make_cache()
        return self._cache or NoCache()

    def _read_rules(self) -> tuple[str, str]:
        for root in self._roots:
            for name in RULE_FILES:
                path = root / name
                try:
                    if path.is_file() and self.guard.readable(str(path)) and path.stat().st_size < 1 << 18:
                        return name, path.read_text("utf-8", "replace")[:8_000]
                except OSError:
                    continue
        return "", ""

    def _stop_index(self) -> None:
        worker, self.worker = self.worker, None
        self.index = SymbolIndex()
        if worker is not None:
            threading.Thread(target=worker.close, name="index-end", daemon=True).start()  # it ends after the file at hand

    async def close(self) -> None:
        """Stop all threads."""
        if self._resume is not None:
            self._resume.cancel()
        worker, self.worker = self.worker, None
        if worker is not None:
            await asyncio.to_thread(worker.close)
        await self.syntax.close()
        close = getattr(self._cache, "close", None)
        if close is not None:
            close()

    # -- documents ------------------------------------------------------------------------------------

    def secret(self, uri: str) -> bool:
        """Whether nothing may be done with a document's text."""
        path = path_of(uri)
        return bool(path) and self.guard.secret(path)

    def shareable(self, uri: str) -> bool:
        """Whether a document's text may stand in the prompts of others."""
        followed = self._followed.get(uri)
        return followed is not None and followed.readable

    def retrieved(self, uri: str) -> Sequence[str]:
        """Whole texts of the code of other files that a document's prompt shows shortened."""
        followed = self._followed.get(uri)
        return followed.uncut if followed is not None else ()

    def outline(self, uri: str) -> Outline | None:
        """The outline of an open document as far as it is known."""
        syntax = self.syntax.state(uri)
        return syntax.outline if syntax is not None else None

    def opened(self, document: Document) -> None:
        """Follow a document from now on, unless it is secret."""
        if self.secret(document.uri):
            return
        path = path_of(document.uri)
        self._followed[document.uri] = _Followed(path, bool(path) and self.guard.readable(path))
        self.touched(document.uri)
        recall = None
        if self._followed[document.uri].readable and self._wanted():
            recall = partial(self.outlines.recall, path, document.buffer)
        self.syntax.open(document, recall)

    def touched(self, uri: str) -> None:
        """The user looks at this document, or types in it."""
        if self._order[-1:] != [uri]:
            self._order = [one for one in self._order[-20:] if one != uri] + [uri]

    def changed(self, old: Document, new: Document, edits: Sequence[Edit], anchor: Anchor | None) -> None:
        """A document was edited. anchor: the one in force before the edits."""
        followed = self._followed.get(new.uri)
        if followed is None:
            return
        self.touched(new.uri)
        followed.dirty = followed.unsaved = True
        self._edits.changed(new.uri, old.buffer, edits)
        if anchor is None or any(_outside(edit, anchor) for edit in edits):
            followed.apart = True
            followed.parsed = asyncio.Event()
        self.syntax.change(new, edits)
        self._hold()

    def _hold(self) -> None:
        """Keep the index worker still until typing pauses."""
        if self.worker is None:
            return
        self.worker.pause(True)
        if self._resume is not None:
            self._resume.cancel()
        worker = self.worker
        self._resume = asyncio.get_running_loop().call_later(RESUME_S, worker.pause, False)

    def saved(self, uri: str) -> None:
        """A document was saved: other files may see it as it is now."""
        followed = self._followed.get(uri)
        if followed is not None:
            followed.unsaved = False
        self._to_index(uri)
        self._keep(uri)

    def closed(self, uri: str) -> None:
        """A document was closed."""
        followed = self._followed.get(uri)
        self._forget(uri)
        if followed is not None and followed.readable and self.worker is not None:
            self.worker.changed([followed.path])

    def _forget(self, uri: str) -> None:
        self._followed.pop(uri, None)
        self._edits.forget(uri)
        self.syntax.close_document(uri)
        self._order = [one for one in self._order if one != uri]

    def watched(self, uris: Sequence[str]) -> None:
        """Files changed on disk. What is open counts as its editor has it."""
        if self.worker is None:
            return
        open_now = {followed.path for followed in self._followed.values()}
        paths = [path for path in map(path_of, uris) if path and path not in open_now]
        if any(Path(path).name in RULE_FILES for path in paths):
            self._rules = self._read_rules()
        if paths:
            self.worker.changed(paths)

    def _parsed(self, uri: str) -> None:
        followed = self._followed.get(uri)
        if followed is not None and followed.parsed is not None:
            followed.parsed.set()
        self._hurry(uri)
        self._keep(uri)

    def _hurry(self, uri: str) -> None:
        """What an open document imports is likely to be needed: the index reads it first."""
        syntax = self.syntax.state(uri)
        if self.worker is None or syntax is None or syntax.outline is None:
            return
        names: list[str] = []
        for node in syntax.outline.nodes:
            if node.role == "import":
                names += (*module_parts(imported_module(syntax.outline.language, node))[-2:], *node.binds)
        self.worker.hurry(names)

    def _keep(self, uri: str) -> None:
        """Keep a whole document's outline for the next session, once per outline."""
        followed, syntax = self._followed.get(uri), self.syntax.state(uri)
        if followed is None or syntax is None or syntax.outline is None or syntax.tree is None or not syntax.exact:
            return
        if followed.unsaved or not followed.readable or not self._wanted() or followed.kept_of is syntax.outline:
            return
        followed.kept_of = syntax.outline
        self.syntax.background(partial(self.outlines.keep, followed.path, syntax.tree.buffer, syntax.outline), priority=9)

    def _to_index(self, uri: str) -> None:
        """Put an open document's symbols into the index as they are now."""
        followed, state, syntax = self._followed.get(uri), self._documents.get(uri), self.syntax.state(uri)
        if followed is None or not followed.dirty or not followed.readable or self.worker is None:
            return
        if state is None or syntax is None or syntax.outline is None:
            return
        self.index.update(followed.path, symbols_of(syntax.outline, state.document.buffer))
        followed.dirty = False

    async def ready(self, state: OpenDocument) -> None:
        """Wait a moment for the document's structure where the next prompt depends on it: its first parse, or the one behind
        an edit outside of the window."""
        uri = state.document.uri
        followed, syntax = self._followed.get(uri), self.syntax.state(uri)
        if followed is None or syntax is None or syntax.facts is None or syntax.reason or not self._wanted():
            return
        if syntax.moved is not None and (syntax.exact or not followed.apart):
            return
        if followed.parsed is None:
            followed.parsed = asyncio.Event()
        try:
            await asyncio.wait_for(followed.parsed.wait(), READY_S)
        except (asyncio.TimeoutError, TimeoutError):
            return

    # -- frames ---------------------------------------------------------------------------------------

    def _wanted(self) -> bool:
        return self._settings.context.cross_file and self._settings.context.layout != "standard"

    def room(self, frame: Frame) -> int:
        """Tokens that `context.budget_tokens` leaves for the window."""
        budget = self._settings.context.budget_tokens
        return max(64, budget - frame.tokens) if budget else 0

    def frame(self, state: OpenDocument, anchor: Anchor, cursor: int, model: LoadedModel) -> Frame:
        """Gather what stands around this anchor's window."""
        uri = state.document.uri
        followed = self._followed.get(uri)
        if followed is None or not self._wanted() or not model.context_tokens:
            return EMPTY
        for other in self._documents:
            if other.document.uri != uri:
                self._to_index(other.document.uri)
        followed.apart = False
        try:
            return self._framed(state, followed, anchor, cursor, model)
        except Exception as error:  # context is a luxury: without it the window still answers
            self.problems += 1
            logger.error("context failed: %s", type(error).__name__, exc_info=logger.isEnabledFor(logging.DEBUG))
            return EMPTY

    def _framed(
        self, state: OpenDocument, followed: _Followed, anchor: Anchor, cursor: int, model: LoadedModel
    ) -> Frame:
        uri = state.document.uri
        choice, place, lookups, budget = self._choose(state, followed, anchor, cursor, model)
        path = place.path
        layout = arrange(choice.chosen, state.frame.layout or followed.layout, budget, model.spans_count)
        if self._settings.prefetch == "full":
            lookups.each(self.summaries.want, [one.chunk.key for one in choice.chosen if one.chunk.tier == "C"])
        own = [one for one in choice.chosen if one.chunk.own]
        facts = self._facts(uri)
        elision = facts.facts.elision.strip("{} ") if facts is not None and facts.facts is not None else "..."
        texts = opening_text(own, elision or "...")
        followed.layout = layout
        followed.uncut = tuple(one.chunk.forms[0] for one in choice.chosen if one.form > 0 and not one.chunk.own)
        root = self.guard.root_of(followed.path)
        return make_frame(model.layout, layout, texts, root.name if root is not None else "project", path, model.spans.ids)

    def _choose(
        self, state: OpenDocument, followed: _Followed, anchor: Anchor, cursor: int, model: LoadedModel
    ) -> tuple[Choice, Place, IndexLookups, int]:
        budget = header_tokens(model.context_tokens, model.prefill_tps)
        if self._settings.context.budget_tokens:
            budget = min(budget, self._settings.context.budget_tokens // 2)
        place, lookups = self._place(state, followed, anchor, cursor)
        chunks = gather(place, lookups.lookups())
        chunks += self._extras(place, lookups, state)
        own = fit([chunk for chunk in chunks if chunk.own], int(budget * OWN_SHARE), model.spans_count, int(budget * OWN_SHARE))
        kept = [replace(one.chunk, forms=one.chunk.forms[one.form :]) for one in own.chosen]
        choice = fit([*kept, *(chunk for chunk in chunks if not chunk.own)], budget, model.spans_count, 2 * budget)
        return choice, place, lookups, budget

    def _place(
        self, state: OpenDocument, followed: _Followed, anchor: Anchor, cursor: int
    ) -> tuple[Place, IndexLookups]:
        buffer, uri = state.document.buffer, state.document.uri
        shown = shown_path(followed.path, self._roots)
        syntax = self._facts(uri)
        language = syntax.facts.key if syntax is not None and syntax.facts is not None else ""
        end = min(anchor.suffix_start + len(anchor.suffix), buffer.length)
        visible = buffer.position(anchor.window_start)[0], buffer.position(end)[0]
        recent = {
            shown_path(self._followed[one].path, self._roots): rank
            for rank, one in enumerate(reversed(self._order))
            if one in self._followed
        }
        place = place_at(self._own(uri, followed, shown), buffer, cursor, shown, language, visible, recent)
        return place, IndexLookups(self.index, self._roots, followed.path, self.summaries.sentence)

    def _facts(self, uri: str) -> SyntaxState | None:
        return self.syntax.state(uri)

    def _own(self, uri: str, followed: _Followed, shown: str) -> Own:
        """Symbols of the open file itself, made once per outline."""
        state, syntax = self._documents.get(uri), self.syntax.state(uri)
        if state is None or syntax is None or syntax.outline is None:
            return followed.own
        if followed.own_of is not syntax.outline:
            followed.own = own_of(syntax.outline, state.document.buffer, shown)
            followed.own_of = syntax.outline
        return followed.own

    def _extras(self, place: Place, lookups: IndexLookups, state: OpenDocument) -> list[Chunk]:
        """Recent edits, recently opened files, the project's rules."""

        def shown(uri: str) -> str:
            followed = self._followed.get(uri)
            return shown_path(followed.path, self._roots) if followed is not None and (followed.readable or uri == state.document.uri) else ""

        def buffer(uri: str) -> object:
            other = self._documents.get(uri)
            return other.document.buffer if other is not None else None

        edits = self._edits.recent(buffer, shown)  # type: ignore[arg-type]  # a buffer or nothing
        found = edit_chunks(edits, place.path, place.visible, [near.name for near in place.near])
        others = [uri for uri in reversed(self._order) if uri != state.document.uri and uri in self._followed]
        for rank, uri in enumerate(others[:RECENT_FILES]):
            followed = self._followed[uri]
            chunk = outline_chunk(shown(uri), lookups.top(followed.path), rank) if followed.readable else None
            if chunk is not None:
                found.append(chunk)
        wish = self._settings.rules
        name, text = ("project rules", wish) if wish else self._rules
        chunk = rules_chunk(name, text, wished=bool(wish)) if text else None
        return [*found, chunk] if chunk is not None else found

    def wanting(self, state: OpenDocument, cursor: int, model: LoadedModel) -> bool:
        """Whether the frame in force lacks what the cursor touches: a callee's signature, the members of an object."""
        followed = self._followed.get(state.document.uri)
        if followed is None or state.anchor is None or not self._wanted() or not model.context_tokens:
            return False
        try:
            place, lookups = self._place(state, followed, state.anchor, cursor)
            chunks = gather(place, lookups.lookups())
        except Exception as error:
            self.problems += 1
            logger.error("context failed: %s", type(error).__name__)
            return False
        standing = {one.key: one.text for one in state.frame.layout}
        urgent = [c for c in chunks if c.tier == "A" and c.weight >= TOUCHED and not c.own]
        return any(standing.get(chunk.key) not in chunk.forms[:-1] for chunk in urgent if len(chunk.forms) > 1)

    def stale(self, state: OpenDocument) -> bool:
        """Whether an edit outside the window changed what the frame says. Cheap unless there was such an edit."""
        followed = self._followed.get(state.document.uri)
        if followed is None or not followed.apart or state.anchor is None:
            return False
        syntax = self.syntax.state(state.document.uri)
        return syntax is not None and syntax.exact


def _outside(edit: Edit, anchor: Anchor) -> bool:
    """Whether an edit lies above the window or below what of the file is shown."""
    return edit.old_end < anchor.window_start or edit.start > anchor.suffix_start + len(anchor.suffix)
