"""Unknown names, and the flat habits of weakened models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest import flat
from lsp_complete.suggest.language import facts_for
from lsp_complete.suggest.names import (
    declares,
    defined_in,
    language_words,
    names_in,
    repeated_share,
    safe_share,
    trim_at_unknown,
    unknown_names,
    unknown_penalty,
)

CASES = [
    ("python", "load_config(path)", {"path"}, ["load_config"]),
    ("python", "x = len(items)\nreturn x", {"items"}, []),
    ("python", "for key, value in items.pairs():\n    print(key, value)", {"items"}, []),
    ("python", "open(path, mode=flags)", {"path", "flags"}, []),
    ("python", "'no_name' # nor_here", set(), []),
    ("python", "f'{name}'", set(), []),
    ("python", "lambda a, b: a + b", set(), []),
    ("python", "def go(first, second):\n    return first", set(), []),
    ("typescript", "const total = items.map((item) => item.price);", {"items"}, []),
    ("typescript", "return { width: w, height: computeIt(w) };", {"w"}, ["computeIt"]),
    ("go", "value, err := parse(text)\nif err != nil {", {"text"}, ["parse"]),
    ("rust", "let total: u32 = items.iter().sum();", {"items"}, []),
    ("rust", "Ok(Config { path: source })", {"Config"}, ["source"]),
    ("java", "String name = user.getName();", {"user"}, []),
    ("cpp", "std::vector<int> sizes; sizes.push_back(width);", {"sizes"}, ["width"]),
]


@pytest.mark.parametrize(("language", "text", "known", "want"), CASES)
def test_names_that_nobody_knows(language: str, text: str, known: set[str], want: list[str]) -> None:
    assert [n.text for n in unknown_names(text, facts_for(language), known)] == want


def test_a_name_begun_before_the_cursor_is_judged_whole() -> None:
    facts = facts_for("python")
    assert not unknown_names("onfig(x)", facts, {"load_config", "x"}, before="y = load_c")
    assert [n.text for n in unknown_names("ups(x)", facts, {"load_config", "x"}, before="y = load_")] == ["ups"]
    assert not unknown_names("name", facts, set(), before="self.")
    assert unknown_names("name", facts, set(), before="self.", members=True)


def test_what_a_line_brings_into_being_is_not_unknown() -> None:
    python, typescript = facts_for("python"), facts_for("typescript")
    assert unknown_names("item in items:", python, {"items"}, "    for ") == ()
    assert unknown_names("item in wrong.pairs():", python, {"items"}, "    for ")[0].text == "wrong"
    assert unknown_names("UIEvent} from '@core'", typescript, set(), "import {") == ()
    assert unknown_names("from core import everything", python, set(), "") == ()
    assert declares("def area") and declares("class Box") and not declares("print") and not declares("def area() and print")


def test_a_language_without_words_is_not_judged() -> None:
    assert not language_words("klingon")
    assert not unknown_names("anything(at, all)", facts_for("klingon"), set())


def test_trim_at_the_last_known_point() -> None:
    facts = facts_for("python")
    for text, want in (("a + missing", "a"), ("foo(a, missing)", "foo(a"), ("missing", ""), ("a.b(c)", "a.b(c)")):
        assert trim_at_unknown(text, unknown_names(text, facts, {"a", "c", "foo"})) == want


def test_penalty_is_the_share_of_unknown_names() -> None:
    unknown = unknown_names("aa(bb)", facts_for("python"), {"aa"})
    assert unknown_penalty("aa(bb)", unknown, 2.0) == pytest.approx(-1.0)
    assert unknown_penalty("1 + 2", ()) == 0.0


def test_safe_names_and_repeats_are_measured() -> None:
    facts = facts_for("python")
    assert safe_share("result = temp + data1", facts) == 1.0
    assert safe_share("price = temp", facts) == 0.5
    assert safe_share("1 + 2", facts) == 0.0
    assert repeated_share("aaaa\nbbbb\naaaa\naaaa") == 0.5
    assert repeated_share("a b c a b c a b c") > 0.5
    assert repeated_share("x") == 0.0


def test_the_guard_prefers_what_is_not_flat() -> None:
    facts = facts_for("python")
    dull, good = flat.measure("result = temp", facts), flat.measure("price = width * rate", facts)
    assert dull.flat and not good.flat
    assert flat.prefer([good, dull]) == 0
    assert flat.prefer([dull, good]) == 1
    assert flat.prefer([dull, dull]) == 0
    assert flat.prefer([dull], "reference") is None
    with pytest.raises(ValueError, match="no candidate"):
        flat.prefer([])


def test_the_files_own_safe_names_are_no_habit() -> None:
    facts = facts_for("python")
    assert flat.known_habits("result = temp", "x = 1", facts).flat
    assert not flat.known_habits("result = temp", "result = 0\ntemp = 1", facts).flat


TEXT = st.text(st.sampled_from("ab_1 .:=(){}'\"#\n->é"), max_size=40)


@given(text=TEXT, before=TEXT, language=st.sampled_from(["python", "rust", "typescript", "x"]))
def test_never_raises(text: str, before: str, language: str) -> None:
    facts = facts_for(language)
    unknown = unknown_names(text, facts, lambda name: name.startswith("a"), before)
    assert text.startswith(trim_at_unknown(text, unknown))
    assert all(text[n.start : n.end] == n.text for n in names_in(text, facts))
    defined_in(text, facts)
    assert 0.0 <= flat.measure(text, facts).safe <= 1.0


def test_comments_and_strings_are_blanks_that_cost_their_length() -> None:
    """A search that tries each division of the blanks would not end."""
    python, typescript = facts_for("python"), facts_for("typescript")
    comments = "".join(f"    # {'word ' * 20}\n" for _ in range(40))
    assert defined_in(f'"""{"long " * 400}\n"""\n{comments}    return total\n{comments}x = 1\n', python) == {"x"}
    assert defined_in(f'for "{"a" * 2000}" of\n', typescript) == frozenset()
    assert trim_at_unknown(f"x {'::->' * 40}! y", names_in("x", python)) == ""


def test_names_after_for_are_whole() -> None:
    assert defined_in("for letter, value in pairs:\n    pass\n", facts_for("python")) == {"letter", "value"}
    assert defined_in("for (const [a, b] of x) {}\nfor (let item of x) {}\n", facts_for("typescript")) == {"item"}
    assert defined_in("for ((key, value) in pairs) {}\n", facts_for("kotlin")) == {"key", "value"}
    assert {"a", "b"} <= defined_in("a, b = 1, 2\n", facts_for("python"))
