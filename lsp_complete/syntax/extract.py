"""From a tree to outline nodes, for a whole text or for a part of it.

Strategy: one query pass gives definitions, imports and comments, another what is called; captures are merged by node, sorted
by position and nested by their spans. All decisions about languages are in the queries and facts.

Rules:
- Capture names: `@function[.kind]`, `@class[.kind]`, `@constant[.kind]`, `@import[.kind]` name the node, `@name`, `@body`
  (or `@open`, the bracket at which the body begins), `@container`, `@module`, `@bind` its parts; `@call` is the name of what is called, `@comment` a comment.
- `@called` beside `@import.call` must be one of the facts' `import_calls`, or it is no import.
- One node matched several times is one item: function before class before import before constant; further names are binds.
- Constants and comments inside functions are local and left out.
- A query limited to a part gives whole nodes that touch the part, the ones around it included.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

import tree_sitter

from lsp_complete.syntax.encode import BYTES
from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.nodes import OutlineNode, Span
from lsp_complete.syntax.prose import first_sentence
from lsp_complete.syntax.trees import SyntaxTree
from lsp_complete.text.buffer import TextBuffer

MAX_NODES = 20_000
MAX_SIGNATURE = 600
_ARGUMENTS = re.compile(r"<[^<>]*>")
_ORDER = {"function": 0, "class": 1, "import": 2, "constant": 3, "comment": 4}


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


@dataclass(slots=True)
class Captured:
    """What one query pass found: items (unsorted) and calls as (offset, name), sorted."""

    items: list[Item]
    calls: list[tuple[int, str]]


def text_of(node: tree_sitter.Node, buffer: TextBuffer) -> str:
    """A node's text, from the buffer."""
    return buffer.slice(node.start_byte // BYTES, node.end_byte // BYTES)


def capture(tree: SyntaxTree, start: int | None = None, end: int | None = None) -> Captured:
    """Run the queries over the whole tree, or over the nodes that touch start … end."""
    items: dict[tuple[int, int, str], Item] = {}
    loose: list[tree_sitter.Node] = []
    for _pattern, found in _cursor(tree.grammar.outline, start, end).matches(tree.root):
        if not _add(found, items, tree) and "bind" in found:
            loose.extend(found["bind"])
    made = list(items.values())
    _attach(loose, made, tree.buffer)
    return Captured(made[:MAX_NODES], _calls(tree, start, end))


def _cursor(query: tree_sitter.Query, start: int | None, end: int | None) -> tree_sitter.QueryCursor:
    cursor = tree_sitter.QueryCursor(query)
    if start is not None and end is not None:
        cursor.set_byte_range(BYTES * start, BYTES * max(end, start + 1))
    return cursor


def _calls(tree: SyntaxTree, start: int | None, end: int | None) -> list[tuple[int, str]]:
    """(offset, name) of every call, sorted. The text is taken from the buffer once: a slice per call would cost more than the
    query."""
    nodes = _cursor(tree.grammar.calls, start, end).captures(tree.root).get("call", [])
    spans = {(node.start_byte // BYTES, node.end_byte // BYTES) for node in nodes}
    if not spans:
        return []
    low, high = min(spans)[0], max(last for _, last in spans)
    text = tree.buffer.slice(low, high)
    return sorted((first, text[first - low : last - low]) for first, last in spans)


def _add(
    found: dict[str, list[tree_sitter.Node]], items: dict[tuple[int, int, str], Item], tree: SyntaxTree
) -> bool:
    main = next((key for key in found if key.partition(".")[0] in _ORDER), None)
    if main is None:
        return False
    role, _, kind = main.partition(".")
    if "called" in found and text_of(found["called"][0], tree.buffer) not in tree.grammar.facts.import_calls:
        return True
    node = found[main][0]
    group = "definition" if role in ("function", "class", "constant") else role
    key = (node.start_byte, node.end_byte, group)
    item = items.get(key)
    names = found.get("name") or found.get("module")
    name = names[0] if names else None
    if item is None or _ORDER[role] < _ORDER[item.role]:
        item = items[key] = Item(role, kind, node, name, found["body"][0] if "body" in found else None)
        if "open" in found:
            item.body, item.opened = found["open"][0], True
        if "container" in found:
            item.container = text_of(found["container"][0], tree.buffer)
    elif name is not None and role == item.role and item.name is None:
        item.name = name
    elif name is not None and role == item.role == "constant" and name != item.name:
        item.binds.append(text_of(name, tree.buffer))
    if "body" in found and item.body is None and item.role == role:
        item.body = found["body"][0]
    item.binds.extend(text_of(bound, tree.buffer) for bound in found.get("bind", ()))
    return True


def _attach(loose: list[tree_sitter.Node], items: list[Item], buffer: TextBuffer) -> None:
    """Give names bound deep inside an import to the import around them."""
    imports = sorted((item for item in items if item.role == "import"), key=lambda item: item.node.start_byte)
    starts = [item.node.start_byte for item in imports]
    for node in loose:
        at = bisect_left(starts, node.start_byte + 1) - 1
        if at >= 0 and imports[at].node.end_byte >= node.end_byte:
            imports[at].binds.append(text_of(node, buffer))


def _widen(item: Item, facts: LanguageFacts) -> tree_sitter.Node:
    """The node with its wrappers; `item.start` is set to include attributes that stand before it."""
    node = item.node
    while facts.wrappers and node.parent is not None and node.parent.type in facts.wrappers:
        around = node.parent
        if any(other.type == node.type and other != node for other in around.named_children):
            break
        node = around
    first = node
    while facts.leading:
        before = first.prev_named_sibling
        if before is None or before.type not in facts.leading:
            break
        first = before
    item.start, item.end = first.start_byte // BYTES, node.end_byte // BYTES
    item.node = node
    return first


def outline_nodes(captured: Captured, tree: SyntaxTree) -> list[OutlineNode]:
    """Outline nodes of what was captured, sorted and nested. Pure but for reading the tree."""
    facts, buffer = tree.grammar.facts, tree.buffer
    firsts: dict[int, tree_sitter.Node] = {}
    for item in captured.items:
        if item.role == "comment":
            item.start, item.end = item.node.start_byte // BYTES, item.node.end_byte // BYTES
            firsts[id(item)] = item.node
        else:
            firsts[id(item)] = _widen(item, facts)
        item.end = _trim(item.start, item.end, buffer)
    items = sorted(captured.items, key=lambda item: (item.start, -item.end, _ORDER[item.role]))
    made: list[OutlineNode] = []
    stack: list[tuple[Item, OutlineNode]] = []
    comments: list[Item] = []
    for item in items:
        while stack and stack[-1][0].end <= item.start:
            stack.pop()
        if item.role in ("constant", "comment") and any(around.role != "class" for around, _ in stack):
            continue
        if stack and stack[-1][0].role in ("import", "constant") and item.role in ("import", "constant"):
            continue
        if item.role == "comment":
            comments.append(item)
            if made and made[-1].role == "comment" and _continues(made[-1], item, buffer):
                made[-1] = _joined(made[-1], item, buffer)
                continue
        node = _node(item, firsts[id(item)], [other for _, other in stack], captured.calls, tree, made)
        made.append(node)
        if item.role != "comment":
            stack.append((item, node))
    return made


def _trim(start: int, end: int, buffer: TextBuffer) -> int:
    """Where a node's text ends without the line ends and blanks that some grammars count in."""
    tail = buffer.slice(max(start, end - 200), end)
    return end - (len(tail) - len(tail.rstrip()))


def _continues(block: OutlineNode, item: Item, buffer: TextBuffer) -> bool:
    """Whether a comment goes on with the comment block above it (next line, same column, alone on its line)."""
    row, column = item.node.start_point
    if row != block.span.last_line + 1:
        return False
    return column == BYTES * buffer.position(block.span.start)[1] and not buffer.slice(block.span.end, item.start).strip()


def _joined(block: OutlineNode, item: Item, buffer: TextBuffer) -> OutlineNode:
    last = buffer.position(max(item.end - 1, item.start))[0]
    span = block.span._replace(end=item.end, body_start=item.end, body_end=item.end, last_line=last, body_line=last)
    text = buffer.slice(span.start, min(span.end, span.start + MAX_SIGNATURE))
    return OutlineNode("comment", block.kind, "", block.container, first_sentence(text), block.signature, (), (), span)


def _node(
    item: Item,
    first: tree_sitter.Node,
    around: list[OutlineNode],
    calls: list[tuple[int, str]],
    tree: SyntaxTree,
    made: list[OutlineNode],
) -> OutlineNode:
    facts, buffer = tree.grammar.facts, tree.buffer
    name, own = _split_name(text_of(item.name, buffer) if item.name is not None else "", facts)
    if item.role == "import" and not name:
        name = " ".join(buffer.slice(item.start, item.end).rstrip(";").split()[1:])[:200]
    body_start, body_end = _body(item, buffer)
    first_line = first.start_point[0]
    end_line = buffer.position(max(item.end - 1, item.start))[0]
    if item.body is None and facts.body_below and item.role == "class" and end_line > first_line:
        body_start = buffer.line_start(first_line + 1)
    body_line = item.body.start_point[0] if item.body is not None else buffer.position(body_start)[0]
    body_line = body_line if body_start < body_end else end_line
    if body_start >= body_end:
        body_start = body_end = item.end
    span = Span(
        item.start, item.end, item.name.start_byte // BYTES if item.name is not None else item.start,
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
        _doc(item, span, facts, buffer, made),
        _signature(item, span, buffer),
        _called(calls, item) if item.role == "function" else (),
        tuple(dict.fromkeys(item.binds)),
        span,
    )


def _body(item: Item, buffer: TextBuffer) -> tuple[int, int]:
    """Start and end of the body: from its brace, or else from the end of the header (comments in between belong to it)."""
    if item.body is None:
        return item.end, item.end
    start, end = item.body.start_byte // BYTES, item.body.end_byte // BYTES
    if item.opened:
        return start, item.end
    if buffer.slice(start, start + 1) not in ("{", "("):
        before = item.body.prev_sibling
        while before is not None and before.is_extra:
            before = before.prev_sibling
        start = before.end_byte // BYTES if before is not None else start
    return start, _trim(start, min(end, item.end), buffer)


def _kind(item: Item, around: list[OutlineNode]) -> str:
    inside = bool(around) and around[-1].role == "class" and around[-1].kind not in ("namespace", "module", "group")
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
    return tuple(dict.fromkeys(name for _, name in calls[low:high]))


def _signature(item: Item, span: Span, buffer: TextBuffer) -> str:
    if item.role == "comment":
        return ""
    end = span.body_start if span.body_start < span.body_end else span.end
    text = buffer.slice(span.start, min(end, span.start + MAX_SIGNATURE)).rstrip()
    if item.role == "constant" and "\n" in text:
        text = text.partition("\n")[0].rstrip()
    return text


def _doc(item: Item, span: Span, facts: LanguageFacts, buffer: TextBuffer, made: list[OutlineNode]) -> str:
    if item.role == "comment":
        return first_sentence(buffer.slice(span.start, min(span.end, span.start + MAX_SIGNATURE)))
    if item.role == "import":
        return ""
    if facts.doc == "body" and item.body is not None:
        head = buffer.slice(span.body_start, min(span.body_end, span.body_start + MAX_SIGNATURE)).lstrip()
        if head[:1] in "\"'" or (head[:1] in "rRuUbB" and head[1:2] in "\"'"):
            return first_sentence(head)
    if facts.doc != "none" and made and made[-1].role == "comment" and made[-1].span.last_line == span.first_line - 1:
        return made[-1].doc
    return ""
