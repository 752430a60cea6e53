"""From candidates to what is offered: confidence, names, ranking and the guard against habits together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_complete.suggest.choose import Policy, choose
from lsp_complete.suggest.confidence import Level, Scored
from lsp_complete.suggest.pipeline import PolishContext

STRICT = Level(first_token=None, token=-2.0, line=-1.0, sum=-1.0, mean=-0.5, mass=0.0)
OPEN = Level(first_token=None, token=-9.0, line=-9.0, sum=None, mean=None, mass=0.0)
HERE = PolishContext("python", "width = 1\nrate = 2\nprice = ", "\n")


def _one(text: str, *logprobs: float) -> Scored:
    size = len(text.encode())
    count = len(logprobs)
    return Scored(text.encode(), logprobs, (), tuple(size * (i + 1) // count for i in range(count)))


def _texts(*candidates: Scored, policy: Policy | None = None, ctx: PolishContext = HERE, reference: str = "") -> list[str]:
    chosen = choose(candidates, ["line"] * len(candidates), ctx, policy or Policy(STRICT), reference)
    return [c.text or c.reason for c in chosen]


def test_the_unsure_is_held_back_unless_asked_for() -> None:
    unsure = _one("width * rate", -3.0, -3.0)
    assert _texts(unsure) == ["unsure"]
    assert _texts(unsure, policy=Policy(OPEN)) == ["width * rate"]
    assert _texts(unsure, ctx=replace(HERE, explicit=True)) == ["width * rate"]


def test_an_unsure_second_line_is_cut() -> None:
    ctx = PolishContext("python", "def f():\n    ", "\n", mode="block", base_indent=4)
    c = Scored(b"a = 1\n    bcd = 2", (-0.01, -0.01, -9.0), (), (5, 10, 17))
    assert _texts(c, ctx=ctx) == ["a = 1"]


def test_unknown_names_rank_lower_or_are_cut_or_held() -> None:
    bad, good = _one("wdith * rate", -0.1), _one("width * rate", -0.2)
    known = {"width", "rate"}.__contains__
    assert _texts(bad, good) == ["wdith * rate", "width * rate"]
    assert _texts(bad, good, policy=Policy(STRICT, known)) == ["width * rate", "wdith * rate"]
    late = _one("width * wrong", -0.1)
    assert _texts(late, policy=Policy(STRICT, known, "trim")) == ["width"]
    assert _texts(late, policy=Policy(STRICT, known, "hold")) == ["unknown_name"]


def test_parameters_are_new_names_though_begun_lines_above() -> None:
    known = {"width"}.__contains__
    ctx = replace(HERE, before="def area(\n    width,\n    ")
    assert _texts(_one("height, depth", -0.1), policy=Policy(STRICT, known, "hold"), ctx=ctx) == ["height, depth"]
    ctx = replace(HERE, before="area(\n    width,\n    ")
    assert _texts(_one("height, depth", -0.1), policy=Policy(STRICT, known, "hold"), ctx=ctx) == ["unknown_name"]


def test_habits_give_way_to_another_candidate_or_the_reference() -> None:
    dull, good = _one("result + temp", -0.1), _one("width * rate", -0.2)
    assert _texts(dull, good) == ["width * rate", "result + temp"]
    assert _texts(dull, reference="rate * width") == ["rate * width", "result + temp"]
    assert _texts(dull, reference="temp + data") == ["result + temp"], "it has the same habits"
    assert _texts(dull) == ["result + temp"]
    assert _texts(dull, good, policy=Policy(STRICT, guard_habits=False))[0] == "result + temp"


def test_nothing_to_choose_from_has_a_reason() -> None:
    assert _texts() == ["empty"]
    assert _texts(_one("  ", -0.1)) == ["empty"]
    assert _texts(_one("<|fim_pad|>", -0.1)) == ["special_token"]
    with pytest.raises(ValueError, match="parallel"):
        choose([], ["line"], HERE, Policy())
    with pytest.raises(ValueError, match="names"):
        Policy(names="guess")


def test_a_joined_request_takes_what_is_left() -> None:
    ctx = replace(HERE, before=HERE.before + "wid")
    chosen = choose([_one("width * rate", -0.1)], ["line"], ctx, Policy(STRICT), typed="wid")
    assert [c.text for c in chosen] == ["th * rate"]
    chosen = choose([_one("width * rate", -0.1)], ["line"], ctx, Policy(STRICT), typed="x")
    assert chosen[0].reason == "typed_otherwise"
