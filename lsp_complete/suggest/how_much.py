"""Whether to ask the model, and for how much: one line or a block.

Strategy: the syntax around the cursor decides, read from the text: when a key asks, the tree is one key behind and mostly broken
at the very place. An automatic request gets one line unless the place asks for more: an empty body, a comment above a
blank line, a blank line inside a function. An explicit request gets a block wherever a block can stand.

Rules:
- Text right of the cursor other than closers, an argument list or a string means one line.
- A block ends where the indentation falls below `base_indent`; where the closer is missing below, the base is
  the opener's own indentation, so that the closer is generated (`filters.block` cuts behind it).
- Pure: values in, a value out. Never raises on text.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_complete.suggest.language import LanguageFacts, facts_for
from lsp_complete.suggest.lines import closes_block, indent_columns, is_closers, mid_word, opens_block, to_lf
from lsp_complete.suggest.scan import scan
from lsp_complete.suggest.window import scan_window

LINE_TOKENS = 64
INSIDE_TOKENS = 40
TOKENS_PER_LINE = 16
MAX_TOKENS = 384
BLANK_LINE_SHARE = 4
"""A blank line inside a function gets this part of `max_lines`: nobody asked, and each line costs time."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything `decide` looks at.

    previous, next: nearest non-blank lines above and below the cursor's ("" if none). blank_above,
    blank_below: the neighbouring line is blank or missing. lead: text of the window above the cursor's line, for
    open strings and brackets ("" is fine). trigger: "automatic" | "explicit". multiline: "auto" | "never" | "always".
    facts: None takes the table's row for `language_id`. max_lines: limit of a block, counting the cursor's line.
    in_strings, in_comments: settings, for automatic requests. indent: columns of one level.
    """

    language_id: str
    line_before: str
    line_after: str = ""
    previous: str = ""
    next: str = ""
    blank_above: bool = False
    blank_below: bool = False
    lead: str = ""
    trigger: str = "automatic"
    multiline: str = "auto"
    max_lines: int = 16
    in_strings: bool = True
    in_comments: bool = True
    indent: int = 4
    tab_width: int = 4
    facts: LanguageFacts | None = None

    @property
    def language(self) -> LanguageFacts:
        """The facts in force."""
        return self.facts if self.facts is not None else facts_for(self.language_id)


@dataclass(frozen=True, slots=True)
class Amount:
    """The answer. request: ask at all. reason: why not, or why this mode, as a short word for the stage record.
    mode, base_indent (columns), max_lines, suffix_head: as the engine's stop rules want them. max_tokens: to generate."""

    request: bool
    reason: str
    mode: str = "line"
    base_indent: int = 0
    max_lines: int = 1
    max_tokens: int = LINE_TOKENS
    suffix_head: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    string: bool
    comment: bool
    arguments: bool


def situation(
    language_id: str,
    before: str,
    after: str,
    trigger: str = "automatic",
    *,
    multiline: str = "auto",
    max_lines: int = 16,
    in_strings: bool = True,
    in_comments: bool = True,
    indent: int = 4,
    tab_width: int = 4,
    facts: LanguageFacts | None = None,
) -> Situation:
    """A `Situation` from the windows before and after the cursor (any line ends). The keyword arguments are
    its fields of the same names."""
    above, _, line = to_lf(before).rpartition("\n")
    rest, _, below = to_lf(after).partition("\n")
    up = above.split("\n") if above else []
    down = below.split("\n") if below else []
    return Situation(
        language_id=language_id,
        line_before=line,
        line_after=rest,
        previous=next((x for x in reversed(up) if x.strip()), ""),
        next=next((x for x in down if x.strip()), ""),
        blank_above=not up or not up[-1].strip(),
        blank_below=not down or not down[0].strip(),
        lead=above + "\n" if above else "",
        trigger=trigger,
        multiline=multiline,
        max_lines=max_lines,
        in_strings=in_strings,
        in_comments=in_comments,
        indent=indent,
        tab_width=tab_width,
        facts=facts,
    )


