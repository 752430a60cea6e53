"""Grammar folders: all load, and adding one needs no code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_complete.syntax import languages
from lsp_complete.syntax.languages import all_languages, language_for, load, version_of
from lsp_complete.syntax.outline import outline_text
from tests.syntax.helpers import SAMPLES

EXPECTED = {
    "bash", "c", "cpp", "csharp", "css", "go", "html", "java", "javascript", "json", "kotlin", "lua", "php", "python",
    "ruby", "rust", "scala", "sql", "swift", "toml", "tsx", "typescript", "yaml",
}  # fmt: skip


def test_every_language_of_the_promise_is_there_and_has_a_sample() -> None:
    assert set(all_languages()) >= EXPECTED
    assert set(SAMPLES) == set(all_languages())


@pytest.mark.parametrize("language", sorted(EXPECTED))
def test_every_grammar_loads_and_parses_its_sample(language: str) -> None:
    grammar = load(all_languages()[language])
    assert grammar is not None, languages.problems()
    assert len(grammar.version) == 16 and version_of(grammar.facts) == grammar.version
    outline = outline_text(language, "", SAMPLES[language])
    assert outline is not None and not outline.broken and outline.nodes


@pytest.mark.parametrize(
    ("language_id", "path", "first_line", "key"),
    [
        ("python", "", "", "python"),
        ("typescriptreact", "a.ts", "", "tsx"),
        ("shellscript", "", "", "bash"),
        ("csharp", "", "", "csharp"),
        ("c++", "", "", "cpp"),
        ("plaintext", "file:///a/b.RS", "", "rust"),
        ("", "C:\\code\\x.kt", "", "kotlin"),
        ("", "/a/Rakefile", "", "ruby"),
        ("", "run", "#!/usr/bin/env -S python3 -u", "python"),
        ("", "run", "#!/bin/bash", "bash"),
        ("plaintext", "a.txt", "", None),
        ("", "", "", None),
    ],
)
def test_which_language_a_file_has(language_id: str, path: str, first_line: str, key: str | None) -> None:
    found = language_for(language_id, path, first_line)
    assert (found.key if found else None) == key


def test_no_two_languages_claim_the_same_name() -> None:
    for field in ("ids", "extensions", "filenames", "interpreters"):
        claimed = [word for facts in all_languages().values() for word in getattr(facts, field)]
        assert len(claimed) == len(set(claimed)), field


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty grammar folder in place of the real one."""

    def forget() -> None:
        all_languages.cache_clear()
        languages._tables.cache_clear()
        languages.version_of.cache_clear()
        monkeypatch.setattr(languages, "_grammars", {})
        monkeypatch.setattr(languages, "_problems", {})

    monkeypatch.setattr(languages, "grammars_dir", lambda: tmp_path)
    forget()
    yield tmp_path
    all_languages.cache_clear()
    languages._tables.cache_clear()


FACTS = 'name = "New"\nids = ["new"]\nextensions = [".new"]\nmodule = "{module}"\nfunction = "language"\n'


def add(root: Path, facts: str, definitions: str = "") -> None:
    (root / "new").mkdir()
    (root / "new" / "facts.toml").write_text(facts, encoding="utf-8")
    (root / "new" / "definitions.scm").write_text(definitions, encoding="utf-8")


def test_a_new_folder_is_a_new_language(folders: Path) -> None:
    add(
        folders,
        FACTS.format(module="tree_sitter_json"),
        "(pair key: (string (string_content) @name)) @constant.key",
    )
    outline = outline_text("", "x.new", '{"a": 1}')
    assert outline is not None and [node.name for node in outline.nodes] == ["a"]


@pytest.mark.parametrize(
    ("facts", "definitions"),
    [
        (FACTS.format(module="no_such_wheel"), ""),
        (FACTS.format(module="tree_sitter_json"), "(no_such_node) @constant"),
        (FACTS.format(module="tree_sitter_json"), "((("),
        ("name = ", ""),
        ('name = "New"\n', ""),
        (FACTS.format(module="tree_sitter_json") + 'unknown = "x"\n', ""),
    ],
)
def test_a_broken_folder_is_a_sentence_not_a_crash(folders: Path, facts: str, definitions: str) -> None:
    add(folders, facts, definitions)
    assert outline_text("", "x.new", "{}") is None
    assert "new" in languages.problems()


def test_a_changed_query_is_another_version_and_no_parser_is_loaded_to_know_it(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(folders, FACTS.format(module="tree_sitter_json"), "(pair) @constant")
    monkeypatch.setattr(languages, "_load", lambda _facts: pytest.fail("the parser was loaded"))
    facts = all_languages()["new"]
    first = version_of(facts)
    (folders / "new" / "definitions.scm").write_text("(object) @constant", encoding="utf-8")
    version_of.cache_clear()
    assert len(first) == len(version_of(facts)) == 16 and version_of(facts) != first
    version_of.cache_clear()
    monkeypatch.setattr(languages.importlib.metadata, "version", lambda _package: "99.0")
    assert version_of(facts) != first


def test_no_folders_at_all(folders: Path) -> None:
    assert language_for("python") is None
    assert "*" in languages.problems()
