"""Accepting a right suggestion: how soon is the next one there? One sample per acceptance.

Strategy: a line and the `AHEAD` lines below it are taken out, so that there is something left to write, and the line is retyped key by key until
a suggestion completes it exactly. A person reads it (`READ_S`), accepts it, and the editor asks at the new place; where nothing is offered
there, Enter is pressed and asked again. Variants take turns, as in `closed`.

Rules:
- The clock runs from before the acceptance is written until the answer's last byte is read; with Enter, from before Enter.
- A suggestion that completes no line at its place gives no sample. The file is made whole again afterwards.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from .applying import line_exact
from .client import AUTOMATIC, Answer, Item, LspClient
from .closed import Say, Variant, switch_file
from .corpus import Place, Source
from .edits import Edit, Position, apply_edits, split_lines, utf16
from .session import Session, model_name, session, settle, warm_up
from .statistics import percentile, ratio
from .typist import auto_indent, habits_of, indent_unit, script_for

READ_S = 0.5
"""A person sees a suggestion, decides and presses Tab: half a second is quick."""
SOON_MS = 50.0
AHEAD = 5
"""Lines below the retyped one that are yet to be written. In a file that is whole, the next line stands below already, and the right suggestion is none."""

Pause = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class AcceptSample:
    """One acceptance. step: where the next suggestion came, "accept", "enter", or "" (none). ms: until it was there (of the last
    answer if none came). source, outcome, reason: of that answer; at_acceptance: of the one at the acceptance, where Enter followed ("" else).
    typed: keys before the acceptance."""

    variant: str
    place: int
    typed: int
    step: str
    ms: float
    source: str
    outcome: str
    reason: str = ""
    at_acceptance: str = ""


def place_of(text: str, offset: int) -> Position:
    """Line and UTF-16 column of an offset in code points."""
    lines = split_lines(text[:offset])
    return Position(len(lines) - 1, utf16(lines[-1]))


def difference(old: str, new: str) -> Edit:
    """One edit that makes new of old, no longer than need be."""
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    tail = next((i for i in range(most) if old[-1 - i] != new[-1 - i]), most)
    return Edit(place_of(old, start), place_of(old, len(old) - tail), new[start : len(new) - tail])


def cursor_after(item: Item) -> Position:
    """Where the cursor stands once an item is accepted."""
    lines = split_lines(item.text)
    if len(lines) == 1:
        return Position(item.start.line, item.start.character + utf16(lines[0]))
    return Position(item.start.line + len(lines) - 1, utf16(lines[-1]))


def unwritten(text: str, line: int) -> str:
    """The text without the `AHEAD` lines below a line."""
    lines = split_lines(text)
    return "".join([*lines[: line + 1], *lines[line + 1 + AHEAD :]])


def enter_at(text: str, cursor: Position, language_id: str) -> tuple[Edit, Position]:
    """What Enter does at a cursor at the end of a line, and where the cursor is then."""
    lines = split_lines(text)
    end = lines[0][len(lines[0].rstrip("\r\n")) :] or "\n"
    given = auto_indent(lines[: cursor.line + 1], cursor.line + 1, indent_unit(lines), habits_of(language_id))
    return Edit(cursor, cursor, end + given), Position(cursor.line + 1, utf16(given))


class _Editor:
    """A document as the editor has it, and the requests of its user."""

    def __init__(self, client: LspClient, source: Source, text: str) -> None:
        self.client, self.uri, self.text = client, source.path.as_uri(), text

    def change(self, edits: Sequence[Edit]) -> None:
        self.client.change(self.uri, edits)
        self.text = apply_edits(self.text, edits)

    async def timed(self, edits: Sequence[Edit], cursor: Position) -> tuple[Answer, float]:
        """Change, ask; the answer and the milliseconds from before the change."""
        started = perf_counter()
        self.change(edits)
        answer = await self.client.inline(self.uri, cursor, AUTOMATIC)
        return answer, (answer.received - started) * 1000


def _offers(answer: Answer) -> bool:
    return bool(answer.items and answer.items[0].text.strip())


async def accept_at(
    client: LspClient, variant: str, place: Place, number: int, fresh: bool, pause: Pause = asyncio.sleep
) -> AcceptSample | None:
    """Retype one place until a suggestion is right, accept it. None: none was. pause: waits so many seconds."""
    source = place.source
    shorter = unwritten(source.text, place.line)
    script = script_for(shorter, place.line, source.language_id)
    editor = _Editor(client, source, source.text)
    begun = apply_edits(shorter, [script.removal])
    if fresh:
        editor.text = begun
        client.open(editor.uri, source.language_id, begun)
    else:
        editor.change([difference(source.text, begun)])
    sample = None
    for index, key in enumerate(script.keys):
        editor.change(key.edits)
        if not key.expects:
            continue
        answer = await client.inline(editor.uri, key.cursor, AUTOMATIC)
        item = answer.items[0] if answer.items else None
        if item is not None and line_exact(key, script.target, item):
            await pause(READ_S)
            sample = await _accepted(editor, item, variant, number, index, source.language_id)
            break
    if editor.text != source.text:
        editor.change([difference(editor.text, source.text)])
    return sample


async def _accepted(editor: _Editor, item: Item, variant: str, number: int, typed: int, language: str) -> AcceptSample:
    cursor = cursor_after(item)
    answer, ms = await editor.timed([Edit(item.start, item.end, item.text)], cursor)
    step, before = ("accept", "") if _offers(answer) else ("", _told(answer))
    if not step and not split_lines(editor.text)[cursor.line][cursor.character :].strip():
        edit, cursor = enter_at(editor.text, cursor, language)
        answer, ms = await editor.timed([edit], cursor)
        step = "enter" if _offers(answer) else ""
    else:
        before = ""
    stages = {name: str(answer.stages.get(name, "")) for name in ("source", "outcome", "reason")}
    return AcceptSample(variant, number, typed, step, ms, **stages, at_acceptance=before)


def _told(answer: Answer) -> str:
    """How an answer came about, in a few words."""
    return " ".join(filter(None, (str(answer.stages.get(name, "")) for name in ("source", "outcome", "reason"))))


@dataclass(frozen=True, slots=True)
class AcceptRun:
    """All samples, and the file name of the model."""

    samples: tuple[AcceptSample, ...]
    model: str


async def run_accept(
    variants: Sequence[Variant], places: Sequence[Place], seed: int, say: Say, pause: Pause = asyncio.sleep
) -> AcceptRun:
    """All places by all variants. places must come file by file. Raises EngineUnavailable."""
    rng = random.Random(seed)  # noqa: S311 (the order of turns)
    samples: list[AcceptSample] = []
    async with AsyncExitStack() as stack:
        sides: list[tuple[Variant, Session]] = []
        for variant in variants:
            say(f"starting {variant.name}")
            running = await stack.enter_async_context(session(variant.options))
            await warm_up(running, places[0].source.root)
            sides.append((variant, running))
        opened: Source | None = None
        for number, place in enumerate(places):
            fresh = place.source is not opened
            for variant, running in rng.sample(sides, len(sides)):
                if fresh:
                    switch_file(running.client, opened, place.source)
                for _, other in sides:
                    await settle(other)
                sample = await accept_at(running.client, variant.name, place, number, fresh, pause)
                samples += [sample] if sample is not None else []
                told = _words(sample) if sample is not None else "no right suggestion"
                say(f"place {number + 1}/{len(places)} {place.source.name}:{place.line + 1} {variant.name}: {told}")
            opened = place.source
        return AcceptRun(tuple(samples), await model_name(sides[0][1]))


def _words(sample: AcceptSample) -> str:
    how = " ".join(filter(None, (sample.source, sample.outcome, sample.reason)))
    first = f"; at acceptance: {sample.at_acceptance}" if sample.at_acceptance else ""
    return f"{sample.step or 'nothing'} after {sample.ms:.0f} ms ({how}{first})"


def reasons_of(samples: Sequence[AcceptSample]) -> dict[str, int]:
    """Why no next suggestion came: source, outcome and reason with their counts, the most frequent first."""
    counts = Counter(f"{s.source} {s.outcome} {s.reason}".strip() for s in samples if not s.step)
    return dict(counts.most_common())


def accept_figures(samples: Sequence[AcceptSample]) -> dict[str, Any]:
    """Figures of one variant. within_50_ms: share of all acceptances behind which the next suggestion came so soon; of_offered: of
    those behind which one came at all."""
    offered = [s for s in samples if s.step]
    soon = [s for s in offered if s.ms <= SOON_MS]
    return {
        "accepted": len(samples),
        "within_50_ms": round(ratio(len(soon), len(samples)), 4),
        "within_50_ms_of_offered": round(ratio(len(soon), len(offered)), 4),
        "next_p50_ms": round(percentile([s.ms for s in offered], 0.5), 1) if offered else None,
        "offered": round(ratio(len(offered), len(samples)), 4),
        "at_acceptance": sum(s.step == "accept" for s in samples),
        "after_enter": sum(s.step == "enter" for s in samples),
        "nothing_because": reasons_of(samples),
        "sources": {name: sum(s.source == name for s in offered) for name in sorted({s.source for s in offered})},
    }
