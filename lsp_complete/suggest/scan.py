"""A light scanner: which brackets, strings and comments a piece of text leaves open.

Strategy: one regular expression per language finds the few characters that matter; everything between
them is skipped at C speed. A scan can go on from the state of an earlier one, so the text before the cursor
is scanned once and each variant of a suggestion costs only its own length.

Rules:
- Never raises, never loops: any text gives a state.
- A closer that does not fit what is open is recorded and changes nothing.
- A one-line string ends at the line end, whether or not it was closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from lsp_complete.suggest.language import LanguageFacts

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}
INTERPOLATION = "${"
_CHAR = r"'(?:\\(?:x[0-9a-fA-F]{2}|u\{?[0-9a-fA-F_]+\}?|[^\n])|[^'\\\n])'"


@dataclass(frozen=True, slots=True)
class State:
    """What is open at a point: brackets (outermost first), the mark that ends the open string, the
    mark that ends the open comment ("\\n" for a line comment). "" means none."""

    stack: tuple[str, ...] = ()
    string: str = ""
    comment: str = ""

    @property
    def in_code(self) -> bool:
        """Neither inside a string nor a comment."""
        return not self.string and not self.comment


@dataclass(frozen=True, slots=True)
class Outer:
    """A closer that closes nothing opened within the scanned text. fits: True if the state before had
    its opener on top, False if another was on top, None if nothing was open (the window may begin later)."""

    offset: int
    char: str
    fits: bool | None


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of one scan. outer: see `Outer`, in order. opened: offsets of brackets and strings that the
    text opened and did not close, in order. string_end: offset where a string open at the start ended, or -1.
    opaque: (start, end) spans of strings and comments."""

    end: State
    outer: tuple[Outer, ...] = ()
    opened: tuple[int, ...] = ()
    string_end: int = -1
    opaque: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=64)
def _pattern(facts: LanguageFacts) -> re.Pattern[str]:
    parts = [f"(?P<block>{re.escape(facts.block_comment[0])})"] if facts.block_comment else []
    parts += [f"(?P<line>{'|'.join(re.escape(c) for c in facts.line_comments)})"] if facts.line_comments else []
    quotes = sorted((*facts.long_quotes, *facts.quotes), key=len, reverse=True)
    if facts.char_quote:
        parts.append(f"(?P<char>{_CHAR})")
    if quotes:
        parts.append(f"(?P<quote>{'|'.join(re.escape(q) for q in quotes)})")
    parts.append(r"(?P<bracket>[()\[\]{}])")
    return re.compile("|".join(parts))


@lru_cache(maxsize=64)
def _string_pattern(mark: str, long: bool, raw: bool) -> re.Pattern[str]:
    parts = [re.escape(mark)] if raw else [r"\\(?s:.)", re.escape(mark)]
    parts += [re.escape(INTERPOLATION)] if mark == "`" and not raw else []
    parts += [] if long else ["\n"]
    return re.compile("|".join(parts))


class _Scanner:
    """The mutable part of one scan; lives only inside `scan`."""

    __slots__ = ("base", "comment", "facts", "offsets", "opaque", "outer", "stack", "string", "string_at")

    def __init__(self, facts: LanguageFacts, state: State) -> None:
        self.facts = facts
        self.stack = list(state.stack)
        self.base = len(self.stack)
        self.offsets: list[int] = []
        self.string, self.comment = state.string, state.comment
        self.string_at = -1
        self.outer: list[Outer] = []
        self.opaque: list[tuple[int, int]] = []

    def code(self, text: str, at: int) -> int:
        found = _pattern(self.facts).search(text, at)
        if found is None:
            return len(text)
        kind, word = found.lastgroup, found.group()
        if kind == "bracket":
            self.bracket(word, found.start())
        elif kind == "line":
            self.comment = "\n"
            return found.start()
        elif kind == "block":
            self.comment = self.facts.block_comment[1]
        elif kind == "quote":
            self.string, self.string_at = word, found.start()
        else:
            self.opaque.append(found.span())
        return found.end()

    def bracket(self, char: str, at: int) -> None:
        if char in OPENERS:
            self.stack.append(char)
            self.offsets.append(at)
            return
        top = self.stack[-1] if self.stack else ""
        own = len(self.stack) > self.base
        if char == "}" and top == INTERPOLATION:
            self.string, self.string_at = "`", at
        elif top != CLOSERS[char]:
            self.outer.append(Outer(at, char, None if not top else False))
            return
        if not own:
            self.outer.append(Outer(at, char, True))
            self.base -= 1
        else:
            self.offsets.pop()
        self.stack.pop()

    def inside_string(self, text: str, at: int) -> int:
        long = self.string in self.facts.long_quotes
        start = max(self.string_at, 0) if self.string_at >= 0 else at
        raw = self.string in self.facts.raw_quotes
        for found in _string_pattern(self.string, long, raw).finditer(text, at):
            word = found.group()
            if word[0] == "\\" and word != self.string:
                continue
            self.opaque.append((start, found.end()))
            self.string, self.string_at = "", -1
            if word == INTERPOLATION:
                self.stack.append(INTERPOLATION)
                self.offsets.append(found.start())
            return found.start() if word == "\n" else found.end()
        self.opaque.append((start, len(text)))
        return len(text)

    def inside_comment(self, text: str, at: int) -> int:
        end = text.find(self.comment, at)
        stop = len(text) if end < 0 else end + (0 if self.comment == "\n" else len(self.comment))
        self.opaque.append((at, stop))
        if end >= 0:
            self.comment = ""
        return stop


def scan(text: str, facts: LanguageFacts, state: State | None = None) -> Scan:
    """Scan `text`, beginning in `state` (plain code if None). Linear in the text. Any thread."""
    s = _Scanner(facts, state or State())
    at, string_end, began_in_string = 0, -1, bool(s.string)
    while at < len(text):
        if s.comment:
            at = s.inside_comment(text, at)
        elif s.string:
            at = s.inside_string(text, at)
            if began_in_string and string_end < 0 and not s.string:
                string_end = s.opaque[-1][1]
        else:
            at = s.code(text, at)
    opened = [*s.offsets, *([s.string_at] if s.string and s.string_at >= 0 else [])]
    end = State(tuple(s.stack), s.string, s.comment)
    return Scan(end, tuple(s.outer), tuple(sorted(opened)), string_end, tuple(s.opaque))


def code_only(text: str, facts: LanguageFacts, state: State | None = None) -> str:
    """The text with strings and comments replaced by spaces (line ends kept), same length."""
    out, at = [], 0
    for start, end in scan(text, facts, state).opaque:
        if end <= at:
            continue
        start = max(start, at)
        out.append(text[at:start])
        out.append(re.sub(r"[^\n]", " ", text[start:end]))
        at = end
    out.append(text[at:])
    return "".join(out)
