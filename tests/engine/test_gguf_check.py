"""Damaged model files are refused before llama.cpp sees them."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest

from lsp_complete.engine.gguf_check import check_gguf
from lsp_complete.errors import ModelError


def text(s: str) -> bytes:
    return struct.pack("<Q", len(s)) + s.encode()


def small_gguf(data_bytes: int = 64) -> bytes:
    """One F32 tensor of 4 × 4, some metadata."""
    meta = text("general.architecture") + struct.pack("<I", 8) + text("toy")
    meta += text("toy.block_count") + struct.pack("<II", 4, 12)
    meta += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc")
    meta += text("toy.numbers") + struct.pack("<IIQ", 9, 5, 3) + struct.pack("<3i", 1, 2, 3)
    tensor = text("w") + struct.pack("<IQQIQ", 2, 4, 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 4) + meta + tensor
    return head + bytes(-len(head) % 32) + bytes(data_bytes)


def write(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    return str(path)


def test_a_whole_file_is_described(tmp_path: Path) -> None:
    head = check_gguf(write(tmp_path, small_gguf()))
    assert (head.architecture, head.number("block_count"), head.tensors, head.tensor_bytes) == (
        "toy",
        12,
        1,
        64,
    )
    assert head.lengths == {"tokenizer.ggml.tokens": 2, "toy.numbers": 3}


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = small_gguf()
    for size in range(len(whole)):
        with pytest.raises(ModelError):
            check_gguf(write(tmp_path, whole[:size]))


def test_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"truncated.*needs? .*fetch it again"):
        check_gguf(write(tmp_path, small_gguf(63)))
    with pytest.raises(ModelError, match="not a GGUF"):
        check_gguf(write(tmp_path, b"PK\x03\x04" + bytes(100)))
    with pytest.raises(ModelError, match="cannot be read"):
        check_gguf(str(tmp_path / "none.gguf"))
    with pytest.raises(ModelError, match="version 9"):
        check_gguf(write(tmp_path, b"GGUF" + struct.pack("<I", 9) + bytes(100)))


def test_flipped_bytes_never_raise_anything_else(tmp_path: Path) -> None:
    whole = small_gguf()
    for at in range(4, len(whole) - 64):
        for value in (0, 0x7F, 0xFF):
            data = bytearray(whole)
            data[at] = value
            with contextlib.suppress(ModelError):
                check_gguf(write(tmp_path, bytes(data)))
