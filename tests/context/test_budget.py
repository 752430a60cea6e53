"""Budget, layout, header, reasons, recent edits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.context.budget import fit, header_tokens
from lsp_complete.context.edits import EditLog
from lsp_complete.context.extras import RecentEdit, edit_chunks, first_prose, rules_chunk
from lsp_complete.context.header import EMPTY, HeaderFormat, header_ids, make_frame
from lsp_complete.context.layout import arrange, first_difference
from lsp_complete.context.reasons import Parts, why_differs
from lsp_complete.context.symbol import Chunk
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.context.helpers import words


def chunk(key: str, tier: str, weight: float = 1.0, sizes: tuple[int, ...] = (8, 4, 1), own: bool = False) -> Chunk:
    return Chunk(key, f"{key.partition('#')[0]}.py", tier, weight, tuple("w " * n + "\n" for n in sizes), own=own)


def forms(chunks: list[Chunk], budget: int) -> dict[str, int]:
    return {one.chunk.key: one.form for one in fit(chunks, budget, words).chosen}


def test_all_at_full_length_where_there_is_room() -> None:
    assert forms([chunk("a", "A"), chunk("b", "B"), chunk("c", "C")], 100) == {"a": 0, "b": 0, "c": 0}


def test_c_is_compressed_before_anything_is_cut() -> None:
    chunks = [chunk("a", "A"), chunk("b", "B"), chunk("c", "C")]
    total = fit(chunks, 1000, words).tokens
    assert forms(chunks, total - 4) == {"a": 0, "b": 0, "c": 1}
    assert forms(chunks, total - 7) == {"a": 0, "b": 0, "c": 2}
    assert forms(chunks, total - 8) == {"a": 0, "b": 1, "c": 1}


def test_then_b_loses_its_body_then_c_leaves_and_a_stays() -> None:
    chunks = [chunk("a", "A"), chunk("b", "B"), chunk("c", "C")]
    found = forms(chunks, 20)
    assert found["a"] == 0 and "c" not in found and found["b"] >= 1
    assert forms(chunks, 12) == {"a": 0}
    assert forms(chunks, 1) == {"a": 2}


def test_least_wanted_first() -> None:
    chunks = [chunk("x", "B", 3.0), chunk("y", "B", 1.0)]
    assert forms(chunks, 15) == {"x": 1, "y": 2}
    assert forms(chunks, 9) == {"x": 1}


def test_a_alone_over_the_budget_is_told_and_bounded() -> None:
    chunks = [chunk(f"a{n}", "A", float(n), sizes=(10, 5)) for n in range(10)]
    choice = fit(chunks, 20, words)
    assert len(choice.chosen) == 10 and choice.over == choice.tokens - 20
    bounded = fit(chunks, 20, words, limit=40)
    assert bounded.tokens <= 40 and {one.chunk.key for one in bounded.chosen} <= {f"a{n}" for n in range(5, 10)}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.floats(0, 5), st.lists(st.integers(1, 30), min_size=1, max_size=4)), max_size=12),
    st.integers(0, 120),
)
def test_never_over_the_budget_but_for_a(items: list[tuple[str, float, list[int]]], budget: int) -> None:
    chunks = [
        chunk(f"k{n}", tier, weight, tuple(sorted(set(sizes), reverse=True))) for n, (tier, weight, sizes) in enumerate(items)
    ]
    choice = fit(chunks, budget, words)
    shown = {one.chunk.path for one in choice.chosen}
    assert choice.tokens == sum(one.tokens for one in choice.chosen) + sum(words(path) + 3 for path in shown)
    assert {c.key for c in chunks if c.tier == "A"} <= {one.chunk.key for one in choice.chosen}
    if choice.tokens > budget:
        assert all(one.chunk.tier == "A" for one in choice.chosen) and choice.over == choice.tokens - budget
    assert fit(chunks, budget, words) == choice


def test_header_tokens_follow_the_machine() -> None:
    assert header_tokens(400, 0) == 400
    assert header_tokens(400, 280) == 400
    assert header_tokens(1500, 140) == 375
    assert header_tokens(400, 60) == 120
    assert header_tokens(400, 20_000) == 1600


# -- layout ---------------------------------------------------------------------------------------------


def lay(chunks: list[Chunk], previous: tuple = (), budget: int = 200) -> tuple:  # type: ignore[type-arg]
    return arrange(fit(chunks, budget, words).chosen, previous, budget, words)


def test_what_stands_stays_where_it_is_and_new_ones_follow() -> None:
    first = lay([chunk("a", "A"), chunk("b", "B")])
    second = lay([chunk("z", "A", 9.0), chunk("a", "A"), chunk("b", "B")], first)
    assert second[: len(first)] == first and [one.key for one in second[len(first) :]] == ["z"]


def test_nothing_changes_while_all_that_is_wanted_stands() -> None:
    first = lay([chunk("a", "A"), chunk("b", "B"), chunk("c", "C")])
    assert lay([chunk("b", "B")], first) == first or lay([chunk("b", "B")], first)[0].key == "b"
    assert lay([chunk("c", "C", 0.1), chunk("a", "A"), chunk("b", "B")], first) == first


def test_a_changed_text_is_replaced() -> None:
    first = lay([chunk("a", "A"), chunk("b", "B")])
    changed = Chunk("b", "b.py", "B", 1.0, ("new text\n",))
    second = lay([chunk("a", "A"), changed], first)
    assert "new text\n" in [one.text for one in second] and sum(one.key == "b" for one in second) == 1


def test_stale_chunks_go_when_they_take_too_much() -> None:
    first = lay([chunk(f"old{n}", "B") for n in range(10)])
    second = lay([chunk("a", "A")], first, budget=20)
    assert [one.key for one in second] == ["a"]


def test_own_chunks_are_not_laid_out() -> None:
    assert lay([chunk("a", "A", own=True)]) == ()


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), max_size=8, unique=True), min_size=1, max_size=6))
def test_every_wanted_chunk_stands_once(rounds: list[list[int]]) -> None:
    layout: tuple = ()  # type: ignore[type-arg]
    for wanted in rounds:
        chunks = [chunk(f"f{n % 4}#{n}", "B", 1.0 + n) for n in wanted]
        chosen = fit(chunks, 60, words).chosen
        layout = arrange(chosen, layout, 60, words)
        keys = [one.key for one in layout]
        assert len(keys) == len(set(keys)) and {one.chunk.key for one in chosen} <= set(keys)


def test_first_difference() -> None:
    assert first_difference([1, 2, 3], [1, 2, 4]) == 2
    assert first_difference([1, 2], [1, 2, 3]) == 2


# -- header -----------------------------------------------------------------------------------------------

FORMAT = HeaderFormat(((900,), "{name}\n"), ((901,), "{path}\n", "{text}\n"), ((901,), "{path}\n"))


def ids(text: str) -> list[int]:
    return list(text.encode())


def spelled(found: tuple[int, ...]) -> str:
    return "".join({900: "<R>", 901: "<F>"}.get(n) or chr(n) for n in found)


def test_header_groups_files_and_ends_with_the_open_one() -> None:
    layout = lay([chunk("x#1", "B", 1.0, (1,)), chunk("x#2", "B", 1.0, (1,)), chunk("y#1", "A", 1.0, (1,))])
    assert spelled(header_ids(FORMAT, layout, "proj", "me.py", ids)) == (
        "<R>proj\n<F>x.py\nw \nw \n<F>y.py\nw \n<F>me.py\n"
    )


def test_no_chunks_no_header() -> None:
    assert make_frame(FORMAT, (), (), "proj", "me.py", ids) == EMPTY


def test_braces_in_names_and_texts_mean_nothing() -> None:
    layout = lay([Chunk("k", "{text}{name}.py", "A", 1.0, ("{path} {text}\n",))])
    assert spelled(header_ids(FORMAT, layout, "{path}", "{name}", ids)) == "<R>{path}\n<F>{text}{name}.py\n{path} {text}\n<F>{name}\n"


def test_families_without_a_place_for_files_get_them_in_the_prefix() -> None:
    layout = lay([chunk("x", "B", 1.0, (1,))])
    frame = make_frame(HeaderFormat(in_prefix=True), layout, ("own\n",), "p", "me.py", ids)
    assert frame.header == () and spelled(frame.opening) == "x.py\nw \nown\n"


# -- reasons ------------------------------------------------------------------------------------------------

OLD = Parts((1, 2), "def f():\n    a\n", "tail\n", "x = ", 10)


@pytest.mark.parametrize(
    ("new", "word"),
    [
        (OLD, ""),
        (Parts((1, 2), OLD.prefix, OLD.suffix, "x = 1", 10), ""),
        (Parts((1, 2), OLD.prefix, OLD.suffix, "x", 10), ""),
        (Parts((1, 3), OLD.prefix, OLD.suffix, "x = ", 10), "context_changed"),
        (Parts((1, 2), "    b\n" + OLD.prefix, OLD.suffix, "x = ", 4), "window_moved"),
        (Parts((1, 2), OLD.prefix + "x = 1\n", OLD.suffix, "", 10), "anchor_moved"),
        (Parts((1, 2), OLD.prefix, "other\n", "x = ", 10), "suffix_changed"),
        (Parts((1, 2), "def g():\n    a\n", OLD.suffix, "x = ", 10), "edit"),
        (Parts((1, 2), OLD.prefix, OLD.suffix, "y", 10), "edit"),
        (Parts((1, 2), "def f():\r\n    a\r\n", OLD.suffix, "x = ", 10), "hidden_characters"),
        (Parts((1, 2), "def f():  \n    a\n", OLD.suffix, "x = ", 10), "hidden_characters"),
        (Parts((1, 2), "\ufeffdef f():\n    a\n", OLD.suffix, "x = ", 10), "hidden_characters"),
        (Parts((1, 2), OLD.prefix, "tail \n", "x = ", 10), "hidden_characters"),
        (Parts((1, 2), OLD.prefix, OLD.suffix, "x\u200b = 1", 10), "hidden_characters"),
    ],
)
def test_reasons(new: Parts, word: str) -> None:
    assert why_differs(OLD, new) == word
    assert why_differs(None, new) == "first"


# -- extras ---------------------------------------------------------------------------------------------------


def test_edits_are_before_and_after_and_not_said_twice() -> None:
    edit = RecentEdit("a.py", "def f(a):", "def f(a, b):", 3)
    (found,) = edit_chunks([edit], "me.py", (0, 10), ["f"])
    assert found.forms == ("-def f(a):\n+def f(a, b):\n", "+def f(a, b):\n") and found.tier == "B"
    assert edit_chunks([edit], "a.py", (0, 10)) == []
    assert edit_chunks([RecentEdit("a.py", "same ", "same", 3)], "me.py", (0, 10)) == []


def test_rules_in_one_line() -> None:
    assert first_prose("# Title\n\n![b](x)\n```\ncode that is not prose at all\n```\nUse four spaces and type everything.\n") == (
        "Use four spaces and type everything."
    )
    chunk = rules_chunk("AGENTS.md", "Use four spaces and type everything.")
    assert chunk is not None and chunk.tier == "C"
    wished = rules_chunk("project rules", "no emojis", wished=True)
    assert wished is not None and wished.tier == "A" and wished.forms == ("no emojis\n",)
    assert rules_chunk("AGENTS.md", "# only\n") is None


class Typing:
    """A document that is edited, with its log."""

    def __init__(self, text: str) -> None:
        self.document, self.log = Document.open("file:///a.py", "python", 1, text), EditLog()

    def edit(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        old = self.document
        self.document, edits = old.apply([Change((start, end), text)], Encoding.UTF16, 2)
        self.log.changed("file:///a.py", old.buffer, edits)

    def recent(self) -> list[tuple[str, str, int]]:
        found = self.log.recent(lambda _uri: self.document.buffer, lambda _uri: "a.py")
        return [(one.before, one.after, one.line) for one in found]


def test_neighbouring_keys_make_one_place() -> None:
    typing = Typing("a\nb\nc\nd\ne\nf\ng\nh\n")
    for column, char in enumerate("xyz"):
        typing.edit((1, 1 + column), (1, 1 + column), char)
    assert typing.recent() == [("b", "bxyz", 1)]
    typing.edit((2, 1), (2, 1), "!")
    assert typing.recent() == [("b\nc", "bxyz\nc!", 1)]


def test_places_move_with_the_text() -> None:
    typing = Typing("a\nb\nc\nd\ne\nf\ng\nh\n")
    typing.edit((6, 0), (6, 1), "G")
    typing.edit((0, 0), (0, 0), "new\nlines\n")
    assert typing.recent()[1] == ("g", "G", 8)
    assert typing.recent()[0][1].startswith("new\nlines")


def test_typing_and_taking_back_leaves_nothing() -> None:
    typing = Typing("a\nb\n")
    typing.edit((1, 1), (1, 1), "x")
    typing.edit((1, 1), (1, 2), "")
    assert typing.recent() == []
    typing.log.forget("file:///a.py")
    assert typing.recent() == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.text("ab\n", max_size=4)), max_size=25))
def test_any_edits_are_followed(edits: list[tuple[int, int, str]]) -> None:
    typing = Typing("\n".join("abcdefghij"))
    for line, span, text in edits:
        typing.edit((line, 0), (line + span, 0), text)
    for before, after, line in typing.recent():
        assert before != after and 0 <= line <= typing.document.buffer.line_count
