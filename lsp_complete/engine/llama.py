"""llama.cpp through ctypes: `backend.Backend` over one model and one context.

Strategy: only low-level functions; one batch structure allocated once and filled through numpy views; logits are
read as numpy views, never copied here. All sequences share one unified KV buffer with flash attention, so a prompt
can be shared between sequences and idle ones cost next to nothing.

Rules:
- A failed assertion in llama.cpp ends the process: batch sizes and sequence ids are checked before every call.
- The abort flag is polled by llama.cpp between graph nodes through a C function (`strlen` of a two-byte buffer),
  because a Python callback would take the interpreter lock each time.
- Nobody else imports llama_cpp, but for the vocabulary loader.
"""

from __future__ import annotations

import ctypes
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import llama_cpp
import llama_cpp.llama_cpp as lc
import numpy as np

from lsp_complete.engine.api import ModelInfo
from lsp_complete.engine.backend import Floats, Segment, Status
from lsp_complete.engine.fingerprint import engine_fingerprint, file_fingerprint
from lsp_complete.engine.gguf_check import GgufHead, check_gguf
from lsp_complete.engine.llama_info import parse_system_info
from lsp_complete.engine.native import ERRORS
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.threads import ThreadGovernor, default_threads, usable_cores
from lsp_complete.engine.trial import RISKY, survives
from lsp_complete.engine.vocab import Vocab, init_native, meta
from lsp_complete.errors import MemoryPlanError, ModelError

log = logging.getLogger(__name__)

SCRATCH_SEQUENCES = 8
MAX_OUTPUTS = 64
_MIN_CONTEXT = 1024
_KV_TYPE_IDS = {"f16": lc.GGML_TYPE_F16, "q8_0": lc.GGML_TYPE_Q8_0, "q4_0": lc.GGML_TYPE_Q4_0}
_STATUS = {0: Status.OK, 1: Status.NO_ROOM, 2: Status.ABORTED}


