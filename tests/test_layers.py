"""The import rules of ARCHITECTURE.md, read from the source of every module.

Rules: imports go only downward; the packages in the middle never import each other, `service` joins them; a library that
decides a design stays where the design puts it. What may import from everywhere, or more than its layer, is listed here
with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "lsp_complete"

FOUNDATION = {"errors", "config", "grammar_paths"}
PURE = {"text", "syntax"}
MIDDLE = {"index", "context", "engine", "suggest", "store", "measure", "models"}
JOIN = {"service"}
TOP = {"lsp", "cli", "commands", "doctor", "__main__"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "grammar_paths": set(),
    "config": {"errors"},
    **{name: FOUNDATION | PURE - {name} for name in PURE},
    **{name: FOUNDATION | PURE for name in MIDDLE},
    **{name: FOUNDATION | PURE | MIDDLE for name in JOIN},
    **{name: FOUNDATION | PURE | MIDDLE | JOIN | TOP for name in TOP},
}
"""Top-level parts of the package and what each may import (itself always, and the version in `__init__`)."""

ABOVE_ALL = ("cli", "commands", "doctor", "__main__", "measure.bench", "measure.demo", "measure.replay")
"""These join everything for a person at a terminal: commands, benchmarks, the demo, replays."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "pygls": ("lsp",),
    "lsprotocol": ("lsp", "measure.bench"),
    "llama_cpp": ("engine.llama", "engine.vocab"),
    "tree_sitter": ("syntax",),
    "diskcache": ("store",),
    "huggingface_hub": ("models",),
    "httpx": ("models",),
    "platformdirs": ("config", "engine", "index", "measure", "models", "service", "store", "syntax"),
}
"""Third-party libraries that only certain modules may import, wherever in the file the import stands."""

NEVER = {"pickle", "marshal", "shelve"}
"""Reading what another program wrote with these runs its code."""


def modules() -> Iterator[tuple[str, Path]]:
    """(dotted name inside the package, file) of every module; "" is the package itself."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """(imported absolute name, line) of every import of a module, those inside functions included.

    `from x import y` gives x.y, since y may be a module. Imports for type checking only count too: a type
    that cannot be named without looking upward is a dependency upward.
    """
    here = ["lsp_complete", *(module.split(".") if module else [])]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                up = node.level - is_package
                base = [*here[: len(here) - up], *base]
            for alias in node.names:
                yield ".".join([*base, alias.name]), node.lineno


def within(module: str, places: tuple[str, ...]) -> bool:
    """Whether a module is one of these, inside one, or beside one with the same start (`measure.bench_typing`)."""
    return any(module == place or module.startswith((place + ".", place + "_")) for place in places)


def wrong(module: str, imported: str) -> str:
    """Why this import is against the rules, or ""."""
    root = imported.split(".")[0]
    if root in NEVER:
        return f"{root} runs code that stands in data"
    if root != "lsp_complete":
        places = ONLY_IN.get(root) or (ONLY_IN["tree_sitter"] if root.startswith("tree_sitter_") else None)
        return "" if places is None or within(module, places) else f"{root} belongs to {', '.join(places)}"
    part, target = module.split(".")[0], [*imported.split("."), ""][1]
    if target in ("", "__version__", part) or not module or within(module, ABOVE_ALL):
        return ""
    if target not in MAY_IMPORT:
        return f"lsp_complete.{target} has no place among the layers"
    return "" if target in MAY_IMPORT[part] else f"{part} may not import {target}"


def violations(module: str, source: str, is_package: bool) -> list[str]:
    return [
        f"{module}:{line}: {reason}"
        for name, line in imports(source, module, is_package)
        if (reason := wrong(module, name))
    ]


@pytest.mark.parametrize(
    ("module", "path"), [pytest.param(m, p, id=m or "lsp_complete") for m, p in modules()]
)
def test_imports_go_downward(module: str, path: Path) -> None:
    assert module == "" or module.split(".")[0] in MAY_IMPORT, f"{module} has no place among the layers"
    assert violations(module, path.read_text(encoding="utf-8"), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("text.edits", "from lsp_complete.engine import api"),
        ("text.edits", "from ..engine.api import Engine"),
        ("context.anchor", "from ..engine.api import Engine"),
        ("context.anchor", "def f():\n    import lsp_complete.suggest.typed"),
        ("measure.statistics", "from ..service import Service"),
        ("engine.session", "import llama_cpp"),
        ("service.core", "import pygls.server"),
        ("index.walk", "import tree_sitter_python"),
        ("config.load", "from lsp_complete import text"),
        ("engine.session", "from .. import lsp"),
        ("store.disk", "import pickle"),
        ("suggest.rank", "from lsp_complete import newcomer"),
        ("errors", "from . import config"),
    ],
)
def test_the_rules_catch(module: str, source: str) -> None:
    assert violations(module, source, is_package=False)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("service.core", "from ..engine.api import Engine\nfrom . import types\nfrom .. import __version__"),
        ("engine.llama", "import llama_cpp.llama_cpp as c"),
        ("measure.bench_quality", "from ..service import Service"),
        ("measure.demo", "from ..lsp import server"),
        ("lsp.server", "from pygls.lsp.server import LanguageServer\nfrom ..service import Service"),
        ("context.anchor", "from ..text.document import Document\nimport tree"),
        ("syntax.trees", "import tree_sitter_python\nfrom lsp_complete.grammar_paths import grammars_dir"),
    ],
)
def test_the_rules_allow(module: str, source: str) -> None:
    assert violations(module, source, is_package=False) == []


def test_relative_imports_of_a_package_are_resolved() -> None:
    assert list(imports("from .core import Service", "service", is_package=True)) == [
        ("lsp_complete.service.core.Service", 1)
    ]
    assert list(imports("from ..engine import api", "service", is_package=True)) == [
        ("lsp_complete.engine.api", 1)
    ]
