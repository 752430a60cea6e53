"""Where the files that a document imports are looked for, and which places in them are likely to be gone to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete.index.walk import Guard
from lsp_complete.service.documents import OpenDocument
from lsp_complete.service.imported import FILES, Imports, candidates, endings_for
from lsp_complete.syntax.outline import outline_text
from lsp_complete.text.document import Document
from tests.index.test_walk import put

HELPERS = '"""Help."""\n\nLIMIT = 3\n\n\nclass Box:\n    def open(self) -> None:\n        pass\n\n\ndef load_all(path):\n    return path\n'


def places(root: Path, name: str, text: str, opened: set[str] | None = None) -> list[tuple[str, str]]:
    """(file, the text from the place on to the line's end) for each place."""
    import asyncio

    document = Document.open((root / name).as_uri(), "python" if name.endswith(".py") else "typescript", 1, text)
    state = OpenDocument(document, 0.0, cursor=len(text))
    outline = outline_text(document.language_id, name, text)
    imports = Imports(
        lambda _uri: outline, lambda: Guard([root]), lambda _uri: str(root / name), lambda uri: uri in (opened or set()) or None
    )
    found = asyncio.run(imports.places(state))
    return [(Path(one.uri).name, one.buffer.slice(at, at + 40).partition("\n")[0]) for one, at in found]


def test_the_definition_that_stands_nearest_to_the_cursor(tmp_path: Path) -> None:
    put(tmp_path, {"pkg/helpers.py": HELPERS, "pkg/box.py": "def unused():\n    pass\n"})
    text = "from .helpers import Box, load_all\nfrom . import box\nimport os\n\nbox = Box()\nload_all(box."
    assert places(tmp_path, "pkg/main.py", text) == [("helpers.py", "load_all(path):")]
    assert places(tmp_path, "pkg/main.py", text.replace("load_all(box.", "")) == [("helpers.py", "Box:")]


def test_from_the_workspace_and_from_src_and_packages(tmp_path: Path) -> None:
    put(tmp_path, {"src/app/core/__init__.py": "def start():\n    pass\n", "lib.py": "def stop():\n    pass\n"})
    text = "from app.core import start\nfrom lib import stop\n\nstop()\nstart("
    assert places(tmp_path, "src/app/deep/main.py", text) == [("__init__.py", "start():"), ("lib.py", "stop():")]


def test_relative_modules_of_other_languages(tmp_path: Path) -> None:
    put(tmp_path, {"ui/button.tsx": "export function Button() {\n  return 1;\n}\n"})
    text = 'import { Button } from "./button";\n\nconst a = Button('
    assert places(tmp_path, "ui/page.ts", text) == [("button.tsx", "Button() {")]


def test_what_may_not_be_read_what_is_open_and_what_is_not_there(tmp_path: Path) -> None:
    put(tmp_path, {"hidden.py": HELPERS, ".gitignore": "hidden.py\n", "helpers.py": HELPERS})
    text = "from hidden import Box\nfrom helpers import load_all\nimport numpy\n\nBox()\nload_all("
    assert places(tmp_path, "main.py", text) == [("helpers.py", "load_all(path):")]
    assert places(tmp_path, "main.py", text, {(tmp_path / "helpers.py").as_uri()}) == []
    assert places(tmp_path, "main.py", "x = 1\n") == []
    (tmp_path / "helpers.py").write_bytes(b"\xff\xfe")
    assert places(tmp_path, "main.py", text) == []


def test_so_many_files_and_no_more(tmp_path: Path) -> None:
    put(tmp_path, {f"mod{n}.py": f"def name{n}():\n    pass\n" for n in range(8)})
    text = "".join(f"from mod{n} import name{n}\n" for n in range(8)) + "\n" + "".join(f"name{n}()\n" for n in range(8)) + "name7("
    found = places(tmp_path, "main.py", text)
    assert len(found) == FILES and found[0] == ("mod7.py", "name7():")


@pytest.mark.parametrize(
    ("module", "path", "first"),
    [
        ("..util.text", "/w/a/b/c.py", "/w/a/util/text.py"),
        (".text", "/w/a/b/c.py", "/w/a/b/text.py"),
        ("./x/y", "/w/a/c.ts", "/w/a/x/y.ts"),
        ('"net/sock.h"', "/w/a/c.cpp", "/w/a/net/sock.cpp"),
    ],
)
def test_where_a_module_is_looked_for_first(module: str, path: str, first: str) -> None:
    assert next(candidates(module, path, "/w")) == first
    assert all(one.startswith("/w/") for one in candidates(module, path, "/w"))


def test_a_document_of_no_known_kind_has_its_own_ending_only() -> None:
    assert endings_for("/w/a.zig") == (".zig",) and endings_for("/w/Makefile") == ("",) and endings_for("/w/a.tsx")[0] == ".tsx"
    assert list(candidates("..", "/w/a.py", "/w")) == []
