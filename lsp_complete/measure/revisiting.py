"""Opening a file and coming back to it: how soon is the first suggestion there? One sample per place and way.

Strategy: one place in each of several files. Every file is opened as an editor does it, with the cursor told; five seconds later the
first key is pressed ("warm"), and half of the line is typed. When all files were worked in, each is gone back to and the next key
pressed ("revisit"). Then the editor and its engine end and start again over the same caches, and each file is opened where it was
left and the next key pressed at once ("restart").

Rules:
- The clock runs from before the key is written until the answer's last byte is read.
- Keys that ask for nothing more are passed over. A round uses each file once; more places make more rounds, each with caches of its own.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from .client import AUTOMATIC, LspClient
from .closed import Say, Variant
from .corpus import Place, Source
from .edits import Position, apply_edits
from .session import model_name, session, settle, warm_up
from .statistics import percentile
from .typist import Key, script_for

OPEN_S = 5.0
"""Between opening a file and the first key."""
LEAST_KEYS = 8

Pause = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class VisitSample:
    """One first key. way: "warm", "revisit" or "restart". evaluated, restored: prompt tokens (−1: not told). offered: a suggestion
    came."""

    place: int
    way: str
    ms: float
    evaluated: int
    restored: int
    reused: int
    offered: bool
    source: str


@dataclass(slots=True)
class _Work:
    """A file being worked in. text: as the editor has it; at: the next key."""

    number: int
    source: Source
    keys: tuple[Key, ...]
    text: str
    at: int = 0

    @property
    def uri(self) -> str:
        return self.source.path.as_uri()

    @property
    def cursor(self) -> Position:
        """Before the first key."""
        return self.keys[0].edits[0].start

    def take(self) -> Key:
        """The next key, pressed."""
        key = self.keys[self.at]
        self.at += 1
        self.text = apply_edits(self.text, key.edits)
        return key


def begin(place: Place, number: int) -> _Work | None:
    """The work at a place; None for a line of too few keys."""
    script = script_for(place.source.text, place.line, place.source.language_id)
    if sum(key.expects for key in script.keys) < LEAST_KEYS:
        return None
    return _Work(number, place.source, script.keys, apply_edits(place.source.text, [script.removal]))


async def press(client: LspClient, work: _Work, way: str) -> VisitSample:
    """The next key that asks, and its answer; keys before it that ask nothing are pressed on the way."""
    key = work.take()
    while not key.expects:
        client.change(work.uri, key.edits)
        key = work.take()
    started = perf_counter()
    client.change(work.uri, key.edits)
    answer = await client.inline(work.uri, key.cursor, AUTOMATIC)
    stages = answer.stages
    offered = bool(answer.items and answer.items[0].text.strip())
    return VisitSample(
        work.number, way, (answer.received - started) * 1000, int(stages.get("evaluated", -1)),
        int(stages.get("restored", -1)), int(stages.get("reused", -1)), offered, str(stages.get("source", "")),
    )  # fmt: skip


async def visit(client: LspClient, work: _Work, pause: Pause) -> VisitSample:
    """Open, look around for five seconds, type half of the line."""
    client.open(work.uri, work.source.language_id, work.text)
    client.move_cursor(work.uri, work.cursor)
    await pause(OPEN_S)
    first = await press(client, work, "warm")
    while work.at < min(len(work.keys) // 2, len(work.keys) - LEAST_KEYS // 2):
        await press(client, work, "")
    return first


def rounds(places: Sequence[Place]) -> list[list[Place]]:
    """Places so that each round has each file at most once."""
    made: list[list[Place]] = []
    for place in places:
        free = next((r for r in made if all(p.source is not place.source for p in r)), None)
        if free is None:
            made.append([place])
        else:
            free.append(place)
    return made


async def run_revisit(
    variant: Variant, places: Sequence[Place], say: Say, pause: Pause = asyncio.sleep
) -> tuple[list[VisitSample], str]:
    """All places; the samples and the model's file name. Raises EngineUnavailable."""
    samples: list[VisitSample] = []
    model = ""
    for number, group in enumerate(rounds(places)):
        folder = Path(tempfile.mkdtemp(prefix="lspc-"))
        say(f"round {number + 1}: {len(group)} files")
        try:
            kept = replace(variant, options=replace(variant.options, folder=folder))
            got, model = await _round(kept, group, len(samples), say, pause)
            samples += got
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return samples, model


async def _round(
    variant: Variant, places: Sequence[Place], base: int, say: Say, pause: Pause
) -> tuple[list[VisitSample], str]:
    found = [begin(place, base + n) for n, place in enumerate(places)]
    works = [work for work in found if work is not None]
    samples: list[VisitSample] = []

    def note(sample: VisitSample, work: _Work) -> None:
        samples.append(sample)
        say(f"{work.source.name} {sample.way}: {sample.ms:.0f} ms, {sample.evaluated} tokens evaluated, {sample.restored} restored")

    async with session(variant.options) as running:
        await warm_up(running, places[0].source.root)
        for work in works:
            note(await visit(running.client, work, pause), work)
        for work in works:
            await settle(running)
            note(await press(running.client, work, "revisit"), work)
        await settle(running)
        model = await model_name(running)
    async with session(variant.options) as running:
        await warm_up(running, places[0].source.root)
        for work in works:
            await settle(running)
            running.client.open(work.uri, work.source.language_id, work.text)
            note(await press(running.client, work, "restart"), work)
    return samples, model


def revisit_figures(samples: Sequence[VisitSample]) -> dict[str, Any]:
    """Medians by way. revisit_p50_ms: over "revisit" and "restart" together."""

    def middle(*ways: str) -> float | None:
        times = [s.ms for s in samples if s.way in ways]
        return round(percentile(times, 0.5), 1) if times else None

    def tokens(way: str, name: str) -> float | None:
        values = [float(getattr(s, name)) for s in samples if s.way == way and getattr(s, name) >= 0]
        return round(percentile(values, 0.5), 1) if values else None

    return {
        "first_warm_p50_ms": middle("warm"),
        "revisit_p50_ms": middle("revisit", "restart"),
        "revisit_other_file_p50_ms": middle("revisit"),
        "revisit_restart_p50_ms": middle("restart"),
        **{f"{way}_evaluated_p50": tokens(way, "evaluated") for way in ("warm", "revisit", "restart")},
        "restart_restored_p50": tokens("restart", "restored"),
        "offered": sum(s.offered for s in samples),
        "samples": len(samples),
    }
