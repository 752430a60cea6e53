"""`quantize`: a smaller file of a model, and nothing left where it cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete import cli
from lsp_complete.engine.llama_quantize import TYPES, quantize
from lsp_complete.errors import ModelError

MODEL = Path("~/.cache/lsp-complete/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").expanduser()


def test_what_is_no_model_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelError, match="could not be quantized"):
        quantize(source, target, "q2_k")
    with pytest.raises(ModelError, match="q3_k_m"):
        quantize(source, target, "q1")
    with pytest.raises(ModelError, match="must not be the one"):
        quantize(source, source, "q2_k")
    assert [path.name for path in tmp_path.iterdir()] == ["a.gguf"] and "q2_k" in TYPES


@pytest.mark.model
def test_the_real_model_gets_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not MODEL.exists():
        pytest.skip("the 0.5B model is not there; fetch it with `lsp-complete models pull qwen2.5-coder-0.5b`")
    target = tmp_path / "new" / "q2.gguf"
    assert cli.main(["quantize", str(MODEL), "Q2_K", "--out", str(target)]) == 0
    assert "loses more" in capsys.readouterr().out
    assert 0 < target.stat().st_size < MODEL.stat().st_size and list(target.parent.iterdir()) == [target]
