"""The first sentence of a documentation comment or string. Pure text, no tree.

Rules: markers of comments and of documentation tools are cut off; a sentence ends at a full stop, question or
exclamation mark before a blank or the end, at a blank line or at the first tag; at most 160 characters.
"""

from __future__ import annotations

import re

MAX_SENTENCE = 160
_MARKERS = re.compile(
    r"^\s*(?:/\*+!?|\*+/|//[/!]*|\*(?!/)|#+!?|--+\[*|<!--|;+|%+)?\s?|\s*(?:\*+/|-->|\]\])\s*$"
)
_QUOTES = re.compile(r"^[A-Za-z]{0,2}(\"\"\"|'''|\"|')")
_SENTENCE = re.compile(r"(.+?[.!?。])(?=\s|$)")
_TAG = re.compile(
    r"^(?:@\w+|:\w+|\\(?:param|return|brief)\b|<param|<returns|(?:Args|Returns|Parameters|Raises):)"
)
_MARKUP = re.compile(r"</?[a-zA-Z][^>]{0,40}>|\{@\w+\s+|\\brief\s+")


def first_sentence(text: str) -> str:
    """The first sentence of a comment block or of a documentation string; "" if there is none."""
    quoted = _QUOTES.match(text)
    if quoted:
        text = text[quoted.end() :]
        text = text.partition(quoted.group(1))[0]  # what follows may hold the next documentation string
    words: list[str] = []
    for line in text.splitlines()[:12]:
        line = line.strip() if quoted else _MARKERS.sub("", line).strip()
        line = _MARKUP.sub("", line).strip(" \t}")
        if _TAG.match(line) or (not line and words):
            break
        if line and any(char.isalnum() for char in line):
            words.append(line)
        if _SENTENCE.match(" ".join(words)):
            break
    joined = " ".join(" ".join(words).split())
    found = _SENTENCE.match(joined)
    sentence = found.group(1) if found else joined
    return sentence if len(sentence) <= MAX_SENTENCE else sentence[: MAX_SENTENCE - 1].rstrip() + "…"