class _AbortFlag:
    """A flag that C polls. `strlen` of the buffer is 0 (false) or 1 (true)."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        libc = ctypes.CDLL("msvcrt") if os.name == "nt" else ctypes.CDLL(None)
        self.callback = ctypes.cast(libc.strlen, lc.ggml_abort_callback)
        self.data = ctypes.cast(self._buffer, ctypes.c_void_p)

    def set(self, on: bool) -> None:
        self._buffer[0] = b"\x01" if on else b"\x00"


class _Batch:
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


class LlamaBackend:
    """See `backend.Backend`."""

    def __init__(self, options: EngineOptions, head: GgufHead) -> None:
        self._options = options
        self._head = head
        self._flag = _AbortFlag()
        self._closed = False
        self.repacked = True
        self._model, self._context, self._n_ctx = _make(options, self._flag, repack=True)
        if not options.gpu_layers and RISKY & _features() and not survives(self._two_tokens):
            log.warning("the matrix instructions of this build of llama.cpp fault on this processor; going on without, slower")
            lc.llama_free(self._context)
            lc.llama_model_free(self._model)
            self.repacked = False
            self._model, self._context, self._n_ctx = _make(options, self._flag, repack=False)
        self._memory = lc.llama_get_memory(self._context)
        self._vocab = Vocab(
            lc.llama_model_get_vocab(self._model), meta(self._model, "tokenizer.ggml.pre"), owner=self
        )
        _ = self._vocab.pieces  # sorted now, not at the first key that needs healing
        self._batch = _Batch(options.n_batch)
        self._rows: list[int] = []
        self._n_vocab = self._vocab.size
        self._info = _describe(self._model, options, head, self._n_ctx, self.repacked)
        self._governor: ThreadGovernor | None = None
        self._warm_up()

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocab(self) -> Vocab:
        return self._vocab

    @property
    def sequences(self) -> int:
        return int(lc.llama_n_seq_max(self._context))

    @property
    def max_outputs(self) -> int:
        return MAX_OUTPUTS

    def _two_tokens(self) -> None:
        """Evaluate two tokens on this thread alone: the smallest batch that takes the matrix instructions."""
        batch = _Batch(2)
        batch.fill([Segment(0, 0, (0, 0))])
        lc.llama_set_n_threads(self._context, 1, 1)
        lc.llama_decode(self._context, batch.raw)

    def _warm_up(self) -> None:
        """Touch all weights once, choose the number of threads, and begin to follow the load."""
        limit = self._options.threads or self._best_threads()
        self.set_threads(limit, limit)
        self._time_one_token()
        if not self._keeps_its_head():
            self._info = replace(self._info, can_drop_tail=False)
        if not self._options.threads and self._options.remeasure_threads and not self._info.gpu:
            self._governor = ThreadGovernor(limit, len(usable_cores()))

    def _keeps_its_head(self) -> bool:
        """Whether the last of two tokens can be dropped, tried rather than believed."""
        self.decode([Segment(0, 0, (0, 0))])
        kept = self.seq_rm(0, 1) and self.pos_max(0) == 0
        self.seq_rm(0, 0)
        return kept

    def _best_threads(self) -> int:
        """Physical cores, unless measuring says otherwise where cores differ or have hyper-threads."""
        physical, logical = default_threads(), len(usable_cores())
        choices = sorted({physical, logical, max(1, physical // 2)} if physical > 4 else {physical, logical})
        if len(choices) == 1:
            return physical
        self._time_one_token()
        timed: dict[int, float] = {}
        for count in choices:
            self.set_threads(count, count)
            timed[count] = min(self._time_one_token() for _ in range(3))
        return min(timed, key=lambda count: timed[count])

    def _time_one_token(self) -> float:
        started = time.perf_counter()
        if self.decode([Segment(0, 0, (0,), 1)]) is not Status.OK:
            raise ModelError(
                f"{self._options.model_path} was loaded but cannot be evaluated: {ERRORS.take()}"
            )
        self.seq_rm(0, 0)
        return time.perf_counter() - started

    def decode(self, segments: Sequence[Segment]) -> Status:
        if self._governor is not None and self._governor.update(time.monotonic()):
            self.set_threads(self._governor.threads, self._governor.threads)
        for s in segments:
            if not 0 <= s.seq < self.sequences:
                raise ValueError(f"sequence {s.seq} is outside 0 … {self.sequences - 1}")
        rows = self._batch.fill(segments)
        if len(rows) > MAX_OUTPUTS:
            raise ValueError(f"{len(rows)} outputs in one batch, at most {MAX_OUTPUTS}")
        code = lc.llama_decode(self._context, self._batch.raw)
        self._rows = rows if code == 0 else []
        return _STATUS.get(code, Status.FAILED)

    def logits(self, row: int) -> Floats:
        pointer = lc.llama_get_logits_ith(self._context, self._rows[row])
        return np.ctypeslib.as_array(pointer, (self._n_vocab,))

    def seq_rm(self, seq: int, start: int) -> bool:
        return bool(lc.llama_memory_seq_rm(self._memory, seq, start, -1))

    def seq_cp(self, source: int, target: int, end: int) -> None:
        lc.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def pos_min(self, seq: int) -> int:
        return int(lc.llama_memory_seq_pos_min(self._memory, seq))

    def pos_max(self, seq: int) -> int:
        return int(lc.llama_memory_seq_pos_max(self._memory, seq))

    def state_get(self, seq: int) -> bytearray | None:
        size = lc.llama_state_seq_get_size(self._context, seq)
        if not size:
            return None
        state = bytearray(size)
        written = lc.llama_state_seq_get_data(self._context, _bytes_pointer(state), size, seq)
        return state if written == size else None

    def state_set(self, seq: int, state: Any) -> bool:
        read = lc.llama_state_seq_set_data(self._context, _bytes_pointer(state), len(state), seq)
        if not read:
            lc.llama_memory_seq_rm(self._memory, seq, -1, -1)
        return bool(read)

    def set_threads(self, decode: int, batch: int) -> None:
        lc.llama_set_n_threads(self._context, decode, batch)

    def abort(self) -> None:
        self._flag.set(True)

    def clear_abort(self) -> None:
        self._flag.set(False)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            lc.llama_free(self._context)
            lc.llama_batch_free(self._batch.raw)
            lc.llama_model_free(self._model)


def _bytes_pointer(data: Any) -> Any:
    """Pointer to a buffer's bytes without copying (bytes objects included)."""
    view = np.frombuffer(data, dtype=np.uint8)
    return view.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _features() -> frozenset[str]:
    """What this build of llama.cpp uses of the processor."""
    return frozenset(parse_system_info(lc.llama_print_system_info().decode("utf-8", "replace"))[1])


