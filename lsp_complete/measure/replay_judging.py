"""`lsp-complete replay corpus|gate`: a corpus of recordings from git histories, and the quantization gate over it.

Rules: as for `replay`. Exit status of `gate`: 0 quality is not down, 1 it is (or the control was not the same), 2 it could not be told.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from .replay_gate import Verdict

Work = Callable[[argparse.Namespace], int]
KV_TYPES = ("f16", "q8_0", "q4_0")
EXIT_NOT_HELD = 1


def add_corpus(commands: Any, guarded: Callable[[Work], Work]) -> None:
    """`replay corpus`."""
    parser = commands.add_parser("corpus", help="make recordings to judge by, from the histories of pinned projects or of yours")
    parser.add_argument(
        "repositories", nargs="*", type=Path, metavar="REPOSITORY", help="git repositories instead of the pinned projects"
    )
    parser.add_argument("--points", type=int, default=324, metavar="N", help="places to ask at, about (default: 324)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the sample (default: 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write the recordings")
    parser.set_defaults(run=guarded(_corpus))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _corpus(args: argparse.Namespace) -> int:
    from . import history
    from .corpus import cache_folder

    if args.repositories:
        found = [(path.resolve().name.removesuffix(".git"), path) for path in args.repositories]
    else:
        found = [(name, history.repository(name, cache_folder(), _say)) for name in history.HISTORIES]
    if len({name for name, _ in found}) < len(found):
        raise ValueError("Two repositories have the same name; rename one.")
    points = history.make(found, args.points, args.seed, args.out)
    for name, count in points.items():
        print(f"{args.out / name}.lspc.jsonl: {count} points")
    print(f"{sum(points.values())} points in {len(points)} recordings")
    return 0


def add_gate(commands: Any, guarded: Callable[[Work], Work], set_option: Callable[[str], Any]) -> None:
    """`replay gate`."""
    parser = commands.add_parser(
        "gate", help="is another model file, or type of the attention cache, as good? the exit status says"
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help="recordings, or folders of them")
    parser.add_argument("--model", default="", metavar="NAME", help="what there is: catalogue name or GGUF file (default: yours)")
    parser.add_argument("--against", default="", metavar="NAME", help="what is to be judged (default: the same model)")
    parser.add_argument("--kv", choices=KV_TYPES, default="", metavar="TYPE", help="attention cache of the first: f16, q8_0, q4_0")
    parser.add_argument("--against-kv", choices=KV_TYPES, default="", metavar="TYPE", help="attention cache of the second")
    parser.add_argument("--control", action="store_true", help="also run the first twice, which must come out as the same")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder for the runs")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="ask at most N times (default: no limit)")
    parser.add_argument("--set", action="append", type=set_option, default=[], metavar="NAME=VALUE", help="a setting of both")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report, one file")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the intervals (default: 1)")
    parser.set_defaults(run=guarded(_gate))


def _files(paths: list[Path]) -> list[Path]:
    found = []
    for path in paths:
        found += sorted(path.glob("*.lspc.jsonl")) if path.is_dir() else [path]
    return found


def _gate(args: argparse.Namespace) -> int:
    from .bench import nested
    from .bench_typing import merge
    from .replay_gate import SETTINGS, Side, run
    from .replay_run import ReplayOptions, read_any

    paths = _files(args.recordings)
    recordings = {path.name: read_any(path) for path in paths}
    if not recordings or len(recordings) < len(paths):
        raise ValueError("There is no recording, or two have the same file name.")
    first, second = Side(args.model, args.kv), Side(args.against or args.model, args.against_kv or args.kv)
    base = ReplayOptions(merge(SETTINGS, nested(args.set)), limit=args.limit)
    verdicts = run(recordings, first, second, base, args.out, control=args.control, seed=args.seed, say=_say)
    _keep(args, verdicts)
    if args.html:
        _report(args, verdicts)
    if args.json:
        print(json.dumps({name: verdict.as_dict() for name, verdict in verdicts.items()}, indent=2, ensure_ascii=False))
    else:
        _show(verdicts)
    if "few" in {verdict.word for verdict in verdicts.values()}:
        raise ValueError("There are too few points to tell; make a larger corpus with `replay corpus`.")
    held = verdicts["second"].word in ("same", "better") and ("control" not in verdicts or verdicts["control"].word == "same")
    return 0 if held else EXIT_NOT_HELD


def _keep(args: argparse.Namespace, verdicts: Mapping[str, Verdict]) -> None:
    """Leave the comparisons where the dashboard shows them."""
    from . import kept
    from .replay_store import load_run

    models = {name: str(load_run(args.out / name)[0].get("model", "")) for name in ("first", *verdicts)}
    title = args.out.resolve().name
    for name, verdict in verdicts.items():
        names = (f"{title}/first", f"{title}/{name}")
        kept.keep_if_possible(verdict.comparison, names, (models["first"], models[name]), verdict.word, _say)


def _report(args: argparse.Namespace, verdicts: Mapping[str, Verdict]) -> None:
    from .replay_report import page
    from .replay_store import load_run

    sides = [(about | {"rows": rows}) for about, rows in (load_run(args.out / name) for name in ("first", "second"))]
    names = (sides[0]["model"], sides[1]["model"]) if sides[0]["model"] != sides[1]["model"] else ("first", "second")
    args.html.write_text(page(verdicts["second"].comparison, sides[0], sides[1], names), encoding="utf-8", errors="replace")


def _show(verdicts: Mapping[str, Verdict]) -> None:
    console = Console()
    for name, verdict in verdicts.items():
        result = verdict.comparison
        table = Table(title=f"{name}: {verdict.word}")
        for column in ("figure", "first", name, "difference", "interval", "", "points"):
            table.add_column(column, justify="left" if column == "figure" else "right")
        for f in (*result.quality, result.wall):
            d = f.difference
            cells = (f"{f.first:.4g}", f"{f.second:.4g}", f"{d.estimate:+.4g}", f"{d.low:+.4g} … {d.high:+.4g}")
            table.add_row(f.name, *cells, f.verdict, str(f.pairs))
        console.print(table)
        told = ", ".join(f"{check} {word}" for check, word in verdict.checks.items())
        console.print(f"{told}; texts differ at {len(result.differing)} of {result.pairs} points; names {result.names_apart:.3f} apart")
