"""Lines of single outline nodes, for `render.py`.

Rules:
- Line endings are gone: a line is text without its ending.
- A body of one short line is written out: leaving it out would save nothing.
- Every function is pure; the text comes from the buffer, never from the tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.lines import indent_width
from lsp_complete.syntax.nodes import OutlineNode
from lsp_complete.text.buffer import TextBuffer

MAX_LINE = 160
SHORT_BODY = 48
_MAX_NAMES = 12
_MAX_GAP, _MAX_GAP_LINES = 400, 24
_CLOSERS, _OPENERS = ")]}>;,", "([{:"
_REMARK = re.compile(r"\s+(?:#|//|--)(?=\s|$).*$|\s*/\*.*\*/$")
ANNOTATIONS = ("@", "[", "#[")
"""How lines begin that say something of the definition below them."""


def split(text: str) -> list[str]:
    """Lines of a text without their endings."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def cut(text: str) -> str:
    """A line of at most MAX_LINE characters."""
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1].rstrip() + "…"


def indent_of(buffer: TextBuffer, node: OutlineNode) -> str:
    """The blanks before a node on its line."""
    line = buffer.line(node.span.first_line)
    return line[: len(line) - len(line.lstrip(" \t"))]


def text_lines(buffer: TextBuffer, node: OutlineNode, start: int, end: int) -> list[str]:
    """Part of a node, with the indentation of its first line; up to its end with the `;` or `,` that follows."""
    return split(
        indent_of(buffer, node)
        + buffer.slice(start, end)
        + (closing_mark(buffer, node) if end == node.span.end else "")
    )


def closing_mark(buffer: TextBuffer, node: OutlineNode) -> str:
    """The `;` or `,` right behind a node, which grammars leave to what is around it."""
    mark = buffer.slice(node.span.end, node.span.end + 1)
    return mark if mark in (";", ",") else ""


def mid_line(buffer: TextBuffer, node: OutlineNode) -> bool:
    """Whether other text stands before the node on its line."""
    start = buffer.line_start(node.span.first_line)
    return bool(buffer.slice(start, node.span.start).strip())


def header(buffer: TextBuffer, node: OutlineNode) -> list[str]:
    """Lines up to the body, without trailing blanks."""
    lines = text_lines(buffer, node, node.span.start, node.span.body_start)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    lines[-1] = lines[-1].rstrip()
    return lines


def _comment(facts: LanguageFacts, text: str) -> str:
    if facts.line_comment:
        return f"{facts.line_comment} {text}"
    if facts.block_comment:
        return f"{facts.block_comment[0]} {text} {facts.block_comment[1]}"
    return f"... {text}"


def placeholder(buffer: TextBuffer, facts: LanguageFacts, hidden: Sequence[OutlineNode]) -> list[str]:
    """One comment line that names what is left out."""
    names = [node.name for node in hidden if node.name and node.role in ("function", "class", "constant")]
    if not names:
        return []
    text = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    return [indent_of(buffer, hidden[0]) + _comment(facts, cut(text))]


def signature_lines(buffer: TextBuffer, facts: LanguageFacts, node: OutlineNode) -> list[str]:
    """Header and an elision; the whole node if its body is one short line."""
    span = node.span
    body = buffer.slice(span.body_start, span.body_end)
    bare = body.strip()
    if len(bare) <= SHORT_BODY and "\n" not in bare and "\r" not in bare:
        return text_lines(buffer, node, span.start, span.end)
    lines = header(buffer, node)
    tail = " ".join(buffer.slice(span.body_end, span.end).split()) + closing_mark(buffer, node)
    elision = {"{": "{ ... }", "(": "( ... )"}.get(
        body[:1], "..." if facts.elision[:1] in "{(" else facts.elision
    )
    lines[-1] = f"{lines[-1]} {elision}{' ' if tail[:1].isalnum() else ''}{tail}"
    return lines


def head_lines(buffer: TextBuffer, facts: LanguageFacts, node: OutlineNode, count: int) -> list[str]:
    """Header, the first `count` lines of the body, an elision at their indentation, and the closer."""
    span = node.span
    body = split(buffer.slice(span.body_start, span.body_end).rstrip())
    opener, rest = body[0].strip(), body[1:]
    inside = [line for line in rest if line.strip()]
    if len(inside) <= count + 2:
        return text_lines(buffer, node, span.start, span.end)
    lines = header(buffer, node)
    lines[-1] = f"{lines[-1]} {opener}".rstrip()
    kept: list[str] = []
    for line in rest:
        if sum(1 for one in kept if one.strip()) == count:
            break
        kept.append(line)
    blanks = inside[0][: len(inside[0]) - len(inside[0].lstrip(" \t"))]
    closes = opener[:1] in ("{", "(") or bool(buffer.slice(span.body_end, span.end).strip())
    tail = buffer.slice(span.body_end, span.end).strip() + closing_mark(buffer, node)
    last = (
        [indent_of(buffer, node) + (body[-1].strip() if opener[:1] in ("{", "(") else "") + tail]
        if closes
        else []
    )
    return [*lines, *kept, f"{blanks}{facts.elision.strip('{}() ') or '...'}", *last]


