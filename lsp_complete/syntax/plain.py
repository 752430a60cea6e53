"""Outlines as plain JSON values, for caches. Reading is strict: anything unexpected is no outline."""

from __future__ import annotations

from lsp_complete.syntax.nodes import ROLES, Outline, OutlineNode, Span

FORMAT = 2


def to_plain(outline: Outline) -> dict[str, object]:
    """A value that JSON can hold. Broken spans and kept nodes are not part of it: only whole texts are cached."""
    return {
        "format": FORMAT,
        "language": outline.language,
        "version": outline.version,
        "length": outline.length,
        "broken": [list(span) for span in outline.broken],
        "nodes": [
            [
                ROLES.index(node.role), node.kind, node.name, node.container, node.doc, node.signature,
                list(node.calls), list(node.binds), list(node.span),
            ]
            for node in outline.nodes
        ],
    }  # fmt: skip


def from_plain(value: object) -> Outline | None:
    """The outline that `to_plain` wrote, or None if the value is anything else. Never raises."""
    try:
        return _read(value)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError):  # (JSON may hold infinite numbers)
        return None


def _read(value: object) -> Outline | None:
    if not isinstance(value, dict) or value["format"] != FORMAT:
        return None
    nodes = []
    for role, kind, name, container, doc, signature, calls, binds, span in value["nodes"]:
        place = Span(*span)
        texts = (kind, name, container, doc, signature, *calls, *binds)
        if not all(type(text) is str for text in texts) or not all(type(number) is int for number in place):
            return None
        if type(role) is not int or not 0 <= place.start <= place.body_start <= place.body_end <= place.end:
            return None
        nodes.append(
            OutlineNode(ROLES[role], kind, name, container, doc, signature, tuple(calls), tuple(binds), place)
        )
    broken = tuple((int(start), int(end)) for start, end in value["broken"])
    return Outline(str(value["language"]), str(value["version"]), int(value["length"]), tuple(nodes), broken)
