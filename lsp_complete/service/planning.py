"""From an open document and a cursor to a prompt plan, keeping the anchor and its head between keys.

Thread: the event loop. Cost per key with a standing anchor: comparing the window's text and tokenizing the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

from ..context.anchor import Anchor, Window, choose, why_moved
from ..context.header import EMPTY, Frame, HeaderFormat
from ..context.heads import enclosing_heads
from ..context.prompt import FimTokens, PromptPlan, build_head, plan_anchored, plan_standard
from ..context.reasons import Parts, why_differs
from ..text.buffer import TextBuffer
from ..text.pretokens import last_pretoken_start
from ..text.tokenizer import Tokenizer
from ..text.tokens import SpanCache, TokenTable
from .documents import OpenDocument

FEW_LINES = 10
"""The small window, and any of no more lines above the cursor has the heads of the blocks around it before it."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What prompt building needs of a model: vocabulary, format, window. limit: tokens of its context.

    spans: the token cache that all documents share. Event loop. layout, context_tokens: how other files stand before the window,
    and how much of them the model is given by default (0: nothing). prefill_tps: measured tokens per second, 0 if unknown.
    """

    tokenizer: Tokenizer
    fim: FimTokens
    window: Window
    pre: str
    name: str = ""
    limit: int = 8192
    layout: HeaderFormat = field(default_factory=HeaderFormat)
    context_tokens: int = 0
    prefill_tps: float = 0.0
    spans: SpanCache = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", SpanCache(self.tokenizer))

    def spans_count(self, text: str) -> int:
        """Tokens of a text, exactly."""
        return len(self.spans.ids(text))


@dataclass(frozen=True, slots=True)
class Planned:
    """A prompt with the anchor it belongs to. moved: why the anchor moved ("" if it stood); differs: why the first differing
    token differs from the prompt before (`context.reasons`).

    tokenize_s: seconds spent in the token table and the tokenizer.
    """

    prompt: PromptPlan
    anchor: Anchor
    moved: str
    differs: str = ""
    tokenize_s: float = 0.0


class _Timed:
    """The token table and the shared spans, with the time they take. Never the bare tokenizer: some families' splitting
    ends the process on very long runs, which the spans guard against."""

    def __init__(self, table: TokenTable, spans: SpanCache) -> None:
        self._table, self._spans, self.seconds = table, spans, 0.0

    def ids(self, start: int, end: int) -> list[int]:
        began = perf_counter()
        out = self._table.ids(start, end)
        self.seconds += perf_counter() - began
        return out

    def tokenize(self, text: str) -> list[int]:
        began = perf_counter()
        out = self._spans.ids(text)
        self.seconds += perf_counter() - began
        return out


class Framer(Protocol):
    """Gives what stands around the window: other files, and what of this one the window does not show."""

    def frame(self, state: OpenDocument, anchor: Anchor, cursor: int, model: LoadedModel) -> Frame:
        """The frame for a new anchor. Asked only when a prompt's head is built."""
        ...

    def stale(self, state: OpenDocument) -> bool:
        """Whether the document's frame in force says what is no longer so."""
        ...

    def wanting(self, state: OpenDocument, cursor: int, model: LoadedModel) -> bool:
        """Whether what the cursor touches now is missing in the frame in force. Some ten milliseconds: at idle only."""
        ...

    async def ready(self, state: OpenDocument) -> None:
        """Wait a moment for what the next prompt of the document depends on."""
        ...

    def room(self, frame: Frame) -> int:
        """Tokens that the user's limit leaves for the window; 0 without a limit."""
        ...