def decide(s: Situation) -> Amount:
    """Whether to ask, and for how much. Any thread."""
    explicit = s.trigger == "explicit"
    place = _place(s)
    if mid_word(s.line_before, s.line_after) and not explicit:
        return Amount(False, "mid_word")
    if place.comment and not s.in_comments and not explicit:
        return Amount(False, "in_comment")
    if place.string and not s.in_strings and not explicit:
        return Amount(False, "in_string")
    if not explicit and not (s.line_before + s.line_after + s.previous + s.next).strip():
        return Amount(False, "empty_document")
    reason = _one_line_because(s, place)
    if reason:
        inside = reason in ("string", "comment", "arguments")
        return Amount(True, reason, max_tokens=INSIDE_TOKENS if inside else LINE_TOKENS, suffix_head=_head(s))
    if explicit or s.multiline == "always":
        return _block(s, "explicit" if explicit else "always", s.max_lines)
    reason = _block_because(s)
    if reason:
        limit = s.max_lines if reason != "blank_line" else max(2, s.max_lines // BLANK_LINE_SHARE)
        return _block(s, reason, limit)
    return Amount(True, "line", suffix_head=_head(s))


def _place(s: Situation) -> _Place:
    state = scan_window(s.lead + s.line_before, s.language).end
    local = scan(s.line_before, s.language).end.stack
    arguments = bool(local) and local[-1] in "([" and bool(s.line_before.strip())
    return _Place(bool(state.string), bool(state.comment), arguments)


def _one_line_because(s: Situation, place: _Place) -> str:
    if s.multiline == "never" or s.max_lines < 2:
        return "line"
    if s.line_after.strip() and not is_closers(s.line_after):
        return "text_after"
    if place.string:
        return "string"
    if place.comment:
        return "comment"
    if place.arguments and not opens_block(s.line_before, s.language):
        return "arguments"
    return ""


def _block_because(s: Situation) -> str:
    """Why an automatic request deserves a block, or ""."""
    blank = not s.line_before.strip()
    opener = s.previous if blank else s.line_before
    if opens_block(opener, s.language) and _body_is_empty(s, opener):
        return "empty_body"
    if not blank or s.line_after.strip():
        return ""
    level = indent_columns(s.line_before, s.tab_width)
    if _is_comment(s.previous, s.language) and not s.blank_above and s.blank_below:
        return "comment_above"
    if level > 0 and s.blank_below and indent_columns(s.next, s.tab_width) < level:
        return "blank_line"
    return ""


def _body_is_empty(s: Situation, opener: str) -> bool:
    return not s.next or indent_columns(s.next, s.tab_width) <= indent_columns(opener, s.tab_width)


def _is_comment(line: str, facts: LanguageFacts) -> bool:
    text = line.strip()
    return any(text.startswith(mark) for mark in facts.line_comments)


def _block(s: Situation, reason: str, limit: int) -> Amount:
    lines = max(2, limit)
    tokens = min(MAX_TOKENS, LINE_TOKENS + TOKENS_PER_LINE * lines)
    return Amount(True, reason, "block", _base_indent(s), lines, tokens, _head(s))


def _base_indent(s: Situation) -> int:
    blank = not s.line_before.strip()
    opener = s.previous if blank else s.line_before
    level = indent_columns(opener, s.tab_width)
    if opens_block(opener, s.language):
        closed = closes_block(s.next, s.language) and indent_columns(s.next, s.tab_width) == level
        closed = closed or closes_block(s.line_after, s.language)
        return level if not s.language.indent_blocks and not closed else level + 1
    if blank and s.line_before:
        return indent_columns(s.line_before, s.tab_width)
    return level


def _head(s: Situation) -> str:
    """The next line as a stop mark; closers and tiny lines occur inside blocks too and do not serve."""
    text = s.next.strip()
    if is_closers(text) or len(text) < 4:
        return ""
    return text if len(text) >= 8 or " " in text else ""
