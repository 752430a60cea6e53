"""Points, figures and the measuring itself over the toy model."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.context.anchor import Window
from lsp_complete.context.prompt import FimTokens
from lsp_complete.engine.api import Candidate, Completion, EngineTiming
from lsp_complete.engine.batchcost import BatchCost
from lsp_complete.engine.draftmodel import DraftModel
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.errors import ModelError
from lsp_complete.measure import bench, bench_speculation
from lsp_complete.measure.bench_speculation import (
    VARIANTS,
    SpeculationOptions,
    Switch,
    feed_store,
    make_speculators,
    measure_model,
    measure_point,
    variant_names,
)
from lsp_complete.measure.bench_speculation_best import BestOf, best_report
from lsp_complete.measure.bench_speculation_points import (
    PROMPT_TOKENS,
    Point,
    make_point,
    make_points,
    repeated_share,
)
from lsp_complete.measure.bench_speculation_policies import (
    TEMPERATURES,
    DraftPolicy,
    acceptance,
    played,
    policy_report,
)
from lsp_complete.measure.bench_speculation_report import (
    Measured,
    Run,
    predicted_gain,
    report,
    variant_report,
    verdict,
)
from lsp_complete.measure.bench_speculation_saved import line_of, read_line
from lsp_complete.measure.corpus import Place, Source
from lsp_complete.service.planning import LoadedModel
from tests.engine.fake_backend import SIZE, FakeBackend, FakeVocab, encode
from tests.engine.test_speculate import habitual_brain

TEXT = "".join(f"line_{n:03d} = call({n}) + 1\n" for n in range(300))
SOURCE = Source("pkg/file.py", Path("file.py"), Path("."), "python", TEXT)


class Bytes:
    """A tokenizer whose tokens are bytes."""

    pre = ""
    size = SIZE

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def special(self, text: str) -> int | None:
        return None


MODEL = LoadedModel(Bytes(), FimTokens((257,), (258,), (259,)), Window(), "", "toy", 4096)


def test_points_fit_and_hide_what_they_took_out() -> None:
    points = make_points([SOURCE], 5, MODEL, seed=1, max_tokens=48)
    assert len(points) == 5 and points == make_points([SOURCE], 5, MODEL, seed=1, max_tokens=48)
    for point in points:
        assert len(point.prompt) <= PROMPT_TOKENS and 3 < len(point.reference) <= 48
        line = int(point.place.rsplit(":", 1)[1]) - 1
        for hidden in range(line, line + 6):
            rest = f"call({hidden})".encode()
            assert rest not in bytes(t for t in point.prompt if t < 256)
            assert rest not in bytes(point.lookup)
        shown = bytes(t for t in point.prompt if t < 256) + point.forced
        assert TEXT.splitlines()[line].encode().startswith(shown.rsplit(b"\n", 1)[-1])
        assert bytes(point.reference).startswith(point.forced)


def test_a_place_whose_window_never_fits_is_left_out() -> None:
    long = replace(SOURCE, text="".join(f"x{n} = '{'y' * 900}'\n" for n in range(40)))
    assert make_point(Place(long, 20), MODEL, 1, 48) is None


def test_repetition_is_a_share_of_four_grams() -> None:
    assert repeated_share((1, 2, 3, 4, 5), [(0, 1, 2, 3, 4), (9,)]) == 0.5
    assert repeated_share((1, 2), [(1, 2, 3, 4)]) == 0.0


def candidate(text: bytes, first: float = -1.0) -> Candidate:
    return Candidate(text, tuple(text), (first,) * len(text))


def test_verdicts() -> None:
    plain = candidate(b"abc")
    assert verdict(candidate(b"abc", -9.0), plain) == "identical"
    assert verdict(candidate(b"abd", -1.2), plain) == "near_tie"
    assert verdict(candidate(b"abd", -2.0), plain) == "different"
    assert verdict(candidate(b"ab"), plain) == "different"


def runs(plain_ms: float, all_ms: float) -> dict[str, Run]:
    return {
        "plain": Run(candidate(b"abcd"), [plain_ms]),
        "all": Run(candidate(b"abcd"), [all_ms], drafted=4, accepted=3),
    }


def test_gains_overall_and_where_much_repeats() -> None:
    three = [runs(100.0, 100.0), runs(100.0, 50.0), runs(100.0, 100.0)]
    kinds = {"all": {"ngram:4": {"proposed": 4, "judged": 4, "accepted": 3}}}
    shares = (0.1, 0.9, 0.2)
    result = report([Measured("", share, each, kinds) for share, each in zip(shares, three, strict=True)])
    assert result["variants"]["all"]["kinds"] == {"ngram:4": {"proposed": 12, "judged": 12, "accepted": 9}}
    assert result["gain"] == pytest.approx(300 / 250, abs=1e-3) and result["gain_p50"] == 1.0
    assert result["gain_most_repeated"] == 2.0
    assert result["acceptance"] == 0.75 and result["identical"] == 1.0
    assert result["plain_tokens_per_s"] == 40.0
    assert variant_report("all", [], [])["gain"] == 0.0


def test_predictions_grow_with_acceptance_and_cost_ratio() -> None:
    assert predicted_gain(0.8, 10) > predicted_gain(0.8, 5) > predicted_gain(0.5, 5) >= 1.0
    assert 2.0 < predicted_gain(0.9, 5) < 2.5  # (1 - 0.9^6) / 0.1 tokens for 2 steps, a little less on a GPU
    assert predicted_gain(0.05, 5) <= 1.0


def test_which_variants_are_measured() -> None:
    options = SpeculationOptions(("a", "b"), draft="c")
    assert variant_names(options, last=False) == ["all", "all_line"]
    assert set(variant_names(options, last=True)) == set(VARIANTS)
    assert "ngram" not in variant_names(replace(options, per_proposer=False), last=True)


async def test_all_variants_over_the_toy_model() -> None:
    cost = BatchCost()
    switch = Switch(cost)
    engine = LocalEngine(
        EngineOptions("fake", context=1024, slots=1, n_batch=64, host_cache_bytes=0),
        lambda o: FakeBackend(context=1024, slots=1, brain=habitual_brain),
        proposer=switch,
    )
    draft = FakeBackend(context=1024, slots=1, brain=habitual_brain)
    specs = make_speculators(list(VARIANTS), FakeVocab(), SIZE, cost, DraftModel(draft))
    points = [
        Point(f"f:{n}", "f", encode(f"x = foo\ny{n} = fo"), b"fo", encode("foo"), encode("y = foo(a, b)"), n / 3)
        for n in range(3)
    ]  # fmt: skip
    measured = []
    for turn, point in enumerate(points):
        for spec in specs.values():
            feed_store(spec, {"f": encode("secret"), "g": encode("public")}, leave_out="f")
        measured.append(await measure_point(engine, switch, specs, point, 24, 2, turn))
    await engine.close()
    kinds = {name: spec.report() for name, spec in specs.items()}
    result = report([Measured(p.place, p.repeated, m, kinds if not n else {}) for n, (p, m) in enumerate(zip(points, measured, strict=True))])
    for name, variant in result["variants"].items():
        assert variant["n"] == 3 and variant["identical"] == 1.0 and variant["gain"] > 0, name
        assert set(variant["kinds"]) <= {
            k for k in variant["kinds"] if k.split(":")[0] in (*VARIANTS[name], "realigned")
        }
    assert result["variants"]["model_fixed"]["accepted"] > 0
    assert 0 < result["draft_model"]["acceptance_per_token"] <= 1
    assert {"gain", "gain_single_line", "plain_tokens_per_s"} <= set(result)
    assert all(len(run.times) == 2 for runs in measured for run in runs.values())
    store = specs["all"].store
    assert store is not None and store.after(encode("publ"), 2) == list(encode("ic"))
    assert store.after(encode("secr"), 2) == []


class Toy(Bytes, FakeVocab):
    """Tokenizer and piece table in one, as the real vocabulary is."""

    def piece(self, token: int) -> bytes:
        return FakeVocab.piece(self, token)


async def test_a_model_with_its_draft_from_files_to_figures() -> None:
    backends: list[FakeBackend] = []

    def factory(options: EngineOptions) -> FakeBackend:
        backends.append(FakeBackend(context=2048, slots=1, brain=habitual_brain))
        return backends[-1]

    said: list[str] = []
    options = SpeculationOptions(("m",), draft="d", points=2, max_tokens=16)
    toy = replace(MODEL, tokenizer=Toy())
    result = await measure_model(
        Path("m.gguf"), Path("d.gguf"), options, [SOURCE], True, said.append, factory, lambda path, info: toy
    )
    assert said and said[0].startswith("m: 2/2 points, gain ")
    assert set(result["variants"]) == set(VARIANTS) and result["identical"] == 1.0 and result["n"] == 2
    assert set(result["batch_cost"]) == {"1", "2", "4", "8", "16"} and "draft_model" in result
    assert dict(bench.flatten(result))["variants.all.gain"] == result["gain"]
    assert len(backends) == 2 and all(backend.closed for backend in backends)
    policies = result["draft_policies"]
    assert policies["acceptance"]["0.0"] > 0.9 > policies["acceptance"]["1.0"], "the draft is the model itself, but for what healing forces"
    assert policies["10"]["best"]["gain"] >= policies["10"]["default"] and policies["10"]["tokens"]["7"] == policies["10"]["default"]
    best = result["best_of"]
    assert best["n"] == 2 and best["cost_ratio"] > 0
    assert best["exact_greedy"] <= best["exact_best"] and 1 <= best["distinct"] <= 4


def test_best_of_several_against_greedy() -> None:
    def answer(ms: float, *texts: bytes) -> Completion:
        ranked = tuple(Candidate(t, (1, 2), (-1.0 * n, -1.0), offsets=(len(t), len(t))) for n, t in enumerate(texts))
        return Completion(ranked, EngineTiming(total_ms=ms + 5.0, queue_ms=5.0))

    points = [
        BestOf("right  ", answer(10, b"right"), answer(20, b"right\nmore", b"wrong")),
        BestOf("right", answer(10, b"wrong"), answer(40, b"wrong", b"right")),
        BestOf("right", answer(10, b"wrong"), answer(30, b"wrong", b"worse", b"wrong")),
    ]
    result = best_report(points)
    assert (result["n"], result["exact_greedy"], result["exact_best"]) == (3, 0.3333, 0.6667)
    assert result["exact_top_ranked"] == result["exact_top_by_mean"] == 0.3333
    assert result["cost_ratio"] == 3.0 and result["distinct"] == 2.0 and result["greedy_ms_p50"] == 10.0
    assert best_report([])["n"] == 0


def test_policies_are_played_over_what_the_draft_said() -> None:
    right, wrong, unsure = (True, 0.9), (False, 0.9), (True, 0.3)
    default = DraftPolicy()
    assert played([[right] * 40], default, 10) > played([[right] * 40], replace(default, tokens=2), 10) > 1.5
    assert played([[right] * 40], default, 10) > played([[right] * 40], default, 5)
    hard = [[wrong] * 40 for _ in range(20)]
    assert 0.95 < played(hard, default, 10) <= 1.0, "what is never right turns itself off"
    assert played(hard, replace(default, back_off=1), 10) >= played(hard, default, 10)
    lucky = [[unsure] * 40 for _ in range(4)]
    assert played(lucky, replace(default, least=0.2), 10) > 1.5 > played(lucky, default, 10), "who is unsure stops"
    assert played([[right]], default, 10) == 1.0, "the last token is the target's own"
    both = [{str(t): [right] * 20 if t < 0.5 else [wrong] * 20 for t in TEMPERATURES}]
    found = policy_report(both)
    assert found["5"]["best"]["temperature"] == 0.0 and found["5"]["temperature"]["0.3"] == found["5"]["default"]
    assert acceptance(both) == {"0.0": 1.0, "0.3": 1.0, "0.6": 0.0, "1.0": 0.0}


def test_what_the_draft_said_is_kept() -> None:
    one = Measured("f:1", 0.5, {"plain": Run(Candidate(b"x"), [1.0])}, judged={"0.0": [(True, 0.5), (False, 0.25)]})
    again = read_line("t", line_of("t", one))
    assert again is not None and again.judged == one.judged
    older = line_of("t", one).replace('"judged"', '"other"')
    assert read_line("t", older).judged == {}  # type: ignore[union-attr]


async def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    asked: list[int] = []

    def factory(options: EngineOptions) -> FakeBackend:
        backend = FakeBackend(context=2048, slots=1, brain=habitual_brain)
        plain = backend.decode

        def decode(segments):  # type: ignore[no-untyped-def]
            asked.append(len(segments))
            return plain(segments)

        backend.decode = decode  # type: ignore[method-assign]
        return backend

    async def go(points: int) -> dict[str, Any]:
        options = SpeculationOptions(("m",), points=points, max_tokens=12, per_proposer=False, save=tmp_path / "kept.jsonl")
        toy = replace(MODEL, tokenizer=Toy())
        return await measure_model(Path("m.gguf"), None, options, [SOURCE], True, lambda _t: None, factory, lambda p, i: toy)

    first = await go(3)
    lines = (tmp_path / "kept.jsonl").read_text().splitlines()
    assert len(lines) == 3
    asked.clear()
    again = await go(3)
    assert not asked and again == first, "nothing is measured twice"
    (tmp_path / "kept.jsonl").write_text("\n".join([lines[0], '{"half', lines[1].replace('"tag": "m', '"tag": "n'), ""]))
    assert (await go(3))["n"] == 3 and asked, "what cannot be used is measured again"


async def test_a_draft_model_of_another_vocabulary_is_refused_and_let_go() -> None:
    backends: list[FakeBackend] = []

    def factory(options: EngineOptions) -> FakeBackend:
        backend = FakeBackend(context=2048, slots=1)
        if not backends:  # the draft is loaded first
            backend.vocab._pieces[97] = b"?"
        backends.append(backend)
        return backend

    with pytest.raises(ModelError, match=r"m\.gguf.*another text"):
        await measure_model(
            Path("m.gguf"), Path("d.gguf"), SpeculationOptions(("m",), "d"), [SOURCE], True, print, factory,
            lambda path, info: replace(MODEL, tokenizer=Toy()),
        )  # fmt: skip
    assert len(backends) == 2 and all(backend.closed for backend in backends)


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[SpeculationOptions] = []

    def run(options: SpeculationOptions) -> dict[str, object]:
        seen.append(options)
        return {"model": "b", "gain": 1.2, "models": {}}

    monkeypatch.setattr(bench_speculation, "run", run)
    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    line = "bench speculation --model a b --draft a --points 7 --repetitions 3 --no-proposers --seed 5 --json"
    arguments = parser.parse_args(line.split())
    assert arguments.run(arguments) == 0
    (options,) = seen
    assert options == SpeculationOptions(("a", "b"), "a", points=7, repetitions=3, seed=5, per_proposer=False)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["bench"], printed["model"], printed["gain"], printed["repetitions"]) == (
        "speculation", "b", 1.2, 3,
    )  # fmt: skip
