"""How a draft model proposes: warmer, more or less sure, fewer tokens after rejections; and that none of it changes the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lsp_complete.config import Settings
from lsp_complete.engine.draftmodel import DraftModel, pick
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.speculate import after_verdict, backed_off
from lsp_complete.service.startup import engine_options
from tests.engine.fake_backend import FakeBackend, encode
from tests.engine.harness import Harness
from tests.engine.test_speculate import ask, habitual_brain, speculator


def test_picking_by_temperature() -> None:
    logits = np.log(np.array([0.6, 0.3, 0.1], dtype=np.float32))
    random = np.random.default_rng(1)
    token, probability = pick(logits, 0.0, random)
    assert token == 0 and probability == pytest.approx(0.6)
    for temperature, expected in ((1.0, [0.6, 0.3, 0.1]), (0.5, [0.783, 0.196, 0.022])):
        drawn = [pick(logits, temperature, random) for _ in range(4000)]
        shares = [sum(t == n for t, _ in drawn) / 4000 for n in range(3)]
        assert shares == pytest.approx(expected, abs=0.03)
        assert {round(p, 3) for t, p in drawn if t == 1} == {0.3}, "what it says is its own probability, not the warm one"


def test_a_draft_that_is_never_sure_enough_proposes_nothing() -> None:
    assert DraftModel(FakeBackend(brain=habitual_brain), lambda: 0.0, least=0.0).after(encode("abc"), 4)
    assert DraftModel(FakeBackend(brain=habitual_brain), lambda: 0.0, least=1.01).after(encode("abc"), 4) == []


def test_a_warm_draft_is_the_same_from_run_to_run_and_changes_no_text() -> None:
    request = ask("some text", max_tokens=40)
    truth = Harness(FakeBackend(brain=habitual_brain)).complete(replace(request, speculate=False)).candidates[0]
    drafted = []
    for _ in range(2):
        model = DraftModel(FakeBackend(brain=habitual_brain), lambda: 0.0, temperature=0.6, least=0.0)
        spec = speculator(model=model, store_limit=0, back_off=1)
        spec.kinds = ("model",)
        h = Harness(FakeBackend(brain=habitual_brain), proposer=spec)
        assert h.complete(request).candidates[0] == truth
        drafted.append((h.state.counters.drafted, h.state.counters.accepted))
    assert drafted[0] == drafted[1] and drafted[0][0] > drafted[0][1] > 0


def test_half_as_many_after_so_many_rejections_and_all_again_once_one_is_right() -> None:
    assert [backed_off(8, rejected, 2) for rejected in range(9)] == [8, 8, 4, 4, 2, 2, 1, 1, 1]
    assert backed_off(8, 100, 0) == 8 and backed_off(7, 10_000, 1) == 1
    rejected = 0
    for proposed, accepted, expected in ((4, 0, 1), (4, 0, 2), (4, 2, 2), (4, 4, 0), (1, 0, 1)):
        rejected = after_verdict(rejected, proposed, accepted)
        assert rejected == expected


def test_the_speculator_backs_off_within_a_request() -> None:
    model = DraftModel(FakeBackend(brain=habitual_brain), lambda: 0.0, least=0.0)
    spec = speculator(model=model, store_limit=0, back_off=1)
    spec.kinds = ("model",)
    for _ in range(60):
        spec.adaptive.observe("model", 9, 9)
    request = ask("some text")
    lengths = []
    for _ in range(3):
        proposed = spec.propose(request.prompt, [], request, 6)
        lengths.append(len(proposed))
        spec.observe(request, len(proposed), 0)
        for _ in range(60):
            spec.adaptive.observe("model", 9, 9)
    assert lengths == [6, 3, 1]
    fresh = ask("some text")
    assert len(spec.propose(fresh.prompt, [], fresh, 6)) == 6, "another request begins anew"


def test_what_the_draft_says_along_a_text() -> None:
    backend = FakeBackend(context=512, brain=habitual_brain)
    model = DraftModel(backend, lambda: 0.0)
    prompt, text = encode("some text"), encode("and what the target wrote behind it, forty tokens or so")
    along = [row.copy() for row in model.along(prompt, text)]
    assert len(along) == len(text)
    apart = DraftModel(FakeBackend(context=512, brain=habitual_brain), lambda: 0.0, least=0.0)
    for n in (0, 1, 16, 17, len(text) - 1):
        assert apart.after([*prompt, *text[:n]], 1) == [int(np.argmax(along[n]))]
    assert list(model.along(prompt, encode("x" * 600))) == [] and list(model.along((), text)) == []


def test_settings_reach_the_engine(tmp_path) -> None:  # type: ignore[no-untyped-def]
    made = Settings.model_validate(
        {"engine": {"draft_tokens": 10, "draft_temperature": 30, "draft_least": 55, "draft_back_off": 2, "disk_cache_mb": 0}}
    )
    options = engine_options(made, tmp_path / "m.gguf")
    assert (options.speculative_tokens, options.draft_temperature, options.draft_least, options.draft_back_off) == (10, 0.3, 0.55, 2)
    default = engine_options(Settings(), tmp_path / "m.gguf")
    plain = EngineOptions("m.gguf")
    for name in ("speculative_tokens", "draft_temperature", "draft_least", "draft_back_off"):
        assert getattr(default, name) == getattr(plain, name), name
    for wrong in ({"draft_temperature": 3.0}, {"draft_least": -0.1}, {"draft_back_off": 65}):
        with pytest.raises(ValueError, match="draft_"):
            EngineOptions("m.gguf", **wrong)  # type: ignore[arg-type]
