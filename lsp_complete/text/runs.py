"""Tokenizing without limit of time or stack: the bounds that hold for any text.

Strategy: llama.cpp splits some families by `std::regex`, which recurses once per character of a match: 200,000 letters,
blanks or `=` in a row end the process (seen with DeepSeek-Coder, Tekken, GPT-4o and Falcon; a thread with a small stack
dies sooner). Other families are safe there, but slow on very long texts without a line end. So long runs and long
texts are handed over in parts.

Rules:
- The one exception to "ids are those of the whole text": a run of more than MAX_RUN characters of one class, in the
  families that need it, and a text without a certain cut of more than MAX_UNCUT characters, are tokenized in parts
  of that size.
- Any text that llama.cpp is to tokenize comes through `tokenize`.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from lsp_complete.text.families import family
from lsp_complete.text.tokenizer import Tokenizer

MAX_RUN = 1024
MAX_UNCUT = 65_536

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
    cuts = _run_cuts(text) if family(pre).recursive else ()
    found, start = [], 0
    for end in (*cuts, len(text)):
        for stop in (*range(start + MAX_UNCUT, end, MAX_UNCUT), end):
            found.append(text[start:stop])
            start = stop
    return found


def _run_cuts(text: str) -> Iterator[int]:
    for run in _LONG_RUN.finditer(text):
        yield from range(run.start() + MAX_RUN, run.end(), MAX_RUN)
