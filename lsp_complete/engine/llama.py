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
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import llama_cpp.llama_cpp as lc
import numpy as np

from lsp_complete.engine.api import ModelInfo
from lsp_complete.engine.backend import Floats, Segment, Status
from lsp_complete.engine.gguf_check import GgufHead, check_gguf
from lsp_complete.engine.llama_info import parse_system_info
from lsp_complete.engine.llama_open import (
    MAX_OUTPUTS,
    AbortFlag,
    Batch,
    capped,
    describe,
    load_model,
    make_context,
)
from lsp_complete.engine.native import ERRORS
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.shrink import first_that_works, gpu_choices, half
from lsp_complete.engine.threads import ThreadGovernor, default_threads, read_cpu, usable_cores
from lsp_complete.engine.trial import RISKY, survives
from lsp_complete.engine.vocab import Vocab, meta
from lsp_complete.errors import MemoryPlanError, ModelError

log = logging.getLogger(__name__)

_STATUS = {0: Status.OK, 1: Status.NO_ROOM, 2: Status.ABORTED, -2: Status.NO_MEMORY}


class LlamaBackend:
    """See `backend.Backend`."""

    def __init__(self, options: EngineOptions, head: GgufHead) -> None:
        self._options = options
        self._head = head
        self._flag = AbortFlag()
        self._closed = False
        self._threads = options.threads or default_threads()
        self._context: int | None = None
        self._cell_bytes = (0, 0)
        self.repacked = True
        self._open(options)
        on_cpu = not options.gpu_layers or not lc.llama_supports_gpu_offload()
        if on_cpu and RISKY & _features() and not survives(self._two_tokens):
            log.warning("the matrix instructions of this build of llama.cpp fault on this processor; going on without, slower")
            lc.llama_free(self._context)
            lc.llama_model_free(self._model)
            self._context, self.repacked = None, False
            self._open(options)
        self._vocab = Vocab(
            lc.llama_model_get_vocab(self._model), meta(self._model, "tokenizer.ggml.pre"), owner=self
        )
        _ = self._vocab.pieces  # sorted now, not at the first key that needs healing
        self._batch = Batch(options.n_batch)
        self._rows: list[int] = []
        self._n_vocab = self._vocab.size
        self._info = describe(self._model, self._options, head, self.repacked)
        self._governor: ThreadGovernor | None = None
        try:
            self._warm_up()
        except BaseException:
            self.close()
            raise

    def _open(self, options: EngineOptions) -> None:
        """Weights, then context. Raises ModelError or MemoryPlanError; then nothing is left open."""
        self._model = load_model(options, self.repacked)
        try:
            self._open_context(capped(self._model, options))
        except BaseException:
            lc.llama_model_free(self._model)
            raise

    def _open_context(self, options: EngineOptions) -> None:
        """A context of this size, or the next smaller one that can be had. Raises MemoryPlanError."""
        self._options, self._context = first_that_works(
            options, lambda smaller: make_context(self._model, smaller, self._flag), ERRORS.take
        )
        self._memory = lc.llama_get_memory(self._context)

    def shrink(self) -> bool:
        smaller = half(self._options)
        if smaller is None:
            return False
        lc.llama_free(self._context)
        self._rows, self._context = [], None
        self._open_context(smaller)
        self.set_threads(self._threads, self._threads)
        self._info = replace(self._info, context=self._options.context, slots=self._options.slots)
        return True

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
        batch = Batch(2)
        batch.fill([Segment(0, 0, (0, 0))])
        lc.llama_set_n_threads(self._context, 1, 1)
        lc.llama_decode(self._context, batch.raw)

    def _warm_up(self) -> None:
        """Touch all weights once, choose the number of threads, and begin to follow the load."""
        limit = self._options.threads or self._best_threads()
        self.set_threads(limit, limit)
        self._time_one_token()
        if not self._keeps_its_head():
            self._info = replace(self._info, can_drop_tail=False, window=1)
        if not self._options.threads and self._options.remeasure_threads and not self._info.gpu:
            niced = self._options.count_niced
            self._governor = ThreadGovernor(limit, len(usable_cores()), lambda: read_cpu(niced))

    def _keeps_its_head(self) -> bool:
        """Whether the last of two tokens can be dropped, tried rather than believed."""
        self.decode([Segment(0, 0, (0, 0))])
        both = int(lc.llama_state_seq_get_size(self._context, 0))
        kept = self.seq_rm(0, 1) and self.pos_max(0) == 0
        if kept and not self._info.window:
            first = int(lc.llama_state_seq_get_size(self._context, 0))
            self._cell_bytes = (first, both - first)
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
        status = self.decode([Segment(0, 0, (0,), 1)])
        while status is Status.NO_MEMORY and self.shrink():
            status = self.decode([Segment(0, 0, (0,), 1)])
        if status is not Status.OK:
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

    def cells(self, seq: int) -> int:
        """By the size that its saved state would have: so much for the first cell, so much for each further one."""
        if self.pos_max(seq) < 0:
            return 0
        first, each = self._cell_bytes
        more, rest = divmod(int(lc.llama_state_seq_get_size(self._context, seq)) - first, max(1, each))
        return 1 + more if each > 0 and not rest else -1

    def state_get(self, seq: int) -> bytearray | None:
        size = lc.llama_state_seq_get_size(self._context, seq)
        if not size:
            return None
        try:
            state = bytearray(size)
        except MemoryError:
            return None
        written = lc.llama_state_seq_get_data(self._context, _bytes_pointer(state), size, seq)
        return state if written == size else None

    def state_set(self, seq: int, state: Any) -> bool:
        read = lc.llama_state_seq_set_data(self._context, _bytes_pointer(state), len(state), seq)
        if not read:
            lc.llama_memory_seq_rm(self._memory, seq, -1, -1)
        return bool(read)

    def set_threads(self, decode: int, batch: int) -> None:
        self._threads = decode
        lc.llama_set_n_threads(self._context, decode, batch)

    def abort(self) -> None:
        self._flag.set(True)

    def clear_abort(self) -> None:
        self._flag.set(False)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._context is not None:
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


def load(options: EngineOptions) -> LlamaBackend:
    """Check the file and load it, with fewer GPU layers or a smaller context than wanted if memory is short. Engine thread.

    Raises ModelError or MemoryPlanError.
    """
    head = check_gguf(options.model_path)
    for layers in gpu_choices(options.gpu_layers, head.number("block_count")):
        try:
            return LlamaBackend(replace(options, gpu_layers=layers), head)
        except (ModelError, MemoryPlanError):
            if not layers:
                raise
    raise AssertionError("gpu_choices ends with 0 or raises")
