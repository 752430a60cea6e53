"""From an open document, its outline and the index to the plain values that `context.tiers` works on.

Rules:
- Paths are shown relative to their workspace folder, with slashes; a file outside of all is shown by its name.
- Nothing here decides what may be read: the index holds only what may, and the open document is its own.
- Thread: the event loop; some milliseconds for a file of thousands of lines, and cached by the caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..context.near import at_cursor, names_near
from ..context.resolve import Lookups, Place
from ..context.symbol import ImportLine, Symbol
from ..index.index import Hit, SymbolIndex
from ..index.symbols import Definition, FileSymbols, imported_module, symbols_of
from ..syntax.nodes import Outline
from ..text.buffer import TextBuffer

BEFORE_CHARS, AFTER_CHARS = 4_000, 1_000
SCOPE_CHARS = 12_000
TEXT_CHARS = 60_000
TOP_FILES = 3

Summaries = Callable[[str, Definition], str]
"""A stored sentence for a definition without documentation, by its language and itself; "" if there is none."""


@dataclass(frozen=True, slots=True)
class Own:
    """What is known of the open file itself."""

    symbols: tuple[Symbol, ...] = ()
    imports: tuple[ImportLine, ...] = ()


def shown_path(path: str, roots: Sequence[Path]) -> str:
    """A path as the model sees it."""
    for root in roots:
        head = os.path.join(str(root), "")
        if path.startswith(head):
            return path[len(head) :].replace(os.sep, "/")
    return os.path.basename(path)


def symbol_of(path: str, language: str, found: Definition, summary: str = "") -> Symbol:
    """A definition of the index as a value of the context."""
    return Symbol(
        path, language, found.name, found.role, found.kind, found.container, found.signature, found.doc or summary, found.body,
        found.whole, found.uses, found.attributes, found.first_line, found.last_line,
    )  # fmt: skip


def own_of(outline: Outline, buffer: TextBuffer, path: str) -> Own:
    """Symbols and imports of an open file."""
    kept = symbols_of(outline, buffer)
    imports = tuple(
        ImportLine(imported_module(outline.language, node), node.binds, buffer.slice(node.span.start, min(node.span.end, node.span.start + 600)), node.span.first_line)
        for node in outline.nodes
        if node.role == "import"
    )
    return Own(tuple(symbol_of(path, outline.language, found) for found in kept.definitions()), imports)


class IndexLookups:
    """The index as the context asks it. Answers are remembered for one gathering: make a new one each time."""

    def __init__(self, index: SymbolIndex, roots: Sequence[Path], own_path: str, summary: Summaries = lambda _l, _d: "") -> None:
        self._index, self._roots, self._own, self._summary = index, roots, own_path, summary
        self._full: dict[str, str] = {}
        self._named: dict[str, list[Symbol]] = {}

    def lookups(self) -> Lookups:
        """As the context wants it."""
        return Lookups(self.named, self.users, self.members, self.top_shown, self.modules)

    def _symbols(self, hits: Sequence[Hit]) -> list[Symbol]:
        found = []
        for hit in hits:
            if hit.path == self._own:
                continue
            shown = shown_path(hit.path, self._roots)
            self._full[shown] = hit.path
            file = self._index.file(hit.path)
            language = file.language if file is not None else ""
            found.append(symbol_of(shown, language, hit.definition, self._summary(language, hit.definition)))
        return found

    def each(self, visit: Callable[[str, Definition], None], keys: Sequence[str]) -> None:
        """Visit the definitions that chunks with these keys (`path#qualified`) show: of a class, its methods."""
        for key in keys:
            shown, _, qualified = key.partition("#")
            file = self._index.file(self._full.get(shown, ""))
            if file is not None:
                for found in file.definitions():
                    if qualified in (found.qualified, found.container):
                        visit(file.language, found)

    def named(self, name: str) -> Sequence[Symbol]:
        """Definitions of a name in other files."""
        if name not in self._named:
            self._named[name] = self._symbols(self._index.lookup(name))
        return self._named[name]

    def users(self, name: str) -> Sequence[Symbol]:
        """Functions of other files that call it."""
        return self._symbols(self._index.users(name, 8))

    def members(self, path: str, qualified: str) -> Sequence[Symbol]:
        """Definitions inside a class of another file. Methods of a language that defines them elsewhere come along."""
        full = self._full.get(path)
        file = self._index.file(full) if full is not None else None
        if full is None or file is None:
            return []
        return [
            symbol_of(path, file.language, found, self._summary(file.language, found))
            for found in self._index.members(full, qualified)
        ]

    def modules(self, name: str) -> Sequence[str]:
        """Paths, as shown, of the files that a module of this name may be."""
        found = []
        for path in self._index.with_stem(name)[:8]:
            shown = shown_path(path, self._roots)
            self._full[shown] = path
            found.append(shown)
        return found

    def top_shown(self, path: str) -> Sequence[Symbol]:
        """Top-level definitions of a file by its path as shown."""
        return self.top(self._full.get(path, ""))

    def top(self, path: str) -> Sequence[Symbol]:
        """Top-level definitions of a file, by its whole path."""
        file: FileSymbols | None = self._index.file(path)
        if file is None:
            return []
        shown = shown_path(path, self._roots)
        self._full[shown] = path
        return [symbol_of(shown, file.language, found) for found in file.definitions() if not found.container]


def place_at(
    own: Own, buffer: TextBuffer, cursor: int, path: str, language: str, visible: tuple[int, int], recent: Mapping[str, int]
) -> Place:
    """The cursor's place as plain values."""
    line = buffer.position(cursor)[0]
    before = buffer.slice(cursor - BEFORE_CHARS, cursor)
    after = buffer.slice(cursor, cursor + AFTER_CHARS)
    around = [s for s in own.symbols if s.first_line <= line <= s.last_line and s.role in ("function", "class")]
    functions = [s for s in around if s.role == "function"]
    classes = [s for s in around if s.role == "class"]
    start = buffer.line_start(functions[0].first_line if functions else (classes[-1].first_line if classes else max(0, line - 60)))
    return Place(
        path=path,
        language=language,
        near=tuple(names_near(before, after)),
        at=at_cursor(before.rpartition("\n")[2]),
        imports=own.imports,
        own=own.symbols,
        function=functions[-1] if functions else None,
        enclosing_class=classes[-1] if classes else None,
        visible=visible,
        scope=buffer.slice(max(start, cursor - SCOPE_CHARS), cursor),
        text=buffer.slice(cursor - TEXT_CHARS, cursor + TEXT_CHARS),
        recent=recent,
    )
