"""Filters on white space: the file's own indentation, blank lines, line ends.

Rules: only the white space at line starts and at the text's end is touched; a line that starts inside a string is
left as it is. Relative depth is kept: what was one level deeper stays one level deeper.
"""

from __future__ import annotations

from lsp_complete.suggest.filters.base import Context, Drop, Suggestion
from lsp_complete.suggest.lines import (
    IndentStyle,
    columns,
    indent_columns,
    last_nonblank,
    leading,
    opens_block,
)
from lsp_complete.suggest.scan import scan


def restyle(space: str, style: IndentStyle) -> str:
    """The same depth in the file's style. With tabs, columns beyond whole tabs stay spaces (alignment)."""
    width = columns(space, style.tab_width)
    if style.tabs:
        return "\t" * (width // style.tab_width) + " " * (width % style.tab_width)
    if "\t" in space:
        tabs = space.count("\t")
        return " " * (tabs * style.width + len(space.replace("\t", "")))
    return space


def _code_line_starts(s: Suggestion, ctx: Context) -> list[bool]:
    """For each line after the first: does it start outside a string?"""
    starts, state = [], ctx.state
    lines = s.text.split("\n")
    for line in lines[:-1]:
        state = scan(line + "\n", ctx.facts, state).end
        starts.append(not state.string)
    return starts


def indentation(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Line starts in the file's style; no white space on blank lines; no deeper start than the place allows."""
    lines = s.text.split("\n")
    free = _code_line_starts(s, ctx)
    out = [_first_line(lines[0], ctx)]
    model_width = _model_width(lines, ctx)
    for line, ours in zip(lines[1:], free, strict=True):
        if not ours:
            out.append(line)
        elif not line.strip() and line is not lines[-1]:
            out.append("")
        else:
            space = leading(line)
            out.append(_space(space, ctx.indent, model_width) + line[len(space) :])
    return s.with_text("\n".join(out))


def _space(space: str, style: IndentStyle, model_width: int) -> str:
    if style.tabs and space and "\t" not in space and model_width and model_width != style.tab_width:
        return "\t" * (len(space) // model_width) + " " * (len(space) % model_width)
    return restyle(space, style)


def _model_width(lines: list[str], ctx: Context) -> int:
    """Spaces per level in a suggestion that indents with spaces in a file with tabs, or 0."""
    if not ctx.indent.tabs:
        return 0
    widths = [len(leading(x)) for x in lines[1:] if x.strip() and leading(x) and "\t" not in leading(x)]
    steps = sorted({b - a for a, b in zip([0, *sorted(widths)], sorted(widths), strict=False) if b > a})
    return next((w for w in (8, 4, 3, 2) if steps and all(x % w == 0 for x in steps)), 0)


def _first_line(line: str, ctx: Context) -> str:
    """On a blank line the suggestion may bring indentation of its own: at most what the place allows."""
    if ctx.line_before.strip() or not line.strip() or not ctx.state.in_code:
        return line
    space = leading(line)
    above = last_nonblank(ctx.before[: len(ctx.before) - len(ctx.line_before)])
    here = columns(ctx.line_before, ctx.indent.tab_width)
    allowed = indent_columns(above, ctx.indent.tab_width)
    opens = opens_block(above, ctx.facts)
    if opens:
        allowed += ctx.indent.columns
    if space:
        total = columns(ctx.line_before + space, ctx.indent.tab_width)
        if here and total > allowed and above:
            space = _pad(max(0, allowed - here), ctx.line_before, ctx.indent)
        else:
            space = _pad(total - here, ctx.line_before, ctx.indent)
    elif not here and opens and ctx.facts.indent_blocks and allowed:
        space = _pad(allowed, "", ctx.indent)
    return space + line[len(leading(line)) :]


def _pad(width: int, before: str, style: IndentStyle) -> str:
    if style.tabs and (not before or before.strip("\t") == ""):
        return "\t" * (width // style.tab_width) + " " * (width % style.tab_width)
    return " " * width


def trailing_space(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """No white space at the text's end, unless text follows on the line."""
    if ctx.line_after.strip() and "\n" not in s.text:
        return s
    return s.with_text(s.text.rstrip(" \t\n"))


def only_space(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """White space alone is not a suggestion."""
    return s if s.text.strip() else Drop("blank")
