"""Symbols of a file, their bytes, and the inverted index."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.index.extract import extract_text
from lsp_complete.index.index import MAX_USES, SymbolIndex
from lsp_complete.index.symbols import FileSymbols, Import, from_bytes

PYTHON = '''from pkg.mod import Thing, other as alias
import os

LIMIT = 3


class Box(Thing):
    """Holds things. More text."""

    size: int

    def __init__(self, client: Client):
        self.client = client
        self.items: list[int] = []

    def add(self, item):
        # first
        check(item)
        return alias(item)


def long(a, b):
    """Does much."""
''' + "".join(f"    a += {n}\n" for n in range(40))


def symbols(text: str, path: str = "x.py") -> FileSymbols:
    found = extract_text(path, text)
    assert found is not None
    return found


def test_definitions_of_python() -> None:
    found = {d.qualified: d for d in symbols(PYTHON).definitions()}
    assert list(found) == ["LIMIT", "Box", "Box.size", "Box.__init__", "Box.add", "long"]
    box, add, long = found["Box"], found["Box.add"], found["long"]
    assert (box.role, box.signature, box.doc) == ("class", "class Box(Thing):", "Holds things.")
    assert box.attributes == (("self.client", "", "client"), ("self.items", "list[int]", "[]"))
    assert add.uses == ("check", "alias") and add.whole and "return alias(item)" in add.body
    assert not long.whole and long.body.count("\n") <= 13 and long.doc == "Does much."
    assert PYTHON[add.start : add.end].startswith("def add") and add.first_line == 15


def test_imports_keep_module_and_names() -> None:
    assert symbols(PYTHON).imports() == (Import("pkg.mod", ("Thing", "alias")), Import("os", ("os",)))


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.go", "package a\n\nfunc (b *Box) Add(x int) int {\n\treturn x\n}\n", ["Box.Add"]),
        ("a.ts", "export class Box { constructor(private a: A) { this.b = 1 }\n add(x: number) { return f(x) } }\n", ["Box", "Box.constructor", "Box.add"]),
        ("a.rs", "impl Box { fn add(&self, x: u8) -> u8 { x } }\n", ["Box.add"]),
    ],
)
def test_other_languages_by_their_queries_alone(path: str, text: str, names: list[str]) -> None:
    assert set(names) <= {d.qualified for d in symbols(text, path).definitions()}


def test_unknown_language_has_no_symbols() -> None:
    assert extract_text("x.unknown", "text") is None


def test_bytes_come_back_whole() -> None:
    found = symbols(PYTHON + "\n\ndef größe(ж):\n    return '𝛼'\n")
    again = from_bytes(found.to_bytes())
    assert again is not None
    assert list(again.definitions()) == list(found.definitions()) and again.imports() == found.imports()


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_foreign_bytes_are_nothing(data: bytes) -> None:
    assert from_bytes(data) is None


@settings(deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 255))
def test_damaged_bytes_never_raise(at: int, value: int) -> None:
    data = bytearray(symbols(PYTHON).to_bytes())
    data[at % len(data)] = value
    found = from_bytes(bytes(data))
    if found is not None:
        list(found.definitions())
    assert from_bytes(bytes(data[: at % len(data)])) is None


def test_lookup_users_members() -> None:
    index = SymbolIndex()
    index.update("/w/x.py", symbols(PYTHON))
    assert [hit.path for hit in index.lookup("Box")] == ["/w/x.py"]
    assert [hit.definition.qualified for hit in index.users("check")] == ["Box.add"]
    assert [d.name for d in index.members("/w/x.py", "Box")] == ["size", "__init__", "add"]
    assert index.lookup("nothing") == [] and index.members("/none", "Box") == []
    assert index.with_stem("x") == ["/w/x.py"]
    index.check_integrity()


def test_update_replaces_and_remove_forgets() -> None:
    index = SymbolIndex()
    index.update("/w/x.py", symbols(PYTHON))
    index.update("/w/x.py", symbols("def new(): pass\n"))
    assert index.lookup("Box") == [] and index.users("check") == [] and len(index.lookup("new")) == 1
    index.remove("/w/x.py")
    assert index.lookup("new") == [] and index.paths() == [] and index.with_stem("x") == []
    index.check_integrity()


def test_index_files_are_found_by_their_folder() -> None:
    index = SymbolIndex()
    index.update("/w/pkg/__init__.py", symbols("def f(): pass\n"))
    assert index.with_stem("pkg") == ["/w/pkg/__init__.py"]


def test_common_names_are_bounded() -> None:
    index = SymbolIndex()
    for n in range(MAX_USES + 40):
        index.update(f"/w/{n}.py", symbols("def f():\n    common()\n"))
    assert len(index.users("common", 10_000)) <= MAX_USES
    assert len(index.lookup("f", limit=5)) == 5


def test_sweeping_keeps_what_is_alive() -> None:
    index, rng = SymbolIndex(), random.Random(1)
    text = "".join(f"def f{n}():\n    g{n}()\n" for n in range(200))
    files = [symbols(text.replace("f", f"f{k}_")) for k in range(5)]
    for _ in range(150):
        index.update(f"/w/{rng.randrange(12)}.py", rng.choice(files))
    index.check_integrity()
    assert index.stats().definitions == sum(s.count for s in [index.file(p) for p in index.paths()] if s is not None)
    for path in index.paths():
        index.remove(path)
    assert index.lookup("f0_0") == []
    index.check_integrity()
