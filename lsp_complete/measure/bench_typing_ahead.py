"""What work ahead brings, for `bench typing`: `--accept`, `--revisit`, `--on-off` and `--small`.

- accept: after acceptance of a right suggestion, when the next one is there (`accepting`); with the settings in force and with
  `prefetch = off`, in turns.
- revisit: five seconds after opening, back in a file used before, after a restart (`revisiting`).
- on_off: `rhythm` with everything that works ahead, joins or proposes on, against all of it off, in turns.
- small: the near-cursor prompt of the cold ladder and the full one at the same keys (`closed`): what the small one costs in exact match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..service.windows import SMALL
from .accepting import READ_S, accept_figures, run_accept
from .bench_typing import (
    CLOSED_SETTINGS,
    TypingOptions,
    closed_figures,
    comparison,
    rhythm_figures,
    variant_of,
)
from .closed import run_closed
from .corpus import Place
from .revisiting import revisit_figures, run_revisit
from .rhythm import compare_rhythm

ON: Mapping[str, Any] = {"prefetch": "full"}
OFF: Mapping[str, Any] = {
    "prefetch": "off", "first_deadline_ms": 0, "engine": {"speculation": False}, "suggest": {"typed_through": False},
}  # fmt: skip
FULL_SETTINGS: Mapping[str, Any] = {**CLOSED_SETTINGS, "first_deadline_ms": 0}
SMALL_SETTINGS: Mapping[str, Any] = {
    **FULL_SETTINGS,
    "context": {
        "lines_above": SMALL.lines_above,
        "lines_below": SMALL.lines_below,
        "anchor_lines": SMALL.anchor_lines,
        "cross_file": False,
    },
}

Say = Callable[[str], None]


async def measure_ahead(options: TypingOptions, places: Sequence[Place], say: Say) -> dict[str, Any]:
    """The figures asked for, by name, and the model. Raises EngineUnavailable."""
    result: dict[str, Any] = {}
    if options.accept:
        variants = [variant_of("on", {}, options), variant_of("off", {"prefetch": "off"}, options)]
        run = await run_accept(variants, places, options.seed, say)
        result["accept"] = {"read_ms": READ_S * 1000} | {v.name: accept_figures([s for s in run.samples if s.variant == v.name]) for v in variants}
        result["model"] = run.model
    if options.revisit:
        samples, result["model"] = await run_revisit(variant_of("lsp-complete", CLOSED_SETTINGS, options), places, say)
        result["revisit"] = revisit_figures(samples)
    if options.on_off:
        runs = await compare_rhythm([variant_of("on", ON, options), variant_of("off", OFF, options)], places, options.seed, say)
        result["on_off"] = {name: rhythm_figures(run) for name, run in runs.items()}
        result["model"] = runs["on"].model
    if options.small:
        pair = [variant_of("full", FULL_SETTINGS, options), variant_of("small", SMALL_SETTINGS, options)]
        closed = await run_closed(pair, places, options.seed, say)
        full, small = ([s for s in closed.samples if s.variant == v.name] for v in pair)
        result["small_prompt"] = {
            "full": closed_figures(full),
            "small": closed_figures(small),
            "small_against_full": comparison(small, full, options.seed),
        }
        result["model"] = closed.model
    return result
