"""Outlines of whole texts, and outlines that follow edits.

Strategy: after an edit only the definitions around it are read from the tree again; nodes before them stay as they are, nodes behind
them move. The result equals reading the whole tree.

Rules:
- `outline_of` never raises and runs off the event loop (some milliseconds; the whole of a large file tens).
- Where the tree is in error, `merge_last_good` (see `merge.py`) keeps what was known before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tree_sitter

from lsp_complete.syntax.encode import BYTES
from lsp_complete.syntax.extract import capture, outline_nodes
from lsp_complete.syntax.languages import language_for, load
from lsp_complete.syntax.merge import merge_last_good
from lsp_complete.syntax.nodes import Outline, OutlineNode, Span, TierHook, default_tier, shifted
from lsp_complete.syntax.render import Level, focus_for_cursor, levels_for_cursor, render, render_node
from lsp_complete.syntax.trees import (
    SyntaxTree,
    changed_spans,
    error_spans,
    parse,
    why_not_parsed,
    wide_error,
)
from lsp_complete.text.buffer import TextBuffer

__all__ = [
    "Level", "Outline", "OutlineNode", "Span", "TierHook", "default_tier", "focus_for_cursor", "levels_for_cursor",
    "merge_last_good", "outline_of", "outline_text", "render", "render_node", "shifted", "update_outline",
]  # fmt: skip

_MAX_GROWTH = 12
_MARGIN = 1_000


def outline_of(tree: SyntaxTree) -> Outline:
    """The outline of a whole tree, read afresh."""
    nodes = outline_nodes(capture(tree), tree)
    return _outline(tree, tuple(nodes))


def outline_text(language_id: str, path: str, text: str) -> Outline | None:
    """The outline of a file that is not open; None for an unknown language, or a text that is too large or binary.

    Thread: any but the event loop's.
    """
    facts = language_for(language_id, path, text[:200].partition("\n")[0])
    buffer = TextBuffer.from_text(text)
    grammar = None if facts is None or why_not_parsed(buffer) else load(facts)
    tree = None if grammar is None else parse(grammar, buffer)
    return None if tree is None else outline_of(tree)


def _outline(tree: SyntaxTree, nodes: tuple[OutlineNode, ...]) -> Outline:
    grammar = tree.grammar
    return Outline(grammar.facts.key, grammar.version, tree.buffer.length, nodes, tuple(error_spans(tree)))


def update_outline(
    outline: Outline, before: SyntaxTree, after: SyntaxTree, spans: Sequence[tuple[int, int]]
) -> Outline:
    """The outline of `after`, from the outline of the text before, already `shifted` to the new text.

    before: the old tree, `edited` to the new text; spans: what the edits replaced, as offsets of the new text. Equals
    `outline_of(after)`, in time that depends on the definitions around the edits.
    """
    if outline.version != after.grammar.version or outline.kept or before.root.type != after.root.type:
        return outline_of(after)
    if wide_error(after) or wide_error(before):
        return outline_of(after)
    changed = [*spans, *changed_spans(before, after)]
    low, high = min(start for start, _ in changed), max(end for _, end in changed)
    start, end = _whole_lines(after, low, high)
    if end < after.buffer.length:  # a comment that is gone may have documented the next line
        end = _whole_lines(after, end, after.buffer.line_start(after.buffer.position(end)[0] + 1))[1]
    nodes = _refreshed(outline, after, start, end)
    return outline_of(after) if nodes is None else _outline(after, nodes)


def _whole_lines(tree: SyntaxTree, start: int, end: int) -> tuple[int, int]:
    buffer = tree.buffer
    last = buffer.position(end)[0]
    return buffer.line_start(buffer.position(start)[0]), buffer.line_start(last) + len(
        buffer.line_content(last)
    )


def _refreshed(outline: Outline, tree: SyntaxTree, start: int, end: int) -> tuple[OutlineNode, ...] | None:
    """Nodes of `outline` with those that touch start … end read again; None if that would not be the same as all."""
    old = outline.nodes
    fresh: list[OutlineNode] | None = None
    for _ in range(_MAX_GROWTH):
        known = [node for node in old if node.span[1] >= start - _MARGIN and node.span[0] <= end]
        grown = _grown(tree, (*known, *(fresh or ())), start, end)
        if grown == (start, end):
            if fresh is not None:
                break
            fresh = outline_nodes(capture(tree, start, end), tree)
            fresh = [node for node in fresh if node.span[0] <= end and node.span[1] >= start]
            continue
        (start, end), fresh = grown, None
    else:
        return None
    assert fresh is not None
    kept_around = [node for node in old if _around(node, start, end)]
    fresh_around = [node for node in fresh if _around(node, start, end)]
    if list(map(_identity, kept_around)) != list(map(_identity, fresh_around)):
        return None
    if tree.grammar.facts.doc == "above":  # their comments lie outside what was read, unchanged
        docs = {id(node): known.doc for known, node in zip(kept_around, fresh_around, strict=True)}
        fresh = [replace(node, doc=docs[id(node)]) if id(node) in docs else node for node in fresh]
    head = [node for node in old if node.span[1] < start]
    tail = [node for node in old if node.span[0] > end]
    return tuple(sorted((*head, *fresh, *tail), key=lambda node: (node.span[0], -node.span[1])))


def _grown(tree: SyntaxTree, nodes: Sequence[OutlineNode], start: int, end: int) -> tuple[int, int]:
    """The span grown to whole nodes, to a comment right above it and to what a comment at its end may document."""
    low, high = start, end
    first, last = (tree.buffer.position(at)[0] for at in (start, end))
    for node in nodes:
        span = node.span
        if span.start <= end and span.end >= start and not _around(node, start, end):
            low, high = min(low, span.start), max(high, span.end)
            if (
                node.role == "comment"
                and span.last_line >= last
                and span.last_line + 1 < tree.buffer.line_count
            ):
                high = max(high, tree.buffer.line_start(span.last_line + 1))
        elif node.role == "comment" and span.last_line == first - 1:
            low = min(low, span.start)
    low, high = _with_siblings(tree, low, high)
    return _whole_lines(tree, low, high)


def _with_siblings(tree: SyntaxTree, start: int, end: int) -> tuple[int, int]:
    """The span grown by what hangs on siblings in it: a wrapper (whether it belongs to a definition depends on all that it holds),
    and the definition behind attributes."""
    facts = tree.grammar.facts
    if not facts.wrappers and not facts.leading:
        return start, end
    first, last = BYTES * start, BYTES * end
    node = tree.root.named_descendant_for_byte_range(first, last)
    while node is not None and node.parent is not None and first <= node.start_byte and node.end_byte <= last:
        node = node.parent
    if node is None:
        return start, end
    if node.type in facts.wrappers:
        start, end = min(start, node.start_byte // BYTES), max(end, node.end_byte // BYTES)
    return (start, _behind_attributes(node, facts.leading, end)) if facts.leading else (start, end)


def _behind_attributes(around: tree_sitter.Node, leading: tuple[str, ...], end: int) -> int:
    """`end`, or the start of the definition behind it if attributes of that stand before `end`, however far."""
    cursor = around.walk()  # (first_named_child_for_byte gives a broken node where there is none)
    if cursor.goto_first_child_for_byte(BYTES * end) is None or cursor.node is None:
        return end
    node: tree_sitter.Node | None = cursor.node
    before = cursor.node.prev_named_sibling
    while node is not None and (node.type in leading or (before is not None and before.type in leading)):
        end = max(end, node.start_byte // BYTES)
        if node.type not in leading:
            break
        end = max(end, node.end_byte // BYTES)
        before, node = node, node.next_named_sibling
    return end


def _identity(node: OutlineNode) -> tuple[str, str, str, str]:
    return node.role, node.kind, node.name, node.container


def _around(node: OutlineNode, start: int, end: int) -> bool:
    """Whether a class holds the whole span in its body, so that its own head is not concerned."""
    return node.role == "class" and node.span.body_start < start and node.span.end > end
