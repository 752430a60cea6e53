"""Rules that need no tree, only lines and the language's facts: for broken code and for files without a tree.

Rules: one pass over at most a few thousand characters; a construct that spans lines (a block comment, a long string) is the tree's
business, not found here.
"""

from __future__ import annotations

from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.text.buffer import TextBuffer

_LOOK_BACK = 2_000
_MAX_LINE = 4_000
TAB_WIDTH = 4


def indent_width(line: str, tab_width: int = TAB_WIDTH) -> int:
    """Columns of leading blanks; tabs go to the next multiple of `tab_width`."""
    width = 0
    for char in line:
        if char == "\t":
            width += tab_width - width % tab_width
        elif char == " ":
            width += 1
        else:
            break
    return width


def state_on_line(text: str, facts: LanguageFacts) -> str:
    """What the end of a line's head is inside of: "string", "comment" or ""."""
    text = text[-_MAX_LINE:]
    quote, at = "", 0
    while at < len(text):
        if quote:
            if text[at] == "\\":
                at += 1
            elif text.startswith(quote, at):
                at += len(quote) - 1
                quote = ""
        elif facts.line_comment and text.startswith(facts.line_comment, at):
            return "comment"
        elif facts.block_comment and text.startswith(facts.block_comment[0], at):
            close = text.find(facts.block_comment[1], at + len(facts.block_comment[0]))
            if close < 0:
                return "comment"
            at = close + len(facts.block_comment[1]) - 1
        else:
            quote = next((mark for mark in facts.strings if text.startswith(mark, at)), "")
            if quote == "'" and _is_apostrophe(text, at):
                quote = ""
            at += max(len(quote) - 1, 0)
        at += 1
    return "string" if quote else ""


def _is_apostrophe(text: str, at: int) -> bool:
    """A quote within or before a word that is never closed: a Rust lifetime, a digit separator, a word in a comment."""
    before = text[at - 1] if at else " "
    follows = text[at + 1 : at + 2]
    closed = "'" in text[at + 1 :]
    return not closed and (before in "&<" or (before.isalnum() and follows.isalnum()))


def strip_comment(line: str, facts: LanguageFacts) -> str:
    """A line without its line comment and trailing blanks."""
    mark = facts.line_comment
    at = line.find(mark) if mark else -1
    while at >= 0:
        if not state_on_line(line[:at], facts):
            line = line[:at]
            break
        at = line.find(mark, at + 1)
    return line.rstrip()


def empty_body(buffer: TextBuffer, offset: int, facts: LanguageFacts) -> bool:
    """Whether the cursor stands on a blank line right after a block opener whose body is still empty."""
    if facts.opener is None:
        return False
    line, column = buffer.position(offset)
    here = buffer.line(line)
    rest = here[column:].strip()
    if here[:column].strip() or (rest and rest not in facts.closers):
        return False
    above = line - 1
    while above >= max(line - 20, 0) and not buffer.line(above).strip():
        above -= 1
    if above < max(line - 20, 0):
        return False
    opener = buffer.line(above)
    if not facts.opener.search(strip_comment(opener, facts)):
        return False
    below = line + 1
    while below < min(line + 20, buffer.line_count) and not buffer.line(below).strip():
        below += 1
    return below >= buffer.line_count or indent_width(buffer.line(below)) <= indent_width(
        _statement_start(buffer, above)
    )


def _statement_start(buffer: TextBuffer, line: int) -> str:
    """The first line of a header that ends in `line`: where its brackets are balanced."""
    depth = 0
    for at in range(line, max(line - 30, -1), -1):
        text = buffer.line(at)
        depth += sum(text.count(char) for char in ")]") - sum(text.count(char) for char in "([")
        if depth <= 0:
            return text
    return buffer.line(line)


def open_call(buffer: TextBuffer, offset: int, facts: LanguageFacts) -> str | None:
    """The name before the innermost `(` left open before the cursor, in the last 2,000 characters; None if there is none.

    Stops at a block's border, so an unfinished call far above does not count.
    """
    start = max(offset - _LOOK_BACK, 0)
    text = buffer.slice(start, offset)
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        char = text[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth:
                depth -= 1
            elif char == "(":
                return _name_before(text, at) or None
            else:
                return None
        elif not depth and (char == ";" or (char == "\n" and _starts_statement(text[at + 1 :], facts))):
            return None
    return None


def _starts_statement(rest: str, facts: LanguageFacts) -> bool:
    return facts.ends_block and rest[:1] not in ("", " ", "\t", "\n", "\r", ")", "]", "}", "#")


def _name_before(text: str, at: int) -> str:
    head = text[:at].rstrip(" ")
    first = len(head)
    while first and (head[first - 1].isalnum() or head[first - 1] in "_.:$@!?"):
        first -= 1
    return head[first:].lstrip(".:")
