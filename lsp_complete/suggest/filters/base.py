"""What every filter takes and gives.

Strategy: a filter looks at a suggestion and its surroundings and returns the suggestion (unchanged, or a
new one) or a `Drop` with a reason. The order and the bookkeeping live in `pipeline.py`.

Rules: text has `\\n` line ends; a filter never lengthens what the model said, except that indentation is put into
the file's own style; a filter never raises on text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.lines import IndentStyle
from lsp_complete.suggest.scan import State
from lsp_complete.suggest.window import scan_window

ParsesOk = Callable[[str], "bool | None"]
"""(inserted text) → False if the document with it parses worse than without, None if unknown. Line ends as
in the document. Must be cheap or answer None."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text to insert, and why generation stopped (`engine.api.Candidate.stop`)."""

    text: str
    stop: str = "eog"

    def with_text(self, text: str) -> Suggestion:
        """The same suggestion with other text (itself if equal)."""
        return self if text == self.text else replace(self, text=text)


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing to show. reason: one word for statistics."""

    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of a suggestion.

    before, after: document around the cursor (windows suffice), `\\n` line ends. mode: "line" | "block".
    base_indent: columns, as asked of the engine. explicit: the user asked. min_chars: fewest visible
    characters of an automatic suggestion. special: spellings of the model's special tokens. frozen_suffix: what the model
    saw below the cursor, None if unknown. state: open brackets and strings at the cursor.
    """

    before: str
    after: str
    facts: LanguageFacts = field(default_factory=LanguageFacts)
    indent: IndentStyle = field(default_factory=IndentStyle)
    mode: str = "line"
    base_indent: int = 0
    explicit: bool = False
    min_chars: int = 2
    in_strings: bool = True
    in_comments: bool = True
    special: tuple[str, ...] = ()
    frozen_suffix: str | None = None
    parses_ok: ParsesOk | None = None
    newline: str = "\n"
    state: State = field(default_factory=State)

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.before.rpartition("\n")[2]

    @property
    def line_after(self) -> str:
        """The cursor's line from the cursor on."""
        return self.after.partition("\n")[0]


def with_state(ctx: Context) -> Context:
    """The context with `state` computed from the text before the cursor."""
    return replace(ctx, state=scan_window(ctx.before, ctx.facts).end)


Filter = Callable[[Suggestion, Context], "Suggestion | Drop"]
