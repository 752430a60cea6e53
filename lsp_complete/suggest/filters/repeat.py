"""Filters against repetition: loops, repeated fragments, a copy of the line above or below.

Rules: a loop is cut after its first round, never dropped whole where its beginning is of use. Lines of
closers and short words (`pass`, `break`, `else:`) may repeat.
"""

from __future__ import annotations

import re

from lsp_complete.suggest.filters.base import Context, Drop, Suggestion
from lsp_complete.suggest.lines import is_closers, last_nonblank

FRAGMENT = re.compile(r"(?=[^\n]{0,59}[^\W\d_])([^\n]{4,60}?)(?:\1){3,}")
"""A stretch with a letter in it, four times in a row on one line."""
MAX_PERIOD = 8
TRIVIAL = 7


def _trivial(line: str) -> bool:
    text = line.strip()
    return is_closers(text) or len(text) < TRIVIAL


def repeated_lines(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """A group of lines that comes twice in a row is kept once; a single line only if it comes three times, since
    two equal lines may be data."""
    lines = s.text.split("\n")
    first = ctx.line_before + lines[0]
    keys = [x.strip() for x in (first, *lines[1:])]
    for start in range(len(keys)):
        for period in range(1, MAX_PERIOD + 1):
            times = 3 if period == 1 else 2
            end = start + period * times
            group = keys[start : start + period]
            dull = _trivial(group[0]) if period == 1 else all(is_closers(x) for x in group)
            if end > len(keys) or dull:
                continue
            if all(keys[start + n * period : start + (n + 1) * period] == group for n in range(1, times)):
                return s.with_text("\n".join(lines[: start + period]))
    return s


def repeated_fragments(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """A fragment four times in a row on one line is kept once."""
    found = FRAGMENT.search(s.text)
    while found:
        unit = found.group(1)
        if re.search(r"[^\W\d_]", unit) and len(set(unit)) > 1:
            return s.with_text(s.text[: found.start() + len(unit)].rstrip(" ,"))
        found = FRAGMENT.search(s.text, found.end())
    return s


def _above(ctx: Context) -> list[str]:
    head = ctx.before[: len(ctx.before) - len(ctx.line_before)]
    return [x.strip() for x in head[-4000:].split("\n") if x.strip()]


def same_as_previous(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """A suggestion that makes the cursor's line(s) a copy of the line(s) just above is not worth showing."""
    if not ctx.state.in_code:
        return s
    lines = [x.strip() for x in (ctx.line_before + s.text + (ctx.line_after if "\n" not in s.text else "")).split("\n")]
    lines = [x for x in lines if x]
    above = _above(ctx)
    if not lines or not above or all(_trivial(x) for x in lines) or len(lines) > len(above):
        return s
    return Drop("same_as_previous") if above[-len(lines) :] == lines else s


def same_as_next(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """A suggestion whose first line makes the cursor's line a copy of the next non-blank line is dropped."""
    rest, _, below = ctx.after.partition("\n")
    head, newline, _ = s.text.partition("\n")
    line = (ctx.line_before + head + ("" if newline else rest)).strip()
    follow = next((x.strip() for x in below.split("\n") if x.strip()), "")
    if not line or line != follow or not head.strip():
        return s
    if is_closers(line) and not ctx.line_before.strip():
        return Drop("same_as_next")
    return s if _trivial(line) else Drop("same_as_next")


def loops_above(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Where the line above already stands twice, a third copy is a loop of the model, not an intention."""
    above = _above(ctx)
    last = last_nonblank(ctx.before[: len(ctx.before) - len(ctx.line_before)]).strip()
    lines = s.text.split("\n")
    if len(above) < 2 or above[-2] != last or _trivial(last):
        return s
    for i, line in enumerate(lines):
        whole = (ctx.line_before + line if i == 0 else line).strip()
        if whole == last:
            text = "\n".join(lines[:i])
            return s.with_text(text) if text.strip() else Drop("loop")
    return s
