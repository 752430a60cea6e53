"""What stands right of the cursor is never doubled and never left unbalanced."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.language import facts_for
from lsp_complete.suggest.reconcile import MOST_CUTS, reconcile
from lsp_complete.suggest.scan import scan

CASES = [
    ("python", "foo(", ")", "a, b)", "a, b"),
    ("python", "foo(", ")", "bar()", "bar()"),
    ("python", "foo(", ")", "bar(", "bar"),
    ("python", "def f(", ")\n", "x):\n    return x", "x"),
    ("python", "foo(\n    a,\n    ", "\n)\n", "b)", "b"),
    ("python", 'x = "ab', '"', 'c"', "c"),
    ("python", "def f():\n    ", "\n", "return 1)", "return 1"),
    ("python", "raise E('wid", ")", "th')", "th'"),
    ("typescript", "foo(", ")", "a), bar(b)", "a), bar(b"),
    ("typescript", "y = ", ";", "x + 1;", "x + 1"),
    ("typescript", "f(`a ", "`)", "${x}`)", "${x}"),
    ("typescript", "f(`a ${", "}`)", "x}`)", "x"),
    ("typescript", "a.map(", ");", "x => {\n  go();\n})", "x => {\n  go();\n}"),
    ("typescript", "function f() {", "}\n", "\n  go();\n}", "\n  go();\n"),
    ("typescript", "if (x) {\n  a();\n", "\n}\n", "} else {", "} else {"),
    ("typescript", "if (x) {\n  ", "\n} else {\n  b();\n}\n", "a();\n}", "a();"),
    ("go", "func f() {\n\tif x {\n\t\t", "\n}\n", "go()\n\t}", "go()\n\t}"),
    ("go", "func f() {\n\tif x {\n\t\t", "\n\t}\n}\n", "go()\n\t}\n}", "go()"),
    ("rust", "fn f<'a>(", ")", "x: &'a str)", "x: &'a str"),
    ("rust", "let c = if x == '", "'", "('", "("),
    ("java", "class A {\n    f() {\n        ", "\n    }\n}\n", "return 1;\n    }\n}", "return 1;"),
    ("cpp", "char c = '('; f(", ")", "c)", "c"),
    ("html", "<p>", "</p>", "text</p>", "text"),
    ("python", "x = ", "\n", "", ""),
]


@pytest.mark.parametrize(("language", "before", "after", "text", "want"), CASES)
def test_cut_to_what_is_missing(language: str, before: str, after: str, text: str, want: str) -> None:
    assert reconcile(text, before, after, facts_for(language)) == want


def test_what_the_model_did_not_see_is_the_editors() -> None:
    """Enter between braces in a file whose other closer has the same look: the frozen suffix tells them apart."""
    facts = facts_for("typescript")
    before, after, seen = "a = [\nf(() => {\n    ", "\n  })\n]\n", "\n]\n"
    assert reconcile("go();\n  })", before, after, facts, seen) == "go();"
    assert reconcile("go();\n})", before, "\n]\n", facts, seen) == "go();\n})"


TEXT = st.text(st.sampled_from("ab \t\n(){}[]\"'`,;:$\\#/"), max_size=40)
LANGUAGE = st.sampled_from(["python", "typescript", "rust", "nothing", "html"])


@given(text=TEXT, before=TEXT, after=TEXT, language=LANGUAGE, frozen=st.none() | TEXT)
def test_a_beginning_of_the_suggestion(text: str, before: str, after: str, language: str, frozen: str | None) -> None:
    assert text.startswith(reconcile(text, before, after, facts_for(language), frozen))


@pytest.mark.parametrize(
    ("before", "rest", "text", "kept"),
    [
        ("# a (b", ")", "c) d", "c"),
        ("# a (b", ")", "c (d) e) f", "c (d) e"),
        ("# a (b [c", "])", "d] e) f", "d"),
        ("# a b", ")", "c) d", "c) d"),
        ("call(  # a", ")", "b) c", "b) c"),
        ("s = 'a (b", ")'", "c) d'", "c"),
        ("# (\n# a b", ")", "c) d", "c) d"),
        ("print('a (b", ")", "c)'", "c)'"),
    ],
)
def test_in_a_comment_or_string_the_editor_s_closer_is_not_doubled(before: str, rest: str, text: str, kept: str) -> None:
    assert reconcile(text, before, rest + "\nx = 1\n", facts_for("python")) == kept


def test_a_closer_whose_opener_stands_before_the_window_stays() -> None:
    assert reconcile(");", "  cell.text = 1;\n    }\n  }", "\n\nlet a = 1;\n", facts_for("javascript")) == ");"
    assert reconcile(");", "let b = 1;\ncall()", "\n\nlet a = 1;\n", facts_for("javascript")) == ""


def test_a_suggestion_of_nothing_but_closers_is_cut_with_few_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    scans = 0

    def counted(*words: Any) -> Any:
        nonlocal scans
        scans += 1
        return scan(*words)

    monkeypatch.setattr("lsp_complete.suggest.reconcile.scan", counted)
    for text in (")" * 900, ")}]" * 300, "({[" * 300, "}" * 900):
        reconcile(text, "f(g[", "x(" * 300 + ")" * 300, facts_for("typescript"))
    assert scans < 4 * 12 * MOST_CUTS


CODE = st.recursive(
    st.sampled_from(["a", "b.c", "1", "'s'", ""]),
    lambda inner: st.tuples(st.sampled_from(["()", "[]", "{}"]), st.lists(inner, max_size=3)).map(
        lambda t: t[0][0] + ", ".join(t[1]) + t[0][1]
    ),
    max_leaves=8,
)


@given(program=CODE, data=st.data())
def test_balanced_code_stays_balanced_wherever_the_cursor_is(program: str, data: st.DataObject) -> None:
    """The model says the whole rest; some of its closers stand there already; the document ends balanced."""
    facts = facts_for("python")
    cut = data.draw(st.integers(0, len(program)))
    before, rest = "x = " + program[:cut], program[cut:]
    if not scan(before, facts).end.in_code:
        return
    closers = {"(": ")", "[": "]", "{": "}"}
    stack = scan(before, facts).end.stack
    count = data.draw(st.integers(0, len(stack)))
    after = "".join(closers[c] for c in reversed(stack[len(stack) - count :]))
    shown = reconcile(rest, before, after, facts)
    end = scan(before + shown + after, facts)
    assert not [o for o in end.outer if o.fits is not True]
    assert len(end.end.stack) <= len(scan(before + after, facts).end.stack)
