"""What to try when memory cannot be had: the next smaller setting, and the search for the first that works. Pure.

Strategy: half the context and no more slots than it can hold; then again. GPU layers: half of them, then none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from lsp_complete.engine.options import EngineOptions
from lsp_complete.errors import MemoryPlanError

T = TypeVar("T")
MIN_CONTEXT = 1024
TOKENS_PER_SLOT = 1024


def half(options: EngineOptions) -> EngineOptions | None:
    """The next smaller setting: half the context, a slot per 1,024 tokens at most, half the memory for evicted prompts. None at the end."""
    context = options.context // 2 // 256 * 256
    if context < MIN_CONTEXT:
        return None
    slots = max(1, min(options.slots, context // TOKENS_PER_SLOT))
    return replace(options, context=context, slots=slots, host_cache_bytes=options.host_cache_bytes // 2)


def first_that_works(
    options: EngineOptions, make: Callable[[EngineOptions], T | None], reason: Callable[[], str]
) -> tuple[EngineOptions, T]:
    """The first setting, from `options` down, that `make` gives something for. reason: why the last one failed.

    Raises MemoryPlanError with the sizes tried.
    """
    tried: EngineOptions | None = options
    last = options
    while tried is not None:
        made = make(tried)
        if made is not None:
            return tried, made
        last, tried = tried, half(tried)
    raise MemoryPlanError(
        f"No context of {options.context} tokens, nor a smaller one down to {last.context}, could be allocated for this "
        f"model: {reason() or 'not enough memory'}. Choose a smaller model or free some memory."
    )


def gpu_choices(layers: int, total: int) -> Iterator[int]:
    """Numbers of GPU layers to try, most first. layers: as wanted, −1 for all; total: of the model (0 unknown)."""
    yield layers
    count = (total if layers < 0 else layers) // 2
    while count > 1:
        yield count
        count //= 2
    if layers:
        yield 0
