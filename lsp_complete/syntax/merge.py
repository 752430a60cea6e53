"""Keeping the last good structure where the text is broken, as it is at nearly every key.

Strategy: the parser gives up on what surrounds an error; definitions that it could still see a key ago are usually still there.
So a node of the old outline (moved by the edits) stays if an error touches it and its name still stands in the text where it should:
where the new outline lost it, and where the new one gives it another extent, for one bracket that is not closed yet makes all
definitions around it end too early or too late.

Rules:
- Where no error touches an old node, the new outline is right: nothing old survives there.
- What stands inside a node that was kept gets back the container and kind it had, and locals of a kept function stay out.
- Calls are the exception: those of the new node are added, for they are being typed.
- The result is properly nested and sorted; `kept` counts old nodes. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace

from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.text.buffer import TextBuffer

_NEAR = 200
_Identity = tuple[str, str, int]


def merge_last_good(last: Outline, new: Outline, buffer: TextBuffer) -> Outline:
    """`new`, with nodes of `last` (already `shifted` to the same text) where `new` is in error."""
    if not new.broken or not last.nodes or last.language != new.language:
        return new
    zones = _zones(new, buffer)
    known = {_identity(node): node for node in last.nodes if node.role != "comment"}
    found = {_identity(node): node for node in new.nodes}
    kept = [
        _with_calls(node, found.get(key), buffer)
        for key, node in known.items()
        if _touched(node, zones) and not _same(node, found.get(key)) and _still_there(node, buffer)
    ]
    if not kept:
        return new
    names = {(node.role == "import", node.span.name_start) for node in kept}
    rest = [node for node in new.nodes if (node.role == "import", node.span.name_start) not in names]
    ours = set(map(id, kept))
    merged = _nested(sorted([*rest, *kept], key=lambda node: (node.span.start, -node.span.end)), ours, known)
    return replace(new, nodes=tuple(merged), kept=sum(1 for node in merged if id(node) in ours))


def _identity(node: OutlineNode) -> _Identity:
    return node.role, node.name, node.span.name_start


def _same(node: OutlineNode, fresh: OutlineNode | None) -> bool:
    """Whether the new outline has this node, as large and in the same place of the structure."""
    return fresh is not None and (node.span.start, node.span.end, node.container) == (
        fresh.span.start,
        fresh.span.end,
        fresh.container,
    )


def _with_calls(node: OutlineNode, fresh: OutlineNode | None, buffer: TextBuffer) -> OutlineNode:
    """The node with the calls of the new one, and those of its own that still stand in the text."""
    if fresh is None or set(fresh.calls) <= set(node.calls):
        return node
    text = buffer.slice(node.span.start, node.span.end)
    standing = (name for name in node.calls if name in text)
    return replace(node, calls=tuple(dict.fromkeys((*standing, *fresh.calls))))


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


def _still_there(node: OutlineNode, buffer: TextBuffer) -> bool:
    start = node.span.name_start
    return bool(node.name) and node.name in buffer.slice(start, start + len(node.name) + 2)


def _nested(
    nodes: list[OutlineNode], kept: set[int], known: Mapping[_Identity, OutlineNode]
) -> list[OutlineNode]:
    """Nodes without those that overlap another in part: of two, the one kept from whole code stays. Inside of kept nodes the
    structure is that of `known`."""
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
        if id(node) not in kept and any(id(around) in kept for around in stack):
            if node.role in ("constant", "comment") and any(around.role == "function" for around in stack):
                continue
            before = known.get(_identity(node))
            if before is not None and (before.container, before.kind) != (node.container, node.kind):
                node = replace(node, container=before.container, kind=before.kind)
        made.append(node)
        stack.append(node)
    return [node for node in made if id(node) not in dropped] if dropped else made
