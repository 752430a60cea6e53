"""Typing in real time: keys come when a person's would, answers when they can. One sample per key.

Strategy: as an editor does it: every key sends the change, cancels the request still under way and asks anew; what arrives for
the newest state goes on the screen (`screen`). At the end of each key's time the screen is looked at: was a
suggestion there before the next key?

Rules:
- The rhythm is seeded, and its clock does not slip: delays are added to the time a key was due, not to the time it was sent.
- CPU time is that of server and engine together, the quiet time after the last key included (work ahead counts).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from time import perf_counter

from .applying import ghost
from .client import AUTOMATIC, Answer, LspClient, parse_items
from .closed import Say, Variant, switch_file
from .corpus import Place, Source
from .edits import apply_edits
from .jsonrpc import Call, Reply
from .screen import Screen, answered, typed
from .session import Session, model_name, session, settle, warm_up
from .typist import Key, rhythm_ms, script_for

Pause = Callable[[float], Awaitable[object]]

OPENING_PAUSE_MS = 600.0
"""Between opening a line and its first character: a person looks before typing."""


@dataclass(frozen=True, slots=True)
class RhythmSample:
    """One asked key. on_screen: a suggestion stood there when the next key came; fresh: this key's own answer
    had come by then. source and outcome are "" for requests that were overtaken."""

    place: int
    key: int
    expects: bool
    on_screen: bool
    fresh: bool
    agreed: bool
    flicker: bool
    source: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class PlaceSample:
    """One place. first_ms: from the first request to the first suggestion on the screen (None: none came)."""

    place: int
    opening: str
    first_ms: float | None


@dataclass(slots=True)
class _Typing:
    """The state of one place while it is typed."""

    client: LspClient
    uri: str
    screen: Screen = field(default_factory=Screen)
    newest: int = 0
    flickers: set[int] = field(default_factory=set)
    arrived: dict[int, float] = field(default_factory=dict)
    first_shown: float | None = None

    def on_reply(self, call: Call, key: Key, reply: Reply) -> None:
        """Put an answer on the screen if it is the newest request's."""
        self.arrived[call.id] = reply.received
        if reply.code or call.id != self.newest:
            return
        items = parse_items(reply.result, key.cursor)
        text = ghost(key.left + key.right, key.cursor, items[0]) if items else ""
        self.screen, flicker = answered(self.screen, text)
        if flicker:
            self.flickers.add(call.id)
        if text and self.first_shown is None:
            self.first_shown = reply.received

    def ask(self, key: Key) -> Call:
        """Request for the state after key."""
        call = self.client.ask(self.uri, key.cursor, AUTOMATIC)
        self.newest = call.id
        call.reply.add_done_callback(
            lambda done: None if done.exception() else self.on_reply(call, key, done.result())
        )
        return call


async def type_place(
    client: LspClient,
    place: Place,
    number: int,
    fresh: bool,
    delays: Iterator[float],
    pause: Pause = asyncio.sleep,
) -> tuple[list[RhythmSample], PlaceSample]:
    """Type one place in rhythm. Ends when every request is answered. pause: waits the given seconds."""
    source = place.source
    script = script_for(source.text, place.line, source.language_id)
    uri = source.path.as_uri()
    if fresh:
        client.open(uri, source.language_id, apply_edits(source.text, [script.removal]))
    else:
        client.change(uri, [script.removal])
    state = _Typing(client, uri)
    asked: list[tuple[int, Key, Call, RhythmSample]] = []
    call: Call | None = None
    due = perf_counter()
    for index, key in enumerate(script.keys):
        state.screen = typed(state.screen, key)
        agreed = state.screen.agreed
        client.change(uri, key.edits)
        if call is not None and not call.reply.done():
            client.cancel(call)
        call = state.ask(key) if key.asks else None
        if call is None:
            state.newest = 0
        due += (OPENING_PAUSE_MS if index == 0 else next(delays)) / 1000
        await pause(max(0.0, due - perf_counter()))
        if call is not None:
            seen = RhythmSample(
                number, index, key.expects, bool(state.screen.text), call.id in state.arrived, agreed, False
            )
            asked.append((index, key, call, seen))
    answers = await asyncio.gather(*(client.answer(c, k.cursor) for _, k, c, _ in asked))
    samples = [
        _finish(seen, c, state, answer) for (_, _, c, seen), answer in zip(asked, answers, strict=True)
    ]
    first = (state.first_shown - asked[0][2].sent) * 1000 if state.first_shown is not None and asked else None
    return samples, PlaceSample(number, "new" if fresh else "jump", first)


