"""The outline benchmark runs on files of one's own and checks as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete.measure import bench_outline
from lsp_complete.measure.bench_outline import OutlineOptions

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.slow
def test_figures_of_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_outline, "LONG_LINES", 200)
    files = tuple(SAMPLES / name for name in ("python.py", "go.go", "java.java"))
    figures = bench_outline.run(OutlineOptions(count=lambda text: len(text.split()), files=files))
    assert set(figures["outline_files"]) == {"python.py", "go.go", "java.java"}
    assert 0 < figures["outline_ratio"] < 1 and figures["prefill_saved"] == pytest.approx(
        1 - figures["outline_ratio"], abs=1e-3
    )
    for name in (
        "edited_outline_p95_ms",
        "hot_outline_p95_ms",
        "hot_outline_disk_p95_ms",
        "scratch_outline_ratio",
    ):
        assert figures[name] > 0
