"""The engine's core over the toy model: reuse equals cold, sharing, eviction, cancelling, candidates, speculation."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, Priority, StopRules
from lsp_complete.engine.backend import Floats, Status
from lsp_complete.engine.core import Step
from lsp_complete.engine.seating import unseat
from lsp_complete.engine.state import check_at_rest, clear_slot, integrity
from lsp_complete.errors import PromptCold, RequestFailed
from tests.engine.fake_backend import EOG, SIZE, SPECIAL, FakeBackend, FakeVocab, encode, scripted_brain
from tests.engine.harness import Harness, cold

FREE = StopRules("free")
TEXT = "def area(width, height):\n    return width * height\n\nprint(area(3, 4))\n" * 3


def ask(prompt: Sequence[int], **more: object) -> CompletionRequest:
    values: dict[str, object] = {"max_tokens": 12, "stop": FREE, "time_limit_ms": 1e9, **more}
    return CompletionRequest(tuple(prompt), **values)  # type: ignore[arg-type]


def test_a_prompt_that_grows_evaluates_only_what_is_new() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:100]), key="a"))
    c = h.complete(ask(encode(TEXT[:103]), key="a"))
    assert (c.timing.reused, c.timing.evaluated, c.timing.prompt) == (100, 3, 103)
    assert c.candidates[0].text == cold(ask(encode(TEXT[:103])))


def test_a_cold_prompt_is_refused_where_the_request_limits_evaluation() -> None:
    h = Harness()
    with pytest.raises(PromptCold):
        h.complete(ask(encode(TEXT[:100]), key="a", evaluate_limit=40))
    assert h.backend.batches == []
    h.complete(ask(encode(TEXT[:70]), key="a"))
    c = h.complete(ask(encode(TEXT[:100]), key="a", evaluate_limit=40))
    assert c.timing.evaluated == 30


def test_the_same_prompt_again_evaluates_nothing() -> None:
    h = Harness()
    first = h.complete(ask(encode(TEXT[:50])))
    batches = len(h.backend.batches)
    second = h.complete(ask(encode(TEXT[:50]), max_tokens=1))
    assert second.timing.evaluated == 0 and len(h.backend.batches) == batches
    assert second.candidates[0].tokens[0] == first.candidates[0].tokens[0]


def test_the_same_prompt_under_a_constraint_uses_the_kept_logits() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:50])))
    c = h.complete(ask(encode(TEXT[:50]), forced=b"se"))
    assert c.timing.evaluated == 0
    assert c.candidates[0].text == cold(ask(encode(TEXT[:50]), forced=b"se"))


def test_random_edits_give_the_text_of_a_cold_prompt() -> None:
    rng = random.Random(5)
    h = Harness(FakeBackend(context=700, slots=3), host_cache_bytes=1 << 16)
    texts = {key: TEXT[: rng.randrange(40, 120)] for key in "abcde"}
    for _ in range(150):
        key = rng.choice("abcde")
        text = texts[key]
        at = rng.randrange(len(text)) if rng.random() < 0.3 else len(text) - rng.randrange(4)
        text = text[:at] + rng.choice(["x", "self", "", TEXT[at : at + 60]])
        texts[key] = text = text[-200:] or "a"
        request = ask(
            encode(text),
            key=key,
            forced=rng.choice([b"", b"", b"re", b"  "]),
            temperature=rng.choice([0.0, 0.8]),
        )
        assert h.complete(request).candidates[0].text == cold(request)
    assert h.state.counters.reused > 0 and h.state.counters.restored > 0 and h.state.counters.shared > 0
    assert h.state.counters.reuse_faults == 0


def test_a_wrong_token_list_is_caught_before_reuse() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:60]), key="a"))
    slot = h.state.table.slots[0]
    del slot.tokens[-1:]  # the books now disagree with the KV
    request = ask(encode(TEXT[:64]), key="a")
    assert h.complete(request).candidates[0].text == cold(request)
    assert h.state.counters.reuse_faults == 1


def test_integrity_names_a_slot_whose_books_are_wrong() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:60])))
    h.state.table.slots[0].tokens.append(7)
    assert any("slot 0" in problem for problem in integrity(h.state))


def test_wrong_books_are_found_and_cleared_at_rest() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:60])))
    h.state.table.slots[0].tokens.append(7)
    check_at_rest(h.state)
    assert integrity(h.state) == [] and h.state.counters.integrity_faults == 1
    assert h.complete(ask(encode(TEXT[:61]))).candidates[0].text == cold(ask(encode(TEXT[:61])))


def test_a_position_that_is_missing_in_between_is_found_by_counting_cells() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:60])))
    slot = h.state.table.slots[0]
    del h.backend.kv[slot.seq][30]
    assert integrity(h.state) == []
    check_at_rest(h.state, count_cells=True)
    assert h.state.counters.integrity_faults == 1 and len(slot.tokens) == 0 and integrity(h.state, count_cells=True) == []
    assert h.complete(ask(encode(TEXT[:61]))).candidates[0].text == cold(ask(encode(TEXT[:61])))


def test_another_documents_prompt_is_shared_not_destroyed() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:150]), key="a"))
    c = h.complete(ask(encode(TEXT[:60] + "zzz"), key="b"))
    assert c.timing.reused == 60 and h.state.counters.shared == 60
    assert h.backend.used_cells() < sum(len(kv) for kv in h.backend.kv.values())
    assert h.complete(ask(encode(TEXT[:152]), key="a")).timing.evaluated == 2
    assert c.candidates[0].text == cold(ask(encode(TEXT[:60] + "zzz")))


def test_a_busy_slot_serves_its_prefix_to_another_request() -> None:
    h = Harness()
    first = h.add(ask(encode(TEXT[:100]), key="a", max_tokens=40))
    for _ in range(6):
        h.step()
    second = h.add(ask(encode(TEXT[:100] + "q"), key="a"))
    h.run()
    answer = h.results[second.id]
    assert isinstance(answer, Completion) and answer.timing.reused == 100
    assert answer.candidates[0].text == cold(ask(encode(TEXT[:100] + "q")))
    assert isinstance(h.results[first.id], Completion)


def test_evicted_prompts_come_back_from_host_memory() -> None:
    h = Harness(FakeBackend(context=512, slots=2))
    for key in "abc":
        h.complete(ask(encode(key + TEXT[:180]), key=key, max_tokens=2))
    c = h.complete(ask(encode("a" + TEXT[:181]), key="a"))
    assert c.timing.restored >= 180 and c.timing.evaluated <= 2
    assert c.candidates[0].text == cold(ask(encode("a" + TEXT[:181])))


def test_without_room_idle_slots_go_first() -> None:
    h = Harness(FakeBackend(context=320, slots=4), host_cache_bytes=0)
    for key in "abcd":
        c = h.complete(ask(encode(key + TEXT[:130]), key=key, max_tokens=2))
        assert c.candidates[0].text == cold(ask(encode(key + TEXT[:130]), max_tokens=2))
    assert h.state.counters.evicted >= 2


def test_running_jobs_that_do_not_fit_together_wait_for_each_other() -> None:
    h = Harness(FakeBackend(context=320, slots=4))
    requests = [ask(encode(key + TEXT[:150]), key=key, max_tokens=30) for key in "abc"]
    jobs = [h.add(r) for r in requests]
    h.run()
    for job, request in zip(jobs, requests, strict=True):
        answer = h.results[job.id]
        assert isinstance(answer, Completion) and answer.candidates[0].text == cold(request)
    assert h.state.counters.parked >= 1


def test_more_jobs_than_slots_all_end() -> None:
    h = Harness(FakeBackend(context=2048, slots=2))
    requests = [ask(encode(f"{n} {TEXT[:40]}"), key=str(n)) for n in range(9)]
    jobs = [h.add(r, client=str(n % 3)) for n, r in enumerate(requests)]
    h.run()
    for job, request in zip(jobs, requests, strict=True):
        answer = h.results[job.id]
        assert isinstance(answer, Completion) and answer.candidates[0].text == cold(request)


def test_an_interactive_request_takes_a_background_jobs_slot() -> None:
    h = Harness(FakeBackend(context=2048, slots=1))
    slow = h.add(ask(encode(TEXT), priority=Priority.BACKGROUND))
    h.step()
    quick = h.add(ask(encode("quick"), key="q"))
    while quick.id not in h.results:
        assert h.step() is not None
    assert slow.id not in h.results
    h.run()
    answer = h.results[slow.id]
    assert isinstance(answer, Completion) and answer.candidates[0].text == cold(ask(encode(TEXT)))


def test_who_gave_way_to_an_answer_that_was_at_hand_goes_on() -> None:
    """The one that took the slot is done before anything is evaluated: nothing else would wake the engine for the other."""
    h = Harness(FakeBackend(context=2048, slots=1))
    h.complete(ask(encode(TEXT[:60])))
    slow = h.add(ask(encode(TEXT), priority=Priority.BACKGROUND))
    h.step()
    quick = h.add(ask(encode(TEXT[:60]), max_tokens=1))
    h.run()
    assert isinstance(h.results[quick.id], Completion) and h.state.counters.parked == 1
    answer = h.results[slow.id]
    assert isinstance(answer, Completion) and answer.candidates[0].text == cold(ask(encode(TEXT)))


def test_a_cold_prompt_takes_no_slot_before_it_is_refused() -> None:
    h = Harness(FakeBackend(context=2048, slots=1))
    slow = h.add(ask(encode(TEXT), priority=Priority.BACKGROUND))
    h.step()
    cold_one = h.add(ask(encode("other " + TEXT), key="b", evaluate_limit=40))
    h.step()
    assert isinstance(h.results[cold_one.id], PromptCold) and h.state.counters.parked == 0
    h.run()
    assert isinstance(h.results[slow.id], Completion)


def test_work_that_has_aged_does_not_drive_urgent_work_out_of_the_kv() -> None:
    h = Harness(FakeBackend(context=320, slots=4))
    quick_one = ask(encode("q" + TEXT[:150]), key="q", max_tokens=60)
    slow_one = ask(encode("s" + TEXT[:200]), key="s", priority=Priority.BACKGROUND)
    quick = h.add(quick_one)
    while quick.prefilling:
        h.step()
    slow = h.add(slow_one)
    while quick.id not in h.results:
        h.step()
        assert not quick.parked
        h.now += 1.5
    assert h.state.counters.parked >= 1
    h.run()
    for job, request in ((quick, quick_one), (slow, slow_one)):
        answer = h.results[job.id]
        assert isinstance(answer, Completion) and answer.candidates[0].text == cold(request)


def test_a_prompt_that_is_evaluated_once_more_gets_on_under_aborts_too() -> None:
    """Its job has had its first token already, gave its slot up, and lost what it had evaluated."""
    h = Harness(FakeBackend(context=2048, ubatch=16))
    request = ask(encode(TEXT), max_tokens=8)
    job = h.add(request)
    while job.prefilling:
        h.step()
    slot = job.slot
    assert slot is not None
    unseat(h.state, job, parked=False)
    clear_slot(h.state, slot)

    def hit_long_ones(step: Step) -> None:
        h.backend.before_ubatch = (lambda n: h.backend.abort()) if step.tokens > 8 else (lambda n: None)

    for _ in range(200):
        if h.step(hit_long_ones) is None:
            break
    answer = h.results[job.id]
    assert isinstance(answer, Completion) and answer.candidates[0].text == cold(request)


@pytest.mark.parametrize("gone", ["cancelled", "expired"])
def test_a_job_that_nobody_wants_stops_in_mid_prefill(gone: str) -> None:
    h = Harness()
    job = h.add(ask(encode(TEXT), key="a"))

    def stop(step: Step) -> None:
        setattr(job, gone, True)
        h.backend.before_ubatch = lambda n: h.backend.abort() if n == 2 else None

    h.step(stop)
    h.backend.before_ubatch = lambda n: None
    h.run()
    assert h.state.counters.aborted == 1
    assert h.backend.pos_max(0) == 31  # two micro-batches of 16 stayed
    if gone == "cancelled":
        assert job.id not in h.results
    else:
        answer = h.results[job.id]
        assert isinstance(answer, Completion) and answer.candidates[0].stop == "time"
    c = h.complete(ask(encode(TEXT), key="a"))
    assert c.timing.reused == 32 and c.candidates[0].text == cold(ask(encode(TEXT)))


def test_an_aborted_chunk_is_halved_and_the_prefill_still_ends() -> None:
    h = Harness(FakeBackend(ubatch=16), idle_chunk=64)
    job = h.add(ask(encode(TEXT), priority=Priority.BACKGROUND))
    aborts = 0

    def hit_long_ones(step: Step) -> None:
        nonlocal aborts
        if step.tokens > 8:
            aborts += 1
            h.backend.before_ubatch = lambda n: h.backend.abort()
        else:
            h.backend.before_ubatch = lambda n: None

    while job.id not in h.results:
        assert h.step(hit_long_ones) is not None
    answer = h.results[job.id]
    assert aborts > 3 and isinstance(answer, Completion)
    assert answer.candidates[0].text == cold(ask(encode(TEXT)))


def test_a_background_prefill_ends_during_continuous_typing() -> None:
    h = Harness(FakeBackend(context=4096, ubatch=1), base_ms=13.0, token_ms=4.0)
    prompt = encode(TEXT)
    slow = h.add(ask(encode(TEXT[::-1]), key="slow", priority=Priority.BACKGROUND, max_tokens=0))
    h.step()
    next_key, keys, worst = 0.0, 0, 0.0
    while slow.id not in h.results:
        assert keys < 400, "the background prompt starves"
        if h.now >= next_key:
            keys += 1
            next_key = h.now + 0.092
            typed = h.add(ask(prompt[: 60 + keys % 100], key="typed", max_tokens=2))
            while typed.id not in h.results:
                h.step()
            answer = h.results[typed.id]
            assert isinstance(answer, Completion)
            worst = max(worst, answer.timing.total_ms)
            continue

        def key_comes(step: Step, due: float = next_key) -> None:
            """The next key aborts a background step that would last beyond it."""
            left = (due - h.now) * 1e3
            lasts = int(left // h.token_ms)
            slow_step = step.plan.priority is Priority.BACKGROUND and not step.plan.aged and step.tokens > 4
            h.backend.before_ubatch = lambda n: h.backend.abort() if slow_step and n >= lasts else None

        if h.step(key_comes) is None:
            h.now = next_key
        h.backend.before_ubatch = lambda n: None
    assert h.state.counters.aborted > 0 and worst < 1000.0


def test_an_abort_in_a_shared_decode_step_changes_no_text() -> None:
    h = Harness(FakeBackend(context=2048, ubatch=1))
    requests = [ask(encode(f"{n}{TEXT[:30]}"), key=str(n), max_tokens=10) for n in range(3)]
    jobs = [h.add(r) for r in requests]
    for turn in range(40):
        h.backend.before_ubatch = (
            (lambda n: h.backend.abort() if n == 1 else None) if turn % 3 == 0 else lambda n: None
        )
        if h.step() is None:
            break
    h.backend.before_ubatch = lambda n: None
    h.run()
    for job, request in zip(jobs, requests, strict=True):
        answer = h.results[job.id]
        assert isinstance(answer, Completion) and answer.candidates[0].text == cold(request)
    assert h.state.counters.aborted > 2


def test_a_failed_step_fails_its_jobs_only() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:40]), key="a"))
    job = h.add(ask(encode(TEXT[:50]), key="a"))
    h.backend.fail_next = Status.FAILED
    h.step()
    assert isinstance(h.results[job.id], RequestFailed)
    assert h.complete(ask(encode(TEXT[:50]), key="a")).candidates[0].text == cold(ask(encode(TEXT[:50])))


@pytest.mark.parametrize(
    "prompt, words",
    [
        ((), "empty"),
        (encode(TEXT * 9), "tokens but the engine's context holds"),
        ((5, 10_000), "outside"),
        ((-1,), "outside"),
    ],
)
def test_requests_that_can_never_run_are_refused_with_a_reason(prompt: tuple[int, ...], words: str) -> None:
    with pytest.raises(RequestFailed, match=words):
        Harness().complete(ask(prompt))


def test_time_is_up_before_and_during_decoding() -> None:
    h = Harness()
    late = h.complete(ask(encode(TEXT[:40]), time_limit_ms=0.0))
    assert late.candidates == (Candidate(b"", stop="time"),)
    short = h.complete(ask(encode(TEXT[:40]), time_limit_ms=45.0, max_tokens=100))
    assert short.candidates[0].stop == "time" and 1 <= len(short.candidates[0].tokens) <= 8
    assert cold(ask(encode(TEXT[:40]), max_tokens=100)).startswith(short.candidates[0].text)


def test_prefill_only_evaluates_the_prompt_and_says_nothing() -> None:
    h = Harness()
    c = h.complete(ask(encode(TEXT[:90]), max_tokens=0, priority=Priority.BACKGROUND))
    assert c.candidates == () and c.timing.evaluated == 90
    assert h.complete(ask(encode(TEXT[:90]), max_tokens=0)).timing.evaluated == 0
    assert h.complete(ask(encode(TEXT[:90]))).timing.evaluated == 1


def test_output_is_limited_by_the_context() -> None:
    h = Harness(FakeBackend(context=64))
    c = h.complete(ask(encode(TEXT[:60]), max_tokens=50))
    assert len(c.candidates[0].tokens) <= 4 and c.candidates[0].stop in ("tokens", "eog")


def test_end_tokens_and_other_special_tokens_end_the_text() -> None:
    for last in (EOG, SPECIAL):
        text = "x = 1"
        brain = scripted_brain(text, 10)

        def say(ids: list[int], chain: str, brain=brain, last=last):  # type: ignore[no-untyped-def]
            logits = brain(ids, chain)
            logits[EOG], logits[last] = logits[last], logits[EOG]
            return logits

        c = Harness(FakeBackend(brain=say)).complete(ask(encode("0123456789"), max_tokens=40))
        assert (c.candidates[0].text, c.candidates[0].stop) == (b"x = 1", "eog")


def test_the_output_begins_with_the_forced_bytes() -> None:
    brain = scripted_brain("return x\n", 10)
    h = Harness(FakeBackend(brain=brain))
    c = h.complete(ask(encode("0123456789"), forced=b"ret", stop=StopRules("line"))).candidates[0]
    assert (c.text, c.stop) == (b"urn x", "line")
    assert c.offsets == (0, 0, 0, 1, 2, 3, 4, 5)
    assert len(c.tokens) == len(c.logprobs) == len(c.masses) == len(c.offsets)
    assert all(0.0 <= m <= 1.0 for m in c.masses) and all(p <= 0.0 for p in c.logprobs)


def test_deltas_add_up_to_the_text() -> None:
    h = Harness(FakeBackend(brain=scripted_brain("foo(1)\n", 10)))
    job = h.add(ask(encode("0123456789"), stop=StopRules("line")))
    h.run()
    assert h.shown[job.id] == b"foo(1)"


def test_candidates_branch_on_the_most_probable_first_tokens() -> None:
    h = Harness()
    request = ask(encode(TEXT[:70]), candidates=4, max_tokens=6)
    c = h.complete(request)
    firsts = [x.tokens[0] for x in c.candidates]
    assert len(c.candidates) == 4 and len(set(firsts)) == 4
    greedy = cold(ask(encode(TEXT[:70]), max_tokens=6))
    assert greedy in [x.text for x in c.candidates]
    for x in c.candidates:  # each one is what a cold prompt with that first token goes on with
        rest = cold(ask([*encode(TEXT[:70]), x.tokens[0]], max_tokens=5))
        assert x.text == h.backend.vocab.piece(x.tokens[0]) + rest
    means = [sum(x.logprobs) / len(x.logprobs) for x in c.candidates]
    assert means == sorted(means, reverse=True)


def test_candidates_decode_in_one_batch() -> None:
    h = Harness()
    h.complete(ask(encode(TEXT[:70]), candidates=3, max_tokens=6))
    assert max(len(batch) for batch in h.backend.batches) == 3


def test_several_requests_decode_in_one_batch() -> None:
    h = Harness(FakeBackend(context=2048))
    for n in range(3):
        h.add(ask(encode(f"{n}{TEXT[:20]}"), key=str(n)))
    h.run()
    assert max(len(batch) for batch in h.backend.batches) == 3


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_good_draft_saves_steps_and_a_bad_one_changes_nothing(temperature: float) -> None:
    request = ask(encode(TEXT[:70]), max_tokens=20, temperature=temperature, seed=3, forced=b"re")
    plain = Harness()
    truth = plain.complete(request).candidates[0]
    for damage in (None, 0, 1, 7, 19):
        draft = list(truth.tokens)
        if damage is not None and damage < len(draft):
            draft[damage] = (draft[damage] + 1) % 256
        h = Harness()
        c = h.complete(ask(request.prompt, **{**_rest(request), "drafts": (tuple(draft),)}))
        assert c.candidates[0].tokens == truth.tokens
        if damage is None:
            assert c.timing.accepted == c.timing.drafted > 0
            assert len(h.backend.batches) < len(plain.backend.batches)


def _rest(r: CompletionRequest) -> dict[str, object]:
    return {"max_tokens": r.max_tokens, "temperature": r.temperature, "seed": r.seed, "forced": r.forced}


def test_any_proposer_changes_speed_only() -> None:
    class Wild:
        def __init__(self) -> None:
            self.rng = random.Random(1)
            self.seen = 0

        def propose(self, context, generated, request, limit):  # type: ignore[no-untyped-def]
            return [self.rng.randrange(256) for _ in range(limit)]

        def observe(self, request, proposed, accepted) -> None:  # type: ignore[no-untyped-def]
            self.seen += proposed

    wild = Wild()
    h = Harness(proposer=wild)
    request = ask(encode(TEXT[:70]), max_tokens=20)
    assert h.complete(request).candidates[0].text == cold(request)
    assert wild.seen == h.state.counters.drafted > 0


def test_a_model_that_cannot_drop_tails_is_slower_but_right() -> None:
    backend = FakeBackend(context=1024, can_drop_tail=False)
    h = Harness(backend)
    for length in (60, 62, 62, 50, 63):
        request = ask(encode(TEXT[:length]), key="a", drafts=(encode("x = 1"),), candidates=2)
        assert h.complete(request).candidates[0].text == cold(
            ask(encode(TEXT[:length])), FakeBackend(context=4096, can_drop_tail=False)
        )
    assert h.state.counters.restored > 0  # a checkpoint at an earlier prompt's end


def test_cancelled_jobs_leave_the_queue_and_their_scratch_sequences() -> None:
    h = Harness(FakeBackend(slots=1))
    jobs = [h.add(ask(encode(TEXT[:50]), candidates=4)) for _ in range(3)]
    for _ in range(4):
        h.step()
    for job in jobs:
        job.cancelled = True
    h.run()
    assert h.results == {} and h.state.counters.cancelled == 3


def test_a_first_line_that_became_unlikely_is_not_decoded_further() -> None:
    h = Harness()
    free = h.complete(ask(encode(TEXT[:60]), max_tokens=8)).candidates[0]
    assert len(free.tokens) == 8
    floor = sum(free.logprobs[:3]) - 1e-6
    assert sum(free.logprobs[:4]) < floor
    c = h.complete(ask(encode(TEXT[:60]), max_tokens=8, stop=StopRules("free", min_sum=floor))).candidates[0]
    assert c.stop == "unsure" and c.tokens == free.tokens[:4]


@pytest.mark.parametrize("draft", [(), encode("ret"), encode("return self"), encode("other")])
def test_a_forced_text_alone_ends_with_it_and_says_how_likely_it_was(draft: tuple[int, ...]) -> None:
    """The product of the masses is that of what was allowed step by step, however it was verified."""
    h, forced = Harness(), b"return self"
    asked = ask(encode(TEXT[:60]), forced=forced, max_tokens=40, stop=StopRules("free", forced_only=True), drafts=(draft,) if draft else ())
    c = h.complete(asked).candidates[0]
    plain = Harness().complete(ask(encode(TEXT[:60]), forced=forced, max_tokens=40, stop=StopRules("free"), speculate=False)).candidates[0]
    assert c.stop == "forced" and b"".join(FakeVocab().piece(t) for t in c.tokens).startswith(forced)
    n = len(c.tokens)
    assert n < len(plain.tokens) and c.tokens == plain.tokens[:n] and c.masses == plain.masses[:n]
    assert 0.0 < math.prod(c.masses) < 1.0


class SlowBackend(FakeBackend):
    """Takes 30 ms a step and 3 ms a token, on the harness's clock."""

    harness: Harness | None = None

    def decode(self, segments):  # type: ignore[no-untyped-def]
        assert self.harness is not None
        self.harness.now += 0.030 + 0.003 * sum(len(s.tokens) for s in segments)
        return super().decode(segments)


