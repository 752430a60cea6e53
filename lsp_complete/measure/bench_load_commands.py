"""Arguments of `bench load` and `bench soak`. The benchmarks themselves are imported when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .envelope import envelope

Work = Callable[[argparse.Namespace], dict[str, Any]]
PARTS = ("typist", "eight", "batching", "cancel", "idle_slots", "restore", "exact")
"""As in `bench_load`, which a test compares."""


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := set(names) - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown {', '.join(sorted(unknown))}; there are {','.join(PARTS)}")
    return names


def add_load(benches: Any) -> tuple[argparse.ArgumentParser, Work]:
    """`bench load`."""
    parser = benches.add_parser("load", help="many windows at one engine; cancelling, idle slots, restoring, exact reuse")
    parser.add_argument(
        "--parts", type=_names, default=PARTS[:-1], metavar="NAMES",
        help=f"of {','.join(PARTS)}, separated by commas (default: all but exact)",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=120, metavar="N", help="of typing in each run (default 120)")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="repetitions of the other parts (default: each its own)")
    parser.add_argument("--sequences", type=int, default=200, metavar="N", help="edit-and-complete sequences of exact (default 200)")
    parser.add_argument("--windows", type=int, default=8, metavar="N", help="editor windows (default 8)")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep finished parts, and go on from what is there")
    return parser, run_load


def run_load(arguments: argparse.Namespace) -> dict[str, Any]:
    """The load benchmark's result."""
    from .bench_load import LoadOptions, run

    options = LoadOptions(
        parts=tuple(arguments.parts), seconds=arguments.seconds, rounds=arguments.rounds, sequences=arguments.sequences,
        windows=arguments.windows, model=arguments.model, seed=arguments.seed,
    )  # fmt: skip
    result = run(options, arguments.save)
    model = result.pop("model")
    settings = {"seconds": options.seconds, "windows": options.windows, "rounds": options.rounds}
    return envelope("load", result, model=model, settings=settings, seed=options.seed)


def add_soak(benches: Any) -> tuple[argparse.ArgumentParser, Work]:
    """`bench soak`."""
    parser = benches.add_parser("soak", help="type for long while windows and the engine are killed; memory, stuck requests, books")
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="how long (default 30)")
    parser.add_argument("--windows", type=int, default=4, metavar="N", help="editor windows (default 4)")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b", metavar="NAME", help="catalogue name or GGUF file")
    return parser, run_soak


def run_soak(arguments: argparse.Namespace) -> dict[str, Any]:
    """The soak's result."""
    from .bench_soak import SETTINGS, SoakOptions, run

    options = SoakOptions(
        minutes=arguments.minutes, windows=arguments.windows, model=arguments.model, seed=arguments.seed
    )
    result = run(options)
    model = result.pop("model")
    settings = {"minutes": options.minutes, "windows": options.windows, **SETTINGS}
    return envelope("soak", result, model=model, settings=settings, seed=options.seed)
