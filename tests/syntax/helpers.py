"""Samples in every language and small builders, shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from lsp_complete.syntax.languages import Grammar, all_languages, load
from lsp_complete.syntax.trees import SyntaxTree, parse
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change, Edit
from lsp_complete.text.positions import Encoding

CURSOR = "‸"
SAMPLES = {
    path.stem: path.read_bytes().decode("utf-8")
    for path in sorted((Path(__file__).parent / "samples").iterdir())
}
TWELVE = (
    "python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "ruby", "csharp", "php",
)  # fmt: skip
"""Languages of the property tests."""

PIECES = (
    "x", "\n", "\r\n", "\r", '"', "'", "`", '"""', "/*", "*/", "//", "#", "{", "}", "(", ")", "\t", "    ", "  ", "\n\n\n\n",
    "😀", "é", "e\u0301", "𝒳", "\0", "\u2028", "def f():\n", "class A {\n", ";", "${", "<", "=>", "\\", "x" * 300, "f(a, b)", "return",
)  # fmt: skip
"""What a random edit inserts: openers and closers of strings, comments and blocks, line endings, wide characters."""


def grammar_of(language: str) -> Grammar:
    grammar = load(all_languages()[language])
    assert grammar is not None
    return grammar


def tree_of(language: str, text: str) -> SyntaxTree:
    tree = parse(grammar_of(language), TextBuffer.from_text(text))
    assert tree is not None
    return tree


def at_cursor(marked: str) -> tuple[str, int]:
    """(text, offset) of a text with a cursor mark."""
    return marked.replace(CURSOR, ""), marked.index(CURSOR)


def document(text: str, language: str = "python", version: int = 1) -> Document:
    return Document.open(f"file:///sample.{language}", language, version, text)


def dump(tree: SyntaxTree) -> list[tuple[object, ...]]:
    """Every node with its byte range and points: equal for equal trees only."""
    found: list[tuple[object, ...]] = []
    stack = [(tree.root, 0)]
    while stack:
        node, depth = stack.pop()
        found.append(
            (
                depth,
                node.type,
                node.start_byte,
                node.end_byte,
                tuple(node.start_point),
                tuple(node.end_point),
                node.is_missing,
            )
        )
        stack.extend((child, depth + 1) for child in reversed(node.children))
    return found


@st.composite
def endings(draw: st.DrawFn, text: str) -> str:
    """The text with one of the three line endings, and sometimes blanks before them."""
    ending = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "  \n"]))
    return text.replace("\n", ending)


@st.composite
def changes(draw: st.DrawFn, before: Document, most: int = 3) -> tuple[Document, tuple[Edit, ...]]:
    """One notification of up to `most` changes, applied."""
    made: list[Change] = []
    current = before
    for _ in range(draw(st.integers(1, most))):
        points = []
        line = draw(st.integers(0, current.buffer.line_count - 1))
        for row in (
            line,
            min(line + draw(st.sampled_from([0, 0, 0, 0, 1, 2])), current.buffer.line_count - 1),
        ):
            points.append((row, draw(st.integers(0, len(current.buffer.line(row))))))
        start, end = sorted(points)
        if draw(st.booleans()):
            end = start
        change = Change((start, end), draw(st.sampled_from(PIECES)) if draw(st.integers(0, 4)) else "")
        made.append(change)
        current = current.apply([change], Encoding.UTF32, current.version)[0]
    return before.apply(made, Encoding.UTF32, before.version + 1)
