"""Keeping the last good structure where the text is broken, as it is at nearly every key.

Strategy: the parser gives up on what surrounds an error; definitions that it could still see a key ago are usually still there.
So a node of the old outline (moved by the edits) stays if the new one lost it, an error touches it, and its name still
stands in the text where it should.

Rules:
- Where the new tree is whole, the new outline is right: nothing old survives there.
- An old node wins over a new one for the same name at the same place inside an error, for its container and extent are those of
  whole code.
- The result is properly nested and sorted; `kept` counts old nodes. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.text.buffer import TextBuffer

_NEAR = 200


def merge_last_good(last: Outline, new: Outline, buffer: TextBuffer) -> Outline:
    """`new`, with nodes of `last` (already `shifted` to the same text) where `new` is in error."""
    if not new.broken or not last.nodes or last.language != new.language:
        return new
    zones = _zones(new, buffer)
    found = {(node.role, node.name, node.span.name_start) for node in new.nodes if not _broken(node, zones)}
    kept = [
        node
        for node in last.nodes
        if node.role != "comment"
        and _touched(node, zones)
        and (node.role, node.name, node.span.name_start) not in found
        and _still_there(node, buffer)
    ]
    if not kept:
        return new
    names = {(node.role == "import", node.span.name_start) for node in kept}
    rest = [node for node in new.nodes if (node.role == "import", node.span.name_start) not in names]
    ours = set(map(id, kept))
    merged = _nested(sorted([*rest, *kept], key=lambda node: (node.span.start, -node.span.end)), ours)
    return replace(new, nodes=tuple(merged), kept=sum(1 for node in merged if id(node) in ours))


def _zones(new: Outline, buffer: TextBuffer) -> list[tuple[int, int]]:
    """Error spans, widened to whole lines and a little, joined."""
    zones: list[tuple[int, int]] = []
    for start, end in new.broken:
        start = buffer.line_start(max(buffer.position(start)[0] - 1, 0))
        end = min(end + _NEAR, buffer.length)
        if zones and start <= zones[-1][1]:
            zones[-1] = (zones[-1][0], max(end, zones[-1][1]))
        else:
            zones.append((start, end))
    return zones


def _touched(node: OutlineNode, zones: list[tuple[int, int]]) -> bool:
    """Whether a zone touches the node."""
    at = bisect_right(zones, (node.span.end, 1 << 60)) - 1
    return at >= 0 and zones[at][1] >= node.span.start


def _broken(node: OutlineNode, zones: list[tuple[int, int]]) -> bool:
    """Whether the node's own head lies in a zone, so that its place in the structure is doubtful."""
    at = bisect_right(zones, (node.span.start, 1 << 60)) - 1
    return at >= 0 and zones[at][1] > node.span.start


def _still_there(node: OutlineNode, buffer: TextBuffer) -> bool:
    start = node.span.name_start
    return bool(node.name) and node.name in buffer.slice(start, start + len(node.name) + 2)


def _nested(nodes: list[OutlineNode], kept: set[int]) -> list[OutlineNode]:
    """Nodes without those that overlap another in part: of two, the one kept from whole code stays."""
    made: list[OutlineNode] = []
    stack: list[OutlineNode] = []
    dropped: set[int] = set()
    for node in nodes:
        while stack and stack[-1].span.end <= node.span.start:
            stack.pop()
        while stack and node.span.end > stack[-1].span.end:
            if id(node) not in kept or id(stack[-1]) in kept:
                break
            dropped.add(id(stack.pop()))
        if stack and node.span.end > stack[-1].span.end:
            continue
        made.append(node)
        stack.append(node)
    return [node for node in made if id(node) not in dropped] if dropped else made
