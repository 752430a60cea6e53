"""Speculation changes speed only; what each source proposes; bounds of memory."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.engine.adaptive import PRIORS
from lsp_complete.engine.api import CompletionRequest, StopRules
from lsp_complete.engine.backend import Floats
from lsp_complete.engine.batchcost import BatchCost
from lsp_complete.engine.draftmodel import SPARE_TOKENS, DraftModel, draft_problem
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.speculate import HEADS, LOOKUPS, SEATS, Speculator, from_drafts
from lsp_complete.errors import ModelError
from tests.engine.fake_backend import EOG, SIZE, SPECIAL, FakeBackend, FakeVocab, encode, noisy_brain
from tests.engine.harness import Harness

FREE = StopRules("free")


def habitual_brain(ids: list[int], last: str) -> Floats:
    """Mostly a function of the last token, so that the output repeats itself; a little of the chain notices wrong KV."""
    rng = np.random.default_rng(ids[-1])
    logits = 3.0 * rng.normal(size=SIZE).astype(np.float32)
    logits[:32] -= 20.0
    logits[127:256] -= 20.0
    logits[EOG:] -= 40.0
    return logits + np.float32(0.2) * noisy_brain(ids, last)


def speculator(**options: object) -> Speculator:
    return Speculator(FakeVocab(), SIZE, **options)  # type: ignore[arg-type]


def sure(**options: object) -> Speculator:
    """One that has seen every kind succeed, so that it proposes as much as it may."""
    spec = speculator(**options)
    for kind in PRIORS:
        for _ in range(60):
            spec.adaptive.observe(kind, 9, 9)
    return spec


def ask(text: str, **rest: object) -> CompletionRequest:
    values: dict[str, object] = {"max_tokens": 40, "stop": FREE, **rest}
    return CompletionRequest(encode(text), **values)  # type: ignore[arg-type]


class Watched(Speculator):
    """Remembers whether anything was proposed that never may be, and how often something was."""

    proposals = 0

    def propose(self, context, generated, request, limit):  # type: ignore[no-untyped-def]
        found = super().propose(context, generated, request, limit)
        assert len(found) <= limit and not any(self.special[t] for t in found)
        self.proposals += bool(found)
        return found


texts = st.text(alphabet="abxy .=\n", min_size=1, max_size=60)
tokens = st.lists(st.integers(0, SIZE - 1), max_size=30).map(tuple)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=texts, forced=st.sampled_from([b"", b"re", b"    ", b"el"]), temperature=st.sampled_from([0.0, 0.7]),
    seed=st.integers(0, 9), mode=st.sampled_from(["line", "free", "block"]), lookup=tokens,
    drafts=st.lists(tokens, max_size=2).map(tuple), middle=st.booleans(), learned=tokens,
)  # fmt: skip
def test_speculative_is_plain(  # type: ignore[no-untyped-def]
    text, forced, temperature, seed, mode, lookup, drafts, middle, learned
) -> None:
    prompt = (*encode(text), SPECIAL, *encode(text[: len(text) // 2])) if middle else encode(text)
    request = CompletionRequest(
        prompt, forced=forced, temperature=temperature, seed=seed, stop=StopRules(mode), lookup=lookup, drafts=drafts,
        max_tokens=40,
    )  # fmt: skip
    plain = Harness(FakeBackend(brain=habitual_brain)).complete(replace(request, speculate=False))
    watched = Watched(FakeVocab(), SIZE)
    assert watched.store is not None
    watched.store.add(learned)
    fast = Harness(FakeBackend(brain=habitual_brain), proposer=watched).complete(request)
    assert fast.candidates[0] == plain.candidates[0]
    assert plain.timing.drafted == 0 and fast.timing.accepted <= fast.timing.drafted


@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_a_text_that_repeats_itself_needs_fewer_steps(temperature: float) -> None:
    plain = Harness(FakeBackend(brain=habitual_brain))
    fast = Harness(FakeBackend(brain=habitual_brain))
    for seed in range(6):
        request = ask("x = foo\n" * 3 + str(seed), max_tokens=60, temperature=temperature, seed=seed)
        a = plain.complete(replace(request, speculate=False))
        b = fast.complete(request)
        assert a.candidates[0] == b.candidates[0]
    assert plain.state.counters.drafted == 0 < fast.state.counters.accepted
    assert len(fast.backend.batches) < len(plain.backend.batches)


def test_noise_is_hardly_ever_speculated_on() -> None:
    """Random text: after a few failures only probes are left."""
    spec = Watched(FakeVocab(), SIZE)
    h = Harness(FakeBackend(context=4096), proposer=spec)
    for n in range(40):
        h.complete(ask(f"{n}ab ab ab", max_tokens=48))
    assert h.state.counters.drafted < 0.05 * h.state.counters.decoded
    decoding = [batch[0] for batch in h.backend.batches if batch[0].outputs == len(batch[0].tokens)]
    cost = sum(spec.cost.ratio(len(segment.tokens)) for segment in decoding)
    plain = h.state.counters.decoded - 40  # a request's first token comes with its prompt
    assert cost < 1.03 * plain, f"slower than plain by more than 3 %, learning included: {cost} {plain}"


def test_many_requests_at_once_and_a_memory_that_cannot_go_back() -> None:
    for backend in (FakeBackend(context=4096, brain=habitual_brain), FakeBackend(can_drop_tail=False)):
        h = Harness(backend)
        requests = [ask(f"{n} x.y x.y x.y", key=str(n), max_tokens=24) for n in range(4)]
        jobs = [h.add(r) for r in requests]
        h.run()
        for job, request in zip(jobs, requests, strict=True):
            got = h.results[job.id]
            assert not isinstance(got, BaseException)
            alone = Harness(
                FakeBackend(context=4096, brain=backend.brain, can_drop_tail=backend.info.can_drop_tail)
            )
            assert got.candidates[0] == alone.complete(replace(request, speculate=False)).candidates[0]


def test_zero_turns_it_off() -> None:
    h = Harness(FakeBackend(brain=habitual_brain), speculative_tokens=0)
    h.complete(ask("x = foo\n" * 5, max_tokens=60, drafts=(encode("foo"),)))
    assert h.state.counters.drafted == 0


def test_an_abort_between_proposal_and_answer_changes_nothing() -> None:
    request = ask("x = foo\n" * 5, max_tokens=40)
    plain = Harness(FakeBackend(brain=habitual_brain)).complete(replace(request, speculate=False))
    h = Harness(FakeBackend(brain=habitual_brain))
    job = h.add(request)
    rng = random.Random(3)
    while job.id not in h.results:
        h.step(lambda step: h.backend.abort() if rng.random() < 0.3 else None)
    got = h.results[job.id]
    assert not isinstance(got, BaseException) and got.candidates == plain.candidates


def test_n_grams_are_keyed_on_the_text_before_the_cursor() -> None:
    spec = sure()
    head = (SPECIAL, *encode("value = compute(1)"), SPECIAL, *encode("tail"), SPECIAL)
    request = CompletionRequest((*head, *encode("value = com")), stop=FREE)
    assert bytes(spec.propose(request.prompt, [], request, 5)) == b"pute("
    assert spec.propose(request.prompt, list(encode("!?")), request, 5) == []
    crossing = CompletionRequest((*head, *encode("l")), stop=FREE)  # "tail" + MID + "l" is no key
    assert spec.propose(crossing.prompt, [], crossing, 5) == []


def test_what_was_generated_extends_the_key_and_is_found_again() -> None:
    spec = sure()
    request = CompletionRequest((SPECIAL, *encode("a")), stop=FREE)
    spec.propose(request.prompt, list(encode("qwerty1 qwe")), request, 3)
    assert bytes(spec.propose(request.prompt, list(encode("qwerty1 qwe")), request, 3)) == b"rty"
    # another output under the same request object: the seat begins again
    assert spec.propose(request.prompt, list(encode("zz")), request, 3) == []


def test_the_lookup_and_the_store_serve_where_the_prompt_does_not() -> None:
    spec = sure()
    request = CompletionRequest(encode("self.con"), lookup=encode("self.connect()"), stop=FREE)
    assert bytes(spec.propose(request.prompt, [], request, 4)) == b"nect"
    assert spec.store is not None
    spec.store.add(encode("my.object"))
    stored = CompletionRequest(encode("my.ob"), stop=FREE)
    assert bytes(spec.propose(stored.prompt, [], stored, 3)) == b"jec"
    spec.kinds = ("ngram",)
    assert spec.propose(stored.prompt, [], stored, 3) == []


def test_nothing_is_proposed_behind_the_line_end_where_it_stops_the_text() -> None:
    spec = sure()
    for mode, wanted in (("line", b"bc"), ("free", b"bc\nde")):
        request = CompletionRequest(encode("q"), drafts=(encode("abc\nde"),), stop=StopRules(mode))
        assert bytes(spec.propose(request.prompt, list(encode("a")), request, 9)) == wanted


def test_special_and_unknown_tokens_end_a_proposal() -> None:
    spec = sure()
    request = CompletionRequest(encode("q"), drafts=((97, 98, SPECIAL, 99), (120, SIZE + 5)), stop=FREE)
    assert spec.propose(request.prompt, [], request, 4) == [97, 98]
    assert spec.propose(request.prompt, [97, 98], request, 4) == []
    assert spec.propose(request.prompt, [120], request, 4) == []


@pytest.mark.parametrize(
    ("generated", "expected"),
    [
        ("", ("draft", "resu")),
        ("res", ("draft", "ult ")),
        ("the res", ("realigned", "ult ")),  # words typed in front
        ("ult", ("realigned", " = f")),  # the beginning typed away
        ("xx", ("draft", "")),
        ("x = f", ("realigned", "(x)")),  # three tokens decide
    ],
)
def test_a_draft_is_found_again_after_an_edit(generated: str, expected: tuple[str, str]) -> None:
    kind, tokens = from_drafts([encode("result = f(x)")], encode(generated), 4)
    assert (kind, bytes(tokens).decode()) == (expected[0], expected[1])


def test_the_nearest_place_in_the_draft_wins() -> None:
    draft = encode("a.b(1); a.b(2); a.b(3)")
    assert bytes(from_drafts([draft], encode("a.c(1); a.b("), 2)[1]) == b"2)"


def test_memory_is_bounded_and_heads_are_kept() -> None:
    spec = speculator(store_limit=200)
    kept: list[CompletionRequest] = []
    for n in range(100):
        head = encode(f"file {n} " * 20)
        for key in ("v", "va"):
            request = CompletionRequest((*head, SPECIAL, *encode(key)), stop=FREE)
            kept.append(request)
            spec.propose(request.prompt, [], request, 4)
    assert len(spec._heads) == HEADS and len(spec._seats) == SEATS
    assert spec.store is not None and 0 < len(spec.store) <= 200
    heads = list(spec._heads.values())
    again = CompletionRequest((*encode("file 99 " * 20), SPECIAL, *encode("val")), stop=FREE)
    spec.propose(again.prompt, [], again, 4)
    assert any(spec._heads[h] is heads[-1] for h in spec._heads), "typing must not index the head again"


def test_a_long_prompt_without_special_tokens_is_split_where_typing_does_not_move_the_cut() -> None:
    spec = speculator()
    text = "abcdefgh" * 400
    cuts = {spec._cut(encode(text + "x" * n)) for n in range(100)}
    assert len(cuts) <= 2 and all(len(text) - 800 < cut <= len(text) for cut in cuts)


class OtherVocab(FakeVocab):
    def __init__(self, token: int, piece: bytes) -> None:
        super().__init__()
        self._pieces[token] = piece


def test_a_draft_model_must_have_the_same_vocabulary() -> None:
    target = FakeVocab()
    assert draft_problem(target, SIZE, FakeVocab(), SIZE) == ""
    assert "entries" in draft_problem(target, SIZE, FakeVocab(), SIZE + SPARE_TOKENS + 1)
    assert "text" in draft_problem(target, SIZE, OtherVocab(97, b"?"), SIZE)
    assert "special" in draft_problem(target, SIZE, OtherVocab(SPECIAL, b"<s>"), SIZE)
    other = FakeVocab()
    other.is_eog = lambda token: token == SPECIAL  # type: ignore[method-assign]
    assert "ends" in draft_problem(target, SIZE, other, SIZE)


@pytest.mark.parametrize("brain", [habitual_brain, noisy_brain])
def test_a_draft_model_saves_steps_where_it_agrees_and_changes_nothing(brain) -> None:  # type: ignore[no-untyped-def]
    request = ask("some text", max_tokens=40)
    plain = Harness(FakeBackend(brain=habitual_brain))
    truth = plain.complete(replace(request, speculate=False)).candidates[0]
    spec = speculator(model=DraftModel(FakeBackend(brain=brain), clock=lambda: 0.0), store_limit=0)
    spec.kinds = ("model",)
    h = Harness(FakeBackend(brain=habitual_brain), proposer=spec)
    assert h.complete(request).candidates[0] == truth
    if brain is habitual_brain:
        assert h.state.counters.accepted > 0 and len(h.backend.batches) < len(plain.backend.batches)


def test_a_draft_model_keeps_what_both_share() -> None:
    backend = FakeBackend(brain=habitual_brain)
    model = DraftModel(backend, clock=lambda: 0.0)
    model.after(encode("abcdefgh"), 1)
    model.after(encode("abcdefXY"), 1)
    assert model.behind(encode("abcdefXYZ")) == 1
    assert [len(batch[0].tokens) for batch in backend.batches] == [8, 2]
    assert model.after(encode("a" * 600), 4) == []  # does not fit its context


async def test_the_engine_reports_what_speculation_did() -> None:
    engine = LocalEngine(
        EngineOptions("fake", context=512, slots=2, n_batch=64), lambda o: FakeBackend(brain=habitual_brain)
    )
    assert (await engine.complete(ask("x = foo\n" * 5, max_tokens=60))).timing.accepted > 0
    speculation = (await engine.stats())["speculation"]
    await engine.close()
    assert isinstance(speculation, dict) and json.loads(json.dumps(speculation)) == speculation
    assert set(speculation["batch_cost"]) == {"1", "2", "4", "8", "16"}
    assert sum(kind["accepted"] for kind in speculation["kinds"].values()) > 0


def test_a_look_up_text_is_indexed_once_under_its_key_and_found_again_without_its_tokens() -> None:
    spec = sure(store_limit=0)
    spec.kinds = ("lookup",)
    text = encode("alpha beta gamma delta")
    with_text = ask("xy beta", lookup=text, lookup_key="k")
    assert bytes(spec.propose(with_text.prompt, [], with_text, 4)) == b" gam"
    index = spec._lookups["k"]
    only_key = ask("zz beta", lookup_key="k")
    assert bytes(spec.propose(only_key.prompt, [], only_key, 4)) == b" gam"
    again = ask("yy beta", lookup=text, lookup_key="k")
    spec.propose(again.prompt, [], again, 4)
    assert spec._lookups == {"k": index}, "nothing is built again"
    unknown = ask("zz beta", lookup_key="other")
    assert spec.propose(unknown.prompt, [], unknown, 4) == []
    for n in range(LOOKUPS):
        one = ask("zz", lookup=text, lookup_key=str(n))
        spec.propose(one.prompt, [], one, 4)
    assert len(spec._lookups) == LOOKUPS and "k" not in spec._lookups
    assert spec.propose(only_key.prompt, [], replace(only_key, seed=1), 4) == []


async def test_the_engine_loads_a_draft_model_and_frees_it() -> None:
    made: list[FakeBackend] = []

    def factory(options: EngineOptions) -> FakeBackend:
        made.append(FakeBackend(context=min(512, options.context), slots=options.slots, brain=habitual_brain))
        return made[-1]

    options = EngineOptions("dir/big.gguf", context=512, slots=2, n_batch=64, draft_path="dir/small.gguf")
    engine = LocalEngine(options, factory)
    answer = await engine.complete(ask("some text", max_tokens=40))
    plain = Harness(FakeBackend(brain=habitual_brain)).complete(ask("some text", max_tokens=40, speculate=False))
    assert answer.candidates[0] == plain.candidates[0]
    await engine.close()
    assert len(made) == 2 and all(backend.closed for backend in made) and made[1].info.slots == 1
    assert len(made[1].batches) >= 5, "its costs are measured when it is loaded"


async def test_a_draft_model_that_does_not_fit_is_refused_with_the_reason() -> None:
    made: list[FakeBackend] = []

    def factory(options: EngineOptions) -> FakeBackend:
        made.append(FakeBackend())
        if options.model_path.endswith("other.gguf"):
            made[-1].vocab = OtherVocab(97, b"?")
        return made[-1]

    engine = LocalEngine(EngineOptions("big.gguf", draft_path="dir/other.gguf", n_batch=64), factory)
    with pytest.raises(ModelError, match=r"other\.gguf cannot be the draft model of big\.gguf\. Token 97 has another text"):
        await engine.info()
    await engine.close()
    assert len(made) == 2 and all(backend.closed for backend in made)
    off = LocalEngine(EngineOptions("big.gguf", draft_path="dir/other.gguf", n_batch=64, speculative_tokens=0), factory)
    assert (await off.info()).vocab_size == SIZE and len(made) == 3, "without speculation it is not even loaded"
    await off.close()


def test_a_draft_model_that_is_slow_or_far_behind_is_not_asked() -> None:
    """The target's step takes 10 ms. A proposed token of 9 ms never pays; one of 1 ms does, unless the prompt is too long to catch up."""
    for cost_ms, prefill_ms, asked in ((9.0, 0.0, False), (1.0, 0.0, True), (1.0, 50.0, False)):
        backend = FakeBackend(brain=habitual_brain)
        model = DraftModel(backend, clock=lambda: 0.0)
        spec = speculator(model=model, store_limit=0, cost=BatchCost(gpu=True))
        spec.kinds = ("model",)
        request = ask("some text that is long enough")
        model.cost_ms, model.prefill_ms = cost_ms, prefill_ms
        assert spec.propose(request.prompt, [], request, 6) == [], "before the target's step is known"
        spec.cost.step(1, 10.0)
        spec.propose(request.prompt, [], request, 6)
        assert bool(backend.batches) is asked
