"""The GGUF reader on whole, cut, damaged and hostile files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.errors import ModelError
from lsp_complete.models.gguf import SkippedArray, read_header, require_whole
from lsp_complete.models.shape import shape_of

from . import builders


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file.gguf"
    path.write_bytes(data)
    return path


def test_reads_metadata_tensors_and_shape(tmp_path: Path) -> None:
    header = require_whole(write(tmp_path, builders.tiny_gguf()))
    assert (header.version, header.architecture, header.text("tokenizer.ggml.pre")) == (3, "qwen2", "qwen2")
    assert header.tokens == builders.QWEN_TOKENS
    assert [tensor.name for tensor in header.tensors] == ["token_embd.weight", "blk.0.attn_q.weight"]
    assert header.parameters == 64 * 9 + 64 * 64
    assert header.expected_size == header.file_size
    shape = shape_of(header)
    assert (shape.layers, shape.heads, shape.kv_heads, shape.head_size) == (2, 4, 2, 16)
    assert (shape.vocabulary, shape.context, shape.recurrent, shape.sliding_window) == (9, 512, False, 0)


def test_a_file_without_its_last_byte_is_truncated(tmp_path: Path) -> None:
    whole = builders.tiny_gguf()
    assert read_header(write(tmp_path, whole[:-1])).truncated
    with pytest.raises(ModelError, match="truncated"):
        require_whole(write(tmp_path, whole[:-1]))


def test_every_cut_of_the_header_is_an_error_or_seen_as_truncated(tmp_path: Path) -> None:
    whole = builders.tiny_gguf()
    for length in range(0, len(whole), 7):
        with pytest.raises(ModelError):
            require_whole(write(tmp_path, whole[:length]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 700), data=st.binary(min_size=1, max_size=9))
def test_damage_gives_a_model_error_or_a_header(tmp_path: Path, at: int, data: bytes) -> None:
    whole = builders.tiny_gguf()
    path = write(tmp_path, whole[:at] + data + whole[at + len(data) :])
    try:
        shape_of(read_header(path))
    except ModelError:
        return


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "GGUF"),
        (b"\x89PNG" + b"\0" * 64, "GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0) + b"\0" * 64, "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + b"\0" * 64, "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "metadata count"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "tensor count"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62) + b"\0" * 64, "string length"),
        (
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + builders.string("k")
            + struct.pack("<IIQ", 9, 4, 1 << 40)
            + b"\0" * 64,
            "array length",
        ),
        (
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + builders.string("k")
            + struct.pack("<I", 77)
            + b"\0" * 64,
            "type 77",
        ),
        (
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + builders.string("k")
            + struct.pack("<I", 9)
            + struct.pack("<IQ", 9, 1) * 9
            + b"\0" * 64,
            "nested",
        ),
    ],
)
def test_hostile_headers_are_refused_before_memory_is_taken(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        read_header(write(tmp_path, data))


def test_long_arrays_nobody_needs_are_skipped(tmp_path: Path) -> None:
    metadata = builders.tiny_metadata(
        **{"tokenizer.ggml.merges": ["a b"] * 2000, "tokenizer.ggml.token_type": [1] * 2000}
    )
    header = read_header(write(tmp_path, builders.gguf(metadata)))
    assert header.metadata["tokenizer.ggml.merges"] == SkippedArray(2000)
    assert header.metadata["tokenizer.ggml.token_type"] == SkippedArray(2000)
    assert len(header.tokens) == len(builders.QWEN_TOKENS)


def test_a_vocabulary_without_weights_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no weights"):
        require_whole(write(tmp_path, builders.gguf(builders.tiny_metadata())))


def test_an_unknown_tensor_type_leaves_the_size_open(tmp_path: Path) -> None:
    data = builders.tiny_gguf()
    at = data.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16
    header = read_header(write(tmp_path, data[:at] + struct.pack("<I", 999) + data[at + 4 :]))
    assert header.expected_size is None and not header.truncated


def test_per_layer_arrays_and_recurrent_layers_are_understood(tmp_path: Path) -> None:
    metadata = builders.tiny_metadata(
        **{
            "qwen2.attention.head_count_kv": [0, 4, 1],
            "qwen2.ssm.state_size": 16,
            "qwen2.attention.sliding_window": 256,
        }
    )
    shape = shape_of(read_header(write(tmp_path, builders.gguf(metadata))))
    assert (shape.kv_heads, shape.recurrent, shape.sliding_window) == (4, True, 256)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_header(tmp_path / "none.gguf")
