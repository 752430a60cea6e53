"""`lsp-complete bench soak`: scripted windows type for half an hour while windows and the engine are killed. Nothing may leak, stick or break.

Strategy: some windows share an engine; each has a typist. By a seeded plan a window's server or the engine is killed outright (SIGKILL)
now and then; a killed window is opened again, a killed engine is started again by the servers. The memory of every
process is sampled; its level in the last third of a long life is held against the level after its warm-up.

Figures:
- memory_growth: the largest growth of any process's life, engine or server (0.05 is 5 %); memory_growth_engine, _server.
- stuck: requests of living servers without a reply. refused: those answered "no engine" (unavoidable around a kill).
- integrity_faults, reuse_faults, step_errors: the engines' own counts over all their lives; back_ms: kill of the engine to the next answer.

Rules: the memory for evicted prompts is set small, so that it is full after the warm-up and its filling does not look like a leak. A
life shorter than three warm-ups tells nothing of growth. The plan depends on the seed only.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from ..errors import EngineUnavailable
from ..models.installed import resolve
from .bench_load import DEFAULT_MODEL, Say
from .bench_load_bars import SOAK, verdicts
from .bench_load_typists import engine_figures, open_window, rss_mb, typist_for
from .corpus import Source, load_corpus
from .loadtypist import Asked
from .session import Household, Session, SessionOptions, household, run_to_end

SETTINGS: dict[str, Any] = {"engine": {"host_cache_mb": 48, "disk_cache_mb": 512}}
SAMPLE_S = 5.0
STRETCH_S = 20.0
"""A typist types so long between looks at whether its window still stands."""

OPENING_FAILS = (EngineUnavailable, ConnectionError, TimeoutError, asyncio.TimeoutError, RuntimeError)

COUNTED = ("integrity_faults", "reuse_faults", "step_errors")


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """minutes: of typing. warm_up: share of the whole time that a process may grow. kills: of each kind, per half hour."""

    minutes: float = 30.0
    windows: int = 4
    model: str = DEFAULT_MODEL
    seed: int = 1
    warm_up: float = 0.08
    window_kills: int = 8
    engine_kills: int = 3

    def __post_init__(self) -> None:
        if self.minutes <= 0 or self.windows < 1:
            raise ValueError("a soak needs minutes and a window at least")


@dataclass(frozen=True, slots=True)
class Kill:
    """at: seconds since the start. window: its number, or -1 for the engine."""

    at: float
    window: int


def plan_kills(options: SoakOptions) -> list[Kill]:
    """When what is killed, in order. The second half of the time has no kill of the engine and few of windows, so that lives get long."""
    rng = random.Random(f"soak:{options.seed}")  # noqa: S311 (a plan)
    seconds = options.minutes * 60
    share = max(options.minutes / 30, 0.2)
    windows = max(1, round(options.window_kills * share))
    kills = [
        Kill(rng.uniform(0.1, 0.5) * seconds, rng.randrange(options.windows)) for _ in range(max(1, windows * 3 // 4))
    ]
    kills += [Kill(rng.uniform(0.5, 0.9) * seconds, rng.randrange(1, options.windows) if options.windows > 1 else 0) for _ in range(windows // 4)]
    kills += [Kill(rng.uniform(0.05, 0.4) * seconds, -1) for _ in range(max(1, round(options.engine_kills * share)))]
    return sorted(kills, key=lambda kill: kill.at)


@dataclass(slots=True)
class Life:
    """One process's memory: (seconds since it was first seen, resident MB), and an engine's last counters."""

    kind: str
    began: float
    samples: list[tuple[float, float]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

    def growth(self, warm_up_s: float) -> float | None:
        """Level of the last third over the level of the first third after the warm-up, less 1; None for a short life."""
        later = [sample for sample in self.samples if sample[0] >= warm_up_s]
        if not later or later[-1][0] < 3 * warm_up_s or len(later) < 6:
            return None
        third = len(later) // 3
        first, last = (statistics.median(mb for _, mb in part) for part in (later[:third], later[-third:]))
        return last / first - 1.0


@dataclass(slots=True)
class Soak:
    """The run's state. lives: by process id."""

    options: SoakOptions
    home: Household
    sources: Sequence[Source]
    say: Say
    began: float
    lives: dict[int, Life] = field(default_factory=dict)
    windows: dict[int, Session] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    back_ms: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.began

    @property
    def seconds(self) -> float:
        return self.options.minutes * 60


async def _person(soak: Soak, number: int) -> None:
    """One window and its typist until the time is up; opened again whenever it was killed."""
    source = soak.sources[number % len(soak.sources)]
    life = 0
    while soak.now < soak.seconds:
        try:
            window = await open_window(soak.home, source)
        except OPENING_FAILS as error:  # half an hour is not lost for one; a soak whose first window does not open ends
            if not soak.states:
                raise
            soak.problems.append(f"{soak.now:.0f} s: window {number} did not open: {type(error).__name__}: {error}")
            continue
        soak.windows[number] = window
        typist = typist_for(window.client, source, number * 1000 + life, soak.options.seed)
        life += 1
        with contextlib.suppress(ConnectionError):
            while soak.now < soak.seconds:
                count(soak, await typist.type_for(min(STRETCH_S, max(1.0, soak.seconds - soak.now))))
        if window.client.process is not None and soak.now < soak.seconds:
            await window.client.process.wait()


