"""Tokenizing without limit of time or stack: the bounds that hold for any text.

Strategy: llama.cpp splits some families by `std::regex`, which recurses once per character of a match: 200,000 letters,
blanks or `=` in a row end the process (seen with DeepSeek-Coder, Tekken, GPT-4o and Falcon; a thread with a small stack
dies sooner). Other families are safe there, but slow on very long texts without a line end. So long runs and long
texts are handed over in parts, parted where the family's splitting ends a piece anyway: before a blank behind a letter, and in
runs of digits at multiples of three.

Rules:
- The ids are those of the whole text, with these exceptions: in the families that need it, more than MAX_RUN characters of one class
  without a place to part (signs, blanks, letters of one word); in all, more than MAX_UNCUT characters without one, or
  as many without a certain cut in a family whose splitting is not known. Those are cut at that size.
- Any text that llama.cpp is to tokenize comes through `tokenize`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import regex

from lsp_complete.text.families import family
from lsp_complete.text.tokenizer import Tokenizer

MAX_RUN = 1023
"""A multiple of three: digits are split one by one or in threes from the left, so no number is cut elsewhere than it is split."""
MAX_UNCUT = 262_143

_CLASSES = (r"[\p{L}\p{M} ]", r"\p{N}", r"\s", r"(?:[^\s\p{L}\p{N}]|[\r\n])")
"""What one match of any family can be made of: words, digits, white space, signs with the line ends behind and between."""
_LONG_RUN = regex.compile("|".join(f"{kind}{{{MAX_RUN + 1},}}" for kind in _CLASSES))


def tokenize(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of plain text, whatever it is, in bounded time per character."""
    if len(text) <= MAX_RUN:
        return tokenizer.tokenize(text)
    return [token for part in parts(text, tokenizer.pre) for token in tokenizer.tokenize(part)]


def parts(text: str, pre: str) -> list[str]:
    """`text` in parts that are safe for the pre-tokenizer `pre`; one part if it is so as a whole."""
    if len(text) <= MAX_RUN:
        return [text] if text else []
    known = family(pre)
    cuts = list(_run_cuts(text, bool(known.patterns))) if known.recursive else []
    edges = [0]
    for end in (*cuts, len(text)):
        edges += _steps(text, edges[-1], end, MAX_UNCUT, bool(known.patterns))
        if end > edges[-1]:
            edges.append(end)
    return [text[left:right] for left, right in pairwise(edges)]


def _run_cuts(text: str, known: bool) -> Iterator[int]:
    for run in _LONG_RUN.finditer(text):
        yield from _steps(text, run.start(), run.end(), MAX_RUN, known)


def _steps(text: str, start: int, end: int, most: int, known: bool) -> Iterator[int]:
    """Places that part start … end into pieces of at most `most` characters. known: whether the splitting is, so that a blank
    behind a letter is sure to begin a piece of it."""
    while end - start > most:
        place = _blank_behind_letter(text, start, start + most) if known else -1
        start = place if place > start else start + most
        yield start


def _blank_behind_letter(text: str, start: int, end: int) -> int:
    """The last blank in start+1 … end that stands behind an ASCII letter; -1 if there is none."""
    at = text.rfind(" ", start + 1, end + 1)
    while at > 0:
        if text[at - 1].isascii() and text[at - 1].isalpha():
            return at
        at = text.rfind(" ", start + 1, at)
    return -1
