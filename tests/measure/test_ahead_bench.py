"""Acceptance, coming back and on-against-off: end to end against the fake server, and the figures made of samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_complete.config import gather, load
from lsp_complete.measure import bench
from lsp_complete.measure.accepting import (
    AcceptSample,
    accept_figures,
    cursor_after,
    difference,
    enter_at,
    run_accept,
)
from lsp_complete.measure.bench_typing import TypingOptions, measure
from lsp_complete.measure.bench_typing_ahead import FULL_SETTINGS, OFF, SMALL_SETTINGS
from lsp_complete.measure.client import Item
from lsp_complete.measure.closed import Variant
from lsp_complete.measure.corpus import Place, Source
from lsp_complete.measure.edits import Position, apply_edits
from lsp_complete.measure.revisiting import VisitSample, begin, revisit_figures, rounds, run_revisit
from lsp_complete.measure.session import own_settings, session

from .conftest import Options

KNOWN = "    result = compute(value, 20, [1, 2])"
NEXT = "    result = compute(value, 20, [1, 2])  # right"


async def no_pause(seconds: float) -> None:
    assert seconds > 0


async def test_a_right_suggestion_is_accepted_and_the_file_is_whole_again(fake_options: Options, source: Source) -> None:
    said: list[str] = []
    places = [Place(source, 61), Place(source, 1)]  # the crib knows the first one only
    variants = [Variant("on", fake_options([KNOWN, "    return result"])), Variant("off", fake_options([KNOWN, "    return result"]))]
    run = await run_accept(variants, places, 1, said.append, no_pause)
    assert run.model == "fake.gguf" and len(run.samples) == 2
    first = run.samples[0]
    assert (first.place, first.step, first.source, first.typed) == (0, "enter", "model", 0)
    assert any("no right suggestion" in line for line in said)


async def test_acceptance_restores_the_document(fake_options: Options, source: Source) -> None:
    from lsp_complete.measure.accepting import accept_at

    async with session(fake_options([KNOWN])) as running:
        sample = await accept_at(running.client, "a", Place(source, 61), 0, True, no_pause)
        assert sample is not None and sample.step == "enter", "Enter brings the same indentation, so the crib knows it"
        assert await running.client.execute("text", [source.path.as_uri()]) == source.text


@pytest.mark.parametrize(
    ("old", "new"),
    [("abc\nd", "abc\nd"), ("a\nbc", "a\nxbc"), ("a😀c\nd", "ac\nd"), ("aaa", "aaaa"), ("a\r\nb", "b"), ("", "x\n"), ("abab", "ab")],
)
def test_the_difference_makes_one_of_the_other(old: str, new: str) -> None:
    assert apply_edits(old, [difference(old, new)]) == new


def test_the_cursor_after_acceptance_and_after_enter() -> None:
    at = Position(2, 4)
    assert cursor_after(Item("x😀", at, at)) == Position(2, 7)
    assert cursor_after(Item("if x:\r\n        y", at, at)) == Position(3, 9)
    edit, cursor = enter_at("def f():\r\n    if x:\r\n", Position(1, 9), "python")
    assert (edit.text, cursor) == ("\r\n        ", Position(2, 8))


def test_accept_figures() -> None:
    base = AcceptSample("on", 0, 3, "accept", 4.0, "prefetched", "shown")
    samples = [base, replace(base, step="enter", ms=30.0), replace(base, ms=300.0, source="model"), replace(base, step="", ms=9.0)]
    figures = accept_figures(samples)
    assert figures["accepted"] == 4 and figures["within_50_ms"] == 0.5 and figures["within_50_ms_of_offered"] == 0.6667
    assert figures["sources"] == {"model": 1, "prefetched": 2} and figures["next_p50_ms"] == 30.0
    assert (figures["offered"], figures["at_acceptance"], figures["after_enter"]) == (0.75, 2, 1)
    assert accept_figures([])["next_p50_ms"] is None


async def test_coming_back_and_starting_again(fake_options: Options, source: Source) -> None:
    other = replace(source, name="other.py", path=source.path.with_name("other.py"))
    places = [Place(source, 1), Place(source, 61), Place(other, 4)]
    said: list[str] = []
    samples, model = await run_revisit(Variant("a", fake_options([KNOWN])), places, said.append, no_pause)
    assert model == "fake.gguf" and [line for line in said if line.startswith("round")] == ["round 1: 2 files", "round 2: 1 files"]
    assert [s.way for s in samples] == ["warm"] * 2 + ["revisit"] * 2 + ["restart"] * 2 + ["warm", "revisit", "restart"]
    assert all(s.ms > 0 and s.evaluated == 2 and s.restored == -1 for s in samples)
    figures = revisit_figures(samples)
    assert figures["samples"] == 9 and figures["warm_evaluated_p50"] == 2 and figures["restart_restored_p50"] is None
    assert figures["first_warm_p50_ms"] is not None and revisit_figures([])["revisit_p50_ms"] is None


def test_places_of_one_file_come_in_different_rounds(source: Source) -> None:
    other = replace(source, name="b")
    a, b, c = Place(source, 1), Place(source, 31), Place(other, 1)
    assert rounds([a, b, c]) == [[a, c], [b]]
    assert begin(Place(replace(source, text="x\nab = 1\n"), 1), 0) is None


def test_revisit_takes_both_ways_together() -> None:
    base = VisitSample(0, "revisit", 100.0, 3, 0, 200, True, "model")
    samples = [base, replace(base, way="restart", ms=300.0, restored=250), replace(base, way="warm", ms=50.0)]
    figures = revisit_figures(samples)
    assert (figures["revisit_p50_ms"], figures["revisit_restart_p50_ms"], figures["restart_restored_p50"]) == (100.0, 300.0, 250.0)


def test_what_an_editor_may_not_set_goes_through_the_environment() -> None:
    found = own_settings({"prefetch": "full", "engine": {"speculation": False, "slots": 2}, "suggest": {"level": "eager"}})
    assert found == {
        "LSP_COMPLETE_PREFETCH": "full", "LSP_COMPLETE_ENGINE_SPECULATION": "false", "LSP_COMPLETE_ENGINE_SLOTS": "2",
    }  # fmt: skip
    settings = load(gather(env={**own_settings(OFF), "LSP_COMPLETE_CONFIG": "/nowhere/x.toml"})).settings
    assert (settings.prefetch, settings.engine.speculation) == ("off", False)
    assert SMALL_SETTINGS["first_deadline_ms"] == FULL_SETTINGS["first_deadline_ms"] == 0


async def test_on_against_off_and_small_against_full(fake_options: Options, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_options([KNOWN])
    options = TypingOptions(places=1, closed=False, rhythm=False, standard=False, on_off=True, small=True, command=fake.command)
    result = await measure(options, [Place(source, 61)], lambda text: None)
    assert "closed" not in result and set(result["on_off"]) == {"on", "off"} and result["model"] == "fake.gguf"
    assert result["on_off"]["on"]["keys"] == result["on_off"]["off"]["keys"] > 0
    assert result["small_prompt"]["small_against_full"]["line_exact_gain"]["estimate"] == 0


def test_the_command_line_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    import argparse

    from lsp_complete.measure import bench_typing

    seen: list[TypingOptions] = []

    def run(options: TypingOptions, save: object) -> dict[str, object]:
        seen.append(options)
        return {"model": "m"}

    monkeypatch.setattr(bench_typing, "run", run)
    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    for line in ("--accept --revisit", "--on-off", "--small --mode closed", ""):
        arguments = parser.parse_args(["bench", "typing", "--json", *line.split()])
        assert arguments.run(arguments) == 0
    assert [(o.closed, o.rhythm, o.ahead) for o in seen] == [(False, False, True), (False, False, True), (True, False, True), (True, True, False)]
    assert (seen[0].accept, seen[0].revisit, seen[0].small, seen[1].on_off) == (True, True, False, True)