def _finish(seen: RhythmSample, call: Call, state: _Typing, answer: Answer) -> RhythmSample:
    source, outcome = str(answer.stages.get("source", "")), str(answer.stages.get("outcome", ""))
    flicker = call.id in state.flickers
    return RhythmSample(
        seen.place, seen.key, seen.expects, seen.on_screen, seen.fresh, seen.agreed, flicker, source, outcome
    )


@dataclass(frozen=True, slots=True)
class RhythmRun:
    """All samples; cpu_s and wall_s over the whole run, opening and quiet times included."""

    keys: tuple[RhythmSample, ...]
    places: tuple[PlaceSample, ...]
    cpu_s: float
    wall_s: float
    memory_mb: float
    model: str = ""


@dataclass(slots=True)
class _Side:
    """One variant while it runs."""

    variant: Variant
    running: Session
    delays: Iterator[float]
    keys: list[RhythmSample] = field(default_factory=list)
    places: list[PlaceSample] = field(default_factory=list)
    cpu_s: float = 0.0
    wall_s: float = 0.0


async def run_rhythm(variant: Variant, places: Sequence[Place], seed: int, say: Say) -> RhythmRun:
    """All places in rhythm. places must come file by file. Raises EngineUnavailable."""
    return (await compare_rhythm([variant], places, seed, say))[variant.name]


async def compare_rhythm(
    variants: Sequence[Variant], places: Sequence[Place], seed: int, say: Say
) -> dict[str, RhythmRun]:
    """All places by all variants in the same rhythm, in turns place by place, by variant name. Raises EngineUnavailable."""
    rng = random.Random(seed)  # noqa: S311 (the order of turns)
    async with AsyncExitStack() as stack:
        sides: list[_Side] = []
        for variant in variants:
            say(f"starting {variant.name}, in rhythm")
            running = await stack.enter_async_context(session(variant.options))
            await warm_up(running, places[0].source.root)
            sides.append(_Side(variant, running, rhythm_ms(random.Random(f"rhythm:{seed}"))))  # noqa: S311
        opened: Source | None = None
        for number, place in enumerate(places):
            for side in rng.sample(sides, len(sides)):
                for other in sides:
                    await settle(other.running)
                await _one_place(side, place, number, opened, f"{number + 1}/{len(places)}", say)
            opened = place.source
        return {side.variant.name: await _finished(side) for side in sides}


async def _one_place(side: _Side, place: Place, number: int, opened: Source | None, turn: str, say: Say) -> None:
    running = side.running
    cpu, started = running.cpu_seconds(), perf_counter()
    fresh = place.source is not opened
    if fresh:
        switch_file(running.client, opened, place.source)
    samples, first = await type_place(running.client, place, number, fresh, side.delays)
    await settle(running)
    side.keys += samples
    side.places.append(first)
    side.cpu_s += running.cpu_seconds() - cpu
    side.wall_s += perf_counter() - started
    shown = sum(s.on_screen for s in samples)
    name = f"{place.source.name}:{place.line + 1} {side.variant.name}"
    say(f"place {turn} {name}: shown at {shown}/{len(samples)} keys")


async def _finished(side: _Side) -> RhythmRun:
    memory, model = side.running.memory_mb(), await model_name(side.running)
    return RhythmRun(tuple(side.keys), tuple(side.places), side.cpu_s, side.wall_s, memory, model)
