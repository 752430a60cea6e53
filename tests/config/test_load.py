"""Loading is pure: precedence, messages, and what a workspace or an editor may not do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.config import OPTIONS, Option, Settings, Source, Sources, load, value_of
from lsp_complete.config.values import check, narrow


def user(**values: object) -> Source:
    return Source("user", "own file", values)


def workspace(**values: object) -> Source:
    return Source("workspace", "repo/lsp-complete.toml", values)


def editor(**values: object) -> Source:
    return Source("editor", "the editor's settings", values)


def environment(**values: object) -> Source:
    return Source(
        "environment", "environment", {f"LSP_COMPLETE_{key}": value for key, value in values.items()}
    )


def another_value(option: Option) -> object:
    """A right value of a setting that is not its default."""
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int):
        return next(n for n in (option.default + 1, option.default - 1) if not check(option, n)[1])
    if isinstance(option.default, str):
        return "elsewhere"
    return {"python": False} if isinstance(option.default, dict) else ["elsewhere"]


def nested(name: str, value: object) -> dict[str, object]:
    for part in reversed(name.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def test_without_sources_everything_is_default() -> None:
    loaded = load(Sources())
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.problems == ()


def test_sources_rise_user_workspace_editor_environment() -> None:
    sources = Sources(
        user=(user(suggest={"max_lines": 1, "max_tokens": 1, "min_chars": 1, "debounce_ms": 1}),),
        workspace=(workspace(suggest={"max_lines": 2, "max_tokens": 2, "min_chars": 2}),),
        editor=(editor(suggest={"max_lines": 3, "max_tokens": 3}),),
        environment=(environment(SUGGEST_MAX_LINES="4"),),
    )
    loaded = load(sources)
    suggest = loaded.settings.suggest
    assert (suggest.max_lines, suggest.max_tokens, suggest.min_chars, suggest.debounce_ms) == (4, 3, 2, 1)
    assert loaded.origins["suggest.max_lines"] == "LSP_COMPLETE_SUGGEST_MAX_LINES"
    assert loaded.origins["suggest.max_tokens"] == "the editor's settings"
    assert loaded.origins["suggest.min_chars"] == "repo/lsp-complete.toml"
    assert loaded.origins["suggest.debounce_ms"] == "own file"
    assert loaded.problems == ()


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_every_setting_can_be_set_by_the_user(option: Option) -> None:
    value = another_value(option)
    for sources in (
        Sources(user=(Source("user", "own file", nested(option.name, value)),)),
        Sources(user=(Source("user", "own file", {option.name: value}),)),
    ):
        loaded = load(sources)
        assert loaded.problems == ()
        assert loaded.origins[option.name] == "own file"
        assert value_of(loaded.settings, option.name) != option.default


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_every_setting_can_be_set_by_a_variable(option: Option) -> None:
    value = another_value(option)
    if isinstance(value, list):
        text = ",".join(value)
    else:
        text = (
            ",".join(f"{k}={str(v).lower()}" for k, v in value.items())
            if isinstance(value, dict)
            else str(value)
        )
    loaded = load(Sources(environment=(Source("environment", "environment", {option.variable: text}),)))
    assert loaded.problems == ()
    assert loaded.origins[option.name] == option.variable
    assert value_of(loaded.settings, option.name) == check(option, value)[0]


@pytest.mark.parametrize(
    "option", [o for o in OPTIONS.values() if o.scope == "own"], ids=lambda option: option.name
)
@pytest.mark.parametrize("kind", ["workspace", "editor"])
def test_a_strangers_repository_changes_nothing_that_matters(option: Option, kind: str) -> None:
    """Neither the repository's file nor an editor that forwards the repository's settings."""
    hostile = nested(option.name, another_value(option))
    if kind == "workspace":
        sources = Sources(workspace=(Source("workspace", "repo/lsp-complete.toml", hostile),))
    else:
        sources = Sources(editor=(Source("editor", "the editor's settings", {"lsp-complete": hostile}),))
    loaded = load(sources)
    assert loaded.settings == Settings()
    assert loaded.origins[option.name] == "default"
    (problem,) = loaded.problems
    assert f"`{option.name}`" in problem and option.variable in problem and "ignored" in problem


def test_what_matters_is_own() -> None:
    """A new setting that names a path, a port, an endpoint, a size or a folder must not slip through."""
    matters = ("model", "dir", "endpoint", "port", "secrets", "record", "engine", "cache", "draft", "reference", "log")
    for option in OPTIONS.values():
        if option.sensitive or option.path or any(word in option.name for word in matters):
            assert option.scope == "own", option.name
    assert {o.name for o in OPTIONS.values() if o.sensitive} >= {
        "model",
        "model_dir",
        "draft_model",
        "reference_model",
        "engine.endpoint",
        "index.secrets",
        "record.enabled",
        "record.dir",
        "dashboard.port",
    }


def test_a_workspace_narrows_and_never_widens() -> None:
    own = user(
        prefetch="off",
        languages={"markdown": False},
        index={"enabled": False, "exclude": ["private/"]},
        context={"cross_file": False},
    )
    hostile = workspace(
        prefetch="full",
        languages={"markdown": True, "*": True},
        index={"enabled": True, "exclude": ["!private/", "build/"]},
        context={"cross_file": True},
    )
    loaded = load(Sources(user=(own,), workspace=(hostile,)))
    settings = loaded.settings
    assert settings.prefetch == "off"
    assert not settings.index.enabled
    assert not settings.context.cross_file
    assert not settings.language_enabled("markdown")
    assert settings.index.exclude == ("private/", "build/")
    assert len(loaded.problems) == 5
    stricter = workspace(prefetch="off", languages={"sql": False}, index={"enabled": False})
    loaded = load(Sources(workspace=(stricter,)))
    assert loaded.problems == ()
    assert (loaded.settings.prefetch, loaded.settings.index.enabled) == ("off", False)
    assert not loaded.settings.language_enabled("sql")


def test_joined_lists_keep_the_bound() -> None:
    own = user(index={"exclude": [f"own{i}" for i in range(300)]})
    other = workspace(index={"exclude": [f"other{i}" for i in range(300)]})
    loaded = load(Sources(user=(own,), workspace=(other,)))
    assert len(loaded.settings.index.exclude) == 300
    assert "`index.exclude`" in loaded.problems[0]


def test_an_editor_that_forwards_defaults_is_not_scolded() -> None:
    everything = {
        option.name: list(option.default) if isinstance(option.default, tuple) else option.default
        for option in OPTIONS.values()
    }
    loaded = load(Sources(user=(user(model="1.5b"),), editor=(editor(**everything),)))
    assert loaded.problems == ()
    assert loaded.settings.model == "1.5b"


def test_one_wrong_value_spoils_no_other() -> None:
    loaded = load(
        Sources(
            user=(user(engine={"threads": "many", "slots": 3}, suggest={"level": "loud", "max_lines": 5}),)
        )
    )
    assert loaded.settings.engine.slots == 3
    assert loaded.settings.suggest.max_lines == 5
    assert loaded.settings.engine.threads == 0
    assert loaded.settings.suggest.level == "balanced"
    threads, level = loaded.problems
    assert (
        "`engine.threads`" in threads
        and "own file" in threads
        and "'many'" in threads
        and "0 (default)" in threads
    )
    assert "`suggest.level`" in level and "'eager', 'balanced' or 'quiet'" in level


def test_a_wrong_value_keeps_the_next_weaker_one() -> None:
    loaded = load(
        Sources(user=(user(suggest={"max_lines": 5}),), editor=(editor(suggest={"max_lines": -1}),))
    )
    assert loaded.settings.suggest.max_lines == 5
    assert "5 (own file)" in loaded.problems[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine.threads", True),
        ("engine.threads", 1.5),
        ("engine.threads", "4"),
        ("engine.threads", 10**9),
        ("suggest.in_strings", "yes"),
        ("suggest.in_strings", 1),
        ("model", 7),
        ("model", ["a"]),
        ("index.exclude", "build/"),
        ("index.exclude", [1]),
        ("languages", ["python"]),
        ("languages", {"python": "off"}),
        ("rules", "x" * 501),
        ("rules", "one\ntwo"),
        ("index.exclude", ["build/\n!private/"]),
    ],
)
def test_types_and_bounds_are_strict(name: str, value: object) -> None:
    loaded = load(Sources(user=(Source("user", "own file", {name: value}),)))
    assert value_of(loaded.settings, name) == OPTIONS[name].default
    assert f"`{name}`" in loaded.problems[0]


def test_unknown_settings_are_named_with_the_nearest_known_one() -> None:
    loaded = load(
        Sources(
            user=(user(engin={"threads": 1}, suggest={"max_line": 3}),),
            environment=(environment(SUGGEST_MAXLINES="3", CONFIG="x", DEBUG="1"),),
        )
    )
    assert loaded.settings == Settings()
    engin, line, variable = loaded.problems
    assert "`engin`" in engin
    assert "`suggest.max_line`" in line and "`suggest.max_lines`" in line
    assert "LSP_COMPLETE_SUGGEST_MAXLINES" in variable and "LSP_COMPLETE_SUGGEST_MAX_LINES" in variable


def test_a_group_that_is_no_table() -> None:
    loaded = load(Sources(user=(user(engine=3, suggest={"max_lines": 7}),)))
    assert loaded.settings.suggest.max_lines == 7
    assert "`engine`" in loaded.problems[0] and "group" in loaded.problems[0]


def test_editor_shapes() -> None:
    """Nested, dotted, wrapped in the section's name, and null for what is not set."""
    shapes: list[dict[str, object]] = [
        {"suggest": {"level": "quiet"}},
        {"suggest.level": "quiet"},
        {"lsp-complete": {"suggest.level": "quiet"}},
        {"lspComplete": {"suggest": {"level": "quiet", "max_lines": None}, "context": None}},
    ]
    for shape in shapes:
        loaded = load(Sources(editor=(editor(**shape),)))
        assert loaded.settings.suggest.level == "quiet"
        assert loaded.problems == ()


