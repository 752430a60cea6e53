"""From an open document and a cursor to a prompt plan, keeping the anchor and its head between keys.

Thread: the event loop. Cost per key with a standing anchor: comparing the window's text and tokenizing the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter

from ..context.anchor import Anchor, Window, choose, why_moved
from ..context.prompt import FimTokens, Head, PromptPlan, build_head, plan_anchored, plan_standard
from ..text.pretokens import last_pretoken_start
from ..text.tokenizer import Tokenizer
from ..text.tokens import SpanCache, TokenTable
from .documents import OpenDocument


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What prompt building needs of a model: vocabulary, format, window. limit: tokens of its context.

    spans: the token cache that all documents share. Event loop.
    """

    tokenizer: Tokenizer
    fim: FimTokens
    window: Window
    pre: str
    name: str = ""
    limit: int = 8192
    spans: SpanCache = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", SpanCache(self.tokenizer))


@dataclass(frozen=True, slots=True)
class Planned:
    """A prompt with the anchor it belongs to. moved: why the anchor moved ("" if it stood).

    tokenize_s: seconds spent in the token table and the tokenizer.
    """

    prompt: PromptPlan
    anchor: Anchor
    moved: str
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


def plan(
    state: OpenDocument, cursor: int, model: LoadedModel, window: Window, header: tuple[int, ...] = ()
) -> Planned:
    """Plan the prompt for `cursor`, moving the anchor only if it no longer serves. Updates `state`."""
    buffer = state.document.buffer
    timed = _Timed(state.ensure_table(model.tokenizer, model.spans), model.spans)
    moved = why_moved(state.anchor, buffer, cursor, window)
    if moved or window.standard or state.anchor is None:
        state.anchor = choose(buffer, cursor, window, state.anchor)
        state.head = None
    anchor = state.anchor
    cut_of, piece = cutter(model.pre), model.tokenizer.piece
    if window.standard:
        prompt = plan_standard(model.fim, anchor, cursor, timed.ids, timed.tokenize, cut_of, piece, header)
    else:
        if state.head is None:
            state.head = build_head(model.fim, anchor, timed.ids, timed.tokenize, header)
        prompt = plan_anchored(state.head, anchor, buffer, cursor, timed.ids, cut_of, piece)
    return Planned(prompt, anchor, moved, timed.seconds)


def plan_fresh(
    state: OpenDocument, cursor: int, model: LoadedModel, window: Window, header: tuple[int, ...] = ()
) -> tuple[Planned, Head | None]:
    """As `plan` for some other cursor or window, leaving the document's own anchor alone."""
    trial = replace_state(state)
    planned = plan(trial, cursor, model, window, header)
    return planned, trial.head


def replace_state(state: OpenDocument) -> OpenDocument:
    """A copy without an anchor that shares the token table."""
    return replace(state, anchor=None, head=None, generation=None)


def cutter(pre: str) -> Callable[[str], int]:
    """Where a tail is cut for healing, by the model's pre-tokenizer."""

    def cut_of(text: str) -> int:
        return last_pretoken_start(text, pre)

    return cut_of