def plan(
    state: OpenDocument, cursor: int, model: LoadedModel, window: Window, framer: Framer | None = None
) -> Planned:
    """Plan the prompt for `cursor`, moving the anchor only if it no longer serves. Updates `state`."""
    buffer = state.document.buffer
    timed = _Timed(state.ensure_table(model.tokenizer, model.spans), model.spans)
    moved = why_moved(state.anchor, buffer, cursor, window)
    framer = None if window.small else framer
    if moved or window.standard or state.anchor is None:
        state.anchor = choose(buffer, cursor, window, state.anchor)
        state.head = None
    elif framer is not None and framer.stale(state):
        state.head, moved = None, "context_changed"
    if state.head is None or window.standard:
        state.frame = framer.frame(state, state.anchor, cursor, model) if framer is not None else EMPTY
        if (window.small or window.lines_above <= FEW_LINES) and not window.standard:
            heads = heads_above(buffer, state.anchor, cursor)
            state.frame = replace(state.frame, opening=(*state.frame.opening, *timed.tokenize(heads))) if heads else state.frame
        room = framer.room(state.frame) if framer is not None else 0
        if room and moved != "context_changed":
            state.anchor = choose(buffer, cursor, sized(state, cursor, window, room, timed.ids), None)
    anchor, frame = state.anchor, state.frame
    cut_of, piece = cutter(model.pre), model.tokenizer.piece
    if window.standard:
        prompt = plan_standard(model.fim, anchor, cursor, timed.ids, timed.tokenize, cut_of, piece, frame.header)
    else:
        if state.head is None:
            state.head = build_head(model.fim, anchor, timed.ids, timed.tokenize, frame.header, frame.opening)
        prompt = plan_anchored(state.head, anchor, buffer, cursor, timed.ids, cut_of, piece)
    parts = Parts((*frame.header, *frame.opening), anchor.prefix, anchor.suffix, prompt.tail, anchor.window_start)
    differs, state.parts = why_differs(state.parts, parts), parts
    return Planned(prompt, anchor, moved, differs, timed.seconds)


def heads_above(buffer: TextBuffer, anchor: Anchor, cursor: int) -> str:
    """What the window of this anchor stands inside of, as text before it."""
    return enclosing_heads(buffer, buffer.position(anchor.window_start)[0], buffer.position(cursor)[0])


def sized(
    state: OpenDocument, cursor: int, window: Window, room: int, ids_of: Callable[[int, int], list[int]]
) -> Window:
    """The window with as many lines above as fit into `room` tokens, a quarter of it left to the lines below."""
    buffer = state.document.buffer
    line = buffer.position(cursor)[0]
    below = window.lines_below
    while below > 2 and len(ids_of(cursor, buffer.line_start(line + 1 + below))) > room // 4:
        below -= max(1, below // 4)
    left = room - len(ids_of(cursor, buffer.line_start(line + 1 + below)))
    low, high = 1, max(1, min(line, 2_000))
    while low < high:
        middle = (low + high + 1) // 2
        start = choose(buffer, cursor, replace(window, lines_above=middle, anchor_lines=0)).window_start
        if len(ids_of(start, cursor)) <= left:  # the head of a window goes back to a boundary: count from there
            low = middle
        else:
            high = middle - 1
    return replace(window, lines_above=low, lines_below=below, anchor_lines=min(window.anchor_lines, low))


def plan_fresh(
    state: OpenDocument, cursor: int, model: LoadedModel, window: Window, framer: Framer | None = None
) -> tuple[Planned, OpenDocument]:
    """As `plan` for some other cursor or window, leaving the document's own anchor alone; and the copy that was planned
    with, whose anchor, head and frame may be taken over."""
    trial = replace_state(state)
    return plan(trial, cursor, model, window, framer), trial


def plan_ahead(
    state: OpenDocument, cursor: int, model: LoadedModel, window: Window, framer: Framer | None = None
) -> tuple[Planned, OpenDocument]:
    """The prompt of the next anchor, over the standing one's window, leaving the document's own alone."""
    anchor = choose(state.document.buffer, cursor, window, state.anchor)
    trial = replace(state, anchor=anchor, head=None, next_anchor=None, generation=None)
    return plan(trial, cursor, model, window, framer), trial


def replace_state(state: OpenDocument) -> OpenDocument:
    """A copy without an anchor that shares the token table."""
    return replace(state, anchor=None, head=None, generation=None)


def cutter(pre: str) -> Callable[[str], int]:
    """Where a tail is cut for healing, by the model's pre-tokenizer."""

    def cut_of(text: str) -> int:
        return last_pretoken_start(text, pre)

    return cut_of
