"""What the engine thread needs from a model runtime. Implemented over llama.cpp (`llama.py`) and by a fake in tests.

Rules:
- One owner thread for everything except `abort` and `clear_abort`, which any thread may call.
- A batch is a list of segments; sequences in it are distinct. Output rows are numbered over the whole batch in order.
- After ABORTED, part of the batch may or may not be in the KV: read `pos_max` of every sequence again.
- After NO_ROOM nothing has changed. After NO_MEMORY nothing is certain but that `shrink` may help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lsp_complete.engine.api import ModelInfo

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


class Status(Enum):
    """How one evaluation ended."""

    OK = "ok"
    NO_ROOM = "no room"
    ABORTED = "aborted"
    NO_MEMORY = "no memory"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Segment:
    """tokens of sequence `seq` at positions start, start + 1, …; the last `outputs` of them yield logits."""

    seq: int
    start: int
    tokens: tuple[int, ...]
    outputs: int = 0

    def __post_init__(self) -> None:
        if not self.tokens or not 0 <= self.outputs <= len(self.tokens):
            raise ValueError(f"segment of {len(self.tokens)} tokens with {self.outputs} outputs")


class PieceTable(Protocol):
    """Token bytes in sorted order, for constraints. `pieces[i]` belongs to `ids[i]`; tokens without bytes are absent."""

    @property
    def pieces(self) -> Sequence[bytes]: ...

    @property
    def ids(self) -> Ints: ...

    def piece(self, token: int) -> bytes: ...

    def is_eog(self, token: int) -> bool: ...


class Backend(Protocol):
    """A loaded model with one context."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def vocab(self) -> PieceTable: ...

    @property
    def sequences(self) -> int:
        """Number of sequence ids: 0 … sequences - 1. At least the number of slots."""
        ...

    @property
    def max_outputs(self) -> int:
        """Most logits rows of one batch."""
        ...

    def decode(self, segments: Sequence[Segment]) -> Status:
        """Evaluate. At most `n_batch` tokens and `max_outputs` rows."""
        ...

    def logits(self, row: int) -> Floats:
        """View of row `row` of the last successful decode; valid until the next one."""
        ...

    def seq_rm(self, seq: int, start: int) -> bool:
        """Drop positions ≥ start. False: this memory cannot, nothing was changed."""
        ...

    def seq_cp(self, source: int, target: int, end: int) -> None:
        """Share positions < end of source with the empty sequence `target`."""
        ...

    def pos_min(self, seq: int) -> int:
        """Smallest position, -1 if empty."""
        ...

    def pos_max(self, seq: int) -> int:
        """Largest position, -1 if empty."""
        ...

    def cells(self, seq: int) -> int:
        """Cells of the KV that the sequence holds, -1 where the memory does not tell. Dearer than the positions: at rest only."""
        ...

    def state_get(self, seq: int) -> bytearray | None:
        """Saved state of one sequence, or None if it cannot be saved."""
        ...

    def state_set(self, seq: int, state: Any) -> bool:
        """Restore into an empty sequence; on False the sequence is empty."""
        ...

    def set_threads(self, decode: int, batch: int) -> None:
        """Threads for single tokens and for batches."""
        ...

    def abort(self) -> None:
        """Stop the running evaluation soon. Any thread."""
        ...

    def clear_abort(self) -> None:
        """Take `abort` back. Any thread."""
        ...

    def shrink(self) -> bool:
        """Start over with a smaller context and fewer sequences; everything evaluated is gone and `info` is another. False: it
        cannot get smaller, nothing was changed. Raises MemoryPlanError if no context at all could be had: only `close` is left."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...
