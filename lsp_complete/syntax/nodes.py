"""The outline of a file as plain values: what is defined where, without the text of bodies and without tree objects.

Strategy: a flat tuple of nodes in the order of the text; nesting is containment of spans. Positions stand apart from the
rest of a node, so shifting an outline behind an edit rebuilds little, and the whole goes to disk as lists of
numbers and strings.

Rules:
- Nodes are sorted by (start, -end) and properly nested; none overlaps another in part.
- Offsets count code points, lines from 0. `end` is exclusive, `last_line` is the line that holds the last character.
- Everything is immutable and safe for any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lsp_complete.text.edits import Edit, shift

ROLES = ("import", "class", "function", "constant", "comment")


class Span(NamedTuple):
    """Where a node stands. Decorators belong to it. Without a body, body_start = body_end = end."""

    start: int
    end: int
    name_start: int
    body_start: int
    body_end: int
    first_line: int
    last_line: int
    body_line: int


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """One import, class-like or function-like definition, constant (or variable, field, type alias) or comment.

    role: one of ROLES. kind: finer word (method, struct, trait, field, type, prototype, …). container: names of the
    enclosing definitions joined by "."; "" at the top. doc: first sentence of its documentation, "" if none.
    signature: its text up to the body, decorators included, at most 600 characters. calls: names called inside (functions
    only), first use first. binds: names that an import brings in, or further names of a constant.
    """

    role: str
    kind: str
    name: str
    container: str
    doc: str
    signature: str
    calls: tuple[str, ...]
    binds: tuple[str, ...]
    span: Span

    @property
    def start(self) -> int:
        """Offset of its first character."""
        return self.span.start

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.span.end

    @property
    def has_body(self) -> bool:
        """Whether it has a body that can be left out."""
        return self.span.body_start < self.span.body_end

    @property
    def qualified(self) -> str:
        """Container and name, joined by "."."""
        return f"{self.container}.{self.name}" if self.container else self.name

    def holds(self, offset: int) -> bool:
        """Whether `offset` is inside, both ends included."""
        return self.span.start <= offset <= self.span.end


TierHook = Callable[[OutlineNode], str]
"""Gives the tier "A", "B" or "C" of a node; the context layer passes its own."""


def default_tier(node: OutlineNode) -> str:
    """The tier that a node has before the cursor is known: what would be made up if it were missing is A."""
    if node.role in ("import", "class"):
        return "A"
    return "B" if node.role == "function" else "C"


@dataclass(frozen=True, slots=True)
class Outline:
    """All nodes of one text. language: grammar folder; version: the grammar's version (caches compare it).

    length: code points of the text. broken: spans in which the parser found errors. kept: how many nodes were kept from
    before the text broke.
    """

    language: str
    version: str
    length: int
    nodes: tuple[OutlineNode, ...]
    broken: tuple[tuple[int, int], ...] = ()
    kept: int = 0

    def at(self, offset: int) -> list[OutlineNode]:
        """Nodes around an offset, outermost first."""
        return [node for node in self.nodes if node.span.start <= offset <= node.span.end]

    def enclosing(self, offset: int, role: str) -> OutlineNode | None:
        """Innermost node of a role around an offset."""
        found = [node for node in self.at(offset) if node.role == role]
        return found[-1] if found else None

    def named(self, name: str) -> list[OutlineNode]:
        """Definitions with this name."""
        return [
            node
            for node in self.nodes
            if node.name == name and node.role in ("class", "function", "constant")
        ]

    def callers(self, name: str) -> list[OutlineNode]:
        """Functions that call something of this name."""
        return [node for node in self.nodes if name in node.calls]

    def names(self) -> frozenset[str]:
        """Every name defined or imported in the file."""
        found = {node.name for node in self.nodes if node.role in ("class", "function", "constant")}
        for node in self.nodes:
            found.update(node.binds)
        return frozenset(found)


def parents(nodes: Sequence[OutlineNode]) -> list[int]:
    """For each node the index of the innermost node around it, -1 at the top."""
    found: list[int] = []
    stack: list[int] = []
    for index, node in enumerate(nodes):
        while stack and nodes[stack[-1]].span.end <= node.span.start:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(index)
    return found


def children(nodes: Sequence[OutlineNode], parent: int) -> Iterator[int]:
    """Indices of the nodes directly inside `parent` (-1: the top ones), in order."""
    index = parent + 1
    end = nodes[parent].span.end if parent >= 0 else None
    while index < len(nodes) and (end is None or nodes[index].span.start < end):
        yield index
        inner = nodes[index].span.end
        index += 1
        while index < len(nodes) and nodes[index].span.start < inner:
            index += 1


def moved(node: OutlineNode, offsets: int, lines: int) -> OutlineNode:
    """The node, further down by so many code points and lines."""
    start, end, name_start, body_start, body_end, first_line, last_line, body_line = node.span
    span = Span(
        start + offsets, end + offsets, name_start + offsets, body_start + offsets, body_end + offsets,
        first_line + lines, last_line + lines, body_line + lines,
    )  # fmt: skip
    return OutlineNode(
        node.role,
        node.kind,
        node.name,
        node.container,
        node.doc,
        node.signature,
        node.calls,
        node.binds,
        span,
    )


def _stretched(node: OutlineNode, edit: Edit, lines: int) -> OutlineNode | None:
    """A node that an edit touches: it grows or shrinks with it; None if all of it was replaced."""
    span = node.span
    if span.start >= edit.old_end and span.end > edit.start:
        return moved(node, edit.delta, lines)
    if span.end == edit.start and (edit.old_end > edit.start or edit.new_end == edit.start or node.role == "comment"):
        return node
    if edit.start <= span.start and edit.old_end >= span.end:
        return None
    offsets = [shift(offset, edit) for offset in span[:5]]
    if span.start > edit.start:  # its head was replaced: what was typed is not part of it
        offsets = [max(offset, edit.new_end) for offset in offsets]
    grows = edit.start <= span.end <= edit.old_end
    offsets[1] = max(offsets[1], edit.new_end) if grows else offsets[1]
    first = edit.new_end_point[0] if span.start > edit.start else span.first_line
    if span.end > edit.old_end:
        last = span.last_line + lines
    else:
        last = (edit.new_end_point if offsets[1] == edit.new_end else edit.start_point)[0]
    last = max(first, last)
    body = _row(span.body_line, span.body_start, edit, lines)
    rows = [first, last, min(max(body, first), last)]
    return replace(node, span=Span(*offsets, *rows))


def _row(row: int, offset: int, edit: Edit, lines: int) -> int:
    """Where the line of an offset is after an edit."""
    if offset <= edit.start:
        return row
    return row + lines if offset >= edit.old_end else edit.start_point[0]


def shifted(outline: Outline, edits: Sequence[Edit]) -> Outline:
    """The outline with its nodes moved by `edits`: the last good structure while a new parse is under way. O(nodes).

    Nodes whose text was wholly replaced are gone; nodes around an edit grow or shrink with it.
    """
    if not edits:
        return outline
    nodes: Sequence[OutlineNode] = outline.nodes
    length, broken = outline.length, outline.broken
    for edit in edits:
        nodes = _moved_all(nodes, edit)
        broken = tuple((shift(start, edit), shift(end, edit)) for start, end in broken)
        length += edit.delta
    return replace(outline, nodes=tuple(nodes), length=length, broken=broken)


def _moved_all(nodes: Sequence[OutlineNode], edit: Edit) -> list[OutlineNode]:
    lines, delta = edit.new_end_point[0] - edit.old_end_point[0], edit.delta
    first, last = edit.start, edit.old_end
    made: list[OutlineNode] = []
    stretched = False
    for node in nodes:
        span = node.span
        if span[1] < first:
            made.append(node)
        elif span[0] > last:
            made.append(moved(node, delta, lines) if delta or lines else node)
        else:
            changed = _stretched(node, edit, lines)
            stretched = True
            if changed is not None:
                made.append(changed)
    return _tidied(made) if stretched else made


def _tidied(nodes: list[OutlineNode]) -> list[OutlineNode]:
    """Nodes sorted again, for starts may have come together, and without those that now overlap the one before in part."""
    nodes.sort(key=lambda node: (node.span[0], -node.span[1]))
    made: list[OutlineNode] = []
    ends: list[int] = []
    for node in nodes:
        start, end = node.span[0], node.span[1]
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            made.append(node)
            ends.append(end)
    return made
