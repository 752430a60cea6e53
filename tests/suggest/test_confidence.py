"""Cutting, holding back and ranking by the model's own probabilities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.confidence import (
    Level,
    Scored,
    confident,
    cut_point,
    first_line,
    level_of,
    levels,
    rank,
)

STRICT = Level(first_token=-2.0, token=-2.0, line=-1.0, sum=-1.5, mean=-0.5, mass=0.0)


def _scored(*parts: tuple[str, float]) -> Scored:
    text, offsets = b"", []
    for piece, _ in parts:
        text += piece.encode()
        offsets.append(len(text))
    return Scored(text, tuple(p for _, p in parts), tuple(1.0 for _ in parts), tuple(offsets))


def test_the_table_has_three_levels_from_open_to_strict() -> None:
    table = levels()
    assert list(table) == ["eager", "balanced", "quiet"]
    assert table["eager"].token < table["balanced"].token < table["quiet"].token
    floors = [level.sum for level in table.values()]
    assert floors[0] is None
    assert floors[1] is not None and floors[2] is not None and floors[1] < floors[2] < 0
    assert level_of("no such level") == table["balanced"]


def test_cut_before_the_unsure_token_at_a_word_start() -> None:
    assert cut_point(_scored(("foo", -0.1), ("(a", -0.2), (", ", -3.0), ("b)", -0.1)), STRICT) == len("foo(a")
    assert cut_point(_scored(("foo", -0.1), (".get", -0.1), ("_name", -3.0)), STRICT) == len("foo.")
    assert cut_point(_scored(("é", -0.1), ("é", -3.0)), STRICT) == 0
    assert cut_point(_scored(("a", -0.1), ("b", -0.1)), STRICT) == 2


def test_past_the_first_line_the_cut_is_at_a_line_end() -> None:
    c = _scored(("a = 1", -0.1), ("\n", -0.1), ("b", -0.1), (" = 2", -9.0), ("\nc", -0.1))
    assert c.text[: cut_point(c, STRICT)] == b"a = 1"
    assert c.text[: cut_point(c, level_of("eager"))] == b"a = 1"
    c = _scored(("a = 1", -9.0), ("\n", -0.1), ("b = 2", -0.1))
    assert cut_point(c, level_of("quiet")) == len(c.text)
    c = _scored(("a = 1", -0.1), ("\nb = ", -1.9), ("2", -1.9), ("\nc", -0.1))
    assert c.text[: cut_point(c, STRICT)] == b"a = 1"


def test_healed_tokens_count_for_the_first_line_and_are_never_cut() -> None:
    c = Scored(b"bar()", (-9.0, -0.1), (0.01, 1.0), (0, 5))
    assert cut_point(c, STRICT) == 5
    assert first_line(c, STRICT).sum == pytest.approx(-9.1)
    weighted = Level(None, -2.0, -1.0, None, None, mass=1.0)
    assert first_line(c, weighted).sum < -13.0


def test_a_floor_on_the_first_line() -> None:
    assert confident(_scored(("a", -0.1), ("b", -0.2), ("\n", -0.1), ("c", -9.0)), STRICT)
    assert confident(_scored(("a", -0.1), ("b", -0.2)), STRICT)
    assert not confident(_scored(("a", -0.9), ("b", -0.9)), STRICT)
    assert confident(Scored(b"x"), STRICT)


def test_ranking_merges_equal_texts_and_leaves_out_empty_ones() -> None:
    a, b, c = _scored(("x", -2.0)), _scored(("y", -0.5)), _scored(("y", -0.9))
    assert rank([a, b, c], ["x", "y", "y "]) == [1, 0]
    assert rank([a, b, c], ["x", "", ""]) == [0]
    assert rank([a, b], ["x", "y"], [0.0, -5.0]) == [0, 1]


def test_length_is_neither_ignored_nor_decisive() -> None:
    short, long = _scored(("a", -0.5)), _scored(*[("a", -0.2)] * 5)
    assert rank([short, long], ["a", "aaaaa"]) == [1, 0]
    tiny, longer = _scored(("a", -0.05)), _scored(*[("a", -0.2)] * 5)
    assert rank([tiny, longer], ["a", "aaaaa"]) == [0, 1]


def test_parallel_values_are_checked() -> None:
    with pytest.raises(ValueError, match="parallel"):
        Scored(b"a", (-1.0,), (), ())
    with pytest.raises(ValueError, match="parallel"):
        rank([], ["a"])


PARTS = st.lists(st.tuples(st.text("ab_é \n(", min_size=0, max_size=4), st.floats(-12, 0.5)), max_size=12)


@given(parts=PARTS, level=st.sampled_from(["eager", "balanced", "quiet"]))
def test_a_cut_is_whole_characters_and_no_half_word(parts: list[tuple[str, float]], level: str) -> None:
    c = _scored(*parts)
    keep = cut_point(c, level_of(level))
    assert 0 <= keep <= len(c.text)
    head, tail = c.text[:keep].decode(), c.text[keep:].decode()
    assert not (head[-1:].isalnum() and tail[:1].isalnum())
    confident(c, level_of(level))
