"""The suggestion store: typing, auto-closing, auto-indent, undo, partial acceptance, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.language import facts_for
from lsp_complete.suggest.scan import scan
from lsp_complete.suggest.store import Entry, SuggestionStore, next_line, next_word
from tests.suggest.typist import Editor

TS = facts_for("typescript")
URI = "file:///a.ts"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _store(before: str, after: str, shown: str, full: str = "", newline: str = "\n") -> SuggestionStore:
    store = SuggestionStore(Clock())
    store.add(Entry(URI, before, after, shown, full, TS, newline=newline, tab_width=4))
    return store


def _text(store: SuggestionStore, before: str, after: str) -> str | None:
    hit = store.lookup(URI, before, after)
    return None if hit is None else hit.text


def test_typing_takes_from_the_front() -> None:
    store = _store("a\nfoo", "\nz\n", "(a, b)")
    assert [_text(store, "a\nfoo" + "(a, b)"[:n], "\nz\n") for n in range(4)] == ["(a, b)", "a, b)", ", b)", " b)"]


def test_all_typed_is_no_suggestion() -> None:
    assert _text(_store("a\nfoo", "\n", "(a)"), "a\nfoo(a)", "\n") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nfoo(x", "\nz\n"), ("b\nfoo", "\nz\n"), ("a\nfoo", "\ny\n"), ("a\nfo", "\nz\n"), ("a\nfoo", ""), ("", "")],
)
def test_disagreeing_text_is_no_hit(before: str, after: str) -> None:
    assert _text(_store("a\nfoo", "\nz\n", "(a, b)"), before, after) is None


def test_undo_brings_the_suggestion_back() -> None:
    store = _store("a\nfoo", "\n", "(abc)")
    for before in ("a\nfoo(", "a\nfoo(ab", "a\nfoo(abx", "a\nfoo(ab", "a\nfoo"):
        hit = _text(store, before, "\n")
        assert hit == (None if before.endswith("x") else "a\nfoo(abc)"[len(before) :])


def test_the_editors_closer_is_reconciled_and_typed_over() -> None:
    store = _store("a\nfoo", "\nz\n", "(a, b);")
    assert _text(store, "a\nfoo(", ")\nz\n") == "a, b"
    assert _text(store, "a\nfoo(a,", ")\nz\n") == " b"
    assert _text(store, "a\nfoo(a, b)", "\nz\n") == ";"


def test_what_was_cut_because_of_a_closer_comes_after_it() -> None:
    store = _store("def f(", ")\n", "self, x", "self, x):\n    return x")
    assert _text(store, "def f(self, ", ")\n") == "x"
    assert _text(store, "def f(self, x)", "\n") == ":\n    return x"


def test_enter_between_braces() -> None:
    store = _store("function f() ", "\nz\n", "{\n  a();\n  b();\n}")
    assert _text(store, "function f() {", "}\nz\n") == "\n  a();\n  b();\n"
    assert _text(store, "function f() {\n  ", "\n}\nz\n") == "a();\n  b();"
    assert _text(store, "function f() {\n  a();\n  ", "\n}\nz\n") == "b();"


def test_auto_indent_in_another_style_of_the_same_width() -> None:
    store = _store("if x {", "\nz\n", "\n    a()\n    b()")
    assert _text(store, "if x {\n\t", "\nz\n") == "a()\n    b()"
    assert _text(store, "if x {\n\t\t", "\nz\n") is None


def test_a_blank_line_that_the_editor_indents() -> None:
    assert _text(_store("x = 1", "\n", "\n\ny = 2"), "x = 1\n    ", "\n") == "\ny = 2"


def test_windows_that_begin_at_different_lines() -> None:
    store = _store("1\n2\n3\nfoo", "\nz\n", "(a)")
    assert _text(store, "3\nfoo(", "\nz\n") == "a)"
    assert _text(store, "0\n1\n2\n3\nfoo(", "\nz\n") == "a)"
    assert _text(store, "other\n2\n3\nfoo(", "\nz\n") is None


def test_the_documents_line_ends_come_back() -> None:
    store = _store("a\r\nif x:", "\r\nz", "\r\n  a\r\n  b", newline="\r\n")
    assert _text(store, "a\r\nif x:\r\n  ", "\r\nz") == "a\r\n  b"


def test_the_suggestion_on_screen_wins_over_a_newer_one() -> None:
    store = SuggestionStore(Clock())
    store.add(Entry(URI, "x = ", "\n", "alpha + beta", facts=TS))
    store.add(Entry(URI, "x = a", "\n", "lphabet", facts=TS), current=False)
    assert _text(store, "x = a", "\n") == "lpha + beta"
    assert _text(store, "x = alphab", "\n") == "et"


def test_a_dropped_suggestion_does_not_come_back() -> None:
    store = SuggestionStore(Clock())
    number = store.add(Entry(URI, "x = ", "\n", "alpha", facts=TS))
    store.drop(number)
    store.drop(number)
    assert _text(store, "x = ", "\n") is None
    store.check_integrity()


def test_age_and_size_are_bounded() -> None:
    clock = Clock()
    store = SuggestionStore(clock, max_entries=3, per_document=2, max_age=10.0)
    for uri in ("a", "a", "a", "b", "b"):
        store.add(Entry(uri, "x = ", "\n", "alpha"))
        store.check_integrity()
    assert len(store) == 3
    clock.now = 11.0
    assert store.lookup("b", "x = ", "\n") is None
    store.forget("b")
    store.forget("nobody")
    store.check_integrity()
    assert len(store) == 1


def test_parts_of_a_suggestion() -> None:
    assert next_word("foo.bar(x)") == "foo"
    assert next_word(".bar(x)") == "."
    assert next_word("  return x") == "  return"
    assert next_word("\n    return x") == "\n    return"
    assert next_word("") == ""
    assert next_line("a\nb") == "a"
    assert next_line("\n  a\r\n  b") == "\n  a"
    assert next_line("a") == "a"


PROGRAMS = [
    "function f(a) {\n  g(a, 1);\n  h();\n}",
    'const x = load("name", [1, 2]);',
    "if (a) {\n  b([c]);\n}",
    "list.map((x) => {\n  return x + 1;\n});",
    "x = { a: 1, b: [2] };",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_typed_in_an_editor_that_closes_brackets(program: str) -> None:
    """At every key the suggestion is a beginning of what is still to come, and where nothing stands right of the cursor
    accepting it gives the intended document."""
    start, end = "let before = 1;\n", "\nlet after = 2;\n"
    store = _store(start, end, program)
    editor = Editor(start, end)
    hits = at = 0
    while at < len(program):
        hit = _text(store, editor.before, editor.after)
        done = (editor.before)[len(start) :]
        assert program.startswith(done)
        if hit is not None:
            hits += 1
            assert program[len(done) :].startswith(hit)
            left = scan(editor.before + hit + editor.after, TS)
            assert not left.outer and not left.end.stack
            if editor.after == end:
                assert editor.before + hit + editor.after == start + program + end
        else:
            assert editor.after.lstrip().startswith(program[at:].lstrip()[0])
        editor.key(program[at])
        at = len(editor.before) - len(start)
        if editor.after.startswith("\n}") and program[at:].startswith("\n}"):
            break
    assert hits >= at // 2


SUGGESTIONS = st.text(st.sampled_from("ab_1 .,()[]{}\"'=:\n+"), min_size=1, max_size=40)


@given(shown=SUGGESTIONS, before=st.text("ab(\n ", max_size=12), after=st.text("ab)\n ", max_size=8))
def test_typed_char_by_char_never_flickers(shown: str, before: str, after: str) -> None:
    store = SuggestionStore(Clock())
    store.add(Entry("u", before, after, shown, facts=TS))
    for n in range(len(shown)):
        hit = store.lookup("u", before + shown[:n], after)
        assert (hit.text if hit else "") == (shown[n:] if shown[n:].strip() else "")
        store.check_integrity()


@given(shown=SUGGESTIONS)
def test_accepting_word_by_word_keeps_the_rest(shown: str) -> None:
    store = SuggestionStore(Clock())
    store.add(Entry("u", "x\ny = ", "\nz\n", shown, facts=TS))
    before, left = "x\ny = ", shown
    while left:
        part = next_word(left)
        assert part
        before, left = before + part, left[len(part) :]
        hit = store.lookup("u", before, "\nz\n")
        assert (hit.text if hit else "") == left or not left.strip()


TEXT = st.text(st.sampled_from("ab \t\r\n(){}[]\"'`,;:<|é日"), max_size=30)


@given(before=TEXT, after=TEXT, shown=TEXT, full=TEXT, now_before=TEXT, now_after=TEXT, frozen=st.none() | TEXT)
def test_no_text_raises(
    before: str, after: str, shown: str, full: str, now_before: str, now_after: str, frozen: str | None
) -> None:
    store = SuggestionStore(Clock())
    store.add(Entry("u", before, after, shown, full, TS, frozen))
    store.lookup("u", now_before, now_after)
    store.lookup("u", before + now_before, now_after + after)
    store.check_integrity()


def test_blanks_that_are_left_are_no_suggestion() -> None:
    store = SuggestionStore(lambda: 0.0)
    store.add(Entry("u", "x = ", "bar\n", "foo "))
    assert store.lookup("u", "x = fo", "bar\n") is not None
    assert store.lookup("u", "x = foo", "bar\n") is None
