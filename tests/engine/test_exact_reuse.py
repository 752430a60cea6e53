"""Reused, shared, restored from memory and restored from disk: the same greedy text as a cold prompt, on the real model.

Strategy: the sequences of `bench load --parts exact`, which has the full number of them (200), at a number that fits a
test run. `EXACT_SEQUENCES=200` runs all of them here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsp_complete.measure.bench_exact import sequences
from tests.engine.test_real_model import MODEL, SOURCE

pytestmark = [pytest.mark.model, pytest.mark.slow]
SEQUENCES = int(os.environ.get("EXACT_SEQUENCES", "28"))


async def test_every_way_of_reuse_gives_the_cold_text(tmp_path: Path) -> None:
    if not MODEL.exists():
        pytest.skip(
            "the 0.5B model is not there; fetch it with `lsp-complete models pull qwen2.5-coder-0.5b`"
        )
    tally = await sequences(MODEL, SOURCE, SEQUENCES, 11, tmp_path / "prompts")
    print(tally.as_dict())
    assert tally.different == [] and tally.count == SEQUENCES
    assert tally.ways["reused"] and tally.ways["memory"] + tally.ways["disk"]  # restored where that is the quicker way
    assert tally.near_ties <= max(1, SEQUENCES // 10)
