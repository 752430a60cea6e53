"""The light scanner: brackets, strings and comments, resumable at any point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.language import LanguageFacts, facts_for
from lsp_complete.suggest.scan import State, code_only, scan

OPEN = [
    ("python", "f(a, [1", ("(", "["), "", ""),
    ("python", "x = '(", (), "'", ""),
    ("python", '"""doc (\nmore', (), '"""', ""),
    ("python", "# it's (\nf(", ("(",), "", ""),
    ("python", "# it's", (), "", "\n"),
    ("typescript", "`a ${b(", ("${", "("), "", ""),
    ("typescript", "`a ${b} c", (), "`", ""),
    ("typescript", "/* ( ", (), "", "*/"),
    ("rust", "fn f<'a>(x: &'a str, c: char) { if c == '{' { g('\\''", ("{", "{", "("), "", ""),
    ("go", "s := `raw \\` + f(", ("(",), "", ""),
    ("cpp", "'\"' + \"a\\\"(\" + f(", ("(",), "", ""),
    ("lua", "x = 1 -- it's (\nf(", ("(",), "", ""),
]


@pytest.mark.parametrize(("language", "text", "stack", "string", "comment"), OPEN)
def test_what_is_open(language: str, text: str, stack: tuple[str, ...], string: str, comment: str) -> None:
    assert scan(text, facts_for(language)).end == State(stack, string, comment)


def test_closers_of_what_was_open_before() -> None:
    found = scan("a)] }", facts_for("python"), State(("[", "(")))
    assert [(o.offset, o.char, o.fits) for o in found.outer] == [(1, ")", True), (2, "]", True), (4, "}", None)]
    assert [o.fits for o in scan(")", facts_for("python"), State(("{",))).outer] == [False]


def test_strings_and_comments_are_blanked() -> None:
    assert code_only("a 'b' # c\nd", facts_for("python")) == "a        \nd"


TEXT = st.text(st.sampled_from("ab \n(){}[]\"'`$\\#/*-"), max_size=60)
LANGUAGE = st.sampled_from(["python", "typescript", "rust", "lua", "html", "unknown"])


@given(text=TEXT, language=LANGUAGE)
def test_same_length_and_never_raises(text: str, language: str) -> None:
    facts = facts_for(language)
    assert len(code_only(text, facts)) == len(text)
    for offset in scan(text, facts).opened:
        assert 0 <= offset < len(text)


@given(lines=st.lists(TEXT, max_size=4), language=LANGUAGE)
def test_going_on_at_a_line_end_equals_scanning_whole(lines: list[str], language: str) -> None:
    facts, state = facts_for(language), State()
    for line in lines:
        state = scan(line + "\n", facts, state).end
    assert state == scan("".join(x + "\n" for x in lines), facts).end


def test_facts_are_checked() -> None:
    with pytest.raises(ValueError, match="block_comment"):
        LanguageFacts(block_comment=("/*",))
    assert facts_for("typescriptreact").language_id == "typescript"
    assert facts_for("no such language").openers