def count(soak: Soak, asked: Sequence[Asked]) -> None:
    """Add what became of requests."""
    soak.states.update(one.state for one in asked)


async def _kill_by_plan(soak: Soak) -> None:
    for kill in plan_kills(soak.options):
        await asyncio.sleep(max(0.0, kill.at - soak.now))
        if kill.window < 0:
            await _kill_engine(soak)
        elif (window := soak.windows.get(kill.window)) is not None and not window.client.process_ended():
            assert window.client.process is not None
            soak.say(f"{soak.now:.0f} s: window {kill.window} is killed; so far {dict(soak.states)}")
            window.client.process.kill()
            soak.kills["window"] += 1


async def _kill_engine(soak: Soak) -> None:
    engine = soak.home.engine()
    if engine is None:
        return
    soak.say(f"{soak.now:.0f} s: the engine is killed")
    with contextlib.suppress(psutil.Error):
        engine.kill()
    soak.kills["engine"] += 1
    started = perf_counter()
    while perf_counter() - started < 60:
        await asyncio.sleep(0.1)
        if (await engine_figures(soak.home)).get("state") == "ready":
            soak.back_ms.append((perf_counter() - started) * 1000)
            return
    soak.problems.append(f"no engine 60 s after the kill at {soak.now:.0f} s")


async def _watch(soak: Soak) -> None:
    """Sample memory and counters until cancelled."""
    while True:
        await asyncio.sleep(SAMPLE_S)
        await sample(soak)


async def sample(soak: Soak) -> None:
    """Memory of every process now, and the engine's counters."""
    pids = {w.client.process.pid: "server" for w in soak.windows.values() if w.client.process is not None}
    stats = await engine_figures(soak.home)
    process = stats.get("process")
    engine = process.get("pid") if isinstance(process, dict) else None
    if isinstance(engine, int):
        pids[engine] = "engine"
    for pid, kind in pids.items():
        mb = rss_mb(pid)
        if mb:
            life = soak.lives.setdefault(pid, Life(kind, soak.now))
            life.samples.append((soak.now - life.began, mb))
    counters = stats.get("counters")
    if isinstance(engine, int) and isinstance(counters, dict):
        soak.lives[engine].counters = counters


def report(soak: Soak) -> dict[str, Any]:
    """The figures."""
    warm_up_s = soak.options.warm_up * soak.seconds
    growths: dict[str, list[float]] = {"engine": [], "server": []}
    for life in soak.lives.values():
        growth = life.growth(warm_up_s)
        if growth is not None:
            growths[life.kind].append(growth)
    worst = {kind: round(max(found), 4) if found else None for kind, found in growths.items()}
    known = [value for value in worst.values() if value is not None]
    return {
        "memory_growth": max(known) if known else None,
        "memory_growth_engine": worst["engine"],
        "memory_growth_server": worst["server"],
        "lives_judged": {kind: len(found) for kind, found in growths.items()},
        "stuck": soak.states["lost"],
        "refused": soak.states["refused"],
        "answered": soak.states["answered"],
        "overtaken": soak.states["overtaken"],
        **{name: sum(life.counters.get(name, 0) for life in soak.lives.values()) for name in COUNTED},
        "kills": dict(soak.kills),
        "back_ms": [round(ms) for ms in soak.back_ms],
        "problems": soak.problems,
        "rss_mb": {
            f"{life.kind} {n}": [round(mb) for _, mb in life.samples[:: max(1, len(life.samples) // 8)]]
            for n, life in enumerate(soak.lives.values())
        },
        "minutes": round(soak.seconds / 60, 2),
        "windows": soak.options.windows,
    }


async def measure(options: SoakOptions, model: Path, sources: Sequence[Source], say: Say) -> dict[str, Any]:
    """The whole run. Raises EngineUnavailable if the first window gets no engine."""
    async with household(SessionOptions(SETTINGS, model=str(model))) as home:
        soak = Soak(options, home, sources, say, perf_counter())
        helpers = [asyncio.create_task(_watch(soak)), asyncio.create_task(_kill_by_plan(soak))]
        try:
            await asyncio.gather(*(_person(soak, number) for number in range(options.windows)))
            await sample(soak)
        finally:
            for task in helpers:
                task.cancel()
            ended = await asyncio.gather(*helpers, return_exceptions=True)
        soak.problems += [f"{type(e).__name__}: {e}" for e in ended if isinstance(e, Exception)]
        return report(soak)


def run(options: SoakOptions) -> dict[str, Any]:
    """The soak; progress on standard error. Raises ModelError, DownloadError, EngineUnavailable, OSError."""

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    model = resolve(options.model)
    result = run_to_end(measure(options, model, load_corpus(say), say))
    return {"model": str(model), **result, "bars": verdicts(result, SOAK)}
