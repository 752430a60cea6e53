"""What recording costs: the benchmark records what it says, through the product's recorder."""

from __future__ import annotations

import json

import pytest

from lsp_complete import cli
from lsp_complete.measure import bench_recording


def test_it_measures_real_recordings() -> None:
    figures = bench_recording.run(keys=120, answer_ms=50.0)
    assert figures["keys"] == 120 and figures["bytes"] > 400  # an edit, a request, a prompt's new ids, an answer
    assert 0 < figures["loop_us_p50"] <= figures["loop_us_p95"] and figures["cpu_us"] > 0
    assert figures["share"] == pytest.approx(figures["cpu_us"] / 50_000, abs=1e-4)


def test_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "recording", "--keys", "60", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bench"] == "recording"
