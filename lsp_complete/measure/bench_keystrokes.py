"""`lsp-complete bench keystrokes`: what share of the keys suggestions save, and how many of those shown are right.

Strategy: lines of pinned files in five languages are typed once through the real server (`bench_keystrokes_record`); the levels
eager, balanced and quiet, and other floors, are worked out from what the model said (`bench_keystrokes_replay`).

Figures, per level: keys_saved = 1 - (keys + accepts) / characters without indentation; precision = suggestions whose first
line was right / suggestions shown; shown_per_line. `from_empty`: the same in new files, where nothing stands below.
`curve`: the same for other floors on the summed log-probability of the first line, with balanced's other rules.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .bench_keystrokes_record import FLAGS, SETTINGS, Stretch, first_lines, load, record, stretch_of, to_json
from .bench_keystrokes_replay import LinePlayer, Played, RecordedLine, Rule
from .bench_typing import merge
from .corpus import KEYSTROKE_FILES, load_corpus
from .session import SERVER, SessionOptions, model_name, run_to_end, session, warm_up
from .statistics import ratio

LEVELS = ("eager", "balanced", "quiet")
FLOORS = (None, -6.0, -4.0, -3.0, -2.5, -2.0, -1.75, -1.5, -1.25, -1.0, -0.8, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, -0.05)
EMPTY_FILES = 2
"""So many of the files, the first and the third (another language), are written anew too."""


@dataclass(frozen=True, slots=True)
class KeystrokeOptions:
    """What to run. files, lines: how many of the pinned files and how many lines of each. settings are added to the
    recording's (dotted groups as in the settings file). every_key: ask also where an earlier answer still agrees."""

    files: int = 10
    lines: int = 40
    seed: int = 1
    model: str = ""
    every_key: bool = False
    filters: bool = False
    settings: Mapping[str, Any] | None = None
    command: tuple[str, ...] = SERVER


def stretches(options: KeystrokeOptions, say: Callable[[str], None]) -> list[Stretch]:
    """What is typed. Raises DownloadError, OSError."""
    sources = load_corpus(say, KEYSTROKE_FILES[: options.files])
    whole = [stretch_of(source, options.lines, options.seed) for source in sources]
    return whole + [first_lines(source, options.lines) for source in sources[: 2 * EMPTY_FILES : 2]]


def figures(played: Sequence[Played]) -> dict[str, Any]:
    """Figures over lines typed under one rule."""
    characters, keys, accepts = (sum(getattr(p, name) for p in played) for name in ("characters", "keys", "accepts"))
    shown, right = sum(p.shown for p in played), sum(p.right for p in played)
    return {
        "keys_saved": round(1 - ratio(keys + accepts, characters), 4) if characters else None,
        "precision": round(ratio(right, shown), 4),
        "shown_per_line": round(ratio(shown, len(played)), 3),
        "shown": shown,
        "right": right,
        "accepts": accepts,
        "keys": keys,
        "characters": characters,
    }


def brief(played: Sequence[Played]) -> dict[str, Any]:
    """The three figures alone."""
    return {k: v for k, v in figures(played).items() if k in ("keys_saved", "precision", "shown_per_line")}


def report(lines: Sequence[RecordedLine]) -> dict[str, Any]:
    """Everything that follows from a recording. Pure."""
    players = [LinePlayer(line) for line in lines if not line.from_empty]
    new = [LinePlayer(line) for line in lines if line.from_empty]
    rules = {name: Rule.named(name) for name in LEVELS}
    result: dict[str, Any] = {name: figures([p.play(rule) for p in players]) for name, rule in rules.items()}
    result["from_empty"] = {name: figures([p.play(rule) for p in new]) for name, rule in rules.items()}
    cuts = rules["balanced"].level
    result["curve"] = [{"sum_floor": floor, **brief([p.play(Rule(cuts, floor, None)) for p in players])} for floor in FLOORS]
    result["by_language"] = by_language(players, rules)
    asked = [told for line in lines for told in line.answers.values()]
    result |= {
        "lines": len(players),
        "lines_from_empty": len(new),
        "languages": len({p.line.language for p in players}),
        "keys": sum(len(line.keys) for line in lines),
        "asked": len(asked),
        "silent": sum(not told.candidate.text for told in asked),
    }
    return result


