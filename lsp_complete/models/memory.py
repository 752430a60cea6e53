"""How much memory a model needs, and which context, slots and KV type fit what is free.

Strategy: a formula for the parts (weights, KV cache, buffers, the process itself), then a search over the few
sensible settings for the one that gives up least.

- Weights: the file's size. llama.cpp maps the file; what it repacks for the CPU it copies, and the mapped pages of those
  tensors are given back under pressure, so in the long run each weight counts once.
- KV: 2 × layers × **KV heads** × head size × bytes per value, per token. With grouped-query attention that is far less than
  all heads. All slots share one context ("unified"), so slots cost nothing by themselves.
- Buffers: the larger of the logits of one batch and the activations of one micro-batch, and an output buffer.

Rules: pure functions; the free memory is an argument. Numbers are bytes unless a name says otherwise. The formula is
checked against llama.cpp's own figures by a test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsp_complete.errors import MemoryPlanError
from lsp_complete.models.shape import ModelShape

KV_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes per value of a KV type: quantized blocks of 32 values carry a 16-bit scale."""

PROCESS_BYTES = 200 << 20
"""Interpreter, libraries and vocabulary tables of the engine process."""

TOKENS_PER_SLOT = 1024
MIN_CONTEXT = 1024
CONTEXTS = (16384, 12288, 8192, 6144, 4096, 3072, 2048, 1536, 1024)
N_UBATCH, N_OUTPUTS = 128, 64
GIB = 1 << 30
Q4_LOSS = 2.5
HOST_CACHE = 512 << 20


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What one setting takes, in bytes, in main memory and GPU memory together."""

    weights: int
    kv: int
    buffers: int
    process: int = PROCESS_BYTES

    @property
    def total(self) -> int:
        return self.weights + self.kv + self.buffers + self.process


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to plan for at best. context: tokens of KV shared by all slots. kv_types: acceptable ones, best first, `q8_0` or K and V apart as
    `q8_0/q4_0`. host_cache: bytes
    for prompts outside the context."""

    context: int = 8192
    slots: int = 8
    kv_types: tuple[str, ...] = ("q8_0", "q4_0")
    n_ubatch: int = N_UBATCH
    outputs: int = N_OUTPUTS
    host_cache: int = HOST_CACHE

    def __post_init__(self) -> None:
        if self.context < 64 or self.slots < 1 or not self.kv_types:
            raise ValueError("a plan needs a context of at least 64 tokens, a slot and a KV type")
        if unknown := {half for kind in self.kv_types for half in kind.split("/")} - set(KV_BYTES):
            raise ValueError(f"unknown KV types {sorted(unknown)}")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A setting that fits. gpu_layers: −1 for all, 0 for none. host_cache: bytes for prompts outside the context.

    reduced: what had to be given up against the wanted setting, in words; "" if nothing.
    """

    context: int
    slots: int
    kv_type: str
    gpu_layers: int
    host_cache: int
    need: MemoryNeed
    reduced: str = ""


def bytes_of_pair(kv_type: str) -> float:
    """Bytes of a value of K and one of V together; kv_type as in `Wanted`."""
    k, _, v = kv_type.partition("/")
    return KV_BYTES[k] + KV_BYTES[v or k]


def kv_bytes_per_token(shape: ModelShape, kv_type: str) -> float:
    """Bytes of K and V for one token of one sequence."""
    return shape.layers * shape.kv_heads * shape.head_size * bytes_of_pair(kv_type)


def buffer_bytes(
    shape: ModelShape, n_ubatch: int = N_UBATCH, outputs: int = N_OUTPUTS, context: int = 8192
) -> int:
    """Compute and output buffers of a CPU context with flash attention."""
    logits = 4 * outputs * shape.vocabulary
    mask = 2 * n_ubatch * context
    activations = 4 * n_ubatch * (3 * shape.feed_forward + 7 * shape.embedding) + mask
    return logits + max(logits, activations) + (2 << 20)


def need_of(
    shape: ModelShape, weights: int, context: int, kv_type: str, wanted: Wanted | None = None
) -> MemoryNeed:
    """The need of one setting. weights: size of the model file."""
    chosen = wanted or Wanted()
    kv = round(kv_bytes_per_token(shape, kv_type) * context)
    return MemoryNeed(weights, kv, buffer_bytes(shape, chosen.n_ubatch, chosen.outputs, context))


def reserve(free: int) -> int:
    """What of the free memory is left to the editor and everything else."""
    return min(max(free // 10, 256 << 20), GIB)


def plan(
    name: str,
    shape: ModelShape,
    weights: int,
    free: int,
    wanted: Wanted | None = None,
    *,
    gpu_free: int = 0,
    smaller: Sequence[tuple[str, int]] = (),
) -> MemoryPlan:
    """The best setting for `free` bytes of main memory and `gpu_free` of GPU memory.

    smaller: (name, least need in bytes) of models to suggest. Raises MemoryPlanError with the numbers where nothing fits.
    """
    chosen = wanted or Wanted()
    usable = free - reserve(free)
    gpu_usable = max(0, gpu_free - reserve(gpu_free)) if gpu_free else 0
    for context, kv_type in settings(shape, chosen):
        need = need_of(shape, weights, context, kv_type, chosen)
        layers, on_gpu = gpu_share(shape, need, gpu_usable)
        if need.total - on_gpu <= usable:
            slots = slots_for(shape, chosen, context)
            cache = min(chosen.host_cache, (usable - need.total + on_gpu) // 4)
            lost = _reduced(shape, chosen, context, kv_type, slots)
            return MemoryPlan(context, slots, kv_type, layers, cache, need, lost)
    raise MemoryPlanError(refusal(name, shape, weights, free, chosen, smaller))


def settings(shape: ModelShape, wanted: Wanted) -> Iterator[tuple[int, str]]:
    """(context, KV type) pairs from the wanted one down, the least loss first.

    The step to the next KV type weighs as much as halving the context Q4_LOSS times: q4_0 costs quality.
    """
    most = min(wanted.context, shape.context)
    contexts = [most, *(context for context in CONTEXTS if context < most)]
    pairs = [
        (math.log2(most / context) + Q4_LOSS * rank, context, kv_type)
        for context in contexts
        for rank, kv_type in enumerate(wanted.kv_types)
    ]
    for _, context, kv_type in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        yield context, kv_type


def slots_for(shape: ModelShape, wanted: Wanted, context: int) -> int:
    """As many slots as wanted; fewer, one per TOKENS_PER_SLOT, where the context had to be shortened."""
    if context >= min(wanted.context, shape.context):
        return wanted.slots
    return max(1, min(wanted.slots, context // TOKENS_PER_SLOT))


def gpu_share(shape: ModelShape, need: MemoryNeed, gpu_usable: int) -> tuple[int, int]:
    """(layers to put on the GPU, −1 for all; bytes that this moves out of main memory).

    A layer takes its share of weights and KV with it; the embedding table stays in main memory until all layers fit.
    """
    if gpu_usable <= 0:
        return 0, 0
    whole = need.weights + need.kv + need.buffers
    if whole <= gpu_usable:
        return -1, whole
    per_layer = (need.weights + need.kv) / (shape.layers + 1)
    layers = max(0, min(shape.layers, int((gpu_usable - need.buffers) / per_layer)))
    return layers, round(layers * per_layer)


def least_need(shape: ModelShape, weights: int) -> int:
    """Bytes that must be free (reserve included) for the smallest sensible setting on the CPU."""
    total = need_of(shape, weights, min(MIN_CONTEXT, shape.context), "q8_0").total
    if total * 10 // 9 - total <= 256 << 20:
        return total + (256 << 20)
    return min(total * 10 // 9 + 1, total + GIB)


def megabytes(count: float) -> str:
    """A size for people: `512 MB`, `4.7 GB` (decimal)."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _reduced(shape: ModelShape, wanted: Wanted, context: int, kv_type: str, slots: int) -> str:
    lost = []
    if context < min(wanted.context, shape.context):
        lost.append(f"context {context:,} instead of {wanted.context:,} tokens")
    if kv_type != wanted.kv_types[0]:
        lost.append(f"KV type {kv_type} instead of {wanted.kv_types[0]}")
    if lost and slots < wanted.slots:
        lost.append(f"{slots} instead of {wanted.slots} slots")
    return ", ".join(lost)


