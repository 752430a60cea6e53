"""Saved prompts where the KV is full: room is made for them, and none is lost for want of room."""

from __future__ import annotations

import numpy as np

from lsp_complete.engine.api import Completion
from tests.engine.fake_backend import FakeBackend, encode
from tests.engine.harness import Harness, cold
from tests.engine.test_core import TEXT, ask


def prompt_of(key: str, more: str = "") -> tuple[int, ...]:
    return encode(key + TEXT[:180] + more)


def after_eviction() -> Harness:
    """`a` lost its slot to `b` and `c`, which fill the KV; a third and a fourth slot are empty or nearly so."""
    h = Harness(FakeBackend(context=512, slots=4))
    for key in "abc":
        h.complete(ask(prompt_of(key), key=key, max_tokens=2))
    assert h.state.counters.evicted == 1 and len(h.state.cache) == 1
    return h


def test_a_full_kv_makes_room_for_a_saved_prompt() -> None:
    h = after_eviction()
    again = ask(prompt_of("a", "x"), key="a")
    answer = h.complete(again)
    assert answer.timing.restored >= 180 and answer.timing.evaluated <= 2
    assert answer.candidates[0].text == cold(again)
    assert h.backend.used_cells() <= 512 and h.state.counters.evicted == 2
    assert h.complete(ask(prompt_of("b", "x"), key="b")).timing.restored >= 180  # what gave way was saved


def test_a_saved_prompt_is_not_lost_because_running_work_fills_the_kv() -> None:
    h = after_eviction()
    big = h.add(ask(encode("big " + TEXT * 2)[:400], key="big", max_tokens=30))
    while big.prefilling:
        h.step()
    again = ask(prompt_of("a", "x"), key="a")
    waiting = h.add(again)
    h.step()
    assert h.backend.loads == 1 and waiting.restored == 0
    assert h.state.cache.find(np.array(again.prompt, dtype=np.int32), 180) is not None
    h.run()
    answer = h.results[waiting.id]
    assert isinstance(answer, Completion) and answer.candidates[0].text == cold(again)


def test_a_state_that_is_refused_although_there_is_room_is_forgotten() -> None:
    h = Harness(FakeBackend(context=1024, slots=4))
    h.state.cache.put(np.array(prompt_of("a"), dtype=np.int32), bytearray(b"not json"))
    request = ask(prompt_of("a", "x"), key="a")
    assert h.complete(request).candidates[0].text == cold(request)
    assert len(h.state.cache) == 0 and h.state.counters.evicted == 0


def test_a_source_that_gives_way_to_a_restore_that_fails_is_not_shared_from() -> None:
    h = after_eviction()
    text = "b" + TEXT[:60] + "zz" + TEXT[:100]
    h.state.cache.put(np.array(encode(text), dtype=np.int32), bytearray(b"not json"))
    request = ask(encode(text + "x"), key="new")
    seat = h.state.table.seat(np.array(request.prompt, dtype=np.int32), "new")
    assert seat is not None and seat.source is not None and seat.reuse == 61
    assert h.complete(request).candidates[0].text == cold(request)
    assert h.state.counters.reuse_faults == 0 and h.state.counters.evicted == 3
