"""Names near the cursor, what the cursor stands in, guesses of types: text rules for any language."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.context.near import AtCursor, Guess, at_cursor, guess, names_near, returned, type_names


def test_nearer_names_weigh_more() -> None:
    found = {near.name: near.weight for near in names_near("far = 1\n\n\n\n\nclose = other.member\nhere(", "\nbelow = 1\n")}
    assert found["here"] == 1.0 > found["close"] > found["below"] > 0
    assert found["close"] > found["far"]


def test_receivers_are_kept() -> None:
    assert {(n.name, n.receiver) for n in names_near("aa.b().c.dd(self.x->yy)", "")} >= {("dd", ("aa", "b", "c")), ("yy", ("self", "x"))}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = Client(", AtCursor("Client")),
        ("x = pool.open(a, f(b), ", AtCursor("open", ("pool",))),
        ("    self.client.", AtCursor("", (), ("self", "client"), "")),
        ("    self.client.get", AtCursor("", (), ("self", "client"), "get")),
        ("f(a, self.client.", AtCursor("f", (), ("self", "client"), "")),
        ("std::vec::Vec::", AtCursor("", (), ("std", "vec", "Vec"), "")),
        ("p->x", AtCursor("", (), ("p",), "x")),
        ("x = 1 + ", AtCursor()),
        ("", AtCursor()),
    ],
)
def test_at_cursor(line: str, expected: AtCursor) -> None:
    assert at_cursor(line) == expected


@pytest.mark.parametrize(
    ("variable", "scope", "expected"),
    [
        ("c", "def f(c: Client, d: int):\n", Guess(types=("Client",))),
        ("c", "def f(c: Optional['pkg.Client'] = None):\n", Guess(types=("pkg", "Client"))),
        ("c", "c = Client(1)\n", Guess(made_by=("Client",))),
        ("c", "c = await pool.get(1)\n", Guess(made_by=("pool", "get"))),
        ("c", "c = A()\nc = B()\n", Guess(made_by=("B",))),
        ("c", "with Client(x) as c:\n", Guess(made_by=("Client",))),
        ("c", "const c = new Client({a: 1})\n", Guess(made_by=("Client",))),
        ("c", "function f(c: Client, d) {\n", Guess(types=("Client",))),
        ("c", "Client c = make();\n", Guess(made_by=("make",))),
        ("c", "void f(Client<T> &c, int d) {\n", Guess(types=("Client",))),
        ("c", "c := Client{}\n", Guess(made_by=("Client",))),
        ("c", "let c: &mut Client = x;\n", Guess(types=("Client",))),
        ("c", "abc = Client()\nx.c = Other()\n", Guess()),
        ("c", "if c == Client():\n", Guess()),
        ("c", "c: int = 3\n", Guess()),
    ],
)
def test_guess(variable: str, scope: str, expected: Guess) -> None:
    assert guess(variable, scope) == expected


def test_types_and_returns() -> None:
    assert type_names("Optional[list[Box]] | None") == ["Box"]
    assert returned("def f(a: int) -> 'Client':") == ("Client",)
    assert returned("function f(a: number): Promise<Client>") == ("Client",)
    assert returned("func f(a int) *Client") == ("Client",)
    assert returned("def f(a)") == ()


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_is_taken(before: str, after: str) -> None:
    names_near(before, after)
    at_cursor(before)
    guess("x", before + "x = " + after)
    guess("a.b(", before)
