"""The `bench` command: one parser per benchmark, one envelope around every result, JSON or a table.

Rules: results on standard output, progress on standard error; exit 0 if the benchmark ran, 2 if its input or the
model is missing. Thresholds are not judged here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..errors import LspCompleteError
from .bench_load_commands import add_load, add_soak
from .envelope import envelope


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add `bench` to the command line's subparsers. The parsed namespace has `run`: namespace → exit status."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench", help="measure speed and quality on this machine"
    )
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    _add_typing(benches)
    _add_quality(benches)
    _add_documents(benches)
    _add_speculation(benches)
    _add_context(benches)
    _add_recording(benches)
    _add_crossfile(benches)
    _add_keystrokes(benches)
    for add in (add_load, add_soak):
        bench, work = add(benches)
        _common(bench)
        bench.set_defaults(run=_guarded(work))
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of all random choices (default 1)"
    )


def set_option(text: str) -> tuple[list[str], Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError:
        parsed = value
    return name.split("."), parsed


def nested(pairs: list[tuple[list[str], Any]]) -> dict[str, Any]:
    """Settings by group from dotted names."""
    result: dict[str, Any] = {}
    for names, value in pairs:
        level = result
        for name in names[:-1]:
            level = level.setdefault(name, {})
        level[names[-1]] = value
    return result


def _add_typing(benches: Any) -> None:
    parser = benches.add_parser(
        "typing", help="type into real files; key to suggestion, and whether it was right"
    )
    parser.add_argument("--places", type=int, default=32, metavar="N", help="lines to retype (default 32)")
    parser.add_argument(
        "--files", nargs="+", type=Path, default=[], metavar="FILE", help="instead of the pinned files"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument(
        "--mode", choices=("both", "closed", "rhythm"), default="", help="default: both, with --peer closed"
    )
    parser.add_argument("--no-standard", action="store_true", help="leave out the standard layout beside it")
    parser.add_argument(
        "--set", action="append", type=set_option, default=[], metavar="NAME=VALUE", help="a setting"
    )
    parser.add_argument(
        "--peer", default="", metavar="URL", help="also type into a running llama-server, asked as llama.vim asks it"
    )
    parser.add_argument(
        "--peer-chunks", type=int, default=16, metavar="N", help="llama.vim's extra context, in chunks (default 16)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep every key of closed mode as JSON lines, and go on from what is there")
    parser.add_argument(
        "--accept", action="store_true", help="instead: when the next suggestion is there after a right one was accepted"
    )
    parser.add_argument(
        "--revisit", action="store_true", help="instead: five seconds after opening, back in a file, after a restart"
    )
    parser.add_argument("--on-off", action="store_true", help="instead: rhythm with all work ahead on, against all off")
    parser.add_argument("--small", action="store_true", help="instead: the small prompt of a cold place against the full one")
    _common(parser)
    parser.set_defaults(run=_guarded(run_typing))


def run_typing(arguments: argparse.Namespace) -> dict[str, Any]:
    """The typing benchmark's result."""
    from . import bench_typing
    from .peer import Peer

    settings = nested(arguments.set)
    peer = Peer(arguments.peer, arguments.peer_chunks, seed=arguments.seed) if arguments.peer else None
    ahead = arguments.accept or arguments.revisit or arguments.on_off or arguments.small
    mode = arguments.mode or ("none" if ahead else "closed" if peer else "both")
    options = bench_typing.TypingOptions(
        places=arguments.places,
        seed=arguments.seed,
        files=tuple(arguments.files),
        model=arguments.model,
        closed=mode in ("both", "closed"),
        rhythm=mode in ("both", "rhythm"),
        accept=arguments.accept,
        revisit=arguments.revisit,
        on_off=arguments.on_off,
        small=arguments.small,
        standard=not arguments.no_standard,
        settings=settings,
        peer=peer,
    )
    result = bench_typing.run(options, arguments.save)
    return _wrap("typing", result, arguments, settings)


def _add_quality(benches: Any) -> None:
    parser = benches.add_parser(
        "quality", help="exact match on HumanEval-Infilling, single line, cursor in mid-line"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="the data, JSON lines")
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="only the first N problems")
    parser.add_argument(
        "--no-tests", action="store_true", help="do not run the problems' programs (no pass_at_1)"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write every answer's figures as JSON lines"
    )
    _common(parser)
    parser.set_defaults(run=_guarded(run_quality))


