"""Filters on where a suggestion ends: the syntactic end of a block, text already there, a tree that was whole.

Rules: cuts are made at line ends where there is a choice; a block that generation left unfinished falls back to the
last place where nothing is open, and to its first line if there is none.
"""

from __future__ import annotations

from lsp_complete.suggest.filters.base import Context, Drop, Suggestion
from lsp_complete.suggest.lines import closes_block, indent_columns, opens_block
from lsp_complete.suggest.reconcile import reconcile
from lsp_complete.suggest.scan import scan

_UNFINISHED = ("tokens", "time", "lines", "repeat")


def one_line(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """In line mode keep one line with something on it (a line end before it is kept)."""
    if ctx.mode != "line":
        return s
    body = len(s.text) - len(s.text.lstrip())
    end = s.text.find("\n", body)
    return s if end < 0 else s.with_text(s.text[:end])


def block_end(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """End a block where its syntax ends: before a line that is less deep than asked, behind the line that
    closes what the place opened, and not in the middle of a statement."""
    if "\n" not in s.text:
        return s
    lines = s.text.split("\n")
    stop = _dedent(lines, ctx)
    stop = min(stop, _closed_at(lines[:stop], ctx))
    text = "\n".join(lines[:stop])
    if stop == len(lines) and s.stop in _UNFINISHED:
        text = _whole_part(text, s.stop, ctx)
    return s.with_text(text.rstrip(" \t\n")) if text != s.text else s


def _dedent(lines: list[str], ctx: Context) -> int:
    """Number of lines before the first that leaves the block."""
    tab = ctx.indent.tab_width
    state = scan(lines[0] + "\n", ctx.facts, ctx.state).end
    for i, line in enumerate(lines[1:], 1):
        leaves = line.strip() and not state.string and indent_columns(line, tab) < ctx.base_indent
        if leaves and not (closes_block(line, ctx.facts) and _closes_own(lines[:i], line, ctx)):
            return i
        state = scan(line + "\n", ctx.facts, state).end
    return len(lines)


def _closes_own(lines: list[str], line: str, ctx: Context) -> bool:
    """The line's first closer closes a bracket that the suggestion itself opened."""
    opened = scan("\n".join(lines) + "\n", ctx.facts, ctx.state)
    after = scan(line, ctx.facts, opened.end)
    return bool(opened.opened) and bool(after.outer) and len(opened.end.stack) > len(ctx.state.stack)


def _closed_at(lines: list[str], ctx: Context) -> int:
    """Number of lines up to and with the one that closes the bracket the cursor stands in."""
    state = ctx.state
    depth = len(state.stack)
    for i, line in enumerate(lines):
        state = scan(line + "\n", ctx.facts, state).end
        if i > 0 and depth and len(state.stack) < depth and state.in_code and not ctx.line_after.strip():
            return i + 1
    return len(lines)


def _whole_part(text: str, stop: str, ctx: Context) -> str:
    """The beginning of an unfinished block that stands on its own."""
    lines = text.split("\n")
    last = len(lines) - (1 if stop in ("tokens", "time") else 0)
    depth = len(ctx.state.stack)
    state, good = ctx.state, 0
    for i, line in enumerate(lines[:last], 1):
        state = scan(line + "\n", ctx.facts, state).end
        if state.in_code and len(state.stack) <= depth and line.strip() and not opens_block(line, ctx.facts):
            good = i
    if not good:
        good = 1 if lines[0].strip() else min(2, len(lines))
    return "\n".join(lines[:good])


def already_there(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Cut what stands right of the cursor or below it (see `reconcile`)."""
    text = reconcile(s.text, ctx.before, ctx.after, ctx.facts, ctx.frozen_suffix, ctx.indent.tab_width)
    if text == s.text:
        return s
    return s.with_text(text) if text.strip() else Drop("already_there")


def breaks_tree(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Hold back text that breaks a tree that was whole; a block first falls back to its first line. Text that
    opens a block or a bracket is unfinished, not wrong, and is not judged."""
    if ctx.parses_ok is None:
        return s
    first = s.text[: s.text.find("\n", len(s.text) - len(s.text.lstrip()))] if "\n" in s.text.strip() else s.text
    for text in dict.fromkeys((s.text, first)):
        unfinished = opens_block(ctx.line_before + text, ctx.facts) or scan(text, ctx.facts, ctx.state).opened
        if unfinished:
            return s.with_text(text)
        if ctx.parses_ok(text.replace("\n", ctx.newline)) is not False:
            return s.with_text(text)
    return s if ctx.explicit else Drop("breaks_tree")
