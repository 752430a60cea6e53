"""What the index keeps of one file: definitions, what they call, imports; as one string and one array of numbers.

Strategy: objects for every definition of a large workspace would take gigabytes and seconds to load. So a file is one text of
records and one array of positions in it; a `Definition` is made when someone asks. The same two go to disk as bytes.

Rules:
- Everything comes from the outline, so from the queries in `grammars/`; the one text rule is for attributes that methods set on
  their own object (`self.name = …`, `this.name = …`), which no outline lists.
- `from_bytes` is strict: what is not exactly what `to_bytes` wrote is None.
- Immutable; any thread.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from lsp_complete.syntax.languages import all_languages
from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.text.buffer import TextBuffer

FORMAT = 2
MAX_BODY_LINES, MAX_BODY_CHARS = 12, 480
MAX_ATTRIBUTES = 24
MAX_DEFINITIONS = 4_000
_MAGIC = b"LSXi"
_FIELD, _RECORD = "\x1f", "\x1e"
_STRIDE = 6  # start of the record in the text, start, end, first line, last line, flags
_WHOLE = 1
_ROLES = ("class", "function", "constant")
_CLEAN = str.maketrans({_FIELD: " ", _RECORD: " "})
_SET = r"([A-Za-z_]\w*)(?:[ \t]*:[ \t]*([^=\n;]{1,60}?))?[ \t]*=(?![=~>])[ \t]*([^\n]{0,60})"
_ATTRIBUTES = tuple((mark, re.compile(re.escape(mark) + _SET)) for mark in ("self.", "this.", "this->", "@"))


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition. role: "class" | "function" | "constant"; kind: finer word. container: names around it, joined by ".".

    body: its text from the end of the signature, the first lines of it; whole: that is all of the body. uses: names called
    in a function. attributes: of a class, what its methods set, as (name as written: `self.x`, annotation, first value); the last two may be "".
    Offsets in code points, lines from 0.
    """

    name: str
    role: str
    kind: str
    container: str
    signature: str
    doc: str
    body: str
    whole: bool
    uses: tuple[str, ...]
    attributes: tuple[tuple[str, str, str], ...]
    start: int
    end: int
    first_line: int
    last_line: int

    @property
    def qualified(self) -> str:
        """Container and name, joined by "."."""
        return f"{self.container}.{self.name}" if self.container else self.name


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the module as written and the names it brings in."""

    module: str
    binds: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FileSymbols:
    """All that is kept of one file. See the module's strategy; `definition(i)` for i < count."""

    language: str
    numbers: array[int]
    text: str
    imports_at: int

    @property
    def count(self) -> int:
        """How many definitions there are."""
        return len(self.numbers) // _STRIDE

    def _fields(self, index: int) -> list[str]:
        start = self.numbers[index * _STRIDE]
        return self.text[start : self.text.index(_RECORD, start)].split(_FIELD)

    def name(self, index: int) -> str:
        """Only the name of a definition."""
        start = self.numbers[index * _STRIDE]
        return self.text[start : self.text.index(_FIELD, start)]

    def definition(self, index: int) -> Definition:
        """One definition. Raises IndexError for one that is not there."""
        base = index * _STRIDE
        if not 0 <= base < len(self.numbers):
            raise IndexError(index)
        name, role, kind, container, signature, doc, body, uses, attributes = self._fields(index)
        _, start, end, first, last, flags = self.numbers[base : base + _STRIDE]
        return Definition(
            name, role, kind, container, signature, doc, body, bool(flags & _WHOLE), tuple(uses.split()),
            tuple(_attribute(line) for line in attributes.split("\n") if line), start, end, first, last,
        )  # fmt: skip

    def definitions(self) -> Iterator[Definition]:
        """All definitions in the order of the text."""
        return (self.definition(index) for index in range(self.count))

    def uses(self) -> Iterator[tuple[int, str]]:
        """(definition, name called in it), functions only."""
        for index in range(self.count):
            fields = self._fields(index)
            if fields[1] == "function":
                for name in fields[7].split():
                    yield index, name

    def imports(self) -> tuple[Import, ...]:
        """The file's imports in order."""
        made = []
        for line in self.text[self.imports_at :].split(_RECORD):
            module, _, binds = line.partition(_FIELD)
            if module or binds:
                made.append(Import(module, tuple(binds.split())))
        return tuple(made)

    def size_bytes(self) -> int:
        """Memory taken, nearly."""
        return 200 + len(self.text) * (1 if self.text.isascii() else 2) + 4 * len(self.numbers)

    def to_bytes(self) -> bytes:
        """For a cache on this machine."""
        language, text = self.language.encode(), self.text.encode("utf-8", "surrogatepass")
        head = struct.pack("<4sHHIII", _MAGIC, FORMAT, len(language), len(self.numbers), len(text), self.imports_at)
        return b"".join((head, language, self.numbers.tobytes(), text))


