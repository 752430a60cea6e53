"""Filters on whether a suggestion is worth a key: length, closers where Tab indents, places that ask for nothing.

Rules: none of them applies to a request that the user made explicitly, except that nothing is ever glued
into the middle of a word without being asked for.
"""

from __future__ import annotations

import re

from lsp_complete.suggest.filters.base import Context, Drop, Suggestion
from lsp_complete.suggest.lines import is_closers, is_word_char, mid_word

_QUOTE = re.compile(r"[\"'`]")


def inside_word(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """No automatic suggestion inside a word, and none that runs into the word right of the cursor."""
    if ctx.explicit:
        return s
    if mid_word(ctx.before, ctx.after):
        return Drop("mid_word")
    return Drop("mid_word") if is_word_char(s.text[-1:]) and is_word_char(ctx.after[:1]) else s


def place_allowed(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Strings and comments by setting."""
    if ctx.explicit:
        return s
    if ctx.state.string and not ctx.in_strings:
        return Drop("in_string")
    return Drop("in_comment") if ctx.state.comment and not ctx.in_comments else s


def too_little(s: Suggestion, ctx: Context) -> Suggestion | Drop:
    """Fewer visible characters than `min_chars`, or closers on a line of their own: Tab is worth more than that."""
    if ctx.explicit:
        return s
    reason = not_worth(s.text, ctx.min_chars, ctx.before.rpartition("\n")[2])
    return Drop(reason) if reason else s


def not_worth(text: str, min_chars: int, line_before: str) -> str:
    """Why a text is not worth a key of its own, or "". Closers alone are at the end of a line, but brackets not where Tab would indent,
    unless the user asked for single characters. line_before: the cursor's line up to the cursor."""
    if min_chars > 1 and not line_before.strip() and is_closers(text) and not _QUOTE.search(text):
        return "closers_only"
    return "too_short" if len(re.sub(r"\s", "", text)) < min_chars else ""
