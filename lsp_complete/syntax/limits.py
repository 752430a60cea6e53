"""Texts that no parser is given, because a grammar's scanner would end the process.

Strategy: a scanner keeps what it has open (indentations, heredocs) in a stack and writes that into a buffer of 1,024 bytes, and some
write past its end (seen: YAML, Python, Ruby). The limits stand far above what anybody writes and far enough below the
end of the buffer; which of them a language needs is said by its facts.

Rules: pure, on the parse thread, one pass over the text; where nothing suspicious stands in a text that pass is a search in C.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.text.buffer import TextBuffer

_TAB = 8
_INDENT = re.compile(r"(?:^|(?<=\r))(?:[ \t\f]|\\\r?\n)+", re.MULTILINE)
_HEREDOC = re.compile(
    r"(?:(?<![\w)\]}])<<|<<(?=[~\-\"'`A-Z_]))[~-]?(?:[\"'`]([^\"'`]*)|([^\W\d]\w*))",
)
"""The start of a heredoc, or what looks like one; not a shift behind a name (`a<<b`)."""
_HEREDOC_BYTES = 5
"""What the scanner stores of a heredoc beside its word."""


def too_deep(buffer: TextBuffer, facts: LanguageFacts) -> bool:
    """Whether the language's scanner cannot bear this text."""
    if facts.max_indent and any(_deep(facts.max_indent).search(chunk.text) for chunk in buffer.chunks):
        return True
    if facts.max_depth and _may_be_deep(buffer, facts.max_depth) and _indents(buffer) > facts.max_depth:
        return True
    return bool(facts.max_heredocs) and _heredocs_beyond(buffer, facts.max_heredocs)


@lru_cache(maxsize=4)
def _deep(columns: int) -> re.Pattern[str]:
    """A line that begins with more than so many columns of blanks and list marks."""
    return re.compile(rf"(?:\A|[\r\n])[ \t?:-]{{{columns + 1}}}")


def _may_be_deep(buffer: TextBuffer, depth: int) -> bool:
    """Whether some line may be indented by more than `depth` columns (blanks, then tabs or the other way round: each half of it; or
    mixed, or over joined lines)."""
    marks = (" " * (depth // 2), "\t" * (depth // 2 // _TAB), " \t", "\\\n", "\\\r")
    return any(mark in chunk.text for mark in marks for chunk in buffer.chunks)


def _indents(buffer: TextBuffer) -> int:
    """Number of different indentations. What a scanner has open at once is ever more indented, so it is not more."""
    found: set[str] = set()
    for chunk in buffer.chunks:
        found.update(_INDENT.findall(chunk.text))
    return len({text.count(" ") + _TAB * text.count("\t") for text in found})


def _heredocs_beyond(buffer: TextBuffer, most: int) -> bool:
    """Whether more than so many bytes of heredocs are open at once. What only looks like one stays open: that makes it more."""
    opened: list[str] = []
    held = 0
    for chunk in buffer.chunks:
        if not opened and "<<" not in chunk.text:
            continue
        for line in chunk.text.replace("\r", "\n").split("\n"):
            if "<<" in line:
                words = [quoted or plain for quoted, plain in _HEREDOC.findall(line)]
                opened += words
                held += sum(map(len, words)) + _HEREDOC_BYTES * len(words)
                if held > most:
                    return True
            elif opened and (word := line.strip()) in opened:
                opened.remove(word)
                held -= len(word) + _HEREDOC_BYTES
    return False
