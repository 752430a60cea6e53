"""Stop rules: each rule, and that feeding whole, byte by byte or in random pieces gives the same result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.engine.api import StopRules
from lsp_complete.engine.stopping import Stopper, columns, complete_utf8

BLOCK = StopRules("block", base_indent=4)


def run(rules: StopRules, text: str | bytes, end: str = "eog") -> tuple[str, str]:
    """(kept text, reason) after feeding everything."""
    s = Stopper(rules)
    s.feed(text.encode() if isinstance(text, str) else text)
    s.finish(end)
    return s.text.decode(), s.reason


@pytest.mark.parametrize(
    "rules, text, kept, reason",
    [
        (StopRules("line"), "foo(1)\nbar", "foo(1)", "line"),
        (StopRules("line"), "foo(1)\r\nbar", "foo(1)", "line"),
        (StopRules("line"), "foo(1)\rbar", "foo(1)", "line"),
        (StopRules("line"), "\n    foo(1)\nbar", "\n    foo(1)", "line"),
        (StopRules("line"), "  \r\n  x\r\n", "  \r\n  x", "line"),
        (StopRules("line"), "a\x0cb\u2028c\nd", "a\x0cb\u2028c", "line"),
        (StopRules("line"), "foo", "foo", "eog"),
        (BLOCK, "x = 1\n    y = 2\nz = 3", "x = 1\n    y = 2", "indent"),
        (BLOCK, "x = 1\n\n\n    y = 2\n\n\nz = 3", "x = 1\n\n\n    y = 2", "indent"),
        (BLOCK, "x = 1\n\ty = 2\n   z", "x = 1\n\ty = 2", "indent"),
        (BLOCK, "x\n    y\r\n}", "x\n    y", "indent"),
        (BLOCK, "x\n    y\n  ", "x\n    y\n  ", "eog"),
        (StopRules("free", suffix_head="}"), "a;\n  b;\n}\nc", "a;\n  b;", "suffix"),
        (StopRules("free", suffix_head="}"), "a;\n  b;\n  }  ", "a;\n  b;", "suffix"),
        (StopRules("free", suffix_head="return x"), "\n\n return x", "", "suffix"),
        (StopRules("free", suffix_head="}"), "}", "}", "eog"),
        (StopRules("free", max_lines=2), "a\nb\nc", "a\nb", "lines"),
        (StopRules("free", max_lines=1), "a\r\nb", "a", "lines"),
        (StopRules("free", strings=("END", "XX")), "abcEXXf", "abcE", "string"),
        (StopRules("free"), "go()\n" * 5, "go()\n" * 4 + "go()\n", "eog"),
        (StopRules("free"), "go_again()\n" * 5, "go_again()", "repeat"),
        (StopRules("free"), "a = 1\nlonger()\n" * 4, "a = 1\nlonger()", "repeat"),
        (StopRules("free"), "a\n" + "\n" * 9 + "b", "a", "repeat"),
        (StopRules("free"), "x" + "ab" * 200, "xab", "repeat"),
    ],
)
def test_rules(rules: StopRules, text: str, kept: str, reason: str) -> None:
    assert run(rules, text) == (kept, reason)
    s = Stopper(rules)
    for byte in text.encode():
        s.feed(bytes([byte]))
    s.finish("eog")
    assert (s.text.decode(), s.reason) == (kept, reason)


alphabet = st.sampled_from(
    ["a", "b", " ", "    ", "\t", "\n", "\r\n", "\r", "}", "é", "🙂", "foo()", "END", "E"]
)
texts = st.lists(alphabet, max_size=60).map("".join)
rule_sets = st.builds(
    StopRules,
    mode=st.sampled_from(["line", "block", "free"]),
    base_indent=st.integers(0, 8),
    suffix_head=st.sampled_from(["", "}", "foo()", "b"]),
    max_lines=st.integers(1, 12),
    strings=st.sampled_from([(), ("END",), ("🙂", "ENDE")]),
)


@given(rule_sets, texts, st.lists(st.integers(1, 9), max_size=60))
def test_how_the_bytes_arrive_makes_no_difference(rules: StopRules, text: str, sizes: list[int]) -> None:
    whole, pieces = Stopper(rules), Stopper(rules)
    data = text.encode()
    whole.feed(data)
    at = 0
    for size in [*sizes, len(data)]:
        before = pieces.text[: pieces.safe] if at else b""
        pieces.feed(data[at : at + size])
        at += size
        if pieces.reason != "repeat":
            assert pieces.text.startswith(before)
    for s in (whole, pieces):
        s.finish("tokens")
    assert (whole.text, whole.reason) == (pieces.text, pieces.reason)
    whole.text.decode()
    assert data.startswith(whole.text)
    assert whole.safe == len(whole.text)


@given(rule_sets, texts)
def test_safe_bytes_are_a_prefix_of_the_final_text(rules: StopRules, text: str) -> None:
    s = Stopper(rules)
    shown = b""
    for byte in text.encode():
        s.feed(bytes([byte]))
        assert len(s.text[: s.safe]) >= len(shown) or s.reason == "repeat"
        shown = s.text[: s.safe]
    s.finish("time")
    if s.reason != "repeat":
        assert s.text.startswith(shown)


@given(st.text(max_size=8), st.integers(0, 32))
def test_utf8_is_never_cut_in_the_middle(text: str, cut: int) -> None:
    data = text.encode("utf-8", "replace")[:cut]
    kept = data[: complete_utf8(data)]
    kept.decode()
    assert len(data) - len(kept) <= 3


def test_broken_bytes_do_not_raise() -> None:
    s = Stopper(StopRules("block", base_indent=2, strings=("x",)))
    s.feed(bytes(range(256)) * 3)
    s.finish("eog")
    assert s.text


def test_tabs_go_to_the_next_stop() -> None:
    assert [columns(b, 4) for b in (b"", b"  ", b"\t", b"  \t", b"\t ")] == [0, 2, 4, 4, 5]
