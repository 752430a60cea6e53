"""Outlines that follow edits, and what stays when the text breaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.syntax import extract
from lsp_complete.syntax.nodes import Outline, children, parents
from lsp_complete.syntax.outline import (
    Level,
    levels_for_cursor,
    merge_last_good,
    outline_of,
    outline_text,
    render,
    shifted,
    update_outline,
)
from lsp_complete.syntax.plain import FORMAT, from_plain, to_plain
from lsp_complete.syntax.trees import edited, hull, parse
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.syntax.helpers import SAMPLES, changes, document, endings, grammar_of, tree_of

SLOW_OK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(SAMPLES))
@SLOW_OK
@given(data=st.data())
def test_updated_outline_equals_fresh_outline(language: str, data: st.DataObject) -> None:
    grammar = grammar_of(language)
    current = document(data.draw(endings(SAMPLES[language])))
    tree = parse(grammar, current.buffer)
    assert tree is not None
    outline = outline_of(tree)
    for _ in range(data.draw(st.integers(1, 4))):
        following, edits = data.draw(changes(current))
        moved = edited(tree, edits, following.buffer)
        after = parse(grammar, following.buffer, moved)
        if after is None:  # a grammar that ran away (Kotlin does): there is no tree to compare
            return
        span = hull(edits, current.buffer, following.buffer)
        outline = update_outline(shifted(outline, edits), moved, after, [(span.start, span.new_end)])
        assert outline == outline_of(after)
        current, tree = following, after


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(SAMPLES))
@SLOW_OK
@given(data=st.data())
def test_merged_outline_is_well_formed(language: str, data: st.DataObject) -> None:
    grammar = grammar_of(language)
    current = document(SAMPLES[language])
    tree = parse(grammar, current.buffer)
    assert tree is not None
    outline = outline_of(tree)
    for _ in range(3):
        following, edits = data.draw(changes(current))
        after = parse(grammar, following.buffer)
        if after is None:
            return
        fresh = outline_of(after)
        last = shifted(outline, edits)
        check(last, following.buffer.length)
        outline = merge_last_good(last, fresh, following.buffer)
        check(outline, following.buffer.length)
        if not fresh.broken:
            assert outline == fresh
        current = following


def check(outline: Outline, length: int) -> None:
    """Sorted, nested, inside the text."""
    stack: list[int] = []
    last = (-1, 0)
    for node in outline.nodes:
        span = node.span
        assert 0 <= span.start <= span.body_start <= span.body_end <= span.end <= length
        assert span.start <= span.name_start <= span.end
        assert span.first_line <= span.body_line <= span.last_line
        assert (span.start, -span.end) >= last
        last = (span.start, -span.end)
        while stack and stack[-1] <= span.start:
            stack.pop()
        assert not stack or span.end <= stack[-1]
        stack.append(span.end)


@pytest.mark.parametrize("language", sorted(SAMPLES))
@pytest.mark.parametrize("window", [7, 60, 500])
def test_windows_of_the_queries_do_not_show(language: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (SAMPLES[language], SAMPLES[language][: len(SAMPLES[language]) * 2 // 3], SAMPLES[language].replace("(", "")):
        tree = tree_of(language, text)
        whole = outline_of(tree)
        with monkeypatch.context() as patch:
            patch.setattr(extract, "WINDOW", window)
            assert outline_of(tree) == whole


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_outlines_survive_json(language: str) -> None:
    outline = outline_of(tree_of(language, SAMPLES[language]))
    check(outline, len(SAMPLES[language]))
    assert outline.nodes
    assert from_plain(json.loads(json.dumps(to_plain(outline)))) == outline


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"format": 0}, {"format": FORMAT, "nodes": [[1]]}, "x",
     {"format": FORMAT, "language": "a", "version": "b", "length": 3, "broken": [], "nodes": [[9, *"abcde", [], [], [0] * 8]]},
     {"format": FORMAT, "language": "a", "version": "b", "length": 3, "broken": [], "nodes": [[0, *"abcd", 5, [], [], [0] * 8]]},
     {"format": FORMAT, "language": "a", "version": "b", "length": 3, "broken": [], "nodes": [[0, *"abcde", [], [], [5] + [0] * 7]]},
     {"format": FORMAT, "language": "a", "version": "b", "length": float("inf"), "broken": [], "nodes": []},
     {"format": FORMAT, "language": "a", "version": "b", "length": 3, "broken": [[0, float("inf")]], "nodes": []}],
)  # fmt: skip
def test_a_foreign_value_is_no_outline(value: object) -> None:
    assert from_plain(value) is None


def test_what_an_unfinished_call_hides_is_kept() -> None:
    text = SAMPLES["java"]
    current = document(text)
    before = outline_of(tree_of("java", text))
    at = text.index("sum += pricer")
    line, column = current.buffer.position(at)
    following, edits = current.apply(
        [Change(((line, column), (line, column)), 'foo("a", { ')], Encoding.UTF32, 2
    )
    fresh = outline_of(tree_of("java", following.buffer.text()))
    merged = merge_last_good(shifted(before, edits), fresh, following.buffer)
    assert {node.qualified for node in before.nodes if node.role != "comment"} <= {
        node.qualified for node in merged.nodes
    }
    check(merged, following.buffer.length)


WRAPPED = """\
export class Desk {
  open(order) {
    if (order.late) {
      this.warn(order);
    }
    const lines = order.lines.map((line) => line.price);
    return this.total(lines);
  }

