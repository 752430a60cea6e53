"""`lsp-complete stats [--watch] [--json]`: what the servers and engines of this user have done, in figures.

Rules: only looks. Servers publish their figures (`service.publish`); engines are asked as by `engine status`, which keeps
none alive. Nothing of a user's text is there to be shown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, Group

    from ..cli import Sub
    from ..engine.control import EngineStatus

WATCH_S = 2.0
SHOWN_STAGES = ("queue", "prefill", "decode", "context", "tokenize", "post", "transfer")

HEADS = {"tokenize": "tokens", "transfer": "send"}
"""Heads of columns that are shorter than their stage: the table fits 80 columns."""


def add_parser(sub: Sub) -> None:
    """`stats`."""
    parser = sub.add_parser("stats", help="show latency, hit rates and engines of this user's servers")
    parser.add_argument("--watch", action="store_true", help="go on showing, every two seconds, until Ctrl-C")
    parser.add_argument(
        "--json", action="store_true", help="all figures as JSON (one line each time with --watch)"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    try:
        if args.watch and not args.json:
            _watch()
        while args.json:
            servers, engines = gather()
            value = {"servers": servers, "engines": [plain_engine(status) for status in engines]}
            print(json.dumps(value, indent=None if args.watch else 2), flush=True)
            if not args.watch:
                return 0
            time.sleep(WATCH_S)
    except KeyboardInterrupt:
        return 0
    if not args.watch:
        from rich.console import Console

        show(Console(), *gather())
    return 0


def show(console: Console, servers: Sequence[Mapping[str, Any]], engines: list[EngineStatus]) -> None:
    """Print the view once. Lines are not broken at the width: a path stays one word, also in a pipe or a file."""
    for part in view(servers, engines).renderables:
        console.print(part, soft_wrap=True)


def _watch() -> None:
    from rich.live import Live

    with Live(view(*gather()), auto_refresh=False) as live:
        while True:
            time.sleep(WATCH_S)
            live.update(view(*gather()), refresh=True)


def gather() -> tuple[list[dict[str, Any]], list[EngineStatus]]:
    """Figures of all servers, and all engines. Raises EngineUnavailable if there is no private directory."""
    from ..engine import control
    from ..engine.paths import runtime_directory
    from ..service.publish import published

    return published(runtime_directory()), control.status()


def plain_engine(status: EngineStatus) -> dict[str, Any]:
    """An engine's figures as plain values; what names a document there becomes a digest."""
    from ..measure.recording import digest

    value = asdict(status)
    for slot in (value.get("stats") or {}).get("slots") or ():
        if slot.get("key"):
            slot["key"] = digest(str(slot["key"]))
    return value


def view(servers: Sequence[Mapping[str, Any]], engines: list[EngineStatus]) -> Group:
    """What a person sees."""
    from rich.console import Group
    from rich.text import Text

    from ..engine.control import status_text

    parts: list[Any] = []
    for server in servers:
        parts += [Text(_head(server)), _times(server), Text(_rates(server))]
    if not servers:
        parts.append(Text("No server has answered anything yet; a server is started by an editor."))
    return Group(*parts, Text(status_text(engines)))


def _head(server: Mapping[str, Any]) -> str:
    done = server.get("server", {})
    outcomes = server.get("outcomes", {})
    words = [
        f"server {server.get('pid')}: {server.get('model') or 'no model'}",
        f"{server.get('documents', 0)} documents",
        f"{done.get('requests', 0)} requests",
        f"{outcomes.get('answered', 0)} with a suggestion",
        f"{outcomes.get('accepted', 0)} accepted",
    ]
    problem = server.get("problem")
    return ", ".join(words) + _became(outcomes) + _reference(server.get("reference")) + (f"\n  {problem}" if problem else "")


def _reference(told: Mapping[str, Any] | None) -> str:
    """A line on the reference model, "" where none is configured."""
    if not told:
        return ""
    words = [f"{told.get(name, 0)} {name}" for name in ("asked", "kept", "stopped", "failed", "offered")]
    state = "" if told.get("ready") else f" (not used: {told['problem']})" if told.get("problem") else " (not needed yet)"
    return f"\n  reference model {told.get('model')}{state}: " + ", ".join(words)


def _became(outcomes: Mapping[str, Any]) -> str:
    """A line on what became of suggestions, "" while none was shown."""
    if not outcomes.get("shown"):
        return ""
    words = [
        f"{outcomes.get(name, 0)} {name.replace('_', ' ')}"
        for name in ("shown", "partly_accepted", "typed_over", "typed_out", "dismissed", "replaced")
    ]
    kept = [f"{share:.0%} after {seconds} s" for seconds, share in (outcomes.get("still_there") or {}).items()]
    return "\n  suggestions: " + ", ".join(words) + (f"; still there: {', '.join(kept)}" if kept else "")


def _times(server: Mapping[str, Any]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    done = server.get("server", {})
    table = Table(
        title="ms, the last half hour; P50, P95 and P99 of the whole, P50 of its stages",
        box=SIMPLE_HEAD,
        padding=0,  # the box puts one space between columns
        show_edge=False,
    )
    table.add_column("request", no_wrap=True)
    for name in ("count", "P50", "P95", "P99", *(HEADS.get(stage, stage) for stage in SHOWN_STAGES)):
        table.add_column(name, justify="right", no_wrap=True)
    for name, bucket in {"all": done.get("all") or {}, **done.get("scenarios", {})}.items():
        ms = bucket.get("ms")
        if ms:
            total = [f"{ms['total'][q]:.0f}" for q in ("p50", "p95", "p99")]
            stages = [_short(ms[stage]["p50"]) for stage in SHOWN_STAGES]
            table.add_row(name.replace("_", " "), str(bucket.get("count")), *total, *stages)
    return table


def _short(ms: float) -> str:
    return f"{ms:.1f}" if ms < 99.95 else f"{ms:.0f}"


def _rates(server: Mapping[str, Any]) -> str:
    done = server.get("server", {})
    rates = done.get("hit_rates", {})
    words = [f"{name.replace('_', ' ')} {share:.0%}" for name, share in rates.items()]
    breaks = sorted(done.get("reuse_breaks", {}).items(), key=lambda item: -item[1])
    told = (
        "\n  prompts evaluated again because of: " + ", ".join(f"{why} {count}" for why, count in breaks)
        if breaks
        else ""
    )
    return "  hits: " + ", ".join(words) + f"; decoding {done.get('decode_tps', 0):.0f} tokens/s" + told
