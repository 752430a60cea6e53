"""The languages this installation knows, read from `grammars/<language>/`.

Strategy: a language is a folder: `facts.toml` says what it is called, which wheel parses it and how its text is
written; the `.scm` files say which nodes are definitions, imports, calls, blocks, comments, strings. Nothing here or above names a
language, so adding one means adding a folder. Facts are read at first use (all of them: they are small); a parser is
loaded only for a language that is opened.

Rules:
- An unknown language, a missing wheel or a broken query gives None and a sentence in `problems()`; nothing raises.
- A grammar's `version` is a digest of its wheel's version, its facts and its queries: caches are keyed by it.
- Loaded grammars are immutable and shared between threads; parsers are made per use.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from threading import Lock

import tree_sitter
import xxhash

from lsp_complete.grammar_paths import grammars_dir

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

QUERY_FILES = ("definitions", "imports", "calls", "blocks", "comments", "strings")


@dataclass(frozen=True, slots=True)
class LanguageFacts:
    """One `facts.toml`. `key` is the folder's name.

    ids: LSP language ids. block_opener: pattern that the end of a line (comment and blanks cut off) matches where a
    block opens. closers: what an editor may insert behind the cursor. elision: text that stands for a left-out body.
    wrappers: node kinds that belong to the definition inside them. leading: kinds of siblings before a definition that
    belong to it (attributes). doc: "body" (first string of the body), "above" (comment before it) or "none".
    name_separator: splits a qualified definition name into container and name. import_calls: functions whose call is an
    import (`require`). body_below: a definition without a body node has everything below its first line as body. builtins:
    names that need no definition. max_indent (columns), max_depth (different indentations), max_heredocs (bytes of open ones): what the
    scanner can bear (`limits.py`); 0 for any.
    """

    key: str
    name: str
    ids: tuple[str, ...]
    extensions: tuple[str, ...]
    module: str
    function: str
    filenames: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    queries: str = ""
    line_comment: str = ""
    block_comment: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    block_opener: str = ""
    indent: str = "    "
    elision: str = "..."
    wrappers: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()
    doc: str = "above"
    name_separator: str = ""
    import_calls: tuple[str, ...] = ()
    body_below: bool = False
    builtins: frozenset[str] = frozenset()
    max_indent: int = 0
    max_depth: int = 0
    max_heredocs: int = 0
    opener: re.Pattern[str] | None = field(default=None, compare=False)

    @property
    def ends_block(self) -> bool:
        """Whether blocks end by indentation alone (no closer of their own)."""
        return bool(self.block_opener) and self.block_opener.startswith(":")


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """A loaded parser with its queries. `outline` finds definitions, imports and comments, `calls` what is called, `place`
    what surrounds a cursor. keywords: the grammar's own words."""

    facts: LanguageFacts
    language: tree_sitter.Language
    outline: tree_sitter.Query
    place: tree_sitter.Query
    calls: tree_sitter.Query
    keywords: frozenset[str]
    version: str


def _read_facts(folder: Path) -> LanguageFacts:
    with (folder / "facts.toml").open("rb") as file:
        data = tomllib.load(file)
    values: dict[str, object] = {}
    for key, value in data.items():
        values[key] = tuple(value) if isinstance(value, list) else value
    values["builtins"] = frozenset(str(values.get("builtins", "")).split())
    pattern = str(values.get("block_opener", ""))
    values["opener"] = re.compile(pattern) if pattern else None
    return LanguageFacts(key=folder.name, **values)  # type: ignore[arg-type]  # a wrong type is caught as a problem


_problems: dict[str, str] = {}
_lock = Lock()
_grammars: dict[str, Grammar | None] = {}


def problems() -> dict[str, str]:
    """What kept languages from being used: folder name → one sentence. Holds no user text."""
    return dict(_problems)


