"""Why the first differing token of a prompt differs from the one before it, in one word. Pure.

Rules: the word names the earliest part that differs, since everything behind it must be evaluated again whatever it is.

| word | meaning |
|---|---|
| "" | the prompt only grew, or was cut back at its end |
| first | there was no prompt before |
| context_changed | other files' part differs, or text of this file that opens the prefix |
| window_moved | the prefix begins elsewhere in the file |
| hidden_characters | only characters differ that nobody sees: line endings, blanks at line ends, marks of no width |
| anchor_moved | the same prefix, to another place |
| suffix_changed | the text below the cursor differs |
| edit | text that was in the prompt was changed |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INVISIBLE = re.compile("[\\ufeff\\u200b-\\u200f\\u2028-\\u202e\\u2060\\u00ad]")
_BLANK = re.compile(r"[ \t\u00a0]+(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class Parts:
    """A prompt in its parts. context: ids of what stands before the window, opening included. start: the window's offset."""

    context: tuple[int, ...]
    prefix: str
    suffix: str
    tail: str
    start: int = 0


def visible(text: str) -> str:
    """The text as a person sees it."""
    text = _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANK.sub("", text).replace("\u00a0", " ")


def why_differs(old: Parts | None, new: Parts) -> str:
    """One of the words above."""
    if old is None:
        return "first"
    if old.context != new.context:
        return "context_changed"
    if old.prefix != new.prefix:
        return _in_prefix(old, new)
    if old.suffix != new.suffix:
        return "hidden_characters" if visible(old.suffix) == visible(new.suffix) else "suffix_changed"
    if new.tail.startswith(old.tail) or old.tail.startswith(new.tail):
        return ""
    return "hidden_characters" if _hidden(old.tail, new.tail) else "edit"


def _in_prefix(old: Parts, new: Parts) -> str:
    shorter = min(len(old.prefix), len(new.prefix))
    if old.prefix[:shorter] == new.prefix[:shorter]:
        return "anchor_moved"
    if _hidden(old.prefix, new.prefix):
        return "hidden_characters"
    if old.start != new.start and old.prefix[:80] != new.prefix[:80]:
        return "window_moved"
    return "edit"


def _hidden(old: str, new: str) -> bool:
    """Whether the texts are the same to the eye, as far as both go."""
    a, b = visible(old), visible(new)
    return a.startswith(b) or b.startswith(a)
