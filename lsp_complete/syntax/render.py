"""Text of an outline: skeleton and local flesh.

Strategy: each node is written at its own level, in the order of the text and with its own indentation; a class is its header and
what its children give. Statements that are no node (module-level code) are written as their own text at FULL, else left
out.

Rules:
- Order of lines never changes; every line but those with an elision is a line of the text or the start of one.
- What is left out of a body is shown by the language's elision (`...`, `{ ... }`), so the result reads as code.
- At SIGNATURE decorators, types and the whole of a multi-line signature stay; at LINE the signature is folded into one line with its doc
  sentence behind it; PLACEHOLDER is one comment line with the name; runs of placeholders share one line.
- OMIT leaves a node out (comments outside the cursor's function, by default).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from lsp_complete.syntax.languages import LanguageFacts, all_languages
from lsp_complete.syntax.nodes import Outline, OutlineNode, children
from lsp_complete.text.buffer import TextBuffer

HEAD_LINES = 3
MAX_LINE = 160


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

    def level(self, index: int) -> Level:
        return self.levels.get(index, self.default)


def levels_for_cursor(outline: Outline, offset: int, *, others: Level = Level.SIGNATURE) -> dict[int, Level]:
    """Levels for "signature only outside the cursor's function": that function whole, imports whole, functions and
    constants at `others`, comments left out. Everything around the cursor is written out down to it."""
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


def render(
    outline: Outline, buffer: TextBuffer, levels: Mapping[int, Level] | None = None, default: Level = Level.SIGNATURE
) -> str:
    """The outline as text, each line ended. levels: node index → level; the others get `default`.

    Pure; a node inside a FULL one is part of it, whatever its own level.
    """
    facts = all_languages().get(outline.language)
    if facts is None:
        return buffer.text()
    page = _Page(outline, buffer, facts, levels or {}, default)
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
    """Lines of the nodes directly inside `parent`; runs of placeholders are joined."""
    made: list[str] = []
    hidden: list[OutlineNode] = []
    for index in children(page.outline.nodes, parent):
        node = page.outline.nodes[index]
        if page.level(index) is Level.PLACEHOLDER and not _shows_inside(page, index):
            hidden.append(node)
            continue
        made += _placeholder(page, hidden)
        hidden = []
        lines = _lines(page, index)
        if not (made and lines and made[-1] == lines[0] and len(lines) == 1):  # two nodes of one line
            made += lines
    return made + _placeholder(page, hidden)


def _shows_inside(page: _Page, index: int) -> bool:
    """Whether something inside a class is to be written, so that the class must be too."""
    node = page.outline.nodes[index]
    if node.role != "class":
        return False
    return any(
        page.levels.get(inner, Level.OMIT) > Level.PLACEHOLDER for inner in children(page.outline.nodes, index)
    )


def _placeholder(page: _Page, hidden: list[OutlineNode]) -> list[str]:
    names = [node.name for node in hidden if node.name and node.role in ("function", "class", "constant")]
    if not names:
        return []
    text = f"{_indent(page, hidden[0])}{_open(page.facts)} {', '.join(names[:12])}{', …' if len(names) > 12 else ''}"
    return [_cut(text) + _close(page.facts)]


def _open(facts: LanguageFacts) -> str:
    return facts.line_comment or (facts.block_comment[0] if facts.block_comment else "...")


def _close(facts: LanguageFacts) -> str:
    return f" {facts.block_comment[1]}" if not facts.line_comment and facts.block_comment else ""


def _indent(page: _Page, node: OutlineNode) -> str:
    line = page.buffer.line(node.span.first_line)
    before = line[: max(node.span.start - page.buffer.line_start(node.span.first_line), 0)]
    return before[: len(before) - len(before.lstrip())]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1].rstrip() + "…"


def _lines(page: _Page, index: int) -> list[str]:
    node, level = page.outline.nodes[index], page.level(index)
    if level is Level.FULL:
        return _text_lines(page, node, node.span.start, node.span.end)
    if node.role == "class" and node.has_body and level is not Level.OMIT and _has_inside(page, index):
        return _class_lines(page, index)
    if level is Level.OMIT:
        return _inside(page, index) if _shows_inside(page, index) else []
    if level is Level.PLACEHOLDER:
        return _placeholder(page, [node])
    if level is Level.LINE or node.role == "constant":
        return _one_line(page, node)
    if node.role in ("comment", "import") or not node.has_body:
        return _text_lines(page, node, node.span.start, node.span.end)
    return _signature_lines(page, node, HEAD_LINES if level is Level.HEAD else 0)


def _has_inside(page: _Page, index: int) -> bool:
    return next(children(page.outline.nodes, index), None) is not None


def _text_lines(page: _Page, node: OutlineNode, start: int, end: int) -> list[str]:
    text = _indent(page, node) + page.buffer.slice(start, end)
    return _split(text)


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _header(page: _Page, node: OutlineNode) -> list[str]:
    """Lines up to the body, without trailing blanks."""
    lines = _text_lines(page, node, node.span.start, node.span.body_start)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    lines[-1] = lines[-1].rstrip()
    return lines


def _class_lines(page: _Page, index: int) -> list[str]:
    node, buffer = page.outline.nodes[index], page.buffer
    lines = _header(page, node)
    opener = buffer.slice(node.span.body_start, node.span.body_start + 1)
    if opener in ("{", "("):
        lines[-1] += opener if lines[-1].endswith(opener) else f" {opener}".lstrip() if not lines[-1].strip() else f" {opener}"
    inner = _inside(page, index)
    if node.doc and page.facts.doc == "body" and page.level(index) >= Level.HEAD:
        first = buffer.slice(node.span.body_start, node.span.body_end).partition("\n")[0]
        inner.insert(0, buffer.slice(buffer.line_start(node.span.body_line), node.span.body_start) + first.rstrip())
    if not inner:
        return _signature_lines(page, node, 0)
    tail = buffer.slice(node.span.body_end, node.span.end).strip()
    closer = {"{": "}", "(": ")"}.get(opener, "") + tail
    return [*lines, *inner, *([_indent(page, node) + closer] if closer else [])]


def _signature_lines(page: _Page, node: OutlineNode, first_lines: int) -> list[str]:
    buffer, span = page.buffer, node.span
    lines = _header(page, node)
    body = buffer.slice(span.body_start, span.body_end)
    whole = _split(body.rstrip())
    if first_lines and len(whole) <= first_lines + 1:
        return _text_lines(page, node, span.start, span.end)
    if first_lines:
        return [*lines[:-1], *_first_lines(page, node, lines[-1], whole, first_lines)]
    tail = " ".join(buffer.slice(span.body_end, span.end).split())
    elision = page.facts.elision
    if body[:1] in ("{", "("):
        elision = {"{": "{ ... }", "(": "( ... )"}[body[0]]
    elif elision.startswith("{"):
        elision = "..."
    lines[-1] = f"{lines[-1]} {elision}{' ' + tail if tail and tail[0].isalnum() else tail}"
    return lines


def _first_lines(page: _Page, node: OutlineNode, header: str, body: list[str], count: int) -> list[str]:
    """Header, the first lines of the body, an elision at their indentation, and the closer."""
    buffer, span = page.buffer, node.span
    if body[0].strip() in ("{", "(", "{|", "do"):
        lines = [f"{header} {body[0].strip()}", *body[1 : count + 1]]
        closing = [_indent(page, node) + body[-1].strip() + buffer.slice(span.body_end, span.end).strip()]
    else:
        start = buffer.line_start(span.body_line)
        blanks = buffer.slice(start, span.body_start)
        same_line = bool(blanks.strip())
        lines = [f"{header} {body[0]}"] if same_line else [header, blanks + body[0]]
        lines += body[1:count]
        tail = buffer.slice(span.body_end, span.end).strip()
        closing = [_indent(page, node) + tail] if tail else []
    last = next((line for line in reversed(lines[1:]) if line.strip()), header + "    ")
    blanks = last[: len(last) - len(last.lstrip())]
    while lines and not lines[-1].strip():
        lines.pop()
    return [*lines, f"{blanks}{page.facts.elision.strip('{} ') or '...'}", *closing]


def _one_line(page: _Page, node: OutlineNode) -> list[str]:
    """Signature folded into one line, an elision for what is left out, and the doc sentence as a comment."""
    span = node.span
    text = page.buffer.slice(span.start, min(span.body_start if node.has_body else span.end, span.start + 4 * MAX_LINE))
    if node.role == "comment":
        return [_cut(_indent(page, node) + f"{_open(page.facts)} {node.doc}") + _close(page.facts)] if node.doc else []
    several = len(_split(text.strip())) > 1
    if node.role == "constant":
        first = _split(text)[0].rstrip()
        shown = f"{first} ..." if several and first[-1:] in ("(", "[", "{", "=", ",") else first
        return [_cut(_indent(page, node) + shown)]
    folded = " ".join(text.split())
    if node.has_body:
        folded += f" {page.facts.elision}"
    if node.doc and node.role in ("function", "class") and len(folded) + len(node.doc) < MAX_LINE:
        folded += f"  {_open(page.facts)} {node.doc}{_close(page.facts)}"
    return [_cut(_indent(page, node) + folded)]
