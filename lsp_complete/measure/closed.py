"""Closed-loop typing: every key is asked for and its answer awaited before the next key. One sample per key.

Strategy: several variants (the product, another layout, another program) retype the same places, each behind its own
server and engine, taking turns place by place so that a change of the machine's speed meets all of them. The order
of turns alternates. A variant starts only when the machine is quiet again.

Rules:
- The first place of a file is asked at once after opening ("new"), the next ones after a jump of at least
  30 lines ("jump"); the samples of the keys after that are the ones of steady typing.
- The clock runs from before the change is written until the answer's last byte is read.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from .applying import line_exact, right_to_closer
from .client import AUTOMATIC, Answer, LspClient
from .corpus import Place, Source
from .edits import apply_edits
from .peer import Peer, PeerClient, PeerSession, peer_session
from .session import Session, SessionOptions, model_name, session, settle, warm_up
from .typist import Key, script_for

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One side of a comparison: a server of ours with these options, or another program that listens already."""

    name: str
    options: SessionOptions = field(default_factory=SessionOptions)
    peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class KeySample:
    """One asked key. opening: "new", "jump" or "". Times in milliseconds, counts in tokens (-1: not told).

    expects: something is left to suggest; exact and to_closer: see `applying`. text: what was offered (kept out of reports).
    """

    variant: str
    place: int
    key: int
    opening: str
    ms: float
    evaluated: int
    prompt: int
    decoded: int
    drafted: int
    accepted: int
    source: str
    outcome: str
    offered: bool
    expects: bool
    exact: bool
    to_closer: bool
    text: str = ""
    reason: str = ""
    stage_ms: Mapping[str, float] = field(default_factory=dict)


def sample_of(
    variant: str, number: int, index: int, opening: str, key: Key, target: str, started: float, answer: Answer
) -> KeySample:
    """What one answer says."""
    stages: dict[str, Any] = dict(answer.stages)
    item = answer.items[0] if answer.items else None
    offered = item is not None and bool(item.text.strip())
    return KeySample(
        variant=variant,
        place=number,
        key=index,
        opening=opening,
        ms=(answer.received - started) * 1000,
        evaluated=stages.get("evaluated", -1),
        prompt=stages.get("prompt_tokens", -1),
        decoded=stages.get("decoded", -1),
        drafted=stages.get("drafted", -1),
        accepted=stages.get("accepted", -1),
        source=stages.get("source", ""),
        outcome=stages.get("outcome", ""),
        offered=offered,
        expects=key.expects,
        exact=bool(offered and item and line_exact(key, target, item)),
        to_closer=bool(offered and item and right_to_closer(key, target, item)),
        text=item.text if item else "",
        reason=str(stages.get("reason", "")),
        stage_ms={k[:-3]: v for k, v in stages.items() if k.endswith("_ms")},
    )


async def retype(client: LspClient | PeerClient, variant: str, place: Place, number: int, fresh: bool) -> list[KeySample]:
    """Retype one place. fresh: the file is opened first, else it is open and whole."""
    source = place.source
    script = script_for(source.text, place.line, source.language_id)
    uri = source.path.as_uri()
    if fresh:
        client.open(uri, source.language_id, apply_edits(source.text, [script.removal]))
    else:
        client.change(uri, [script.removal])
    opening = "new" if fresh else "jump"
    samples = []
    for index, key in enumerate(script.keys):
        started = perf_counter()
        client.change(uri, key.edits)
        if not key.asks:
            continue
        answer = await client.inline(uri, key.cursor, AUTOMATIC)
        samples.append(sample_of(variant, number, index, opening, key, script.target, started, answer))
        opening = ""
    return samples


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """All samples, and the file name of each variant's model."""

    samples: tuple[KeySample, ...]
    models: Mapping[str, str]

    @property
    def model(self) -> str:
        """The first variant's."""
        return next(iter(self.models.values()), "")


class Keeps(Protocol):
    """Where finished places go (`closed_saved`). samples: what is there, of this run and of the one that it goes on with."""

    samples: list[KeySample]

    def add(self, samples: Sequence[KeySample]) -> None:
        """A place's samples, of all variants."""


@dataclass(slots=True)
class InMemory:
    """Keeps samples for this run only."""

    samples: list[KeySample] = field(default_factory=list)

    def add(self, samples: Sequence[KeySample]) -> None:
        """See `Keeps`."""
        self.samples += samples


async def run_closed(
    variants: Sequence[Variant], places: Sequence[Place], seed: int, say: Say, keeps: Keeps | None = None, done: int = 0
) -> ClosedRun:
    """All places by all variants. places must come file by file. done: places that `keeps` has already, whole files.

    Raises EngineUnavailable.
    """
    keeps = InMemory() if keeps is None else keeps
    rng = random.Random(seed)  # noqa: S311 (the order of turns)
    async with AsyncExitStack() as stack:
        sessions: list[tuple[Variant, Session | PeerSession]] = []
        for variant in variants:
            say(f"starting {variant.name}")
            root = places[min(done, len(places) - 1)].source.root
            sessions.append((variant, await stack.enter_async_context(_side(variant, root))))
        opened: Source | None = None
        for number, place in enumerate(places):
            fresh = place.source is not opened
            order = rng.sample(sessions, len(sessions))
            if number < done:
                continue
            samples: list[KeySample] = []
            for variant, running in order:
                if fresh:
                    switch_file(running.client, opened, place.source)
                for _, other in sessions:
                    await _quiet(other)
                got = await retype(running.client, variant.name, place, number, fresh)
                samples += got
                say(_line(number, len(places), variant.name, place, got))
            keeps.add(samples)
            opened = place.source
        models = {variant.name: await _model(running) for variant, running in sessions}
        return ClosedRun(tuple(keeps.samples), models)


@asynccontextmanager
async def _side(variant: Variant, root: Path) -> AsyncIterator[Session | PeerSession]:
    if variant.peer is not None:
        async with peer_session(variant.peer) as other:
            yield other
        return
    async with session(variant.options) as running:
        await warm_up(running, root)
        yield running


async def _quiet(running: Session | PeerSession) -> None:
    if isinstance(running, PeerSession):
        await running.rest()
    await settle(running)


async def _model(running: Session | PeerSession) -> str:
    return await running.model() if isinstance(running, PeerSession) else await model_name(running)


def switch_file(client: LspClient | PeerClient, old: Source | None, new: Source) -> None:
    """Close the old file and make the new file's project the workspace folder."""
    if old is not None:
        client.close(old.path.as_uri())
    if old is None or old.root != new.root:
        client.move_workspace(old.root if old else None, new.root)


def _line(number: int, total: int, variant: str, place: Place, samples: Sequence[KeySample]) -> str:
    times = sorted(s.ms for s in samples[1:]) or [0.0]
    first = samples[0].ms if samples else 0.0
    right = sum(s.exact for s in samples)
    return (
        f"place {number + 1}/{total} {place.source.name}:{place.line + 1} {variant}: "
        f"first {first:.0f} ms, then {times[len(times) // 2]:.0f} ms, {right}/{len(samples)} right"
    )