def run_quality(arguments: argparse.Namespace) -> dict[str, Any]:
    """The quality benchmark's result."""
    from . import bench_quality

    result, verdicts = bench_quality.run(
        arguments.data, model=arguments.model, limit=arguments.limit, tests=not arguments.no_tests
    )
    if arguments.save is not None:
        bench_quality.save(verdicts, arguments.save)
    result = {"data": arguments.data.name, **result}
    return _wrap("quality", result, arguments, {})


def _add_documents(benches: Any) -> None:
    parser = benches.add_parser("documents", help="edits, tokens, positions and outlines of documents")
    parser.add_argument(
        "--sections", nargs="+", choices=("edits", "huge", "outlines", "outline-quality"), metavar="NAME", default=None,
        help="edits, huge, outlines (these by default) and outline-quality, which asks a model for up to half an hour",
    )  # fmt: skip
    parser.add_argument(
        "--outline-quality", action="store_true", help="also compare lines completed with an outline and with the whole file"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file (default: the smallest)")
    parser.add_argument("--points", type=int, default=50, metavar="N", help="lines to complete (default 50)")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="keep every answer as JSON lines, and go on from what is there"
    )
    _common(parser)
    parser.set_defaults(run=_guarded(run_documents))


def run_documents(arguments: argparse.Namespace) -> dict[str, Any]:
    """The document benchmark's result."""
    from . import bench_documents

    sections = arguments.sections or list(bench_documents.QUICK)
    if arguments.outline_quality and "outline-quality" not in sections:
        sections.append("outline-quality")
    arguments.sections = sections
    result = bench_documents.run(arguments)
    model = result.get("outline_quality", {}).pop("model", "none")
    return envelope("documents", result, model=model, settings={"sections": sections}, seed=arguments.seed)


def _add_speculation(benches: Any) -> None:
    parser = benches.add_parser(
        "speculation", help="tokens per second with and without proposals, and whether the text is the same"
    )
    parser.add_argument(
        "--model", nargs="+", default=["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"], metavar="NAME",
        help="catalogue names or GGUF files; the last one is measured by proposer too",
    )  # fmt: skip
    parser.add_argument("--draft", default="", metavar="NAME", help="a draft model for the last model")
    parser.add_argument("--points", type=int, default=120, metavar="N", help="places (default 120)")
    parser.add_argument("--max-tokens", type=int, default=48, metavar="N", help="tokens each (default 48)")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="of each (default 1)")
    parser.add_argument(
        "--gpu-layers", type=int, default=0, metavar="N", help="layers on the GPU, -1 for all (default 0)"
    )
    parser.add_argument(
        "--candidates", type=int, default=4, metavar="K", help="candidates to compare with one, 1 for none (default 4)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep every point as JSON lines, and go on from what is there")
    parser.add_argument(
        "--seconds", type=float, default=0, metavar="N", help="begin no point after so long, per model (default: no limit)"
    )
    parser.add_argument("--no-proposers", action="store_true", help="leave out the proposers one by one")
    parser.add_argument(
        "--files", nargs="+", type=Path, default=[], metavar="FILE", help="instead of the pinned files"
    )
    _common(parser)
    parser.set_defaults(run=_guarded(run_speculation))


def run_speculation(arguments: argparse.Namespace) -> dict[str, Any]:
    """The speculation benchmark's result."""
    from . import bench_speculation

    options = bench_speculation.SpeculationOptions(
        models=tuple(arguments.model),
        draft=arguments.draft,
        points=arguments.points,
        max_tokens=arguments.max_tokens,
        repetitions=arguments.repetitions,
        seed=arguments.seed,
        per_proposer=not arguments.no_proposers,
        gpu_layers=arguments.gpu_layers,
        files=tuple(arguments.files),
        candidates=max(1, min(8, arguments.candidates)),
        save=arguments.save,
        seconds=arguments.seconds,
    )
    result = bench_speculation.run(options)
    model = result.pop("model")
    return envelope(
        "speculation", result, model=model, settings={"draft": arguments.draft, "max_tokens": arguments.max_tokens},
        seed=arguments.seed, repetitions=arguments.repetitions,
    )  # fmt: skip


def _add_context(benches: Any) -> None:
    parser = benches.add_parser(
        "context", help="building prompts, how much of them stays the same, and the workspace index"
    )
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="instead of the Python standard library")
    parser.add_argument("--max-files", type=int, default=2200, metavar="N", help="files to index (default 2200)")
    parser.add_argument("--keys", type=int, default=500, metavar="N", help="keys to type (default 500)")
    _common(parser)
    parser.set_defaults(run=_guarded(run_context))


