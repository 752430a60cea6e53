"""Where the last pre-token of a text starts, for healing the cut at the cursor.

Strategy: what a person is typing ends in a piece of a word; the model has seen that word whole, so the prompt is cut back
to where the pre-tokenizer began its last piece and the model writes it again under constraint (DESIGN 3). The family's
own patterns split the end of the text, from a place where any family splits: before a blank behind a letter.

Rules:
- Reads at most LOOK_BACK characters, whatever the length of the text.
- -1 where nothing is certain (unknown family, no blank in sight, a piece too long to write again): the caller then cuts one
  token back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex

from lsp_complete.text.families import family

LOOK_BACK = 512
MAX_PIECE = 256


def last_pretoken_start(text: str, pre: str) -> int:
    """Offset in `text` to cut at: where its last pre-token starts by the splitting of `pre`, or the one before if what is
    left would split differently on its own (two blank lines and a word: GPT-2's splitting looks ahead).

    0 for an empty text; -1 if unknown.
    """
    patterns = _compiled(pre)
    begin = _certain_start(text)
    if not patterns or begin < 0 or not text:
        return begin if patterns else -1
    pieces = _split(text[begin:], patterns)
    kept = len(pieces) - 1
    while kept and _split("".join(pieces[:kept]), patterns) != pieces[:kept]:
        kept -= 1
    start = begin + sum(map(len, pieces[:kept]))
    return start if len(text) - start <= MAX_PIECE else -1


def split(text: str, pre: str) -> list[str]:
    """The pre-tokens of a whole text; [] for an unknown family."""
    patterns = _compiled(pre)
    return _split(text, patterns) if patterns else []


@lru_cache(maxsize=8)
def _compiled(pre: str) -> tuple[regex.Pattern[str], ...]:
    return tuple(regex.compile(pattern, regex.VERSION1) for pattern in family(pre).patterns)


def _certain_start(text: str) -> int:
    """The last place that surely starts a pre-token in every family with patterns: before a blank behind an ASCII letter,
    or the text's start; -1 if it is too far back."""
    floor = max(len(text) - LOOK_BACK, 0)
    at = text.rfind(" ", floor + 1)
    while at > 0:
        if text[at - 1].isascii() and text[at - 1].isalpha():
            return at
        at = text.rfind(" ", floor + 1, at)
    return -1 if floor else 0


def _split(text: str, patterns: tuple[regex.Pattern[str], ...]) -> list[str]:
    pieces = [text] if text else []
    for pattern in patterns:
        pieces = [part for piece in pieces for part in _parts(piece, pattern)]
    return pieces


def _parts(text: str, pattern: regex.Pattern[str]) -> Iterator[str]:
    """Matches of `pattern` and what lies between them."""
    at = 0
    for match in pattern.finditer(text):
        if match.start() > at:
            yield text[at : match.start()]
        if match.group():
            yield match.group()
        at = match.end()
    if at < len(text):
        yield text[at:]