def _make(options: EngineOptions, flag: _AbortFlag, *, repack: bool) -> tuple[int, int, int]:
    """Model, context and its size in tokens. Raises ModelError or MemoryPlanError."""
    model = _load_model(options, repack)
    try:
        return (model, *_make_context(model, options, flag))
    except BaseException:
        lc.llama_model_free(model)
        raise


def _load_model(options: EngineOptions, repack: bool) -> int:
    """repack: weights may be rearranged for this processor's matrix instructions."""
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


def _make_context(model: int, options: EngineOptions, flag: _AbortFlag) -> tuple[int, int]:
    """A context of the wanted size, or a smaller one if memory is short. Raises MemoryPlanError."""
    wanted = (
        min(options.context, max(_MIN_CONTEXT, int(lc.llama_model_n_ctx_train(model)))) // 256 * 256 or 256
    )
    can_branch = not lc.llama_model_is_recurrent(model) and not lc.llama_model_is_hybrid(model)
    size = wanted
    while True:
        params = lc.llama_context_default_params()
        params.n_ctx = size
        params.n_batch, params.n_ubatch = options.n_batch, min(options.n_ubatch, options.n_batch)
        params.n_seq_max = options.slots + (SCRATCH_SEQUENCES if can_branch else 0)
        params.n_outputs_max = MAX_OUTPUTS
        params.kv_unified = True
        params.swa_full = True
        params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.type_k = params.type_v = _KV_TYPE_IDS[options.kv_type]
        params.n_threads = params.n_threads_batch = options.threads or default_threads()
        params.abort_callback, params.abort_callback_data = flag.callback, flag.data
        params.no_perf = True
        context = lc.llama_init_from_model(model, params)
        if context:
            return int(context), int(lc.llama_n_ctx(context))
        if size // 2 < _MIN_CONTEXT:
            raise MemoryPlanError(
                f"No context of {wanted} tokens, nor a smaller one down to {size}, could be allocated for this "
                f"model: {ERRORS.take() or 'not enough memory'}. Choose a smaller model or free some memory."
            )
        size //= 2


def _describe(model: int, options: EngineOptions, head: GgufHead, context: int, repacked: bool) -> ModelInfo:
    buffer = ctypes.create_string_buffer(256)
    lc.llama_model_desc(model, buffer, 256)
    recurrent = bool(lc.llama_model_is_recurrent(model)) or bool(lc.llama_model_is_hybrid(model))
    return ModelInfo(
        path=options.model_path,
        fingerprint=engine_fingerprint(
            file_fingerprint(options.model_path),
            llama_cpp.__version__,
            options.kv_type,
            "unified+fa" if repacked else "unified+fa, plain",
        ),
        description=buffer.value.decode("utf-8", "replace"),
        architecture=head.architecture,
        vocab_size=int(lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))),
        context=context,
        slots=options.slots,
        parameters=int(lc.llama_model_n_params(model)),
        size_bytes=head.size,
        can_drop_tail=not recurrent,
        gpu=options.gpu_layers != 0 and bool(lc.llama_supports_gpu_offload()),
    )


def load(options: EngineOptions) -> LlamaBackend:
    """Check the file and load it. Engine thread. Raises ModelError or MemoryPlanError."""
    return LlamaBackend(options, check_gguf(options.model_path))
