"""Everything that decides how one engine process loads and runs its model: a frozen value.

Strategy: the process that starts an engine writes these options down (JSON) and the engine reads them back, so every
field is a plain value. Rules: limits are positive; zero means "choose for me" only where the field says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

KV_TYPES = ("f16", "q8_0", "q4_0")
"""Types of the K and V cache that may be asked for. The quantized ones need flash attention, which is always on."""

SPECULATIVE_TOKENS = 7
"""Most tokens proposed at once by default."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How to load and run one model.

    model_path: a GGUF file. context: tokens of KV shared by all slots; one prompt with its output must fit.
    slots: prompts kept in KV at once. threads: 0 measures (at most the physical cores).
    kv_type: of K and V, one of KV_TYPES. v_type: of V, where it is another ("": kv_type). gpu_layers: -1 is all; 0 keeps everything on the CPU.
    n_batch: most tokens of one evaluation. n_ubatch: what is lost at most when one is aborted, in tokens.
    host_cache_bytes: evicted prompts in main memory (0: none). disk_cache_dir: where prompts outlive the
    process (None: nowhere), at most disk_cache_bytes, each at most disk_cache_days old.
    max_time_limit_ms: upper limit for a request's own time limit. busy_window_ms: so long after the last interactive
    request background work stays in chunks of busy_chunk tokens; afterwards idle_chunk.
    max_waiting: requests that may wait or run at once; more are refused.
    remeasure_threads: whether the thread count is measured again while the engine idles.
    draft_path: a smaller GGUF file of the same vocabulary that proposes tokens ("": none). draft_temperature: it samples what it
    proposes at this temperature (0: the most probable token). draft_least: it stops before a token that it gives a smaller
    probability. draft_back_off: after so many of its proposals in a row that were rejected whole it may propose half as many tokens,
    after twice as many a quarter, until one is accepted whole (0: always as many).
    gives_way: the process takes only what of the machine others leave. leave_bytes: free memory that it leaves alone beside the plan's
    reserve. count_niced: whether a core that a low-priority process uses counts as taken when the threads are chosen.
    speculative_tokens: most proposed tokens of one step (a batch of 8 costs about four single tokens on a CPU); 0 turns
    speculation off, an earlier suggestion included.
    """

    model_path: str
    context: int = 8192
    slots: int = 8
    threads: int = 0
    kv_type: str = "q8_0"
    gpu_layers: int = 0
    n_batch: int = 512
    n_ubatch: int = 128
    host_cache_bytes: int = 512 << 20
    disk_cache_dir: str | None = None
    disk_cache_bytes: int = 2 << 30
    disk_cache_days: float = 7.0
    max_time_limit_ms: float = 120_000.0
    busy_window_ms: float = 300.0
    busy_chunk: int = 16
    idle_chunk: int = 256
    max_waiting: int = 256
    remeasure_threads: bool = True
    speculative_tokens: int = SPECULATIVE_TOKENS
    draft_path: str = ""
    v_type: str = ""
    gives_way: bool = False
    leave_bytes: int = 0
    count_niced: bool = True
    draft_temperature: float = 0.0
    draft_least: float = 0.4
    draft_back_off: int = 0

    def __post_init__(self) -> None:
        if not self.model_path:
            raise ValueError("model_path is empty")
        for name, kind in (("kv_type", self.kv_type), ("v_type", self.v_type or self.kv_type)):
            if kind not in KV_TYPES:
                raise ValueError(f"unknown {name} {kind!r}; choose one of {', '.join(KV_TYPES)}")
        if not 64 <= self.context <= 1 << 20:
            raise ValueError(f"context of {self.context} tokens is outside 64 … 1048576")
        if not 1 <= self.slots <= 64:
            raise ValueError(f"{self.slots} slots is outside 1 … 64")
        if not 0 <= self.speculative_tokens <= 31:
            raise ValueError(f"{self.speculative_tokens} speculative tokens is outside 0 … 31")
        if not (0.0 <= self.draft_temperature <= 2.0 and 0.0 <= self.draft_least <= 1.0 and 0 <= self.draft_back_off <= 64):
            raise ValueError("draft_temperature is outside 0 … 2, draft_least outside 0 … 1, or draft_back_off outside 0 … 64")
        if min(self.threads, self.host_cache_bytes, self.disk_cache_bytes, self.leave_bytes) < 0:
            raise ValueError("threads and sizes in bytes cannot be negative")
        if min(self.n_batch, self.n_ubatch, self.busy_chunk, self.idle_chunk, self.max_waiting) < 1:
            raise ValueError("batch and chunk sizes must be at least 1")

    @property
    def kv_pair(self) -> str:
        """`q8_0` where K and V are of one type, else `q8_0/q4_0`."""
        return self.kv_type if self.v_type in ("", self.kv_type) else f"{self.kv_type}/{self.v_type}"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EngineOptions:
        """The inverse of `as_dict`; unknown names are ignored (a newer program wrote them).

        Raises ValueError or TypeError for values that cannot be used.
        """
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in known})