  total(prices) {
    return prices.reduce((sum, price) => sum + price, 0);
  }

  warn(order) {
    console.warn(order.number);
  }
}
"""


@pytest.mark.parametrize("deleted", ["if (order.late) {", "{\n  open(order) {", ") => line.price);"])
def test_a_bracket_that_is_missing_moves_no_other_definition(deleted: str) -> None:
    """The parser ends everything around it one bracket early, down to the end of the file, where one is left over."""
    current = document(WRAPPED, "javascript")
    before = outline_of(tree_of("javascript", WRAPPED))
    at = WRAPPED.index(deleted) + len(deleted) - 1 if deleted.endswith("{") else WRAPPED.index(deleted)
    points = (current.buffer.position(at), current.buffer.position(at + 1))
    following, edits = current.apply([Change(points, "")], Encoding.UTF32, 2)
    fresh = outline_of(tree_of("javascript", following.buffer.text()))
    assert fresh.broken
    merged = merge_last_good(shifted(before, edits), fresh, following.buffer)
    check(merged, following.buffer.length)
    named = {(node.kind, node.qualified, node.span) for node in merged.nodes}
    assert named >= {(node.kind, node.qualified, node.span) for node in shifted(before, edits).nodes}


@pytest.mark.parametrize("typed", ["", "z", "z\n\n\n"])
def test_lines_of_a_node_whose_start_is_replaced(typed: str) -> None:
    text = "x = 1\ny = 2\nclass C:\n    def f(self):\n        return 1\n"
    current = document(text)
    points = (current.buffer.position(2), current.buffer.position(text.index("C:")))
    following, edits = current.apply([Change(points, typed)], Encoding.UTF32, 2)
    moved = shifted(outline_of(tree_of("python", text)), edits)
    check(moved, following.buffer.length)
    cut, function = moved.named("C")[0], moved.named("f")[0]
    assert cut.span.first_line == typed.count("\n") and cut.span.last_line == function.span.last_line
    assert following.buffer.slice(cut.start, cut.start + 2) == "C:"
    assert following.buffer.line(function.span.first_line) == "    def f(self):\n"


@pytest.mark.parametrize(
    ("language", "text", "deleted"),
    [
        ("go", "package m\n\nconst (\n\n\tRate = 0.19\n\n\tMax  = 10\n\n)\n", "= "),
        ("go", "package m\n\nconst (\nRate = 0.19\nMax = 10\n)\n", "Max = 10"),
        ("rust", "#[inline]\n\n\n\n\nfn f() {\n    g();\n}\n", "#[inline]"),
        ("rust", "/**/ ]\n\n\n\n\nfn f() {\n    g();\n}\n", "/**/ "),
    ],
)
def test_what_hangs_on_a_sibling_is_read_again_with_it(language: str, text: str, deleted: str) -> None:
    """The declaration around a lone constant belongs to it; an attribute belongs to the function far below it."""
    current = document(text, language)
    at = text.rindex(deleted)
    points = (current.buffer.position(at), current.buffer.position(at + len(deleted)))
    following, edits = current.apply([Change(points, "#[cfg" if deleted.startswith("/") else "")], Encoding.UTF32, 2)
    before = tree_of(language, text)
    moved = edited(before, edits, following.buffer)
    after = parse(grammar_of(language), following.buffer, moved)
    assert after is not None
    span = hull(edits, current.buffer, following.buffer)
    updated = update_outline(shifted(outline_of(before), edits), moved, after, [(span.start, span.new_end)])
    assert updated == outline_of(after)


def test_a_missing_name_stands_inside_its_node() -> None:
    text = "package/* a\nclass C { }\n"
    check(outline_of(tree_of("scala", text)), len(text))


def test_calls_in_the_making_are_known() -> None:
    text = WRAPPED.replace("    return this.total(lines);", "    return this.total(fresh(lines);")
    before, fresh = outline_of(tree_of("javascript", WRAPPED)), outline_of(tree_of("javascript", text))
    at = WRAPPED.index("lines);")
    following, edits = document(WRAPPED, "javascript").apply(
        [Change((document(WRAPPED).buffer.position(at),) * 2, "fresh(")], Encoding.UTF32, 2
    )
    merged = merge_last_good(shifted(before, edits), fresh, following.buffer)
    assert following.buffer.text() == text and fresh.broken
    assert {"fresh", "total", "map", "warn"} <= set(merged.named("open")[0].calls)


def test_an_open_string_hides_nothing_below() -> None:
    text = SAMPLES["python"]
    current = document(text)
    before = outline_of(tree_of("python", text))
    line = text[: text.index("amount = 0.0")].count("\n")
    following, edits = current.apply([Change(((line, 8), (line, 8)), '"""')], Encoding.UTF32, 2)
    fresh = outline_of(tree_of("python", following.buffer.text()))
    merged = merge_last_good(shifted(before, edits), fresh, following.buffer)
    assert {"total", "empty", "price_of", "load"} <= {node.name for node in merged.nodes}