def test_dotted_languages_join() -> None:
    values = {"languages.python": True, "languages.*": False}
    settings = load(Sources(user=(Source("user", "own file", values),))).settings
    assert settings.language_enabled("python")
    assert not settings.language_enabled("go")


def test_lists_and_maps_from_the_environment() -> None:
    for exclude, languages in (("a, b", "python=on,*=off"), ('["a", "b"]', '{"python": true, "*": false}')):
        settings = load(
            Sources(environment=(environment(INDEX_EXCLUDE=exclude, LANGUAGES=languages),))
        ).settings
        assert settings.index.exclude == ("a", "b")
        assert settings.languages == {"python": True, "*": False}


def test_an_unreadable_source_is_named_and_left_out() -> None:
    loaded = load(Sources(user=(Source("user", "own file", problem="it is not valid TOML (line 3)"),)))
    assert loaded.settings == Settings()
    assert loaded.problems == ("own file: it is not valid TOML (line 3); this source is left out",)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*OPTIONS, "engine", "suggest", "languages.python", "", "."]) | st.text(max_size=8)


@given(st.dictionaries(names, json_values, max_size=6), st.sampled_from(["workspace", "editor"]))
def test_no_untrusted_source_raises_or_touches_what_is_own(values: dict[str, object], kind: str) -> None:
    made = Source("workspace" if kind == "workspace" else "editor", kind, values)
    loaded = load(Sources(workspace=(made,)))
    for option in OPTIONS.values():
        if option.scope == "own":
            assert value_of(loaded.settings, option.name) == option.default


@given(
    st.dictionaries(st.sampled_from(["a", "b", "*"]), st.booleans()),
    st.dictionaries(st.sampled_from(["a", "b", "*"]), st.booleans()),
)
def test_narrowed_languages_are_never_wider(own: dict[str, bool], other: dict[str, bool]) -> None:
    before = Settings(languages=own)
    narrowed = narrow(own, other)
    assert isinstance(narrowed, dict)
    after = Settings(languages=narrowed)
    for language in ("a", "b", "c"):
        assert before.language_enabled(language) or not after.language_enabled(language)
