"""A language model of one tiny layer, written as a GGUF file: llama.cpp loads it in milliseconds. It says nothing sensible."""

from __future__ import annotations

from pathlib import Path

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


def write_tiny_model(path: Path) -> Path:
    """Write it. 256 byte tokens, one end token."""
    tokens = [*byte_letters(), "<|endoftext|>"]
    metadata = {
        "general.architecture": "llama", "llama.block_count": 1, "llama.context_length": CONTEXT, "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": FORWARD, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": WIDTH // HEADS, "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 256,
    }  # fmt: skip
    square, block = (WIDTH, WIDTH), "blk.0."
    tensors = [
        ("token_embd.weight", (WIDTH, len(tokens)), F32), ("output_norm.weight", (WIDTH,), F32), ("output.weight", (WIDTH, len(tokens)), F32),
        (block + "attn_norm.weight", (WIDTH,), F32), (block + "attn_q.weight", square, F32), (block + "attn_k.weight", square, F32),
        (block + "attn_v.weight", square, F32), (block + "attn_output.weight", square, F32), (block + "ffn_norm.weight", (WIDTH,), F32),
        (block + "ffn_gate.weight", (WIDTH, FORWARD), F32), (block + "ffn_up.weight", (WIDTH, FORWARD), F32),
        (block + "ffn_down.weight", (FORWARD, WIDTH), F32),
    ]  # fmt: skip
    path.write_bytes(gguf(metadata, tensors))
    return path
