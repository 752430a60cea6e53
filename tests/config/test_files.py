"""Reading sources from disk, and what they look like when shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lsp_complete.config import (
    OPTIONS,
    Settings,
    Source,
    as_json,
    as_text,
    editor_properties,
    gather,
    load,
    markdown,
    schema,
    user_file,
)
from lsp_complete.config.files import MAX_FILE_BYTES, read_file


def test_all_sources_from_disk(tmp_path: Path) -> None:
    own = tmp_path / "home.toml"
    own.write_text('model = "~/m.gguf"\nmodel_dir = "~/models"\n[suggest]\nmax_lines = 3\n', encoding="utf-8")
    root = tmp_path / "repo"
    root.mkdir()
    (root / "lsp-complete.toml").write_text("[suggest]\nmax_tokens = 10\nmin_chars = 4\n", encoding="utf-8")
    (root / ".lsp-complete.toml").write_text('model = "evil.gguf"\nsuggest.min_chars = 5\n', encoding="utf-8")
    loaded = load(
        gather(
            [root],
            [{"suggest": {"level": "quiet"}}, {}, None, []],
            {"LSP_COMPLETE_DRAFT_MODEL": "~/d.gguf"},
            own,
        )
    )
    assert loaded.settings.model == os.path.expanduser("~/m.gguf")
    assert loaded.settings.model_dir == os.path.expanduser("~/models")
    assert loaded.settings.draft_model == os.path.expanduser("~/d.gguf")
    suggest = loaded.settings.suggest
    assert (suggest.max_lines, suggest.max_tokens, suggest.min_chars, suggest.level) == (3, 10, 5, "quiet")
    (problem,) = loaded.problems
    assert "`model`" in problem and ".lsp-complete.toml" in problem


def test_a_workspaces_tilde_is_not_expanded(tmp_path: Path) -> None:
    (tmp_path / "lsp-complete.toml").write_text('rules = "~/x"\n', encoding="utf-8")
    assert load(gather([tmp_path], env={}, own_file=tmp_path / "none.toml")).settings.rules == "~/x"


def test_the_users_own_file_in_a_workspace_is_still_the_users(tmp_path: Path) -> None:
    own = tmp_path / "lsp-complete.toml"
    own.write_text('model = "1.5b"\n', encoding="utf-8")
    loaded = load(gather([tmp_path], env={}, own_file=own))
    assert loaded.settings.model == "1.5b"
    assert loaded.problems == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"model = ", "not valid TOML"),
        (b"model = 1\nmodel = 2\n", "not valid TOML"),
        (b"model = '\xff'\n", "not UTF-8"),
        (b"#" * (MAX_FILE_BYTES + 1), "larger than 64 KB"),
        (b"x = " + b"[" * 20000, "not valid TOML"),
    ],
)
def test_a_broken_workspace_file_is_a_message(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "lsp-complete.toml").write_bytes(content)
    loaded = load(gather([tmp_path], env={}, own_file=tmp_path / "none.toml"))
    assert loaded.settings == Settings()
    assert len(loaded.problems) == 1 and reason in loaded.problems[0]


def test_a_folder_or_pipe_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "lsp-complete.toml").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / ".lsp-complete.toml")
    loaded = load(gather([tmp_path], env={}, own_file=tmp_path / "none.toml"))
    assert loaded.settings == Settings()
    assert all("cannot be read" in problem for problem in loaded.problems)
    assert loaded.problems


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(b'\xef\xbb\xbfprefetch = "off"\r\n')
    source = read_file(path, "user")
    assert source is not None and source.values == {"prefetch": "off"}


def test_the_users_file_can_be_named(tmp_path: Path) -> None:
    assert user_file({"LSP_COMPLETE_CONFIG": str(tmp_path / "x.toml")}) == tmp_path / "x.toml"
    assert user_file({}).name == "lsp-complete.toml"


def test_schema_knows_every_setting() -> None:
    made = schema()
    json.dumps(made)
    for option in OPTIONS.values():
        group, _, key = option.name.rpartition(".")
        owner = made["$defs"][made["properties"][group]["$ref"].rpartition("/")[2]] if group else made
        found = owner["properties"][key]
        assert found["description"] == option.description
        assert found["scope"] == option.scope
        assert owner["additionalProperties"] is False


def test_editor_properties_hold_nothing_sensitive() -> None:
    made = editor_properties("lsp-complete")
    assert set(made) == {f"lsp-complete.{o.name}" for o in OPTIONS.values() if o.scope != "own"}
    assert made["lsp-complete.suggest.level"]["enum"] == ["eager", "balanced", "quiet"]


def test_shown_values_and_origins() -> None:
    loaded = load(gather([], [{"suggest.level": "quiet"}], {}, Path("none.toml")))
    lines = as_text(loaded).splitlines()
    assert [line.split()[0] for line in lines] == list(OPTIONS)
    assert any(
        line.split(maxsplit=2) == ["suggest.level", '"quiet"', "the editor's settings"] for line in lines
    )
    shown = as_json(loaded)
    json.dumps(shown)
    assert shown["settings"]["suggest.level"] == {"value": "quiet", "origin": "the editor's settings"}  # type: ignore[index]


def test_markdown_has_a_row_for_each_setting() -> None:
    rows = markdown().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(OPTIONS)
    assert all(row.count(" | ") == 3 for row in rows)


def test_sources_are_values() -> None:
    assert Source("user", "x").trusted and not Source("editor", "x").trusted
