"""What the parse thread does: one parse of one document, from immutable values to immutable values.

Rules: a job never touches the worker's state; it gives None if it was stopped, and its exceptions travel back as values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from lsp_complete.syntax.languages import LanguageFacts, load
from lsp_complete.syntax.merge import merge_last_good
from lsp_complete.syntax.nodes import Outline, shifted
from lsp_complete.syntax.outline import outline_of, update_outline
from lsp_complete.syntax.trees import SyntaxTree, hull, parse, why_not_parsed
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.edits import Edit

T = TypeVar("T")
TOO_LONG = "parsing took too long, or the text is nested too deep"


@dataclass(frozen=True, slots=True)
class Parsed:
    """raw: the tree's own outline, which the next one starts from; outline: with what was kept from before an error."""

    tree: SyntaxTree | None
    raw: Outline | None
    outline: Outline | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One parse of an open document, for the thread. tree: moved to `buffer` already; the outlines are of the text before
    `edits`."""

    facts: LanguageFacts
    buffer: TextBuffer
    tree: SyntaxTree | None
    raw: Outline | None
    outline: Outline | None
    edits: tuple[Edit, ...]
    stop: Event

    def run(self) -> Parsed | None:
        """None if stopped. Thread: the worker's."""
        reason = why_not_parsed(self.buffer)
        grammar = None if reason else load(self.facts)
        if grammar is None:
            return Parsed(None, None, None, reason or "no parser for this language")
        tree = parse(grammar, self.buffer, self.tree, self.stop.is_set)
        if tree is None:
            return None if self.stop.is_set() else Parsed(None, None, None, TOO_LONG)
        raw = shifted(self.raw, self.edits) if self.raw is not None else None
        last = (
            raw if self.raw is self.outline else shifted(self.outline, self.edits) if self.outline else None
        )
        if self.tree is not None and raw is not None and self.edits:
            change = hull(self.edits, self.buffer, self.buffer)
            raw = update_outline(raw, self.tree, tree, [(change.start, change.new_end)])
        else:
            raw = outline_of(tree)
        kept = merge_last_good(last, raw, self.buffer) if last is not None else raw
        return Parsed(tree, raw, kept)


def guarded(job: Callable[[], T]) -> T | BaseException:
    try:
        return job()
    except Exception as error:  # a failing parser must not take the thread down
        return error