def run_context(arguments: argparse.Namespace) -> dict[str, Any]:
    """The context benchmark's result."""
    from . import bench_context

    result = bench_context.run(arguments)
    settings = {"max_files": arguments.max_files, "keys": arguments.keys}
    return envelope("context", result, model="none", settings=settings, seed=arguments.seed)


def _add_crossfile(benches: Any) -> None:
    parser = benches.add_parser("crossfile", help="what other files in the prompt bring, at the same budget")
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument("--masks", type=int, default=320, metavar="N", help="places (default 320)")
    parser.add_argument("--budget", type=int, default=800, metavar="N", help="prompt tokens (default 800)")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="keep every answer as JSON lines, and go on from what is there"
    )
    parser.add_argument("--seconds", type=float, default=0, metavar="N", help="stop after so long (default: at the end)")
    _common(parser)
    parser.set_defaults(run=_guarded(run_crossfile))


def run_crossfile(arguments: argparse.Namespace) -> dict[str, Any]:
    """The cross-file benchmark's result."""
    from . import bench_crossfile

    result = bench_crossfile.run(
        model=arguments.model, count=arguments.masks, budget=arguments.budget, seed=arguments.seed,
        save=arguments.save, seconds=arguments.seconds,
    )  # fmt: skip
    return _wrap("crossfile", result, arguments, {"budget_tokens": arguments.budget})


def _add_keystrokes(benches: Any) -> None:
    parser = benches.add_parser("keystrokes", help="share of keys that suggestions save, and how many of them are right")
    parser.add_argument("--files", type=int, default=10, metavar="N", help="of the ten pinned files, the first N (default 10)")
    parser.add_argument("--lines", type=int, default=40, metavar="N", help="consecutive lines of each (default 40)")
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument("--every-key", action="store_true", help="ask also where an earlier answer still agrees")
    parser.add_argument("--filters", action="store_true", help="add what each filter changes, and exact match without it")
    parser.add_argument(
        "--set", action="append", type=set_option, default=[], metavar="NAME=VALUE", help="a setting"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="keep every answer as JSON lines, and go on from what is there"
    )
    _common(parser)
    parser.set_defaults(run=_guarded(run_keystrokes))


def run_keystrokes(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keystroke benchmark's result."""
    from . import bench_keystrokes

    settings = nested(arguments.set)
    options = bench_keystrokes.KeystrokeOptions(
        files=arguments.files,
        lines=arguments.lines,
        seed=arguments.seed,
        model=arguments.model,
        every_key=arguments.every_key,
        filters=arguments.filters,
        settings=settings,
    )
    return _wrap("keystrokes", bench_keystrokes.run(options, arguments.save), arguments, settings)


def _add_recording(benches: Any) -> None:
    parser = benches.add_parser("recording", help="what recording costs per key")
    parser.add_argument("--keys", type=int, default=2000, metavar="N", help="keys to type (default 2000)")
    parser.add_argument(
        "--answer-ms", type=float, default=100.0, metavar="N", help="key to answer here, as bench typing told it (default 100)"
    )
    _common(parser)
    parser.set_defaults(run=_guarded(run_recording))


def run_recording(arguments: argparse.Namespace) -> dict[str, Any]:
    """The recording benchmark's result."""
    from . import bench_recording

    result = bench_recording.run(arguments.keys, arguments.answer_ms, arguments.seed)
    return envelope("recording", result, model="none", settings={}, seed=arguments.seed)


def _wrap(
    bench: str, result: dict[str, Any], arguments: argparse.Namespace, settings: Mapping[str, Any]
) -> dict[str, Any]:
    loaded = result.pop("model", "")
    return envelope(
        bench, result, model=loaded or arguments.model or "auto", settings=settings, seed=arguments.seed
    )


def _guarded(work: Any) -> Any:
    def run(arguments: argparse.Namespace) -> int:
        try:
            result = work(arguments)
        except (LspCompleteError, OSError, ValueError, ConnectionError, asyncio.TimeoutError) as error:
            print(f"lsp-complete bench: {str(error) or type(error).__name__}", file=sys.stderr)
            return 2
        show(result, arguments.json)
        return 0

    return run


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result on standard output."""
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    table = Table(title=f"bench {result['bench']}", show_header=False)
    for name, value in flatten(result):
        table.add_row(name, str(value))
    Console().print(table)


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and plain values, in order."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, ", ".join(map(str, value)) if isinstance(value, list) else value
