"""Small facts about lines: indentation in columns, closers, words, line ends. Everything here is pure.

Rules: inside the suggestion rules text has `\\n` line ends only; the document's own line end is put back
as the last step. Indentation is spaces and tabs at a line's start, measured in columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_complete.suggest.language import LanguageFacts

_CLOSERS_ONLY = re.compile(r"[\s)\]}\"'`;,]*")
_WORD = re.compile(r"\w", re.UNICODE)
_LEADING = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class IndentStyle:
    """The file's own indentation. tabs: a level is one tab. width: columns of a level (spaces) and of a tab."""

    tabs: bool = False
    width: int = 4
    tab_width: int = 4

    def __post_init__(self) -> None:
        if self.width < 1 or self.tab_width < 1:
            raise ValueError("indentation widths must be at least 1 column")

    @property
    def unit(self) -> str:
        """One level as text."""
        return "\t" if self.tabs else " " * self.width

    @property
    def columns(self) -> int:
        """One level in columns."""
        return self.tab_width if self.tabs else self.width


def to_lf(text: str) -> str:
    """`\\r\\n` and `\\r` become `\\n`. Form feeds and U+2028 are ordinary characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def leading(line: str) -> str:
    """The spaces and tabs at the line's start."""
    found = _LEADING.match(line)
    return found.group() if found else ""


def columns(space: str, tab_width: int) -> int:
    """Width in columns of leading white space."""
    width = 0
    for char in space:
        width = width // tab_width * tab_width + tab_width if char == "\t" else width + 1
    return width


def indent_columns(line: str, tab_width: int) -> int:
    """Columns of the line's indentation."""
    return columns(leading(line), tab_width)


def is_closers(text: str) -> bool:
    """Only brackets and quotes that close, separators and white space (also true of "")."""
    return _CLOSERS_ONLY.fullmatch(text) is not None


def is_word_char(char: str) -> bool:
    """Part of an identifier."""
    return bool(char) and _WORD.match(char) is not None


def mid_word(before: str, after: str) -> bool:
    """The cursor stands inside a word."""
    return is_word_char(before[-1:]) and is_word_char(after[:1])


def opens_block(line: str, facts: LanguageFacts) -> bool:
    """The line ends with something that opens a block (a trailing line comment is not looked through)."""
    text = line.rstrip()
    if not text:
        return False
    for opener in facts.openers:
        if text.endswith(opener) and (
            not opener[-1].isalnum() or not is_word_char(text[: -len(opener)][-1:])
        ):
            return True
    words = text.split()
    return bool(facts.end_words) and (words[0] in facts.block_heads or " ".join(words[:2]) in facts.block_heads)


def closes_block(line: str, facts: LanguageFacts) -> bool:
    """The line begins with a closer or a word that ends a block."""
    text = line.strip()
    if text[:1] in tuple(")]}"):
        return bool(text)
    found = re.match(r"\w+", text)
    return found is not None and found.group() in facts.end_words


def first_nonblank(text: str) -> str:
    """The first line with something on it, or ""."""
    for line in text.split("\n"):
        if line.strip():
            return line
    return ""


def last_nonblank(text: str) -> str:
    """The last line with something on it, or ""."""
    for line in reversed(text.split("\n")):
        if line.strip():
            return line
    return ""


def split_cursor(before: str, after: str) -> tuple[str, str, str, str]:
    """(text above, line before the cursor, rest of the line, text below) from the two windows."""
    head, newline, line = before.rpartition("\n")
    rest, below_newline, below = after.partition("\n")
    return (head + newline, line, rest, below_newline + below)
