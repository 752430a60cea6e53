"""Opening a model with llama.cpp: weights, context, batch, abort flag. Used by `llama` only.

Rules: nothing here remembers anything; whoever makes a thing frees it. One size is tried at a time, `shrink` has the next.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import replace

import llama_cpp
import llama_cpp.llama_cpp as lc
import numpy as np

from lsp_complete.engine.api import ModelInfo
from lsp_complete.engine.backend import Segment
from lsp_complete.engine.fingerprint import engine_fingerprint, file_fingerprint
from lsp_complete.engine.gguf_check import GgufHead
from lsp_complete.engine.native import ERRORS
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.shrink import MIN_CONTEXT
from lsp_complete.engine.threads import default_threads
from lsp_complete.engine.vocab import init_native
from lsp_complete.errors import ModelError

SCRATCH_SEQUENCES = 8
MAX_OUTPUTS = 64
_KV_TYPE_IDS = {"f16": lc.GGML_TYPE_F16, "q8_0": lc.GGML_TYPE_Q8_0, "q4_0": lc.GGML_TYPE_Q4_0}


class AbortFlag:
    """A flag that C polls. `strlen` of the buffer is 0 (false) or 1 (true)."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        libc = ctypes.CDLL("msvcrt") if os.name == "nt" else ctypes.CDLL(None)
        self.callback = ctypes.cast(libc.strlen, lc.ggml_abort_callback)
        self.data = ctypes.cast(self._buffer, ctypes.c_void_p)

    def set(self, on: bool) -> None:
        self._buffer[0] = b"\x01" if on else b"\x00"


class Batch:
    """llama_batch with numpy views over its arrays."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.raw = lc.llama_batch_init(capacity, 0, 1)
        self.token = np.ctypeslib.as_array(self.raw.token, (capacity,))
        self.pos = np.ctypeslib.as_array(self.raw.pos, (capacity,))
        self.logits = np.ctypeslib.as_array(self.raw.logits, (capacity,))
        np.ctypeslib.as_array(self.raw.n_seq_id, (capacity,))[:] = 1
        first = ctypes.addressof(self.raw.seq_id[0].contents)
        self._seq = [self.raw.seq_id[i] for i in range(capacity)]
        assert first  # llama.cpp allocates one id per token

    def fill(self, segments: Sequence[Segment]) -> list[int]:
        """Write the segments; returns the batch index of every output row."""
        at = 0
        rows: list[int] = []
        for s in segments:
            end = at + len(s.tokens)
            if end > self.capacity:
                raise ValueError(f"batch of more than {self.capacity} tokens")
            self.token[at:end] = s.tokens
            self.pos[at:end] = range(s.start, s.start + len(s.tokens))
            self.logits[at:end] = 0
            self.logits[end - s.outputs : end] = 1
            for i in range(at, end):
                self._seq[i][0] = s.seq
            rows.extend(range(end - s.outputs, end))
            at = end
        self.raw.n_tokens = at
        return rows


def load_model(options: EngineOptions, repack: bool) -> int:
    """Load the weights. repack: they may be rearranged for this processor's matrix instructions. Raises ModelError with llama.cpp's reason."""
    init_native()
    params = lc.llama_model_default_params()
    params.use_extra_bufts = repack
    params.n_gpu_layers = 999 if options.gpu_layers < 0 else options.gpu_layers
    ERRORS.take()
    model = lc.llama_model_load_from_file(options.model_path.encode(), params)
    if not model:
        raise ModelError(
            f"llama.cpp cannot load {options.model_path}: {ERRORS.take() or 'no reason given'}. "
            "The file may be damaged, of an unknown architecture, or too large for the free memory."
        )
    return int(model)


def capped(model: int, options: EngineOptions) -> EngineOptions:
    """A context no longer than the model was trained for (but for the least sensible one), in whole blocks of 256 tokens."""
    most = max(MIN_CONTEXT, int(lc.llama_model_n_ctx_train(model)))
    return replace(options, context=min(options.context, most) // 256 * 256 or 256)


def make_context(model: int, options: EngineOptions, flag: AbortFlag) -> int | None:
    """A context of this size, or None if llama.cpp cannot have the memory."""
    can_branch = not lc.llama_model_is_recurrent(model) and not lc.llama_model_is_hybrid(model)
    params = lc.llama_context_default_params()
    params.n_ctx = options.context
    params.n_batch, params.n_ubatch = options.n_batch, min(options.n_ubatch, options.n_batch)
    params.n_seq_max = options.slots + (SCRATCH_SEQUENCES if can_branch else 0)
    params.n_outputs_max = MAX_OUTPUTS
    params.kv_unified = True
    params.swa_full = True
    params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.type_k, params.type_v = _KV_TYPE_IDS[options.kv_type], _KV_TYPE_IDS[options.v_type or options.kv_type]
    if options.gives_way:  # large batches would go to a GPU even with all layers on the CPU
        params.offload_kqv = params.op_offload = False
    params.n_threads = params.n_threads_batch = options.threads or default_threads()
    params.abort_callback, params.abort_callback_data = flag.callback, flag.data
    params.no_perf = True
    context = lc.llama_init_from_model(model, params)
    return int(context) if context else None


def describe(model: int, options: EngineOptions, head: GgufHead, repacked: bool) -> ModelInfo:
    """What was loaded, with the options that could be had."""
    buffer = ctypes.create_string_buffer(256)
    lc.llama_model_desc(model, buffer, 256)
    recurrent = bool(lc.llama_model_is_recurrent(model)) or bool(lc.llama_model_is_hybrid(model))
    return ModelInfo(
        path=options.model_path,
        fingerprint=engine_fingerprint(
            file_fingerprint(options.model_path),
            llama_cpp.__version__,
            options.kv_pair,
            "unified+fa" if repacked else "unified+fa, plain",
        ),
        description=buffer.value.decode("utf-8", "replace"),
        architecture=head.architecture,
        vocab_size=int(lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))),
        context=options.context,
        slots=options.slots,
        parameters=int(lc.llama_model_n_params(model)),
        size_bytes=head.size,
        can_drop_tail=not recurrent,
        window=1 if recurrent else int(lc.llama_model_n_swa(model)),
        gpu=options.gpu_layers != 0 and bool(lc.llama_supports_gpu_offload()),
    )
