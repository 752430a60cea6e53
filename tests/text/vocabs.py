"""Real vocabularies for the token tests: every pre-tokenizer family, through llama.cpp itself.

Some families have no file of their own at hand (Tekken, GPT-4o, DeepSeek-V3 …): llama.cpp lets a load override the
pre-tokenizer's name, so their splitting runs for real over another family's pieces.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import llama_cpp.llama_cpp as lc
import pytest

from lsp_complete.engine.vocab import Vocab, init_native, meta
from lsp_complete.text.boundaries import Rule, rule_for

SCRIPT = Path(__file__).parents[2] / "scripts" / "get-test-vocabs"
OWN = ["qwen2", "qwen35", "starcoder", "refact", "deepseek-coder", "deepseek-llm", "llama-bpe", "llama-spm"]
OWN += ["command-r", "falcon", "gpt-2", "gemma-4", "phi-3", "mpt", "gpt-neox"]
BORROWED = [
    "tekken",
    "gpt-4o",
    "deepseek-v3",
    "seed-coder",
    "smollm",
    "codeshell",
    "mellum",
    "mellum2",
    "stablelm2",
]
BORROWED += [
    "chatglm-bpe",
    "bailingmoe",
    "minicpm5",
    "superbpe",
    "bloom",
    "kimi-k2",
    "exaone-moe",
    "laguna",
    "afmoe",
]
FAMILIES = [*OWN, *(f"{name}@llama-bpe" for name in BORROWED)]


class Model:
    """Owner of one vocabulary-only model, with text settings overridden."""

    def __init__(self, path: Path, pre: str) -> None:
        init_native()
        params = lc.llama_model_default_params()
        params.vocab_only = True
        overrides = (lc.llama_model_kv_override * 3)()
        overrides[0].tag = lc.LLAMA_KV_OVERRIDE_TYPE_BOOL
        overrides[0].key = b"tokenizer.ggml.add_space_prefix"
        overrides[0].value.val_bool = False
        if pre:
            overrides[1].tag = lc.LLAMA_KV_OVERRIDE_TYPE_STR
            overrides[1].key = b"tokenizer.ggml.pre"
            overrides[1].value.val_str = pre.encode()
        params.kv_overrides = ctypes.cast(overrides, ctypes.POINTER(lc.llama_model_kv_override))
        self.model = lc.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise RuntimeError(f"cannot load {path}")


@lru_cache
def folder() -> Path | str:
    """The folder of vocabulary files, or why there is none."""
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or "scripts/get-test-vocabs failed"
    return Path(done.stdout.strip().splitlines()[-1])


@lru_cache
def load(family: str) -> Vocab:
    """The vocabulary of `name` or of `pre-tokenizer@name`. Skips the test only if the files cannot be fetched."""
    where = folder()
    if isinstance(where, str):
        pytest.skip(where)
    pre, _, name = family.rpartition("@")
    owner = Model(where / f"ggml-vocab-{name}.gguf", pre)
    return Vocab(lc.llama_model_get_vocab(owner.model), pre or meta(owner.model, "tokenizer.ggml.pre"), owner)


@lru_cache
def rule(vocab: Vocab) -> Rule:
    """The certain cuts of a vocabulary, made once."""
    return rule_for(vocab)


@lru_cache
def reference_texts() -> tuple[str, ...]:
    """The texts that llama.cpp tests its own tokenizers with."""
    where = folder()
    assert isinstance(where, Path)
    texts = (where / "ggml-vocab-qwen2.gguf.inp").read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
    return (*texts, "".join(texts), "\n".join(texts))