def _attribute(line: str) -> tuple[str, str, str]:
    name, annotation, value = line.split("\t")
    return name, annotation, value


def from_bytes(data: bytes) -> FileSymbols | None:
    """What `to_bytes` wrote; None for anything else. Never raises."""
    try:
        magic, version, language_size, count, text_size, imports_at = struct.unpack_from("<4sHHIII", data)
        base = struct.calcsize("<4sHHIII")
        if magic != _MAGIC or version != FORMAT or len(data) != base + language_size + 4 * count + text_size:
            return None
        numbers = array("I")
        numbers.frombytes(data[base + language_size : base + language_size + 4 * count])
        text = data[len(data) - text_size :].decode("utf-8", "surrogatepass")
        found = FileSymbols(data[base : base + language_size].decode(), numbers, text, imports_at)
        if count % _STRIDE or any(len(found._fields(index)) != 9 for index in range(found.count)):
            return None
        for index in range(found.count):
            found.definition(index)
    except (struct.error, ValueError, UnicodeDecodeError, IndexError):
        return None
    return found


def symbols_of(outline: Outline, buffer: TextBuffer) -> FileSymbols:
    """What the index keeps of a file with this outline. Pure; about a millisecond for a thousand lines."""
    numbers: array[int] = array("I")
    records: list[str] = []
    at = 0
    for node in outline.nodes:
        if node.role not in _ROLES or not node.name or len(numbers) >= MAX_DEFINITIONS * _STRIDE:
            continue
        body, whole = _body(node, buffer)
        attributes = _attributes(node, buffer) if node.role == "class" else ""
        fields = (
            node.name, node.role, node.kind, node.container, node.signature, node.doc, body, " ".join(node.calls), attributes
        )  # fmt: skip
        record = _FIELD.join(field.translate(_CLEAN) for field in fields) + _RECORD
        span = node.span
        numbers.extend((at, span.start, span.end, span.first_line, span.last_line, _WHOLE if whole else 0))
        records.append(record)
        at += len(record)
    for node in outline.nodes:
        if node.role == "import":
            records.append(f"{imported_module(outline.language, node).translate(_CLEAN)}{_FIELD}{' '.join(node.binds).translate(_CLEAN)}{_RECORD}")
    return FileSymbols(outline.language, numbers, "".join(records), at)


def imported_module(language: str, node: OutlineNode) -> str:
    """The module that an import names. Where a language's names have parts (`crate::a::B`), the outline has split them."""
    facts = all_languages().get(language)
    return node.qualified if facts is not None and facts.name_separator else node.name


def _body(node: OutlineNode, buffer: TextBuffer) -> tuple[str, bool]:
    """The first lines of a function's body, and whether that is all of it."""
    span = node.span
    if node.role != "function" or not node.has_body:
        return "", node.role != "class"
    text = buffer.slice(span.body_start, min(span.end, span.body_start + MAX_BODY_CHARS + 200))
    lines = text.split("\n")
    kept = "\n".join(lines[: MAX_BODY_LINES + 1])
    if span.body_start + len(kept) >= span.end and len(kept) <= MAX_BODY_CHARS:
        return kept.rstrip(), True
    kept = kept[:MAX_BODY_CHARS]
    return kept[: max(kept.rfind("\n"), 0)].rstrip(), False


def _attributes(node: OutlineNode, buffer: TextBuffer) -> str:
    """Attributes that a class's methods set on their object, one a line: name, annotation, first value."""
    found: dict[str, str] = {}
    text = buffer.slice(node.span.body_start, min(node.span.body_end, node.span.body_start + 200_000))
    for mark, pattern in _ATTRIBUTES:
        for match in pattern.finditer(text) if mark in text else ():
            name, annotation, value = (part or "" for part in match.groups())
            name = mark + name
            if name not in found and len(found) < MAX_ATTRIBUTES:
                found[name] = f"{name}\t{' '.join(annotation.split())}\t{' '.join(value.split())}"
    return "\n".join(found.values())
