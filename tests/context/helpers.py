"""A small project in memory: symbols of texts as the index would give them, and places with a cursor mark `‸`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lsp_complete.context.near import at_cursor, names_near
from lsp_complete.context.resolve import Lookups, Place
from lsp_complete.context.symbol import ImportLine, Symbol
from lsp_complete.index.extract import extract_text
from lsp_complete.index.symbols import imported_module
from lsp_complete.syntax.outline import outline_text
from lsp_complete.text.buffer import TextBuffer

MARK = "‸"


def symbols(path: str, text: str) -> list[Symbol]:
    found = extract_text(path, text)
    assert found is not None
    return [
        Symbol(
            path, found.language, d.name, d.role, d.kind, d.container, d.signature, d.doc, d.body, d.whole, d.uses, d.attributes,
            d.first_line, d.last_line,
        )
        for d in found.definitions()
    ]  # fmt: skip


@dataclass
class Project:
    """Files by path, as other files see them."""

    files: Mapping[str, str]
    known: list[Symbol] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [symbol for path, text in self.files.items() for symbol in symbols(path, text)]

    def lookups(self) -> Lookups:
        return Lookups(
            named=lambda name: [s for s in self.known if s.name == name],
            users=lambda name: [s for s in self.known if name in s.uses],
            members=lambda path, qualified: [s for s in self.known if s.path == path and s.container == qualified],
            top=lambda path: [s for s in self.known if s.path == path and not s.container],
        )


def place(text: str, path: str = "app/main.py", visible: tuple[int, int] | None = None, lines: int = 3) -> Place:
    """The place of the mark. visible: what the window shows; `lines` around the cursor if not given."""
    offset = text.index(MARK)
    text = text.replace(MARK, "", 1)
    buffer = TextBuffer.from_text(text)
    outline = outline_text("", path, text)
    assert outline is not None
    own = tuple(symbols(path, text))
    imports = tuple(
        ImportLine(imported_module(outline.language, n), n.binds, text[n.start : n.end], n.span.first_line) for n in outline.nodes if n.role == "import"
    )
    line = buffer.position(offset)[0]
    around = [s for s in own if s.first_line <= line <= s.last_line]
    functions = [s for s in around if s.role == "function"]
    classes = [s for s in around if s.role == "class"]
    before, after = text[:offset], text[offset:]
    return Place(
        path=path,
        language=outline.language,
        near=tuple(names_near(before, after)),
        at=at_cursor(before.rpartition("\n")[2]),
        imports=imports,
        own=own,
        function=functions[-1] if functions else None,
        enclosing_class=classes[-1] if classes else None,
        visible=visible or (line - lines, line + lines),
        scope=before,
    )


def words(text: str) -> int:
    """A tokenizer's count for tests: a word or a mark is a token."""
    return len(text.split()) + text.count("(") + text.count(",")
