"""The terminal demo: `python -m lsp_complete.measure.demo`. A real server, a real file, keys in a person's rhythm.

Strategy: the file is one of the standard library (it is on every machine that runs this). A few of its lines are deleted and
typed again through the LSP client; each key prints the line as it stands, the ghost text dimmed, and where
the time went. The typist waits for the answer before the next key, so that each key can be read with its times.

Rules: exit status 0 only if a suggestion came; everything shown comes from the server's answers.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import random
import string
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.text import Text

from ..errors import LspCompleteError
from .applying import ghost, line_exact
from .client import AUTOMATIC, Answer
from .closed import switch_file
from .corpus import Place, Source, eligible_lines, load_files
from .edits import apply_edits, body, split_lines
from .session import SERVER, Session, SessionOptions, run_to_end, session, warm_up
from .statistics import percentile
from .typist import Key, rhythm_ms, script_for

DEMO_MODULE = string
"""A standard library module of real, short, plain code."""
STAGES = ("context", "tokenize", "queue", "prefill", "decode", "post")


@dataclass(frozen=True, slots=True)
class Shown:
    """One key of the demo. ms: key → answer. text: the ghost text, "" if none."""

    ms: float
    text: str
    exact: bool


def choose_lines(source: Source, count: int, seed: int) -> list[Place]:
    """Lines to type, in the file's order, from its lower half, where there is code to learn from."""
    lines = [n for n in eligible_lines(source.text) if n > len(split_lines(source.text)) // 3]
    rng = random.Random(seed)  # noqa: S311 (choice of lines)
    return [Place(source, line) for line in sorted(rng.sample(lines, min(count, len(lines))))]


def render(key: Key, text: str, ms: float, answer: Answer, plain: bool = False) -> Text:
    """The line with its ghost text, and the times. plain: nothing can be dimmed here; ‹› stand around the ghost text."""
    line = Text(f"{ms:6.0f} ms  ", style="cyan")
    line.append(key.left, style="bold")
    first, *more = split_lines(text)
    ghostly = body(first)
    line.append(f"‹{ghostly}›" if plain and ghostly else ghostly, style="dim italic")
    line.append(key.right)
    if more:
        line.append(f"  (+{len(more)} lines)", style="dim")
    stages = answer.stages
    if not text:
        reason = str(stages.get("reason") or "")
        line.append("   no suggestion" + f" ({reason.replace('_', ' ')})" * bool(reason), style="bright_black")
    source = str(stages.get("source", ""))
    if source != "model":
        return line.append(f"   {source}".rstrip().replace("_", " "), style="bright_black")
    parts = [
        f"{name} {stages[name + '_ms']:.0f}" for name in STAGES if float(stages.get(name + "_ms", 0)) >= 0.5
    ]
    counts = ", ".join(f"{stages.get(name, 0)} {name}" for name in ("reused", "evaluated", "decoded"))
    return line.append(
        f"\n           model: {' + '.join(parts) or '0'} ms; tokens: {counts}", style="bright_black"
    )


async def type_line(
    running: Session, place: Place, fresh: bool, delays: Callable[[], float], show: Callable[[Key, str, float, Answer], None]
) -> list[Shown]:
    """Type one line; show each key that asks."""
    source, client = place.source, running.client
    script = script_for(source.text, place.line, source.language_id)
    uri = source.path.as_uri()
    if fresh:
        client.open(uri, source.language_id, apply_edits(source.text, [script.removal]))
    else:
        client.change(uri, [script.removal])
    seen = []
    for key in script.keys:
        started = perf_counter()
        client.change(uri, key.edits)
        if not key.asks:
            continue
        answer = await client.inline(uri, key.cursor, AUTOMATIC)
        ms = (answer.received - started) * 1000
        item = answer.items[0] if answer.items else None
        text = ghost(key.left + key.right, key.cursor, item) if item else ""
        show(key, text, ms, answer)
        seen.append(Shown(ms, text, bool(item and line_exact(key, script.target, item))))
        await asyncio.sleep(max(0.0, delays() / 1000 - (perf_counter() - started)))
    return seen


async def play(
    options: SessionOptions, source: Source, lines: int, seed: int, console: Console
) -> list[Shown]:
    """The whole demo. Raises EngineUnavailable."""
    rhythm = rhythm_ms(random.Random(seed))  # noqa: S311 (a typist's rhythm)
    seen: list[Shown] = []
    async with session(options) as running:
        console.print(
            f"Starting the language server and its engine, to type into [bold]{source.name}[/bold] …"
        )
        started = perf_counter()
        await warm_up(running, source.root)
        console.print(f"The engine is ready after {perf_counter() - started:.1f} s.")
        for number, place in enumerate(choose_lines(source, lines, seed)):
            console.rule(f"line {place.line + 1}, typed anew", align="left")
            if number == 0:
                switch_file(running.client, None, source)
            seen += await type_line(
                running,
                place,
                number == 0,
                lambda: next(rhythm),
                lambda key, text, ms, answer: console.print(
                    render(key, text, ms, answer, plain=console.color_system is None), soft_wrap=True
                ),
            )
    return seen


def summarize(seen: Sequence[Shown], console: Console) -> int:
    """Print the sums; 0 if there was a suggestion."""
    offered = [s for s in seen if s.text]
    if not offered:
        console.print("[red]No suggestion came.[/red] `lsp-complete doctor` tells what is wrong.")
        return 1
    times = [s.ms for s in seen]
    console.rule("summary", align="left")
    console.print(
        f"{len(seen)} keys, {len(offered)} with a suggestion, {sum(s.exact for s in seen)} of them exactly the line's rest. "
        f"Key to answer: median {percentile(times, 0.5):.0f} ms, 95 % within {percentile(times, 0.95):.0f} ms."
    )
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of the demo."""
    parser = argparse.ArgumentParser(
        prog="python -m lsp_complete.measure.demo", description="Watch suggestions come."
    )
    parser.add_argument(
        "--file", type=Path, default=Path(inspect.getfile(DEMO_MODULE)), help="the file to type into"
    )
    parser.add_argument("--lines", type=int, default=3, help="lines to type (default 3)")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--model", default="", help="catalogue name or GGUF file")
    parser.add_argument("--server", nargs="+", default=list(SERVER), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    console = Console()
    try:
        source = load_files([chosen.file])[0]
        options = SessionOptions(model=chosen.model, root=source.root, command=tuple(chosen.server))
        return summarize(run_to_end(play(options, source, chosen.lines, chosen.seed, console)), console)
    except (LspCompleteError, OSError, UnicodeDecodeError) as error:
        console.print(f"[red]{error}[/red]", highlight=False)
        return 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
