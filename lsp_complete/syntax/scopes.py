"""Which function and class a cursor is in, also where the text is broken or the cursor stands on a blank line.

Rules: in a language whose blocks end by indentation, a blank line belongs to the definitions above it that are indented less, and around
an error indentation alone decides: an unfinished statement makes the parser end a definition too early.
"""

from __future__ import annotations

from lsp_complete.syntax.extract import capture, outline_nodes
from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.lines import indent_width
from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.syntax.trees import SyntaxTree
from lsp_complete.text.buffer import TextBuffer

AROUND = 4_000
"""Characters around a cursor within which names and definitions are looked for."""
_MAX_LINES_UP = 3_000


def probe_of(buffer: TextBuffer, offset: int, facts: LanguageFacts) -> int:
    """Where to look for what surrounds the cursor: on a blank line start of an indentation language, the last text above."""
    if not facts.ends_block:
        return offset
    line, column = buffer.position(offset)
    if buffer.line(line)[:column].strip():
        return offset
    head = buffer.slice(max(offset - AROUND, 0), offset).rstrip()
    return max(offset - AROUND, 0) + len(head)


def scopes_at(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, outline: Outline | None, errors: list[tuple[int, int]]
) -> tuple[OutlineNode | None, OutlineNode | None, list[OutlineNode]]:
    """Innermost function and class around the cursor, and all definitions around it, outermost first."""
    facts = tree.grammar.facts
    probe = probe_of(buffer, offset, facts)
    broken = facts.ends_block and (not tree.exact or bool(errors))
    if outline is not None:
        nodes = list(outline.nodes)
    else:
        first = max(probe - (AROUND if broken else 1), 0)
        nodes = outline_nodes(capture(tree, first, probe + 1), tree)
    nodes = [node for node in nodes if node.role in ("function", "class")]
    around = [node for node in nodes if node.holds(probe)]
    line, column = buffer.position(offset)
    if probe != offset:
        here = indent_width(buffer.line(line)[:column])
        around = [
            node
            for node in around
            if indent_width(buffer.line(node.span.first_line)) < here or node.span.end > offset
        ]
    else:
        around = [node for node in around if node.span.end > offset or not _closed(node, buffer)]
    if broken:
        around = _by_indent(nodes, buffer, line, column) or around
    functions = [node for node in around if node.role == "function"]
    classes = [node for node in around if node.role == "class"]
    return (functions[-1] if functions else None, classes[-1] if classes else None, around)


def _by_indent(nodes: list[OutlineNode], buffer: TextBuffer, line: int, column: int) -> list[OutlineNode]:
    """Definitions around a line by indentation alone, outermost first: an unfinished statement ends a node too early."""
    headers = {
        row: node for node in nodes for row in range(node.span.first_line, _header_end(node, buffer) + 1)
    }
    text = buffer.line(line)
    here = indent_width(text if text.strip() else text[:column])
    found: list[OutlineNode] = []
    row = line - 1
    while row >= max(line - _MAX_LINES_UP, 0) and here > 0:
        text = buffer.line(row)
        if text.strip() and indent_width(text) < here:
            here = indent_width(text)
            node = headers.get(row)
            if node is not None and node.span.first_line <= row:
                found.insert(0, node)
                row = node.span.first_line
                here = min(here, indent_width(buffer.line(row)))
        row -= 1
    return found


def _header_end(node: OutlineNode, buffer: TextBuffer) -> int:
    return (
        min(buffer.position(node.span.body_start)[0], node.span.first_line + 60)
        if node.has_body
        else node.span.last_line
    )


def _closed(node: OutlineNode, buffer: TextBuffer) -> bool:
    """Whether the text behind a node is outside it: it ends in a closer."""
    return buffer.slice(node.span.end - 1, node.span.end) in ("}", ";", ")")
