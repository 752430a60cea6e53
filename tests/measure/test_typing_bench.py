"""Closed mode and rhythm end to end against the fake server, and the figures made of samples."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest

from lsp_complete.measure.applying import line_after, line_exact, right_to_closer
from lsp_complete.measure.bench_typing import (
    TypingOptions,
    closed_figures,
    comparison,
    measure,
    merge,
    rhythm_figures,
)
from lsp_complete.measure.client import Item
from lsp_complete.measure.closed import KeySample, Variant, run_closed
from lsp_complete.measure.corpus import Place, Source
from lsp_complete.measure.edits import Position
from lsp_complete.measure.rhythm import RhythmRun, RhythmSample, run_rhythm, type_place
from lsp_complete.measure.session import session
from lsp_complete.measure.typist import script_for

from .conftest import Options

KNOWN = "    result = compute(value, 20, [1, 2])"


async def test_closed_mode_asks_every_key_and_judges_it(fake_options: Options, source: Source) -> None:
    variants = [Variant("a", fake_options([KNOWN])), Variant("b", fake_options([KNOWN]))]
    places = [Place(source, 1), Place(source, 61)]
    run = await run_closed(variants, places, 1, lambda text: None)
    samples = run.samples
    assert run.model == "fake.gguf"
    mine = [s for s in samples if s.variant == "a"]
    assert [s.opening for s in mine if s.opening] == ["new", "jump"]
    for number, place in enumerate(places):
        keys = [k for k in script_for(source.text, place.line, "python").keys if k.asks]
        assert [s.expects for s in mine if s.place == number] == [k.expects for k in keys]
    known = [s for s in mine if s.place == 1]
    assert all(s.offered for s in known)
    assert known[0].exact and not all(s.exact for s in mine)
    figures = closed_figures(mine)
    assert (
        figures["places"] == 2
        and figures["evaluated_per_key_p95"] == 2
        and figures["context_tokens_p50"] == 50
    )
    assert 0 < figures["line_exact"] <= figures["right_to_closer"] < 1 and 0 < figures["empty"] < 1
    assert comparison(mine, [s for s in samples if s.variant == "b"], 1)["line_exact_gain"]["estimate"] == 0


async def test_closed_mode_leaves_the_document_whole(fake_options: Options, source: Source) -> None:
    from lsp_complete.measure.closed import retype

    async with session(fake_options()) as running:
        await retype(running.client, "a", Place(source, 1), 0, True)
        await retype(running.client, "a", Place(source, 61), 1, False)
        assert await running.client.execute("text", [source.path.as_uri()]) == source.text


async def test_rhythm_puts_answers_on_the_screen(fake_options: Options, source: Source) -> None:
    async with session(fake_options([KNOWN])) as running:

        async def until_answered(delay: float) -> None:
            await running.client.execute("text", [source.path.as_uri()])  # the fake answers in order

        samples, first = await type_place(
            running.client, Place(source, 61), 0, True, repeat(1.0), until_answered
        )
        assert first.opening == "new" and first.first_ms is not None
        assert any(s.on_screen and s.fresh for s in samples)
        assert not any(s.flicker for s in samples)
        assert await running.client.execute("text", [source.path.as_uri()]) == source.text


async def test_overtaken_requests_are_cancelled(
    fake_options: Options, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slow")
    text = "# SLOW\n" + "\n".join(f"value_{n} = function({n})" for n in range(50))
    slow = Source("slow.py", folder / "slow.py", folder, "python", text)
    async with session(fake_options()) as running:
        samples, first = await type_place(running.client, Place(slow, 3), 0, True, repeat(0.0))
    assert first.first_ms is None and samples and not any(s.on_screen for s in samples)


def sample(**values: object) -> KeySample:
    base = KeySample("a", 0, 0, "", 100.0, 2, 50, 5, 3, 2, "model", "shown", True, True, True, True)
    return replace(base, **values)  # type: ignore[arg-type]


def test_closed_figures_separate_openings_and_unjudged_keys() -> None:
    samples = [
        sample(opening="new", ms=5000.0, evaluated=900),
        sample(key=1, ms=100.0),
        sample(key=2, ms=300.0, evaluated=12, exact=False, to_closer=False, offered=False),
        sample(key=3, expects=False, offered=False, exact=False),
        sample(place=1, opening="jump", ms=700.0),
    ]
    figures = closed_figures(samples)
    assert figures["first_p50_ms"] == 5000 and figures["jump_p50_ms"] == 700
    assert figures["p50_ms"] == 100 and figures["p95_ms"] == 300 and figures["evaluated_per_key_p95"] == 12
    assert figures["empty"] == 0.25 and figures["line_exact"] == 0.75
    assert closed_figures([])["p50_ms"] is None
    silent = [sample(offered=False, outcome="held_back", reason="short"), sample(offered=False, outcome="")]
    assert closed_figures(silent)["empty_because"] == {"held_back short": 1, "not told": 1}
    staged = [sample(key=n, stage_ms={"decode": 10.0 * n, "queue": 0.0}) for n in range(3)]
    assert closed_figures(staged)["stages_p50_ms"] == {"decode": 10.0}
    assert closed_figures(staged)["stages_add_up"] is None
    sums = [{"decode": 94.0, "post": 2.0, "total": 96.0}, {"decode": 90.0, "total": 90.0}]
    assert closed_figures([sample(stage_ms=stages) for stages in sums])["stages_add_up"] == 0.5
    assert closed_figures([sample(ms=3.0, stage_ms={"read": 1.5, "total": 1.5})])["stages_add_up"] == 1.0


def test_comparison_pairs_the_same_keys() -> None:
    ours = [sample(place=p, key=k) for p in range(6) for k in range(4)]
    theirs = [replace(s, variant="b", exact=False, ms=300.0) for s in ours[:-1]]
    result = comparison(ours, theirs, 1)
    assert result["line_exact_gain"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    assert result["p50_ratio"]["estimate"] == 3.0


def test_rhythm_figures() -> None:
    keys = (
        RhythmSample(0, 0, True, True, True, False, False, "model", "shown"),
        RhythmSample(0, 1, True, True, False, True, True, "typed_through", "shown"),
        RhythmSample(0, 2, True, False, False, True, False),
        RhythmSample(0, 3, False, False, False, False, False, "model", "empty"),
    )
    figures = rhythm_figures(RhythmRun(keys, (), 1.0, 9.0, 100.0))
    assert figures["shown_before_next_key"] == 0.6667 and figures["answered_before_next_key"] == 0.3333
    assert (
        figures["flicker"] == 0.5
        and figures["cpu_s_per_100_keys"] == 25.0
        and figures["without_model"] == 0.25
    )


async def test_measure_runs_both_modes(
    fake_options: Options, source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def instant(rng: random.Random) -> repeat[float]:
        return repeat(0.0)

    monkeypatch.setattr("lsp_complete.measure.rhythm.rhythm_ms", instant)
    monkeypatch.setattr("lsp_complete.measure.rhythm.OPENING_PAUSE_MS", 0.0)
    options = TypingOptions(command=fake_options([KNOWN]).command)
    save = tmp_path / "keys.jsonl"
    result = await measure(options, [Place(source, 61)], lambda text: None, save)
    samples = [json.loads(line) for line in save.read_text().splitlines()]
    assert save.stat().st_mode & 0o777 == 0o600
    assert (
        set(result["closed"]) >= {"p50_ms", "standard", "against_standard"} and "flicker" in result["rhythm"]
    )
    assert {s["variant"] for s in samples} == {"lsp-complete", "standard"}


async def test_rhythm_counts_cpu(
    fake_options: Options, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_complete.measure.rhythm.rhythm_ms", lambda rng: repeat(0.0))
    run = await run_rhythm(Variant("a", fake_options([KNOWN])), [Place(source, 61)], 1, lambda text: None)
    assert run.cpu_s >= 0 and len(run.places) == 1 and run.memory_mb > 0


def test_applying_a_suggestion() -> None:
    key = next(k for k in script_for("a\nfoo(x, y):\n", 1, "python").keys if k.left == "foo(")
    at, over = Position(1, 4), Position(1, 5)
    assert line_exact(key, "foo(x, y):", Item("x, y):", at, over))
    assert not line_exact(key, "foo(x, y):", Item("x, y):", at, at))
    assert right_to_closer(key, "foo(x, y):", Item("x, y", at, at))
    assert not right_to_closer(key, "foo(x, y):", Item("x, ", at, at))
    assert line_exact(key, "foo(x, y)", Item("x, y", at, at))
    quoted = next(k for k in script_for("a\nget('b', c)\n", 1, "python").keys if k.left == "get('")
    assert right_to_closer(quoted, "get('b', c)", Item("b", quoted.cursor, quoted.cursor))
    assert line_after("foo(", 1, Item("a\nb", at, at)) == "foo(a"
    assert line_exact(key, "foo(x)", Item("foo(x", Position(1, 0), at))


def test_settings_merge_by_group() -> None:
    assert merge({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 5}, "c": 1}) == {
        "a": {"x": 1, "y": 5},
        "b": 3,
        "c": 1,
    }
