"""From the model's bytes to the text on screen, or the reason why there is none.

Strategy: a fixed list of filters, each pure. First what is surely not code is cut away (broken characters,
special tokens, fences, prose), then the text gets the file's shape, then it is cut at its end, reconciled with what is
right of the cursor, and last judged as a whole.

Rules:
- `full` is the text before it was reconciled: the store needs it to stay right while the editor inserts closers.
- The document's own line ends come back at the very end.
- Never raises on any bytes. Any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lsp_complete.suggest.filters import base, clean, extent, indent, repeat, worth
from lsp_complete.suggest.filters.base import Context, Drop, ParsesOk, Suggestion, with_state
from lsp_complete.suggest.language import LanguageFacts, facts_for
from lsp_complete.suggest.lines import IndentStyle, to_lf

SHAPE: tuple[base.Filter, ...] = (
    worth.place_allowed,
    clean.special_tokens,
    clean.markdown_fence,
    clean.prose,
    extent.one_line,
    repeat.repeated_lines,
    repeat.repeated_fragments,
    repeat.loops_above,
    indent.indentation,
    extent.block_end,
    indent.trailing_space,
    indent.only_space,
)
"""What makes the text that the model meant to stand here (`Polished.full`)."""

JUDGE: tuple[base.Filter, ...] = (
    worth.inside_word,
    repeat.same_as_next,
    extent.already_there,
    indent.only_space,
    worth.inside_word,
    repeat.same_as_previous,
    extent.breaks_tree,
    worth.too_little,
)
"""What fits it to the text right of the cursor and decides whether it is shown. A word may be run into before
and after the text is shortened, so that filter comes twice."""


@dataclass(frozen=True, slots=True)
class RawCandidate:
    """What the engine gave: text bytes without the healed ones, and why it stopped."""

    text: bytes
    stop: str = "eog"


@dataclass(frozen=True, slots=True)
class PolishContext:
    """The place and the settings. before, after: document windows around the cursor, any line ends. newline: the
    document's. facts: None takes the table's row for `language_id`. Others as in `filters.base.Context`."""

    language_id: str
    before: str
    after: str
    newline: str = "\n"
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
    facts: LanguageFacts | None = None
    without: tuple[str, ...] = ()

    @property
    def language(self) -> LanguageFacts:
        """The facts in force."""
        return self.facts if self.facts is not None else facts_for(self.language_id)


@dataclass(frozen=True, slots=True)
class Polished:
    """text: to insert ("" if nothing is to be shown), with the document's line ends. reason: why it is empty.
    changed_by: names of the filters that changed it, in order. full: see the module's rules (`\\n` line ends)."""

    text: str
    reason: str = ""
    changed_by: tuple[str, ...] = ()
    full: str = ""


def context_of(ctx: PolishContext) -> Context:
    """The filters' view of the place."""
    frozen = None if ctx.frozen_suffix is None else to_lf(ctx.frozen_suffix)
    return with_state(
        Context(
            before=to_lf(ctx.before),
            after=to_lf(ctx.after),
            facts=ctx.language,
            indent=ctx.indent,
            mode=ctx.mode,
            base_indent=ctx.base_indent,
            explicit=ctx.explicit,
            min_chars=ctx.min_chars,
            in_strings=ctx.in_strings,
            in_comments=ctx.in_comments,
            special=ctx.special,
            frozen_suffix=frozen,
            parses_ok=ctx.parses_ok,
            newline=ctx.newline,
        )
    )


def _run(
    s: Suggestion, ctx: Context, filters: tuple[base.Filter, ...], without: tuple[str, ...], changed: list[str]
) -> Suggestion | Drop:
    for each in filters:
        name = each.__name__
        if name in without:
            continue
        result = each(s, ctx)
        if isinstance(result, Drop):
            changed.append(name)
            return result
        if result.text != s.text:
            changed.append(name)
            s = result
    return s


def polish(raw: RawCandidate, ctx: PolishContext) -> Polished:
    """Apply every filter (except those named in `ctx.without`, for measurements). Never raises on bytes."""
    inner = context_of(ctx)
    changed: list[str] = []
    text = clean.decode(raw.text)
    if len(text.encode("utf-8", "surrogatepass")) != len(raw.text):
        changed.append("decode")
    shaped = _run(Suggestion(to_lf(text), raw.stop), inner, SHAPE, ctx.without, changed)
    if isinstance(shaped, Drop):
        return Polished("", shaped.reason, tuple(changed))
    judged = _run(shaped, inner, JUDGE, ctx.without, changed)
    if isinstance(judged, Drop):
        return Polished("", judged.reason, tuple(changed), shaped.text)
    out = judged.text if ctx.newline == "\n" else judged.text.replace("\n", ctx.newline)
    return Polished(out, "", tuple(changed), shaped.text)