def one_line(buffer: TextBuffer, facts: LanguageFacts, node: OutlineNode) -> list[str]:
    """Signature folded into one line, an elision for what is left out, and the doc sentence as a comment."""
    span = node.span
    if node.role == "comment":
        return [indent_of(buffer, node) + _comment(facts, cut(node.doc))] if node.doc else []
    if node.role == "constant":
        row = _main_line(buffer, node)
        first, last = buffer.line_content(row).rstrip(), buffer.line_content(span.last_line).strip()
        return [cut(left_out(first, last) if span.last_line > row else first)]
    text = buffer.slice(
        span.start, min(span.body_start if node.has_body else span.end, span.start + 4 * MAX_LINE)
    )
    folded = " ".join(text.split()) + (f" {facts.elision}" if node.has_body else "")
    if node.doc and node.role in ("function", "class") and len(folded) + len(node.doc) < MAX_LINE:
        folded += "  " + _comment(facts, node.doc)
    return [cut(indent_of(buffer, node) + folded)]


def _main_line(buffer: TextBuffer, node: OutlineNode) -> int:
    """The first line of a node, or that of its name if annotations stand in lines above it."""
    span = node.span
    if not buffer.line_content(span.first_line).lstrip().startswith(ANNOTATIONS):
        return span.first_line
    return min(max(buffer.position(span.name_start)[0], span.first_line), span.last_line)


def left_out(first: str, last: str) -> str:
    """The first line of a statement of several, an elision, and what closes it, if the last line is only that."""
    code = _code(first)
    closes = code[-1:] in ("(", "[", "{") and last and all(char in _CLOSERS for char in last)
    return f"{code} ... {last}" if closes else f"{first} ..."


def _code(line: str) -> str:
    """A line without the comment behind it."""
    return _REMARK.sub("", line) or line


def base_indent(buffer: TextBuffer, nodes: Sequence[OutlineNode], nested: bool) -> int:
    """Columns at which the statements of a block begin."""
    if not nested or not nodes:
        return 0
    return min(indent_width(buffer.line(node.span.first_line)) for node in nodes)


def gap(
    buffer: TextBuffer, first: int, end: int, base: int, focus: tuple[int, int], pending: list[int], inner: int = 0
) -> list[str]:
    """Of the lines first … end-1, which belong to no node: those in focus, the first line of each statement, and the lines that
    open what the node behind the gap stands in.

    inner: columns at which that node begins (0 if none follows). pending: columns of lines that earlier gaps of the same block
    left open around nodes; the line that closes one is written too.
    """
    around = _openers(buffer, first, end, base, inner)
    last = min(end, first + _MAX_GAP) if focus[0] < 0 else end
    made: list[str] = []
    closed = -1
    for line in [*range(first, last), *(far for far in around if far >= last)]:
        if line == closed:
            continue
        text = buffer.line_content(line).rstrip()
        indent, shown = indent_width(text), focus[0] <= line <= focus[1]
        if line in around:
            pending.append(indent)
            opened = shown or _follows(buffer, line + 1, {*around, end})
            made.append(text if opened else f"{text} ...")
        elif text and text.lstrip()[0] in _CLOSERS and pending and indent <= pending[-1]:
            while pending and indent <= pending[-1]:
                pending.pop()
            made.append(text)
        elif shown:
            made.append(text)
        elif text and text.lstrip()[0] not in _CLOSERS and indent <= base and len(made) <= _MAX_GAP_LINES:
            below = buffer.line_content(line + 1)
            deeper = bool(below.strip()) and indent_width(below) > indent and line + 1 < end
            closed = _last_line(buffer, line, end, indent) if deeper else -1
            made.append(cut(left_out(text, buffer.line_content(closed).strip()) if deeper else text))
    while made and not made[-1].strip():
        made.pop()
    return made


def _last_line(buffer: TextBuffer, line: int, end: int, indent: int) -> int:
    """The line that closes a statement begun in `line`, in the same column; -1 if there is none before `end`."""
    for below in range(line + 1, min(end, line + _MAX_GAP)):
        text = buffer.line_content(below)
        if text.strip() and indent_width(text) <= indent:
            return below if text.strip()[0] in _CLOSERS else -1
    return -1


def _openers(buffer: TextBuffer, first: int, end: int, base: int, inner: int) -> list[int]:
    """Lines of a gap that open a block around the node behind it, outermost first: each ends in an opener and is indented less
    than the next one."""
    found: list[int] = []
    width = inner
    for line in range(end - 1, max(first, end - _MAX_GAP) - 1, -1):
        text = buffer.line_content(line).rstrip()
        if width <= base:
            break
        if text and indent_width(text) < width:
            width = indent_width(text)
            if _code(text)[-1] in _OPENERS:
                found.append(line)
    return found[::-1]


def _follows(buffer: TextBuffer, line: int, lines: set[int]) -> bool:
    """Whether the next line that is not blank, from `line` on, is one of `lines`."""
    last = max(lines)
    while line < last and not buffer.line_content(line).strip():
        line += 1
    return line in lines
