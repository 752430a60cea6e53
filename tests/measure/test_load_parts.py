"""The engine's parts of `bench load` end to end: real engine processes over a model so small that its figures mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.engine.options import EngineOptions
from lsp_complete.measure.bench_load import Bench, LoadOptions
from lsp_complete.measure.bench_load_engine import Prompts, batching, idle_slots, token_stream
from lsp_complete.measure.bench_load_restore import LENGTH, from_disk, from_memory, states
from lsp_complete.measure.corpus import Source
from tests.engine.tiny_model import write_tiny_model

HERE = Path(__file__)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PYTHONPATH", str(HERE.resolve().parents[2]))
    text = HERE.read_text(encoding="utf-8") * 4
    source = Source(HERE.name, HERE, HERE.parent, "python", text)
    model = write_tiny_model(tmp_path / "tiny.gguf")
    return Bench(LoadOptions(rounds=1), model, [source], lambda text: None)


async def test_batching(bench: Bench) -> None:
    found = await batching(bench)
    assert found["batching_gain"] > 0 and found["tokens_per_s_together"] > 0 and len(found["batching_gain_each"]) == 1


async def test_idle_slots_are_full_when_the_measured_one_decodes(bench: Bench) -> None:
    found = await idle_slots(bench)
    assert found["decode_ratio"] > 0 and found["runs"] == 1
    assert found["tokens_held"] > 8000 and len(found["slots"]) == 8 and min(found["slots"]) > 1000


async def test_prompts_come_back_from_memory_and_disk(bench: Bench) -> None:
    prompts = Prompts(token_stream(bench), 1, "restore")
    options = replace(EngineOptions(str(bench.model), context=4096, slots=1), threads=1)
    memory = await from_memory(bench, options, prompts)
    assert memory["restored"] == [LENGTH - 1] and memory["restore_ms"] > 0
    disk = await from_disk(bench, options, prompts)
    assert disk["restored"] == [LENGTH - 1] * 2 and disk["restore_ms"] > 0 and disk["file_mb"] > 0


def test_moments_of_typing_are_a_character_into_a_line(bench: Bench) -> None:
    found = list(states(bench.sources[0], 1))
    assert len(found) > 3 and found == list(states(bench.sources[0], 1))
    for text, cursor in found:
        line = text.splitlines()[cursor.line]
        assert line[: cursor.character].strip() and len(line[: cursor.character].strip()) == 1
