"""Models whose memory is no plain KV: recurrent ones (a state, no tail can be dropped) and sliding windows, through llama.cpp itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lsp_complete.engine import llama
from lsp_complete.engine.api import CompletionRequest, StopRules
from lsp_complete.engine.backend import Segment, Status
from lsp_complete.engine.commit import commit_aborted
from lsp_complete.engine.core import prepare
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.slots import Slot, check_integrity, reaches_back
from lsp_complete.engine.state import UNDIVIDED
from tests.engine.fake_backend import FakeBackend, encode
from tests.engine.harness import Harness, cold
from tests.engine.test_core import TEXT, ask
from tests.engine.tiny_model import write_recurrent_model, write_sliding_model

WINDOW = 32


def options(path: Path, slots: int, **more: object) -> EngineOptions:
    return EngineOptions(str(path), slots=slots, context=1024, threads=1, remeasure_threads=False, **more)  # type: ignore[arg-type]


def texts(rng: random.Random, rounds: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A few documents that grow, shrink and change: (name, tokens)."""
    documents = {str(n): [rng.randrange(256) for _ in range(300)] for n in range(4)}
    for _ in range(rounds):
        name = rng.choice(list(documents))
        tokens = documents[name]
        turn = rng.random()
        if turn < 0.3:
            del tokens[len(tokens) - rng.randrange(1, 60) :]
        elif turn < 0.4:
            tokens[len(tokens) // 2] = rng.randrange(256)
        tokens += [rng.randrange(256) for _ in range(rng.randrange(1, 20))]
        del tokens[: max(0, len(tokens) - 420)]
        yield name, tuple(tokens)


async def compared(path: Path, rounds: int = 30) -> dict[str, int]:
    """Random documents in an engine that reuses, each compared with a cold prompt; the engine's counters."""
    rng = random.Random(1)
    engine, plain = LocalEngine(options(path, 3)), LocalEngine(options(path, 1, host_cache_bytes=0))
    for name, tokens in texts(rng, rounds):
        request = CompletionRequest(tokens, key=name, max_tokens=6, stop=StopRules("free"), time_limit_ms=60_000)
        other = CompletionRequest((rng.randrange(256),), key="other", max_tokens=0, time_limit_ms=60_000)
        got = await engine.complete(request)
        await plain.complete(other)
        assert got.candidates[0].tokens == (await plain.complete(request)).candidates[0].tokens
    counters = (await engine.stats())["counters"]
    await engine.close()
    await plain.close()
    assert isinstance(counters, dict)
    return counters


@pytest.mark.parametrize(("write", "window"), [(write_recurrent_model, 1), (write_sliding_model, WINDOW)])
def test_what_a_memory_holds_is_detected(tmp_path: Path, write: Callable[[Path], Path], window: int) -> None:
    backend = llama.load(options(write(tmp_path / "model.gguf"), 2))
    try:
        assert (backend.info.window, backend.info.can_drop_tail) == (window, window > 1)
    finally:
        backend.close()


async def test_a_recurrent_model_continues_its_prompts_and_says_what_a_cold_one_says(tmp_path: Path) -> None:
    counters = await compared(write_recurrent_model(tmp_path / "mamba.gguf"))
    assert counters["restored"] > 0  # what was generated stands behind the prompt in its slot, so it is the checkpoints that serve
    assert counters["integrity_faults"] == counters["reuse_faults"] == 0


async def test_a_sliding_window_that_gave_cells_up_is_no_fault_and_never_a_wrong_text(tmp_path: Path) -> None:
    counters = await compared(write_sliding_model(tmp_path / "sliding.gguf", WINDOW))
    assert counters["reused"] > 0
    assert counters["integrity_faults"] == counters["reuse_faults"] == 0


def test_an_aborted_state_is_neither_old_nor_new(tmp_path: Path) -> None:
    """What llama.cpp does, and why an aborted recurrent sequence is dropped: its position says that all went well."""
    backend = llama.load(options(write_recurrent_model(tmp_path / "mamba.gguf"), 1))
    try:
        tokens = tuple(range(32, 120)) * 3
        assert backend.decode([Segment(0, 0, tokens[:50], 1)]) is Status.OK
        before = backend.state_get(0)
        backend.abort()
        assert backend.decode([Segment(0, 50, tokens[50:], 1)]) is Status.ABORTED
        backend.clear_abort()
        assert backend.pos_max(0) > 49 and backend.state_get(0) != before
    finally:
        backend.close()


def test_after_an_abort_a_memory_that_cannot_go_back_begins_again() -> None:
    backend = FakeBackend(context=1024, can_drop_tail=False, ubatch=8)
    engine = Harness(backend, n_batch=256)
    request = ask(encode(TEXT))
    job = engine.add(request)
    engine.step()
    step = prepare(engine.state)
    assert step is not None and step.tokens <= UNDIVIDED and job.main.at == UNDIVIDED
    for segment in (part.segment for part in step.parts):
        for offset, token in enumerate(segment.tokens):  # as llama.cpp leaves it: positions held, content unknown
            backend._evaluate(segment.seq, segment.start + offset, token + 1, False)
    commit_aborted(engine.state, step.parts)
    assert job.main.at == 0 and backend.pos_max(job.main.seq) == -1
    engine.run()
    assert engine.results[1].candidates[0].text == cold(request, FakeBackend(context=4096, can_drop_tail=False))  # type: ignore[union-attr]


def test_how_far_back_a_sequence_must_reach() -> None:
    assert reaches_back(0, 100) and not reaches_back(1, 100) and not reaches_back(-1, 100)
    assert reaches_back(69, 100, 32) and not reaches_back(70, 100, 32) and not reaches_back(1, 20, 32)
    assert reaches_back(99, 100, 1)
    slot = Slot(0)
    slot.extend(range(100))
    assert check_integrity([slot], [(69, 99)], window=32) == []
    assert len(check_integrity([slot], [(70, 99)], window=32)) == len(check_integrity([slot], [(69, 99)])) == 1
