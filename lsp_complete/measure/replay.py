"""`lsp-complete replay import|run|compare|review|corpus|gate`: recordings through the real server, and runs against each other.

Rules: standard output gets what was asked for. Exit status of `compare`: 0 what is required holds, 1 it does not, 2 the
comparison could not be made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ..errors import LspCompleteError
from .bench import set_option
from .replay_judging import add_corpus, add_gate

if TYPE_CHECKING:
    from ..cli import Sub
    from .replay_compare import Comparison

EXIT_NOT_HELD, EXIT_FAILED = 1, 2


def add_parser(sub: Sub) -> None:
    """`replay` with its subcommands."""
    parser = sub.add_parser("replay", help="replay recorded sessions and compare runs")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_import(commands)
    _add_run(commands)
    _add_compare(commands)
    _add_review(commands)
    add_corpus(commands, _guarded)
    add_gate(commands, _guarded, set_option)


def _guarded(work: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        try:
            return work(args)
        except (LspCompleteError, OSError, ValueError, ConnectionError, asyncio.TimeoutError) as error:
            print(f"lsp-complete replay: {str(error) or type(error).__name__}", file=sys.stderr)
        except Exception as error:  # must not leave with the status that says "worse"
            if os.environ.get("LSP_COMPLETE_DEBUG"):
                traceback.print_exc()
            told = "run it again with LSP_COMPLETE_DEBUG=1 for the traceback to put into a report"
            print(f"lsp-complete replay: internal error, {type(error).__name__}; {told}", file=sys.stderr)
        return EXIT_FAILED

    return run


def _add_import(commands: Any) -> None:
    parser = commands.add_parser("import", help="make a recording of a git commit, or of VS Code's JSON")
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="a git repository, or a workspaceRecording@1.0 file"
    )
    parser.add_argument("--commit", default="HEAD", metavar="NAME", help="the commit to type (default: HEAD)")
    parser.add_argument(
        "--keys", type=int, default=2000, metavar="N", help="characters typed at most (default: 2000)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the rhythm (default: 1)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write the recording"
    )
    parser.set_defaults(run=_guarded(_import))


def _import(args: argparse.Namespace) -> int:
    from . import import_git, import_vscode
    from .recording import write

    if args.source.is_dir():
        recording = import_git.read(args.source, args.commit, seed=args.seed, max_keys=args.keys)
    else:
        recording = import_vscode.read(args.source)
    write(args.out, recording)
    print(f"{args.out}: {len(recording.events)} events")
    return 0


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="replay recordings through a server of its own")
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="RECORDING", help="our recordings or VS Code's JSON"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="folder for the run")
    parser.add_argument("--model", default="", metavar="NAME", help="catalogue name or GGUF file")
    parser.add_argument(
        "--set", action="append", type=set_option, default=[], metavar="NAME=VALUE", help="a setting"
    )
    parser.add_argument("--rhythm", action="store_true", help="in real rhythm instead of as fast as possible")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="ask at most N times (default: no limit)"
    )
    parser.add_argument("--json", action="store_true", help="print what ran as JSON")
    parser.set_defaults(run=_guarded(_run))


def _run(args: argparse.Namespace) -> int:
    from .bench import nested
    from .replay_run import ReplayOptions, read_any, run

    recordings = {path.name: read_any(path) for path in args.recordings}
    if len(recordings) < len(args.recordings):
        raise ValueError("Two recordings have the same file name; rename one.")
    options = ReplayOptions(nested(args.set), args.model, args.rhythm, args.limit)
    about = run(recordings, options, args.out, lambda text: print(text, file=sys.stderr, flush=True))
    if args.json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        print(
            f"{args.out}: {about['points']} requests, {about['shown']} with a suggestion, model {about['model']}"
        )
    return 0


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare", help="compare two runs; the exit status says whether it is a gain"
    )
    parser.add_argument("first", type=Path, metavar="RUN_A", help="the run before")
    parser.add_argument("second", type=Path, metavar="RUN_B", help="the run after")
    parser.add_argument(
        "--require",
        choices=("both", "quality"),
        default="both",
        help="status 0 needs latency down and quality not down (both, the default) or only the latter",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report, one file")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the intervals (default: 1)")
    parser.set_defaults(run=_guarded(_compare))


def _compare(args: argparse.Namespace) -> int:
    from . import kept
    from .replay_compare import compare
    from .replay_gate import word_of
    from .replay_report import page
    from .replay_store import load_run

    (first, first_rows), (second, second_rows) = load_run(args.first), load_run(args.second)
    result = compare(first_rows, second_rows, seed=args.seed)
    names = (args.first.resolve().name, args.second.resolve().name)
    verdict = word_of({figure.verdict for figure in result.quality})
    models = (str(first.get("model", "")), str(second.get("model", "")))
    kept.keep_if_possible(result, names, models, verdict, lambda text: print(text, file=sys.stderr))
    if args.html:
        sides = ({**first, "rows": first_rows}, {**second, "rows": second_rows})
        args.html.write_text(page(result, *sides, names), encoding="utf-8", errors="replace")
    if args.json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    else:
        _print(result, names)
    held = not result.quality_down and (args.require == "quality" or result.faster)
    return 0 if held else EXIT_NOT_HELD


def _print(result: Comparison, names: tuple[str, str]) -> None:
    console = Console()
    table = Table(title="second minus first")
    for column in ("figure", *names, "difference", "interval", "", "pairs"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for f in (result.wall, *result.stages, *result.quality):
        d = f.difference
        cells = (f"{f.first:.4g}", f"{f.second:.4g}", f"{d.estimate:+.4g}", f"{d.low:+.4g} … {d.high:+.4g}")
        table.add_row(f.name, *cells, f.verdict, str(f.pairs))
    console.print(table)
    console.print(
        f"texts differ at {len(result.differing)} of {result.pairs} points; names {result.names_apart:.3f} apart"
    )
    console.print(result.summary())


def _add_review(commands: Any) -> None:
    parser = commands.add_parser("review", help="grade a random sample of a run's suggestions")
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder; grades are kept in it")
    parser.add_argument(
        "--count", type=int, default=20, metavar="N", help="suggestions to grade (default: 20)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the draw (default: 1)")
    parser.set_defaults(run=_guarded(_review))


def _review(args: argparse.Namespace) -> int:
    from .replay_review import review
    from .replay_store import load_run

    _, rows = load_run(args.folder)
    counts = review(args.folder, rows, args.count, args.seed, input, print)
    print("; ".join(f"{word}: {count}" for word, count in counts.items()))
    return 0
