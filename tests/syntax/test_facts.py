"""What is known of a place in a text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.syntax.facts_at import SyntaxFacts, facts_at, identifiers, parses_ok, plain_facts
from lsp_complete.syntax.languages import all_languages
from lsp_complete.syntax.outline import outline_of
from lsp_complete.syntax.trees import edited, parse
from lsp_complete.text.buffer import TextBuffer
from tests.syntax.helpers import SAMPLES, at_cursor, changes, document, grammar_of, tree_of


def facts(language: str, marked: str, *, with_outline: bool = True) -> SyntaxFacts:
    text, offset = at_cursor(marked)
    tree = tree_of(language, text)
    return facts_at(tree, tree.buffer, offset, outline_of(tree) if with_outline else None)


LITERALS = [
    ("python", 'x = "a‸b"\n', "string"),
    ("python", 'x = "a‸\ny = 1\n', "string"),
    ("python", "x = 'it‸", "string"),
    ("python", 'x = f"a{b‸}c"\n', ""),
    ("python", 'x = "a"‸\n', ""),
    ("python", "# note‸\nx = 1\n", "comment"),
    ("python", "x = 1  # no‸te\n", "comment"),
    ("python", "# note\n‸x = 1\n", ""),
    ("python", 'def f():\n    """Doc ‸\n    more\n    """\n', "string"),
    ("python", "x = '#' + ‸\n", ""),
    ("typescript", "const a = `x ${b‸} y`;\n", ""),
    ("typescript", "const a = `x ‸${b} y`;\n", "string"),
    ("typescript", "/* a ‸ b */ const c = 1;\n", "comment"),
    ("typescript", "// a‸\nf();\n", "comment"),
    ("typescript", "const u = 'http://‸x';\n", "string"),
    ("go", "package m\nvar a = `x\n‸y`\n", "string"),
    ("go", "package m\n// a‸\n", "comment"),
    ("rust", "fn f<'a>(x: &'a str) { ‸ }\n", ""),
    ("rust", "// x's‸\nfn f() {}\n", "comment"),
    ("rust", 'fn f() { g("a‸"); }\n', "string"),
    ("java", 'class A { String s = "a‸"; }\n', "string"),
    ("java", "class A { /** a\n * ‸b\n */ int f; }\n", "comment"),
    ("cpp", '#include "a‸.h"\n', "string"),
    ("cpp", "char c = 'x'; // ‸\n", "comment"),
]


@pytest.mark.parametrize(("language", "marked", "expected"), LITERALS)
def test_strings_and_comments(language: str, marked: str, expected: str) -> None:
    found = facts(language, marked)
    assert (found.in_string, found.in_comment) == (expected == "string", expected == "comment")


ARGUMENTS = [
    ("python", "foo(a, ‸)\n", "foo"),
    ("python", "x.y.foo(‸)\n", "x.y.foo"),
    ("python", "foo(a, ‸\n\ndef g(): pass\n", "foo"),
    ("python", "foo(bar(1), ‸\n", "foo"),
    ("python", "foo(a)‸\n", None),
    ("python", "def f(a, ‸):\n    pass\n", None),
    ("python", "foo([1, ‸])\n", "foo"),
    ("python", "x = {\n    ‸\n}\n", None),
    ("go", "package m\nfunc f() {\n\tfmt.Println(a, ‸)\n}\n", "fmt.Println"),
    ("go", "package m\nfunc f() {\n\tfmt.Println(a, ‸\n}\n", "fmt.Println"),
    ("rust", "fn f() { a.b(c, ‸); }\n", "a.b"),
    ("java", "class A { void f() { g(1, ‸); } }\n", "g"),
    ("java", "class A { void f() { new B(‸); } }\n", "B"),
    ("typescript", "f(() => {\n  ‸\n});\n", None),
    ("typescript", "f(a, ‸);\n", "f"),
    ("cpp", "int main() { std::max(a, ‸); }\n", "std::max"),
]


@pytest.mark.parametrize(("language", "marked", "callee"), ARGUMENTS)
def test_argument_lists(language: str, marked: str, callee: str | None) -> None:
    found = facts(language, marked)
    assert (found.in_arguments, found.callee) == (callee is not None, callee or "")


BODIES = [
    ("python", "def f(a):\n    ‸\n", True),
    ("python", "def f(\n    a,\n):\n    ‸\n\nx = 1\n", True),
    ("python", "def f(a):  # note\n    ‸\n", True),
    ("python", "def f(a):\n    ‸\n    return a\n", False),
    ("python", "def f(a):\n    x = 1\n    ‸\n", False),
    ("python", "if a:\n\n    ‸\n", True),
    ("python", "x = {1:\n‸\n", True),
    ("go", "package m\nfunc f() {\n\t‸\n}\n", True),
    ("go", "package m\nfunc f() {\n\tx()\n\t‸\n}\n", False),
    ("rust", "fn f() {\n    ‸\n}\n", True),
    ("java", "class A {\n  void f() {\n    ‸\n  }\n}\n", True),
    ("cpp", "int f()\n{\n    ‸\n}\n", True),
    ("typescript", "const f = () => {\n  ‸\n};\n", True),
    ("typescript", "const f = () => {‸};\n", False),
    ("ruby", "def f(a)\n  ‸\nend\n", True),
    ("ruby", "items.each do |item|\n  ‸\nend\n", True),
    ("lua", "function f(a)\n  ‸\nend\n", True),
    ("lua", "if x then\n  ‸\nend\n", True),
    ("bash", "if true; then\n  ‸\nfi\n", True),
    ("bash", "f() {\n  ‸\n}\n", True),
    ("yaml", "a:\n  ‸\nb: 1\n", True),
    ("python", 'x = """\ndef f():\n    ‸\n"""\n', False),
]


@pytest.mark.parametrize(("language", "marked", "expected"), BODIES)
def test_empty_bodies(language: str, marked: str, expected: bool) -> None:
    assert facts(language, marked).empty_body == expected


SCOPES = [
    ("python", "class A:\n    def f(self):\n        x = 1\n        ‸\n\ny = 2\n", "f", "A"),
    ("python", "class A:\n    def f(self):\n        x = 1\n    ‸\n\ny = 2\n", None, "A"),
    ("python", "class A:\n    def f(self):\n        x = 1\n‸\n\ny = 2\n", None, None),
    ("python", "class A:\n    def f(self):\n        x = ‸\n", "f", "A"),
    ("python", "def f():\n    def g():\n        return ‸1\n", "g", None),
    ("go", "package m\nfunc f() { ‸ }\nfunc g() {}\n", "f", None),
    ("go", "package m\nfunc f() {}\n‸\nfunc g() {}\n", None, None),
    ("rust", "impl S {\n    fn f(&self) {\n        ‸\n    }\n}\n", "f", "S"),
    ("java", "class A {\n  int f;\n  ‸\n  void g() {}\n}\n", None, "A"),
    ("cpp", "namespace n {\nint A::f(int x) {\n  ‸\n}\n}\n", "f", "n"),
    ("typescript", "class A {\n  m() {\n    return ‸;\n  }\n}\n", "m", "A"),
    ("typescript", "export const f = (a) => {\n  ‸\n};\n", "f", None),
]


@pytest.mark.parametrize("with_outline", [True, False])
@pytest.mark.parametrize(("language", "marked", "function", "around"), SCOPES)
def test_enclosing_scopes(
    language: str, marked: str, function: str | None, around: str | None, with_outline: bool
) -> None:
    found = facts(language, marked, with_outline=with_outline)
    assert (found.function.name if found.function else None) == function
    assert (found.enclosing_class.name if found.enclosing_class else None) == around


def test_a_scope_knows_its_signature() -> None:
    text = SAMPLES["python"].replace("return table.get", "‸return table.get")
    function = facts("python", text).function
    assert function is not None
    lines = text.splitlines()[function.first_line : function.signature_line + 1]
    assert lines[0].startswith("def price_of(") and lines[-1] == ") -> int:"
    assert function.signature.splitlines() == lines


def test_names_and_calls() -> None:
    found = facts("python", SAMPLES["python"].replace("def taxed", "amo‸unt\n        def taxed"))
    assert {
        "amount",
        "line",
        "rate",
        "self",
        "price_of",
        "json",
        "make_field",
        "Order",
        "NAMES",
    } <= found.names
    assert found.calls == ("price_of", "round", "taxed")
    assert "await_me" not in found.names
    assert found.kinds[-1] == "module" and "function_definition" in found.kinds


def test_the_word_being_typed_is_not_a_known_name() -> None:
    assert "hal" not in facts("python", "def f(half):\n    return hal‸\n").names


def test_identifiers_in_order() -> None:
    tree = tree_of("go", "package m\nfunc f(a int) { g(a) }\n")
    assert [name for _, name in identifiers(tree, tree.buffer, 10, tree.buffer.length)] == [
        "f",
        "a",
        "int",
        "g",
        "a",
    ]


INSERTIONS = [
    ("python", "def f(a):\n    ‸\n", "return a", True),
    ("python", "x = 1\n‸\ny = 2\n", "foo(1", False),
    ("python", "x = 1\n‸\ny = 2\n", "z = [1,\n     2]", True),
    ("python", "x = foo(‸)\n", "a, b", True),
    ("python", "x = foo(‸)\n", "a)", False),
    ("go", "package m\n\nfunc f() {\n\t‸\n}\n", "if x {\n\t\ty()\n\t}", True),
    ("go", "package m\n\nfunc f() {\n\t‸\n}\n", "if x {\n\t\ty()", False),
    ("typescript", "f(‸);\n", "() => {\n}", True),
    ("rust", "fn f() {\n    ‸\n}\n", "let x = ;", False),
    ("java", "class A {\n  int f() {\n    ‸\n  }\n}\n", "return 1;", True),
    ("java", "class A {\n  int f() {\n    ‸\n  }\n}\n", "return 1; }", False),
    ("cpp", "int f() {\n  ‸\n}\n", "return g(1);", True),
    ("cpp", "int f() {\n  ‸\n}\n", "return g(1;", False),
]


@pytest.mark.parametrize(("language", "marked", "inserted", "expected"), INSERTIONS)
def test_whether_an_insertion_breaks_the_tree(
    language: str, marked: str, inserted: str, expected: bool
) -> None:
    text, offset = at_cursor(marked)
    tree = tree_of(language, text)
    assert parses_ok(tree, tree.buffer, offset, inserted) == expected


def test_replacing_what_is_right_of_the_cursor() -> None:
    text, offset = at_cursor("x = foo(‸)\n")
    tree = tree_of("python", text)
    assert parses_ok(tree, tree.buffer, offset, "a)", offset + 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "language", ["python", "typescript", "go", "rust", "java", "cpp", "bash", "yaml", "html"]
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_facts_never_raise_on_broken_or_moved_trees(language: str, data: st.DataObject) -> None:
    current = document(SAMPLES[language], language)
    tree = parse(grammar_of(language), current.buffer)
    assert tree is not None
    for _ in range(2):
        current, edits = data.draw(changes(current))
        tree = edited(tree, edits, current.buffer)
        offset = data.draw(st.integers(-1, current.buffer.length + 1))
        found = facts_at(tree, current.buffer, offset)
        assert not (found.in_string and found.in_comment) and not found.exact
        assert found.callee == "" or found.in_arguments
        parses_ok(tree, current.buffer, min(max(offset, 0), current.buffer.length), "x(")


def test_without_a_tree() -> None:
    python = all_languages()["python"]
    assert plain_facts(TextBuffer.from_text("x"), 1, None) == SyntaxFacts()
    assert plain_facts(TextBuffer.from_text("x = 'a"), 6, python).in_string
    assert plain_facts(TextBuffer.from_text("x = 1 # a"), 9, python).in_comment
    assert plain_facts(TextBuffer.from_text("x = foo(a, "), 11, python).callee == "foo"
    assert plain_facts(TextBuffer.from_text("def f():\n    "), 13, python).empty_body