def by_language(players: Sequence[LinePlayer], rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The brief figures per language and level."""
    grouped: dict[str, list[LinePlayer]] = defaultdict(list)
    for player in players:
        grouped[player.line.language].append(player)
    return {
        language: {name: brief([p.play(rule) for p in mine]) for name, rule in rules.items()}
        for language, mine in sorted(grouped.items())
    }


def run(options: KeystrokeOptions, save: Path | None = None) -> dict[str, Any]:
    """The whole benchmark; progress on standard error. save: the recording, continued if it is there.

    Raises DownloadError, EngineUnavailable, OSError, ValueError (a recording of something else).
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    wanted = stretches(options, say)
    head: dict[str, Any] = {}
    lines: list[RecordedLine] = []
    if save is not None and save.is_file() and save.stat().st_size:
        head, lines = load(save)
    settings = merge(SETTINGS, options.settings)
    mine = {"bench": "keystrokes", "seed": options.seed, "settings": settings, "every_key": options.every_key}
    if head and {k: head.get(k) for k in mine} != mine:
        raise ValueError(f"{save} was recorded with other settings. Give another file.")
    done: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for line in lines:
        done[line.file, line.from_empty].add(line.number)
    if any(not done[s.source.name, s.from_empty].issuperset(s.lines) for s in wanted):
        head = run_to_end(_record(options, wanted, settings, {**mine, "model": head.get("model", "")}, done, lines, save, say))
    asked_for = {(s.source.name, s.from_empty, n) for s in wanted for n in s.lines}
    lines = [line for line in lines if (line.file, line.from_empty, line.number) in asked_for]
    result = {"model": head.get("model", ""), "files": sorted({line.file for line in lines}), **report(lines)}
    if options.filters:
        from .bench_keystrokes_filters import filter_report

        say("working out what each filter does")
        result["filters"] = filter_report(lines, {s.source.name: s.source.text for s in wanted})
    return result


def _begin(save: Path, head: Mapping[str, Any], *, new: bool) -> None:
    """Make a recording's file, readable by its owner only; in an older one, end a line that was cut off."""
    if new:
        save.touch(mode=0o600)
        save.write_text(json.dumps(head) + "\n", "utf-8")
    elif not save.read_bytes().endswith(b"\n"):
        with open(save, "a", encoding="utf-8") as out:
            out.write("\n")


async def _record(
    options: KeystrokeOptions, wanted: Sequence[Stretch], settings: Mapping[str, Any], head: dict[str, Any],
    done: Mapping[tuple[str, bool], set[int]], lines: list[RecordedLine], save: Path | None, say: Callable[[str], None],
) -> dict[str, Any]:  # fmt: skip
    """Type what is missing; the recording's head."""
    start = SessionOptions(settings, model=options.model, command=options.command, flags=FLAGS)
    async with session(start) as running:
        await warm_up(running, wanted[0].source.root)
        model = await model_name(running)
        if head["model"] not in ("", model):
            raise ValueError(f"{save} was recorded with {head['model']}, now it is {model}. Give another file.")
        if save is not None:
            await asyncio.to_thread(_begin, save, {**head, "model": model}, new=not head["model"])

        def keep(line: RecordedLine) -> None:
            lines.append(line)
            if save is not None:
                with open(save, "a", encoding="utf-8") as out:
                    out.write(json.dumps(to_json(line)) + "\n")

        await record(running, wanted, done, keep, say, every_key=options.every_key)
    return {**head, "model": model}
