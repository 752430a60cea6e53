"""Outlines of whole texts, and outlines that follow edits.

Strategy: after an edit only the definitions around it are read from the tree again; nodes before them stay as they are, nodes behind
them move. The result equals reading the whole tree.

Rules:
- `outline_of` never raises and runs off the event loop (some milliseconds; the whole of a large file tens).
- Where the tree is in error, `merge_last_good` (see `merge.py`) keeps what was known before.
"""

from __future__ import annotations

from collections.abc import Sequence

from lsp_complete.syntax.extract import capture, outline_nodes
from lsp_complete.syntax.merge import merge_last_good
from lsp_complete.syntax.nodes import Outline, OutlineNode, Span, TierHook, default_tier, shifted
from lsp_complete.syntax.render import Level, levels_for_cursor, render, render_node
from lsp_complete.syntax.trees import SyntaxTree, changed_spans, error_spans

__all__ = [
    "Level", "Outline", "OutlineNode", "Span", "TierHook", "default_tier", "levels_for_cursor", "merge_last_good",
    "outline_of", "render", "render_node", "shifted", "update_outline",
]  # fmt: skip

_MAX_GROWTH = 8


def outline_of(tree: SyntaxTree) -> Outline:
    """The outline of a whole tree, read afresh."""
    nodes = outline_nodes(capture(tree), tree)
    return _outline(tree, tuple(nodes))


def _outline(tree: SyntaxTree, nodes: tuple[OutlineNode, ...]) -> Outline:
    grammar = tree.grammar
    return Outline(grammar.facts.key, grammar.version, tree.buffer.length, nodes, tuple(error_spans(tree)))


def update_outline(outline: Outline, before: SyntaxTree, after: SyntaxTree, spans: Sequence[tuple[int, int]]) -> Outline:
    """The outline of `after`, from the outline of the text before, already `shifted` to the new text.

    before: the old tree, `edited` to the new text; spans: what the edits replaced, as offsets of the new text. Equals
    `outline_of(after)`, in time that depends on the definitions around the edits.
    """
    if outline.version != after.grammar.version or outline.kept or not outline.nodes:
        return outline_of(after)
    changed = [*spans, *changed_spans(before, after)]
    start, end = min(low for low, _ in changed), max(high for _, high in changed)
    start, end = _whole_lines(after, start, end)
    nodes = _refreshed(outline, after, start, end)
    return outline_of(after) if nodes is None else _outline(after, nodes)


def _whole_lines(tree: SyntaxTree, start: int, end: int) -> tuple[int, int]:
    """The span from the line above to the line below: comments there may belong to what changed."""
    buffer = tree.buffer
    first = max(buffer.position(start)[0] - 1, 0)
    last = buffer.position(end)[0] + 1
    while last < buffer.line_count and not buffer.line(last).strip():
        last += 1
    while first > 0 and not buffer.line(first).strip():
        first -= 1
    return buffer.line_start(first), buffer.line_start(last) + max(len(buffer.line(last)) - 1, 0)


def _refreshed(outline: Outline, tree: SyntaxTree, start: int, end: int) -> tuple[OutlineNode, ...] | None:
    """Nodes of `outline` with those that touch start … end read again; None if that would not be the same as all."""
    old = outline.nodes
    for _ in range(_MAX_GROWTH):
        fresh = outline_nodes(capture(tree, start, end), tree)
        low, high = start, end
        for node in (*old, *fresh):
            span = node.span
            if span.start <= end and span.end >= start and (node.role != "class" or not _around(node, start, end)):
                low, high = min(low, span.start), max(high, span.end)
        if (low, high) == (start, end):
            break
        start, end = _whole_lines(tree, low, high)
    else:
        return None
    kept_around = [node for node in old if _around(node, start, end)]
    fresh_around = [node for node in fresh if _around(node, start, end)]
    if [(node.name, node.role) for node in kept_around] != [(node.name, node.role) for node in fresh_around]:
        return None
    head = [node for node in old if node.span.end < start]
    tail = [node for node in old if node.span.start > end]
    return tuple(sorted((*head, *fresh, *tail), key=lambda node: (node.span.start, -node.span.end)))


def _around(node: OutlineNode, start: int, end: int) -> bool:
    return node.role == "class" and node.span.start < start and node.span.end > end
