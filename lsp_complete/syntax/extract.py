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

import time
from bisect import bisect_left
from dataclasses import dataclass

import tree_sitter

from lsp_complete.syntax.describe import MAX_SIGNATURE, Item, describe, text_of, trim
from lsp_complete.syntax.encode import BYTES
from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.nodes import OutlineNode
from lsp_complete.syntax.passage import Passage
from lsp_complete.syntax.prose import first_sentence
from lsp_complete.syntax.trees import SyntaxTree, wide_error

MAX_NODES = 20_000
MAX_DEPTH = 100
"""Definitions inside of one another that are read; what is deeper is part of the innermost one."""
WINDOW = 65_536
"""Characters that one run of a query reads: some milliseconds."""
_TURN = 64
"""Nodes after which the interpreter lock is given to whoever waits for it."""
_ORDER = {"function": 0, "class": 1, "import": 2, "constant": 3, "comment": 4}


@dataclass(slots=True)
class Captured:
    """What one query pass found: items (unsorted) and calls as (offset, name), sorted."""

    items: list[Item]
    calls: list[tuple[int, str]]
    passage: Passage


def capture(tree: SyntaxTree, start: int | None = None, end: int | None = None) -> Captured:
    """Run the queries over the whole tree, or over the nodes that touch start … end; WINDOW characters at a time, for a query
    holds the interpreter lock."""
    items: dict[tuple[int, int, str], Item] = {}
    loose: list[tree_sitter.Node] = []
    calls: set[tuple[int, int]] = set()
    low, high = start or 0, tree.buffer.length if end is None else end
    passage = Passage.of(tree.buffer, low, high)
    if wide_error(tree):
        return Captured([], [], passage)
    high = max(high, low) + 1 if end is None else max(high, low + 1)
    for first in range(low, high, WINDOW):
        last = min(first + WINDOW, high)
        for _pattern, found in _cursor(tree.grammar.outline, first, last).matches(tree.root):
            if not _add(found, items, tree.grammar.facts, passage) and "bind" in found:
                loose.extend(found["bind"])
        time.sleep(0)
        called = _cursor(tree.grammar.calls, first, last).captures(tree.root).get("call", ())
        calls.update((node.start_byte // BYTES, node.end_byte // BYTES) for node in called)
        time.sleep(0)
    made = list(items.values())
    _attach(loose, made, passage)
    return Captured(made[:MAX_NODES], sorted((at, passage.slice(at, to)) for at, to in calls), passage)


def _cursor(query: tree_sitter.Query, start: int, end: int) -> tree_sitter.QueryCursor:
    cursor = tree_sitter.QueryCursor(query)
    cursor.set_byte_range(BYTES * start, BYTES * end)
    return cursor


def _add(
    found: dict[str, list[tree_sitter.Node]],
    items: dict[tuple[int, int, str], Item],
    facts: LanguageFacts,
    passage: Passage,
) -> bool:
    main = next((key for key in found if key.partition(".")[0] in _ORDER), None)
    if main is None:
        return False
    role, _, kind = main.partition(".")
    if "called" in found and text_of(found["called"][0], passage) not in facts.import_calls:
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
            item.container = text_of(found["container"][0], passage)
    elif name is not None and role == item.role and item.name is None:
        item.name = name
    elif name is not None and role == item.role == "constant" and name != item.name:
        item.binds.append(text_of(name, passage))
    if "body" in found and item.body is None and item.role == role:
        item.body = found["body"][0]
    item.binds.extend(text_of(bound, passage) for bound in found.get("bind", ()))
    return True


def _attach(loose: list[tree_sitter.Node], items: list[Item], passage: Passage) -> None:
    """Give names bound deep inside an import to the import around them."""
    imports = sorted((item for item in items if item.role == "import"), key=lambda item: item.node.start_byte)
    starts = [item.node.start_byte for item in imports]
    for node in loose:
        at = bisect_left(starts, node.start_byte + 1) - 1
        if at >= 0 and imports[at].node.end_byte >= node.end_byte:
            imports[at].binds.append(text_of(node, passage))


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
    facts, passage = tree.grammar.facts, captured.passage
    firsts: dict[int, tree_sitter.Node] = {}
    kept = _without_locals(captured.items)
    for item in kept:
        if item.role == "comment":
            item.start, item.end = item.node.start_byte // BYTES, item.node.end_byte // BYTES
            firsts[id(item)] = item.node
        else:
            firsts[id(item)] = _widen(item, facts)
        item.end = trim(item.start, item.end, passage)
    items = sorted(kept, key=lambda item: (item.start, -item.end, _ORDER[item.role]))
    made: list[OutlineNode] = []
    stack: list[tuple[Item, OutlineNode]] = []
    for number, item in enumerate(items):
        if number % _TURN == _TURN - 1:
            time.sleep(0)
        while stack and stack[-1][0].end <= item.start:
            stack.pop()
        if item.role in ("constant", "comment") and any(around.role != "class" for around, _ in stack):
            continue
        if stack and stack[-1][0].role in ("import", "constant") and item.role in ("import", "constant"):
            continue
        if (
            item.role == "comment"
            and made
            and made[-1].role == "comment"
            and _continues(made[-1], item, passage)
        ):
            made[-1] = _joined(made[-1], item, passage)
            continue
        node = describe(
            item, firsts[id(item)], [other for _, other in stack], captured.calls, facts, passage, made
        )
        made.append(node)
        if item.role != "comment":
            stack.append((item, node))
    return made


def _without_locals(items: list[Item]) -> list[Item]:
    """Items but for constants and comments inside functions, which would be left out later at more cost, and for what is
    deeper than MAX_DEPTH."""
    made: list[Item] = []
    inside = -1
    around: list[int] = []
    for item in sorted(items, key=lambda item: (item.node.start_byte, -item.node.end_byte)):
        while around and around[-1] <= item.node.start_byte:
            around.pop()
        if len(around) >= MAX_DEPTH:
            continue
        if item.role in ("function", "class"):
            around.append(item.node.end_byte)
        if item.role == "function":
            inside = max(inside, item.node.end_byte)
        elif item.role in ("constant", "comment") and item.node.end_byte <= inside:
            continue
        made.append(item)
    return made


def _continues(block: OutlineNode, item: Item, passage: Passage) -> bool:
    """Whether a comment goes on with the comment block above it (next line, same column, alone on its line)."""
    row, column = item.node.start_point
    if row != block.span.last_line + 1:
        return False
    return (
        column == BYTES * passage.buffer.position(block.span.start)[1]
        and not passage.slice(block.span.end, item.start).strip()
    )


def _joined(block: OutlineNode, item: Item, passage: Passage) -> OutlineNode:
    last = passage.line_of(max(item.end - 1, item.start))
    span = block.span._replace(
        end=item.end, body_start=item.end, body_end=item.end, last_line=last, body_line=last
    )
    text = passage.slice(span.start, min(span.end, span.start + MAX_SIGNATURE))
    return OutlineNode(
        "comment", block.kind, "", block.container, first_sentence(text), block.signature, (), (), span
    )