def refusal(
    name: str,
    shape: ModelShape,
    weights: int,
    free: int,
    wanted: Wanted,
    smaller: Sequence[tuple[str, int]],
    *,
    tried: bool = False,
) -> str:
    """Why a model cannot be loaded: the numbers, and the next smaller one that fits. tried: the plan fitted, but loading failed."""
    usable = free - reserve(free)
    context, kv_type = min(settings(shape, wanted), key=lambda item: item[0] * bytes_of_pair(item[1]))
    need = need_of(shape, weights, context, kv_type, wanted)
    text = (
        f"{name} does not fit the free memory: at least {megabytes(need.total)} are needed "
        f"(weights {megabytes(need.weights)}, KV of {context:,} tokens {megabytes(need.kv)}, "
        f"buffers {megabytes(need.buffers)}, process {megabytes(need.process)}), "
        f"{megabytes(max(usable, 0))} can be used of {megabytes(free)} free"
    )
    text += ", and the system gave less when it was tried." if tried else "."
    fitting = [
        (least, other) for other, least in smaller if least <= free and least < need.total + reserve(free)
    ]
    if not fitting:
        return text + " Close other programs; no smaller model in the catalogue fits either."
    least, other = max(fitting)
    return (
        text
        + f" The next smaller one that fits is {other} ({megabytes(least)}): lsp-complete models pull {other}"
    )
