"""Text of an outline: skeleton and local flesh.

Strategy: each node is written at its own level, in the order of the text and with its own indentation; a class is its header and
what its children give. Of statements that are no node (module-level code, labels in a class) the first line is written.

Rules:
- Order of lines never changes; every line but those with an elision is a line of the text or the start of one.
- What is left out is shown by the language's elision (`...`, `{ ... }`), so the result reads as code.
- At SIGNATURE decorators, types and the whole of a multi-line signature stay; at LINE the signature is folded into one line with its doc
  sentence behind it; PLACEHOLDER is one comment line with the name; runs of placeholders share one line.
- OMIT leaves a node out (comments outside the cursor's function, by default).
- `focus` (first line, last line) is written in full where no node covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from lsp_complete.syntax import pieces
from lsp_complete.syntax.languages import LanguageFacts, all_languages
from lsp_complete.syntax.lines import indent_width
from lsp_complete.syntax.nodes import Outline, OutlineNode, children
from lsp_complete.text.buffer import TextBuffer

HEAD_LINES = 3
FOCUS_LINES = 30


class Level(IntEnum):
    """How much of a node is written, from nothing to everything."""

    OMIT = 0
    PLACEHOLDER = 1
    LINE = 2
    SIGNATURE = 3
    HEAD = 4
    FULL = 5


@dataclass(frozen=True, slots=True)
class _Page:
    """What rendering reads: everything is a value."""

    outline: Outline
    buffer: TextBuffer
    facts: LanguageFacts
    levels: Mapping[int, Level]
    default: Level
    focus: tuple[int, int] = (-1, -1)

    def level(self, index: int) -> Level:
        return self.levels.get(index, self.default)


def levels_for_cursor(outline: Outline, offset: int, *, others: Level = Level.SIGNATURE) -> dict[int, Level]:
    """Levels for "signature only outside the cursor's function": that function whole, imports whole, functions at
    `others`, constants as one line, comments left out."""
    levels: dict[int, Level] = {}
    around = {id(node) for node in outline.at(offset) if node.role == "function"}
    full_until = -1
    for index, node in enumerate(outline.nodes):
        if id(node) in around or node.span.start < full_until:
            levels[index] = Level.FULL
            full_until = max(full_until, node.span.end)
        elif node.role == "import":
            levels[index] = Level.FULL
        elif node.role == "comment":
            levels[index] = Level.OMIT
        elif node.role == "constant":
            levels[index] = min(others, Level.LINE)
        else:
            levels[index] = others
    return levels


def focus_for_cursor(buffer: TextBuffer, offset: int) -> tuple[int, int]:
    """Lines around a cursor that are to be seen even if they belong to no definition."""
    line = buffer.position(offset)[0]
    return max(line - FOCUS_LINES, 0), line + FOCUS_LINES


def render(
    outline: Outline,
    buffer: TextBuffer,
    levels: Mapping[int, Level] | None = None,
    default: Level = Level.SIGNATURE,
    focus: tuple[int, int] = (-1, -1),
) -> str:
    """The outline as text, each line ended by `\\n`. levels: node index → level; the others get `default`.

    Pure; a node inside a FULL one is part of it, whatever its own level.
    """
    facts = all_languages().get(outline.language)
    if facts is None:
        return buffer.text()
    page = _Page(outline, buffer, facts, levels or {}, default, focus)
    return "".join(f"{line}\n" for line in _inside(page, -1))


def render_node(
    outline: Outline, buffer: TextBuffer, index: int, level: Level, levels: Mapping[int, Level] | None = None
) -> str:
    """One node as text, each line ended. Children of a class get `levels`, else `level`."""
    facts = all_languages().get(outline.language)
    if facts is None:
        return ""
    page = _Page(outline, buffer, facts, {**(levels or {}), index: level}, level)
    return "".join(f"{line}\n" for line in _lines(page, index))


def _inside(page: _Page, parent: int) -> list[str]:
    """Lines of what is directly inside `parent`; runs of placeholders are joined."""
    made: list[str] = []
    hidden: list[OutlineNode] = []
    pending: list[int] = []
    at, end = _line_range(page, parent)
    inner = list(children(page.outline.nodes, parent))
    base = pieces.base_indent(page.buffer, [page.outline.nodes[index] for index in inner], parent >= 0)
    for index in inner:
        node = page.outline.nodes[index]
        if _behind_code(page, node):
            if node.span.last_line > node.span.first_line:  # the code before it, and none of its own further lines
                made += pieces.gap(page.buffer, at, node.span.first_line + 1, base, page.focus, pending)
                at = max(at, node.span.last_line + 1)
            continue
        column = indent_width(page.buffer.line(node.span.first_line))
        made += pieces.gap(page.buffer, at, node.span.first_line, base, page.focus, pending, column)
        at = max(at, node.span.last_line + 1)
        if page.level(index) is Level.PLACEHOLDER and not _shows_inside(page, index):
            hidden.append(node)
            continue
        made += pieces.placeholder(page.buffer, page.facts, hidden)
        hidden = []
        lines = _lines(page, index)
        if not (made and len(lines) == 1 and lines[0].strip() in made[-1]):  # two nodes of one line
            made += lines
    made += pieces.placeholder(page.buffer, page.facts, hidden)
    return made + pieces.gap(page.buffer, at, end, base, page.focus, pending)


def _line_range(page: _Page, parent: int) -> tuple[int, int]:
    """Lines between the header and the closer of a class, or all lines."""
    if parent < 0:
        return 0, page.buffer.line_count
    span = page.outline.nodes[parent].span
    closes = span.body_end < span.end or page.buffer.slice(span.body_end - 1, span.body_end) in ("}", ")")
    header = page.buffer.position(span.body_start)[0]
    return header + 1, span.last_line if closes else span.last_line + 1


def _shows_inside(page: _Page, index: int) -> bool:
    """Whether something inside a class is to be written, so that the class must be too."""
    if page.outline.nodes[index].role != "class":
        return False
    return any(
        page.levels.get(inner, Level.OMIT) > Level.PLACEHOLDER
        for inner in children(page.outline.nodes, index)
    )


def _behind_code(page: _Page, node: OutlineNode) -> bool:
    """Whether a comment stands behind code: it is no line of its own, but part of one that something else gives."""
    return node.role == "comment" and pieces.mid_line(page.buffer, node)


def _lines(page: _Page, index: int) -> list[str]:
    node, level, buffer = page.outline.nodes[index], page.level(index), page.buffer
    span = node.span
    if _behind_code(page, node):
        return []
    if level is Level.FULL:
        return pieces.text_lines(buffer, node, span.start, span.end)
    has_inside = next(children(page.outline.nodes, index), None) is not None
    if node.role == "class" and node.has_body and has_inside and level is not Level.OMIT:
        short = span.first_line == span.last_line and span.end - span.start <= pieces.MAX_LINE
        return pieces.text_lines(buffer, node, span.start, span.end) if short else _class_lines(page, index)
    if level is Level.OMIT:
        return _inside(page, index) if _shows_inside(page, index) else []
    if level is Level.PLACEHOLDER:
        return pieces.placeholder(buffer, page.facts, [node])
    if level is Level.LINE or node.role == "constant":
        return pieces.one_line(buffer, page.facts, node)
    if node.role in ("comment", "import") or not node.has_body:
        return pieces.text_lines(buffer, node, span.start, span.end)
    if level is Level.HEAD:
        return pieces.head_lines(buffer, page.facts, node, HEAD_LINES)
    return pieces.signature_lines(buffer, page.facts, node)


def _class_lines(page: _Page, index: int) -> list[str]:
    node, buffer = page.outline.nodes[index], page.buffer
    inner = _inside(page, index)
    if not inner:
        return pieces.signature_lines(buffer, page.facts, node)
    lines = pieces.header(buffer, node)
    opener = buffer.slice(node.span.body_start, node.span.body_start + 1)
    if opener in ("{", "("):
        lines[-1] = f"{lines[-1]} {opener}" if lines[-1].strip() else f"{lines[-1]}{opener}"
    tail = buffer.slice(node.span.body_end, node.span.end).strip() + pieces.closing_mark(buffer, node)
    bracket = {"{": "}", "(": ")"}.get(opener, "")
    closer = f"{bracket}{' ' if bracket and tail[:1].isalnum() else ''}{tail}"
    return [*lines, *inner, *([pieces.indent_of(buffer, node) + closer] if closer else [])]
