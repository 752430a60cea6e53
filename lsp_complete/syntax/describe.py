"""What an outline node says of a captured node: name, kind, body, signature, documentation, calls.

Rules: text comes from the buffer; every function is pure but for reading tree nodes. Nothing here names a language: facts and
captures decide.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import islice

import tree_sitter

from lsp_complete.syntax.encode import BYTES
from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.nodes import OutlineNode, Span
from lsp_complete.syntax.passage import Passage
from lsp_complete.syntax.pieces import ANNOTATIONS
from lsp_complete.syntax.prose import first_sentence

MAX_SIGNATURE = 600
MAX_CALLS = 1_000
"""Different names called in one function that are kept."""
_ARGUMENTS = re.compile(r"<[^<>]*>")


@dataclass(slots=True)
class Item:
    """One captured node on its way to an outline node."""

    role: str
    kind: str
    node: tree_sitter.Node
    name: tree_sitter.Node | None = None
    body: tree_sitter.Node | None = None
    opened: bool = False
    container: str = ""
    binds: list[str] = field(default_factory=list)
    start: int = 0
    end: int = 0


def text_of(node: tree_sitter.Node, passage: Passage) -> str:
    """A node's text."""
    return passage.slice(node.start_byte // BYTES, node.end_byte // BYTES)


def trim(start: int, end: int, passage: Passage) -> int:
    """Where a node's text ends without the line ends and blanks that some grammars count in."""
    tail = passage.slice(max(start, end - 200), end)
    return end - (len(tail) - len(tail.rstrip()))


def describe(
    item: Item,
    first: tree_sitter.Node,
    around: list[OutlineNode],
    calls: list[tuple[int, str]],
    facts: LanguageFacts,
    passage: Passage,
    made: list[OutlineNode],
) -> OutlineNode:
    """The outline node of an item. first: the item's node with attributes before it; around: definitions that hold it;
    made: nodes before it."""
    name, own = _split_name(text_of(item.name, passage) if item.name is not None else "", facts)
    if item.role == "import" and not name:
        name = " ".join(passage.slice(item.start, item.end).rstrip(";").split()[1:])[:200]
    body_start, body_end = _body(item, passage)
    first_line = first.start_point[0]
    end_line = passage.line_of(max(item.end - 1, item.start))
    if item.body is None and facts.body_below and item.role == "class" and end_line > first_line:
        body_start = passage.buffer.line_start(first_line + 1)
    body_line = item.body.start_point[0] if item.body is not None else passage.line_of(body_start)
    body_line = body_line if body_start < body_end else end_line
    if body_start >= body_end:
        body_start = body_end = item.end
    name_start = item.name.start_byte // BYTES if item.name is not None else item.start
    span = Span(  # a name that is missing may stand behind the blanks that were cut off
        item.start, item.end, min(name_start, item.end),
        body_start, body_end, first_line, end_line, body_line,
    )  # fmt: skip
    outer = [node.name for node in around if node.name]
    if item.container or own:
        outer.append(item.container or own)
    return OutlineNode(
        item.role,
        _kind(item, around),
        name,
        ".".join(outer),
        _doc(item, span, facts, passage, made),
        _signature(item, span, passage),
        _called(calls, item) if item.role == "function" else (),
        tuple(dict.fromkeys(item.binds)),
        span,
    )


def _body(item: Item, passage: Passage) -> tuple[int, int]:
    """Start and end of the body: from its brace, or else from the end of the header (comments in between belong to it)."""
    if item.body is None:
        return item.end, item.end
    start, end = item.body.start_byte // BYTES, item.body.end_byte // BYTES
    if item.opened:
        return start, item.end
    if passage.slice(start, start + 1) not in ("{", "("):
        before = item.body.prev_sibling
        while before is not None and before.is_extra:
            before = before.prev_sibling
        start = before.end_byte // BYTES if before is not None else start
    return start, trim(start, min(end, item.end), passage)


def _kind(item: Item, around: list[OutlineNode]) -> str:
    inside = (
        bool(around)
        and around[-1].role == "class"
        and around[-1].kind not in ("namespace", "module", "group")
    )
    if item.role == "function" and item.kind in ("", "function"):
        return "method" if inside else "function"
    if item.role == "constant" and item.kind in ("", "variable"):
        return "field" if inside else item.kind or "constant"
    return item.kind or item.role


def _split_name(text: str, facts: LanguageFacts) -> tuple[str, str]:
    """(name, container) of a definition's name as written; quotes around module names go."""
    text = " ".join(text.split())[:200]
    if len(text) > 1 and text[0] in "\"'`<" and text[-1] in "\"'`>":
        text = text[1:-1]
    separator = facts.name_separator
    if separator and separator in text:
        while (bare := _ARGUMENTS.sub("", text)) != text:
            text = bare
        container, _, name = text.rpartition(separator)
        return name, container.replace(separator, ".")
    return text, ""


def _called(calls: list[tuple[int, str]], item: Item) -> tuple[str, ...]:
    low = bisect_left(calls, (item.start, ""))
    high = bisect_left(calls, (item.end, ""))
    return tuple(islice(dict.fromkeys(name for _, name in calls[low:high]), MAX_CALLS))


def _signature(item: Item, span: Span, passage: Passage) -> str:
    if item.role == "comment":
        return ""
    start, end = span.start, span.body_start if span.body_start < span.body_end else span.end
    if item.role == "constant" and passage.slice(start, start + 2).startswith(ANNOTATIONS):
        start = max(start, passage.buffer.line_start(passage.line_of(span.name_start)))
    text = passage.slice(start, min(end, start + MAX_SIGNATURE)).strip()
    if item.role == "constant" and "\n" in text:
        text = text.partition("\n")[0].rstrip()
    return text


def _doc(item: Item, span: Span, facts: LanguageFacts, passage: Passage, made: list[OutlineNode]) -> str:
    if item.role == "comment":
        return first_sentence(passage.slice(span.start, min(span.end, span.start + MAX_SIGNATURE)))
    if item.role == "import":
        return ""
    if facts.doc == "body" and item.body is not None:
        head = passage.slice(span.body_start, min(span.body_end, span.body_start + MAX_SIGNATURE)).lstrip()
        if head[:1] in "\"'" or (head[:1] in "rRuUbB" and head[1:2] in "\"'"):
            return first_sentence(head)
    if (
        facts.doc != "none"
        and made
        and made[-1].role == "comment"
        and made[-1].span.last_line == span.first_line - 1
    ):
        return made[-1].doc
    return ""
