"""Whether to ask, and for how much, from text alone and with facts from a tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.how_much import decide, situation

CASES = [
    ("python", "def f(x):\n    ‸\n", "empty_body", "block", 1),
    ("python", "def f(x):‸\n", "empty_body", "block", 1),
    ("python", "def f(x):\n    ‸\n    return 1\n", "line", "line", 0),
    ("python", "class A:\n    def f(self):\n        ‸\n\n    def g(self):\n", "empty_body", "block", 5),
    ("python", "# read a file into lines\n‸\n", "comment_above", "block", 0),
    ("python", "def f():\n    a = 1\n    ‸\n\ndef g():\n", "blank_line", "block", 4),
    ("python", "x = foo(a, ‸)\n", "arguments", "line", 0),
    ("python", "x = 'text ‸'\n", "string", "line", 0),
    ("python", "# about ‸\n", "comment", "line", 0),
    ("python", "x = ‸ + 1\n", "text_after", "line", 0),
    ("python", "x = ‸\n", "line", "line", 0),
    ("go", "func f() {\n\t‸\n}\n", "empty_body", "block", 1),
    ("go", "func f() {\n\tif x {\n\t\t‸\n}\n", "empty_body", "block", 4),
    ("typescript", "app.get('/', () => {‸});\n", "empty_body", "block", 1),
    ("rust", "fn f() -> u8 {\n    ‸\n", "empty_body", "block", 0),
    ("java", "// sum of the squares\n    ‸\n", "comment_above", "block", 4),
    ("ruby", "def f\n  ‸\nend\n", "empty_body", "block", 1),
    ("lua", "for i = 1, 3 do\n  ‸\n", "empty_body", "block", 0),
    ("klingon", "qap {\n  ‸\n}\n", "empty_body", "block", 1),
]


@pytest.mark.parametrize(("language", "place", "reason", "mode", "base"), CASES)
def test_automatic(language: str, place: str, reason: str, mode: str, base: int) -> None:
    before, _, after = place.partition("‸")
    amount = decide(situation(language, before, after))
    assert (amount.request, amount.reason, amount.mode, amount.base_indent) == (True, reason, mode, base)
    assert (amount.max_lines == 1) == (mode == "line")


@pytest.mark.parametrize(
    ("place", "settings", "reason"),
    [
        ("fo‸o = 1\n", {}, "mid_word"),
        ("# a ‸\n", {"in_comments": False}, "in_comment"),
        ("x = 'a ‸'\n", {"in_strings": False}, "in_string"),
        ("‸", {}, "empty_document"),
    ],
)
def test_not_asked_unless_the_user_asks(place: str, settings: dict[str, Any], reason: str) -> None:
    before, _, after = place.partition("‸")
    here = replace(situation("python", before, after), **settings)
    amount = decide(here)
    assert (amount.request, amount.reason) == (False, reason)
    assert decide(replace(here, trigger="explicit")).request


def test_explicit_asks_for_more() -> None:
    place = ("def f():\n    a = ", "\n    return a\n")
    line, more = decide(situation("python", *place)), decide(situation("python", *place, "explicit"))
    assert (line.mode, more.mode, more.base_indent) == ("line", "block", 4)
    assert more.max_tokens > line.max_tokens
    assert more.suffix_head == "return a"


def test_the_setting_decides_between_line_and_block() -> None:
    body, line = ("def f():\n    ", "\n"), ("x = ", "\n")
    assert decide(replace(situation("python", *body), multiline="never")).mode == "line"
    assert decide(replace(situation("python", *body, "explicit"), multiline="never")).mode == "line"
    assert decide(replace(situation("python", *line), multiline="always")).mode == "block"
    assert decide(replace(situation("python", *body), max_lines=1)).mode == "line"


def test_closers_and_tiny_lines_are_no_stop_mark() -> None:
    for following, want in (("}\n", ""), ("});\n", ""), ("end\n", ""), ("else:\n", ""), ("return x\n", "return x")):
        assert decide(situation("python", "x = ", "\n" + following)).suffix_head == want


TEXT = st.text(st.sampled_from("ab \t\r\n(){}[]\"'`:#/=é"), max_size=40)


@given(
    before=TEXT,
    after=TEXT,
    language=st.sampled_from(["python", "go", "ruby", "html", "x"]),
    trigger=st.sampled_from(["automatic", "explicit"]),
    multiline=st.sampled_from(["auto", "never", "always"]),
    max_lines=st.integers(-1, 40),
)
def test_any_text_gives_usable_limits(
    before: str, after: str, language: str, trigger: str, multiline: str, max_lines: int
) -> None:
    here = situation(language, before, after, trigger)
    amount = decide(replace(here, multiline=multiline, max_lines=max_lines))
    assert amount.mode in ("line", "block") and amount.reason
    assert amount.max_lines >= 1 and amount.max_tokens > 0 and amount.base_indent >= 0
    assert amount.request or trigger == "automatic"