def test_a_deleted_definition_is_not_kept() -> None:
    text = SAMPLES["python"] + "\nfoo(((\n"
    current = document(text)
    start = text[: text.index("async def load")].count("\n")
    following, edits = current.apply([Change(((start, 0), (start + 3, 0)), "")], Encoding.UTF32, 2)
    before = outline_of(tree_of("python", text))
    fresh = outline_of(tree_of("python", following.buffer.text()))
    assert "load" not in {
        node.name for node in merge_last_good(shifted(before, edits), fresh, following.buffer).nodes
    }


def test_lookups() -> None:
    outline = outline_text("python", "x.py", SAMPLES["python"])
    assert outline is not None
    offset = SAMPLES["python"].index("value * (1")
    assert [node.name for node in outline.at(offset)] == ["Order", "total", "taxed"]
    inner, around = outline.enclosing(offset, "function"), outline.enclosing(offset, "class")
    assert inner is not None and inner.qualified == "Order.total.taxed"
    assert around is not None and around.doc == "One order."
    assert [node.name for node in outline.callers("price_of")] == ["total"]
    assert {"json", "make_field", "Order", "RATE", "load"} <= outline.names()
    assert outline.named("load")[0].signature == "async def load(path: Path) -> Order:"
    known = parents(outline.nodes)
    assert all(index in list(children(outline.nodes, parent)) for index, parent in enumerate(known))


def test_no_outline_for_what_is_no_source() -> None:
    assert outline_text("", "x.bin", "abc") is None
    assert outline_text("python", "x.py", "\0" * 100) is None
    assert outline_text("", "tool", "#!/usr/bin/env python3\nx = 1\n") is not None


@pytest.mark.parametrize(
    ("language", "opener", "closer"),
    [("json", '{"a":', "}"), ("cpp", "namespace abc {\n", "}\n"), ("rust", "mod abc {\n", "}\n"), ("java", "class A {\n", "}\n")],
)
def test_definitions_in_one_another_without_end(language: str, opener: str, closer: str) -> None:
    """Work and memory grow with the text, not with its square, and no stack overflows."""
    text = opener * 3_000 + "1" + closer * 3_000
    tree = tree_of(language, text)
    outline = outline_of(tree)
    assert len(outline.nodes) == extract.MAX_DEPTH
    assert max(len(node.container) for node in outline.nodes) < 10 * extract.MAX_DEPTH
    for level in Level:
        assert len(render(outline, tree.buffer, default=level)) < len(text) + 10 * extract.MAX_DEPTH
    assert render(outline, tree.buffer, levels_for_cursor(outline, len(text) // 2))


@pytest.mark.parametrize("depth", [98, 99, 100, 101, 102])
@pytest.mark.parametrize("at", [0, 50, 97, 98, 99, 100])
def test_an_outline_follows_edits_at_its_depth(depth: int, at: int) -> None:
    text = "mod abc {\n" * depth + "fn f() {}\nconst A: i32 = 1;\n" + "}\n" * depth
    tree = tree_of("rust", text)
    before = document(text, "rust")
    for new in ("mod b {}\n", "fn g() {}\n", "mod b {\n", "}\n", "// c\n", "#[x]\n"):
        line = min(at, depth)
        following, edits = before.apply([Change(((line, 0), (line, 0)), new)], Encoding.UTF32, 2)
        moved = edited(tree, edits, following.buffer)
        after = parse(tree.grammar, following.buffer, moved)
        assert after is not None
        span = hull(edits, before.buffer, following.buffer)
        assert update_outline(shifted(outline_of(tree), edits), moved, after, [(span.start, span.new_end)]) == outline_of(after)