@lru_cache(maxsize=1)
def all_languages() -> dict[str, LanguageFacts]:
    """Every language folder by name, sorted. Thread: any."""
    root = grammars_dir()
    found: dict[str, LanguageFacts] = {}
    for file in sorted(root.glob("*/facts.toml")):
        try:
            found[file.parent.name] = _read_facts(file.parent)
        except (OSError, ValueError, TypeError, re.error) as error:
            _problems[file.parent.name] = f"grammars/{file.parent.name}/facts.toml cannot be used: {error}"
    if not found:
        _problems["*"] = f"no grammar folders in {root}: files are completed without syntax"
    return found


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, str]]:
    """(language id, extension, file name, interpreter) → folder name."""
    ids: dict[str, str] = {}
    extensions: dict[str, str] = {}
    names: dict[str, str] = {}
    interpreters: dict[str, str] = {}
    for key, facts in all_languages().items():
        ids.setdefault(key, key)
        for table, words in (
            (ids, facts.ids),
            (extensions, facts.extensions),
            (names, facts.filenames),
            (interpreters, facts.interpreters),
        ):
            table.update(dict.fromkeys(words, key))
    return ids, extensions, names, interpreters


def language_for(language_id: str, path: str = "", first_line: str = "") -> LanguageFacts | None:
    """The language of a document: by LSP language id, else file name, else extension, else `#!` line.

    `path` may be a path or a URI; None means that the document is treated as plain text.
    """
    ids, extensions, names, interpreters = _tables()
    tail = PurePath(path.replace("\\", "/")).name
    suffix = PurePath(tail).suffix.lower()
    key = ids.get(language_id.lower()) or names.get(tail) or extensions.get(suffix)
    if key is None and first_line.startswith("#!"):
        words = [PurePath(word).name for word in first_line[2:].split()]
        key = next((interpreters[word] for word in words if word in interpreters), None)
    return all_languages()[key] if key else None


def _words_of(language: tree_sitter.Language) -> frozenset[str]:
    kinds = (
        language.node_kind_for_id(number)
        for number in range(language.node_kind_count)
        if not language.node_kind_is_named(number)
    )
    return frozenset(kind for kind in kinds if kind and kind.isidentifier())


def _recipe(facts: LanguageFacts) -> tuple[dict[str, str], str]:
    """The texts of a language's queries, and the version that they make with its wheel and its facts."""
    folder = grammars_dir() / (facts.queries or facts.key)
    texts = {
        name: file.read_text("utf-8") if (file := folder / f"{name}.scm").is_file() else ""
        for name in QUERY_FILES
    }
    package = facts.module.replace("_", "-")
    recipe = "\0".join((package, importlib.metadata.version(package), repr(facts), *texts.values()))
    return texts, xxhash.xxh3_64_hexdigest(recipe.encode("utf-8"))


@lru_cache(maxsize=256)
def version_of(facts: LanguageFacts) -> str:
    """The version that the language's grammar has once it is loaded, without loading it (a millisecond, then nothing): what a
    cache was made with can be compared before any parser is there. "" if the wheel is missing. Thread: any."""
    try:
        return _recipe(facts)[1]
    except (OSError, ValueError, importlib.metadata.PackageNotFoundError):
        return ""


def _load(facts: LanguageFacts) -> Grammar:
    module = importlib.import_module(facts.module)
    language = tree_sitter.Language(getattr(module, facts.function)())
    texts, version = _recipe(facts)
    outline = "\n".join(texts[name] for name in ("definitions", "imports", "comments"))
    place = "\n".join(texts[name] for name in ("blocks", "comments", "strings"))
    compiled = []
    for text in (outline, place, texts["calls"]):
        time.sleep(
            0
        )  # compiling holds the interpreter lock; between two queries the event loop gets its turn
        compiled.append(tree_sitter.Query(language, text))
    definitions, around, calls = compiled
    return Grammar(facts, language, definitions, around, calls, _words_of(language), version)


def load(facts: LanguageFacts) -> Grammar | None:
    """The parser and queries of a language, loaded once (mostly 2–60 ms; C++ 140, Swift 350, while other
    threads wait): call it off the key path.

    None if its wheel is missing or a query does not fit it; `problems()` then says why. Thread: any.
    """
    with _lock:
        if facts.key not in _grammars:
            try:
                _grammars[facts.key] = _load(facts)
            except (
                ImportError,
                AttributeError,
                OSError,
                ValueError,
                TypeError,
                importlib.metadata.PackageNotFoundError,
            ) as error:
                _grammars[facts.key] = None
                _problems[facts.key] = f"{facts.name} has no syntax here: {type(error).__name__}: {error}"
        return _grammars[facts.key]