def test_work_ahead_leaves_the_processor_alone_within_its_second() -> None:
    """By the engine's own figures: what was asked ahead stops at its limit, and then nothing is evaluated."""
    backend = SlowBackend()
    h = Harness(backend, token_ms=0.0)
    backend.harness = h
    h.complete(ask(encode(TEXT[:60]), key="a"))
    answered, busy = h.now, h.state.counters.busy_ms
    job = h.add(ask(encode(TEXT[:60] + "area"), key="a", priority=Priority.PREFETCH, max_tokens=400, time_limit_ms=900.0))
    h.run()
    result = h.results[job.id]
    assert isinstance(result, Completion) and result.candidates[0].stop in ("time", "eog")
    assert h.now - answered <= 1.0
    assert h.state.counters.busy_ms - busy <= 1000.0 and h.state.counters.busy_ms > busy
    steps = h.state.counters.steps
    h.now += 3600
    assert h.step() is None and h.state.counters.steps == steps


def test_a_text_that_may_not_begin_with_a_line_end_takes_the_next_best() -> None:
    def brain(ids: list[int], last: str) -> Floats:
        logits = np.zeros(SIZE, dtype=np.float32)
        logits[10] = 12.0
        logits[ord(" ") if ids[-1] == ord("=") else ord("x")] = 10.0
        return logits

    plain = ask(encode("a ="), stop=StopRules("line"))
    assert Harness(FakeBackend(brain=brain)).complete(plain).candidates[0].text == b""
    wanted = ask(encode("a ="), stop=StopRules("line", no_blank=True))
    found = Harness(FakeBackend(brain=brain)).complete(wanted).candidates[0]
    assert (found.text, found.stop) == (b" x", "line")  # the line end counts again once something is there
    assert found.logprobs[0] < -2.0 and found.logprobs[1] < -2.0
    healed = ask(encode("a ="), forced=b"  ", stop=StopRules("line", no_blank=True))
    assert Harness(FakeBackend(brain=brain)).complete(healed).candidates[0].text == b"x"
