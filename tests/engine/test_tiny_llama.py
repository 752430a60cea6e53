"""llama.cpp itself, over a model so small that loading it takes milliseconds: sizes that cannot be had, and starting over smaller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lsp_complete.commands.engine_load import load_planned
from lsp_complete.engine import llama, llama_open
from lsp_complete.engine.api import CompletionRequest, StopRules
from lsp_complete.engine.backend import Segment, Status
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.errors import MemoryPlanError
from tests.engine.tiny_model import write_tiny_model

PROMPT = tuple(b"def area(width, height):\n    return ")


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(str(write_tiny_model(tmp_path / "tiny.gguf")), threads=1, remeasure_threads=False)


def refuse_above(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """llama.cpp gives no context of more tokens than `most`. Returns the sizes asked for, as they come."""
    asked: list[int] = []
    real = llama_open.lc.llama_init_from_model

    def give(model: object, params: object) -> object:
        asked.append(int(params.n_ctx))  # type: ignore[attr-defined]
        return real(model, params) if params.n_ctx <= most else None  # type: ignore[attr-defined]

    monkeypatch.setattr(llama_open.lc, "llama_init_from_model", give)
    return asked


def test_a_context_that_cannot_be_had_is_halved(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = refuse_above(monkeypatch, 2048)
    backend = llama.load(options)
    try:
        assert asked == [8192, 4096, 2048] and (backend.info.context, backend.info.slots) == (2048, 2)
        assert backend.decode([Segment(1, 0, PROMPT, 1)]) is Status.OK
    finally:
        backend.close()


def test_no_context_at_all_is_a_clear_error(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_above(monkeypatch, 0)
    with pytest.raises(MemoryPlanError, match="No context of 8192 tokens, nor a smaller one down to 1024"):
        llama.load(options)


def test_starting_over_smaller(options: EngineOptions) -> None:
    backend = llama.load(options)
    try:
        assert backend.decode([Segment(0, 0, PROMPT, 1)]) is Status.OK
        assert backend.shrink() and (backend.info.context, backend.info.slots) == (4096, 4)
        assert backend.pos_max(0) == -1 and backend.sequences == 4 + llama_open.SCRATCH_SEQUENCES
        assert backend.decode([Segment(3, 0, PROMPT, 1)]) is Status.OK and backend.pos_max(3) == len(PROMPT) - 1
        while backend.shrink():
            pass
        assert (backend.info.context, backend.info.slots) == (1024, 1)
        assert backend.decode([Segment(0, 0, PROMPT, 1)]) is Status.OK
    finally:
        backend.close()


def test_keys_and_values_may_be_of_two_types(options: EngineOptions) -> None:
    sizes, digests = [], set()
    for v_type in ("", "q4_0"):
        backend = llama.load(replace(options, v_type=v_type))
        try:
            assert backend.decode([Segment(0, 0, PROMPT, 1)]) is Status.OK and np.isfinite(backend.logits(0)).all()
            saved = backend.state_get(0)
            assert saved is not None and backend.state_set(1, saved) and backend.pos_max(1) == len(PROMPT) - 1
            sizes.append(len(saved))
            digests.add(backend.info.fingerprint)
        finally:
            backend.close()
    assert sizes[1] < sizes[0] and len(digests) == 2  # saved state of one is foreign to the other
    with pytest.raises(ValueError, match="v_type 'q3'"):
        replace(options, v_type="q3")


def test_cells_are_counted_where_positions_are_missing_too(options: EngineOptions) -> None:
    backend = llama.load(options)
    try:
        assert backend.cells(0) == 0 and backend.decode([Segment(0, 0, PROMPT, 1)]) is Status.OK
        assert backend.cells(0) == len(PROMPT)
        backend.seq_cp(0, 1, 20)
        backend.seq_rm(0, 30)
        assert (backend.cells(0), backend.cells(1)) == (30, 20)
        assert llama.lc.llama_memory_seq_rm(backend._memory, 0, 5, 8)
        assert (backend.pos_min(0), backend.pos_max(0), backend.cells(0)) == (0, 29, 27)
        assert backend.shrink() and backend.decode([Segment(0, 0, PROMPT, 1)]) is Status.OK and backend.cells(0) == len(PROMPT)
    finally:
        backend.close()


async def test_an_engine_whose_step_finds_no_memory_goes_on_smaller(
    options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = LocalEngine(options, lambda wanted: load_planned(wanted, free=lambda: 8 << 30, gpu=lambda: 0))
    assert (await engine.info()).context == 8192
    real, failures = llama.lc.llama_decode, [-2]
    monkeypatch.setattr(llama.lc, "llama_decode", lambda *a: failures.pop() if failures else real(*a))
    request = CompletionRequest(PROMPT, max_tokens=4, stop=StopRules("free"), time_limit_ms=60_000, speculate=False)
    answer = await engine.complete(request)
    assert answer.timing.evaluated == len(PROMPT) and answer.timing.decoded == 4
    stats = await engine.stats()
    assert stats["counters"]["shrunk"] == 1 and stats["counters"]["integrity_faults"] == 0
    assert len(stats["slots"]) == 4 and (await engine.complete(request)).timing.evaluated <= 1
    await engine.close()
