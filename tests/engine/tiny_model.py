"""A language model of one tiny layer, written as a GGUF file: llama.cpp loads it in milliseconds. It says nothing sensible."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from tests.models.builders import gguf

WIDTH, HEADS, FORWARD, CONTEXT = 64, 2, 128, 8192
F32 = 0


def byte_letters() -> list[str]:
    """The printable stand-ins of all 256 bytes in byte-level vocabularies (GPT-2's table)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {b: chr(b) for b in plain}, 256
    for byte in range(256):
        if byte not in letters:
            letters[byte], extra = chr(extra), extra + 1
    return [letters[byte] for byte in range(256)]


TOKENS = [*byte_letters(), "<|endoftext|>"]
VOCABULARY = {
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 256,
}  # fmt: skip


def write_tiny_model(path: Path) -> Path:
    """Write it. 256 byte tokens, one end token."""
    metadata = {
        "general.architecture": "llama", "llama.block_count": 1, "llama.context_length": CONTEXT, "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": FORWARD, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": WIDTH // HEADS, "llama.vocab_size": len(TOKENS),
        **VOCABULARY,
    }  # fmt: skip
    square, block = (WIDTH, WIDTH), "blk.0."
    tensors = [
        ("token_embd.weight", (WIDTH, len(TOKENS)), F32), ("output_norm.weight", (WIDTH,), F32), ("output.weight", (WIDTH, len(TOKENS)), F32),
        (block + "attn_norm.weight", (WIDTH,), F32), (block + "attn_q.weight", square, F32), (block + "attn_k.weight", square, F32),
        (block + "attn_v.weight", square, F32), (block + "attn_output.weight", square, F32), (block + "ffn_norm.weight", (WIDTH,), F32),
        (block + "ffn_gate.weight", (WIDTH, FORWARD), F32), (block + "ffn_up.weight", (WIDTH, FORWARD), F32),
        (block + "ffn_down.weight", (FORWARD, WIDTH), F32),
    ]  # fmt: skip
    path.write_bytes(gguf(metadata, tensors))
    return path


def seeded(name: str, count: int) -> bytes:
    """Weights that make every earlier token matter; norms are 1, a recurrence's decay is negative."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith("norm.weight"):
        return np.ones(count, dtype="<f4").tobytes()
    if name.endswith("ssm_a"):
        return (-rng.uniform(0.05, 0.5, count)).astype("<f4").tobytes()
    return rng.normal(0.0, 0.3, count).astype("<f4").tobytes()


def write_recurrent_model(path: Path) -> Path:
    """A Mamba of two layers: its memory is a state, so no tail can be dropped."""
    inner, state, rank, taps = 2 * WIDTH, 16, 4, 4
    metadata = {
        "general.architecture": "mamba", "mamba.block_count": 2, "mamba.context_length": CONTEXT, "mamba.embedding_length": WIDTH,
        "mamba.feed_forward_length": 0, "mamba.attention.head_count": 0, "mamba.attention.layer_norm_rms_epsilon": 1e-5,
        "mamba.ssm.conv_kernel": taps, "mamba.ssm.inner_size": inner, "mamba.ssm.state_size": state, "mamba.ssm.time_step_rank": rank,
        "mamba.vocab_size": len(TOKENS), **VOCABULARY,
    }  # fmt: skip
    tensors: list[tuple[str, tuple[int, ...], int]] = [
        ("token_embd.weight", (WIDTH, len(TOKENS)), F32), ("output_norm.weight", (WIDTH,), F32), ("output.weight", (WIDTH, len(TOKENS)), F32),
    ]  # fmt: skip
    for block in ("blk.0.", "blk.1."):
        tensors += [
            (block + "attn_norm.weight", (WIDTH,), F32), (block + "ssm_in.weight", (WIDTH, 2 * inner), F32),
            (block + "ssm_conv1d.weight", (taps, inner), F32), (block + "ssm_conv1d.bias", (inner,), F32),
            (block + "ssm_x.weight", (inner, rank + 2 * state), F32), (block + "ssm_dt.weight", (rank, inner), F32),
            (block + "ssm_dt.bias", (inner,), F32), (block + "ssm_a", (state, inner), F32), (block + "ssm_d", (inner,), F32),
            (block + "ssm_out.weight", (inner, WIDTH), F32),
        ]  # fmt: skip
    path.write_bytes(gguf(metadata, tensors, content=seeded))
    return path


def write_sliding_model(path: Path, window: int = 32) -> Path:
    """A Cohere2 of four layers, three of which see the last `window` tokens only."""
    metadata = {
        "general.architecture": "cohere2", "cohere2.block_count": 4, "cohere2.context_length": CONTEXT, "cohere2.embedding_length": WIDTH,
        "cohere2.feed_forward_length": FORWARD, "cohere2.attention.head_count": HEADS, "cohere2.attention.head_count_kv": HEADS,
        "cohere2.attention.layer_norm_epsilon": 1e-5, "cohere2.attention.sliding_window": window, "cohere2.logit_scale": 0.5,
        "cohere2.rope.dimension_count": WIDTH // HEADS, "cohere2.vocab_size": len(TOKENS), **VOCABULARY,
    }  # fmt: skip
    square = (WIDTH, WIDTH)
    tensors: list[tuple[str, tuple[int, ...], int]] = [
        ("token_embd.weight", (WIDTH, len(TOKENS)), F32), ("output_norm.weight", (WIDTH,), F32),
    ]  # fmt: skip
    for block in (f"blk.{n}." for n in range(4)):
        tensors += [
            (block + "attn_norm.weight", (WIDTH,), F32), (block + "attn_q.weight", square, F32), (block + "attn_k.weight", square, F32),
            (block + "attn_v.weight", square, F32), (block + "attn_output.weight", square, F32),
            (block + "ffn_gate.weight", (WIDTH, FORWARD), F32), (block + "ffn_up.weight", (WIDTH, FORWARD), F32),
            (block + "ffn_down.weight", (FORWARD, WIDTH), F32),
        ]  # fmt: skip
    path.write_bytes(gguf(metadata, tensors, content=seeded))
    return path
