"""Scanning a window that may begin in the middle of a string or a comment.

Strategy: a window of a large file starts at some line. If that line lies inside a documentation string, every later
quote would be taken the wrong way round: code for text and text for code. So both beginnings are tried where
the language has such strings, and the one under which fewer lines of code lie inside strings wins. A comment's end
without its beginning says by itself that the window began inside the comment.

Rules: plain code is assumed unless the text says otherwise; linear in the window; never raises.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.scan import Scan, State, scan

_CODE_LINE = re.compile(
    r"^[ \t]*(?:(?:def|class|func|fun|fn|public|private|protected|static|async def)\s+[\w<>\[\] ]+[({:]|return\b[^.]*$|from \S+ import|import [\w.]+(?: as \w+)?$"
    r"|@\w[\w.]*(?:\(.*)?$|(?:if|elif|while|with|for|except|try|else|finally)\b.*[:{]$|raise \w+\(|[\w.]+(?:\[[^\]\n]*\])? [-+*/]?= \S|[\w.]+\(.*\);?$)",
    re.MULTILINE,
)


@lru_cache(maxsize=8)
def scan_window(before: str, facts: LanguageFacts) -> Scan:
    """Scan the text before a cursor. Remembers the last few windows, since several rules look at the same one."""
    plain = scan(before, facts)
    if facts.block_comment:
        start, end = before.find(facts.block_comment[0]), before.find(facts.block_comment[1])
        if end >= 0 and (start < 0 or end < start) and not _in_line_comment_or_string(before, end):
            return scan(before, facts, State(comment=facts.block_comment[1]))
    marks = [m for m in facts.long_quotes if len(m) > 1 and m in before]
    if not marks:
        return plain
    mark = min(marks, key=before.find)
    other = scan(before, facts, State(string=mark))
    return other if _code_in_strings(before, other) < _code_in_strings(before, plain) else plain


def _in_line_comment_or_string(before: str, at: int) -> bool:
    line = before[before.rfind("\n", 0, at) + 1 : at]
    return any(mark in line for mark in ("//", '"', "'"))


def _code_in_strings(text: str, found: Scan) -> int:
    """Lines that look like code but lie inside a string."""
    spans = found.opaque
    count = at = 0
    for line in _CODE_LINE.finditer(text):
        start = line.end() - 1
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        if at < len(spans) and spans[at][0] < line.start():
            count += 1
    return count
