"""How the engine process loads its model: the memory plan is made there and then, with what is free at that moment.

Strategy: `models` knows what a setting takes, `engine` can load it; this joins them, inside the engine process. (A plan made
by each editor window would name another engine each time the free memory changed.) Options are what is wanted at
best; the plan lowers context, slots, KV type, GPU layers and the memory for evicted prompts until they fit. What then
still cannot be had is halved while loading (`engine.shrink`).

Rules: a file whose shape cannot be read is loaded as wanted, so that the loader says what is wrong with it. Engine thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..engine.backend import Backend
from ..engine.giveway import give_way
from ..engine.local import LocalEngine, load_llama
from ..engine.options import KV_TYPES, EngineOptions
from ..errors import MemoryPlanError, ModelError
from ..models.catalogue import load_catalogue
from ..models.fit import smaller_than
from ..models.free import free_memory, gpus
from ..models.gguf import read_header
from ..models.memory import MemoryPlan, Wanted, plan, refusal
from ..models.shape import shape_of

log = logging.getLogger(__name__)


def planned_engine(options: dict[str, Any]) -> LocalEngine:
    """The engine process's factory (`EngineLaunch.factory`). Called before the process has other threads."""
    chosen = EngineOptions.from_dict(options)
    if chosen.gives_way:
        give_way()
    return LocalEngine(chosen, load_planned)


def gpu_room() -> int | None:
    """Bytes free on the GPU; 0 if this build of llama.cpp uses none, None if it does but nothing tells."""
    from ..engine.llama_info import native_info

    if not native_info().gpu:
        return 0
    return gpus()[1] or None


def load_planned(
    options: EngineOptions,
    *,
    free: Callable[[], int] = free_memory,
    gpu: Callable[[], int | None] = gpu_room,
    load: Callable[[EngineOptions], Backend] = load_llama,
) -> Backend:
    """Plan, then load. Raises ModelError, or MemoryPlanError with the numbers and the next smaller model."""
    path = Path(options.model_path)
    try:
        shape, size = shape_of(read_header(path)), path.stat().st_size
    except (ModelError, OSError):
        return load(options)
    wanted = wanted_of(options)
    room = gpu() if options.gpu_layers else 0
    memory = max(0, free() - options.leave_bytes)
    name, smaller = known_name(path, size)
    try:
        chosen = plan(name, shape, size, memory, wanted, gpu_free=room or 0, smaller=smaller)
    except MemoryPlanError:
        if room is not None:
            raise
        return load(options)  # a GPU of unknown size: only trying tells
    fitted = fit_options(options, chosen, room)
    if chosen.reduced:
        log.warning("memory is short (%d MB free): %s", memory >> 20, chosen.reduced)
    try:
        return load(fitted)
    except MemoryPlanError as error:
        log.error("%s", error)
        raise MemoryPlanError(refusal(name, shape, size, memory, wanted, smaller, tried=True)) from None


def wanted_of(options: EngineOptions) -> Wanted:
    """The best setting: the options', and where memory is short also the more compact KV types."""
    ubatch = min(options.n_ubatch, options.n_batch)
    return Wanted(options.context, options.slots, kv_choices(options), ubatch, host_cache=options.host_cache_bytes)


def kv_choices(options: EngineOptions) -> tuple[str, ...]:
    """The wanted types of K and V, then more compact ones: what is above a rank comes down to it."""
    k, v = KV_TYPES.index(options.kv_type), KV_TYPES.index(options.v_type or options.kv_type)
    pairs = dict.fromkeys((max(k, rank), max(v, rank)) for rank in range(len(KV_TYPES)))
    return tuple(KV_TYPES[a] if a == b else f"{KV_TYPES[a]}/{KV_TYPES[b]}" for a, b in pairs)


def fit_options(options: EngineOptions, chosen: MemoryPlan, gpu_room: int | None) -> EngineOptions:
    """The options with the plan's numbers. gpu_room None: the wanted layers are tried."""
    layers = options.gpu_layers
    if gpu_room is not None:
        layers = chosen.gpu_layers if layers < 0 or (chosen.gpu_layers >= 0 and layers > chosen.gpu_layers) else layers
    k, _, v = chosen.kv_type.partition("/")
    return replace(
        options, context=chosen.context, slots=chosen.slots, kv_type=k, v_type=v, gpu_layers=layers,
        host_cache_bytes=chosen.host_cache,
    )  # fmt: skip


def known_name(path: Path, size: int) -> tuple[str, tuple[tuple[str, int], ...]]:
    """What messages call the model, and (name, least need) of what to suggest instead."""
    for model in load_catalogue().models:
        if model.file.name == path.name:
            return model.short_name, smaller_than(model.file.size, model.family)
    return path.name, smaller_than(size, "")


