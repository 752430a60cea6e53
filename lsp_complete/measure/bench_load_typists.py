"""`bench load`, parts `typist` and `eight`: real servers that share an engine, typed at in the rhythm of real typing.

Strategy: a window is a server process of its own with a file of its own. Idle windows get background work by moving their
cursors about (as editors with our module do): every place visited is made ready at background priority, which is
more than the engine can do, so there is always some.

Rules:
- "Alone" is a household of its own with one window, the same file, lines, keys and rhythm.
- Times are estimated with overtaken requests as cut short (`survival`); so is their ratio.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from ..engine.control import find_all
from ..errors import EngineUnavailable
from .bench_load import Bench, LoadOptions
from .client import LspClient
from .corpus import Place, Source, places_in
from .edits import Position, split_lines
from .loadtypist import Asked, LoadTypist
from .session import Household, Session, SessionOptions, household, settle, warm_up
from .statistics import percentile, ratio
from .survival import survival_quantile
from .typist import rhythm_ms

VISIT_S = (3.0, 9.0)
"""An idle window's cursor goes somewhere else this often."""

PLACES = 40


def typist_for(client: LspClient, source: Source, number: int, seed: int) -> LoadTypist:
    """The same person with the same seed types the same keys at the same times."""
    places = places_in(source, PLACES, seed) or [Place(source, 1)]
    name = f"load:{seed}:{number}"
    return LoadTypist(
        client, places, rhythm_ms(random.Random(name)), random.Random(name + ":looks")  # noqa: S311 (a typist)
    )  # fmt: skip


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Of one typist, or of several together."""
    states = Counter(one.state for one in asked)
    waits = [(one.waited_ms, one.state == "answered") for one in asked if one.state in ("answered", "overtaken")]
    answered = [one.waited_ms for one in asked if one.state == "answered"]
    return {
        "p50_ms": _round(survival_quantile(waits, 0.5)),
        "p95_ms": _round(survival_quantile(waits, 0.95)),
        "answered_p95_ms": round(percentile(answered, 0.95), 1) if answered else None,
        "requests": len(asked),
        "answered_share": round(ratio(states["answered"], len(asked)), 4),
        "overtaken": states["overtaken"],
        "refused": states["refused"],
        "lost": states["lost"],
        "sources": dict(Counter(one.source for one in asked if one.state == "answered")),
    }


def _round(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def _over(a: float | None, b: float | None) -> float | None:
    return round(a / b, 3) if a is not None and b else None


async def engine_figures(home: Household) -> dict[str, Any]:
    """The engine's own statistics; {} if there is no engine that answers."""
    for status in await find_all(home.runtime, False):
        if status.state == "ready" and status.stats is not None:
            return status.stats
    return {}


async def sure_figures(home: Household, tries: int = 6) -> dict[str, Any]:
    """The same where they must be had: a busy engine may take longer for an answer than it is given. Raises EngineUnavailable."""
    for _ in range(tries):
        if stats := await engine_figures(home):
            return stats
    raise EngineUnavailable("The engine did not tell its figures; nothing can be said of its memory and work.")


def _number(stats: dict[str, Any], *path: str) -> float:
    value: Any = stats
    for name in path:
        value = value.get(name, {}) if isinstance(value, dict) else {}
    return float(value) if isinstance(value, int | float) else 0.0


async def open_window(home: Household, source: Source) -> Session:
    """One more window, answering."""
    running = await home.window(source.root)
    await warm_up(running, source.root)
    return running


async def visit(client: LspClient, source: Source, rng: random.Random) -> None:
    """An idle window: the file is open, the cursor goes about, nothing is typed. Until cancelled."""
    uri = source.path.as_uri()
    client.open(uri, source.language_id, source.text)
    lines = len(split_lines(source.text))
    while True:
        client.move_cursor(uri, Position(rng.randrange(lines), 0))
        await asyncio.sleep(rng.uniform(*VISIT_S))


@contextlib.asynccontextmanager
async def visiting(windows: Sequence[tuple[Session, Source]], seed: int) -> Any:
    """Idle windows with background work, as long as the context lasts."""
    tasks = [
        asyncio.create_task(visit(window.client, source, random.Random(f"visit:{seed}:{n}")))  # noqa: S311 (a typist)
        for n, (window, source) in enumerate(windows)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def sources_for(bench: Bench) -> Iterator[Source]:
    """A file for each window; they begin anew where there are fewer files than windows."""
    for number in range(bench.options.windows):
        yield bench.sources[number % len(bench.sources)]


def session_options(options: LoadOptions, model: Path) -> SessionOptions:
    """The product's defaults."""
    return SessionOptions(model=str(model))


async def typist(bench: Bench) -> dict[str, Any]:
    """One typist alone, then beside idle windows with background work."""
    options, sources = bench.options, list(sources_for(bench))
    async with household(session_options(options, bench.model)) as home:
        window = await open_window(home, sources[0])
        await settle(window)
        alone = await typist_for(window.client, sources[0], 0, options.seed).type_for(options.seconds)
    bench.say(f"alone: {figures(alone)}")
    async with household(session_options(options, bench.model)) as home:
        windows = []
        for source in sources:
            windows.append((await open_window(home, source), source))
            bench.say(f"typist: window {len(windows)} of {len(sources)} is open")
        await settle(windows[0][0])
        before = await sure_figures(home)
        async with visiting(windows[1:], options.seed):
            client = windows[0][0].client
            beside = await typist_for(client, sources[0], 0, options.seed).type_for(options.seconds)
        after = await sure_figures(home)
    one, many = figures(alone), figures(beside)
    evaluated = _number(after, "counters", "evaluated") - _number(before, "counters", "evaluated")
    return {
        "p95_ratio": _over(many["p95_ms"], one["p95_ms"]),
        "p50_ratio": _over(many["p50_ms"], one["p50_ms"]),
        "answered_p95_ratio": _over(many["answered_p95_ms"], one["answered_p95_ms"]),
        "alone": one,
        "beside_windows": many,
        "idle_windows": options.windows - 1,
        "evaluated_tokens_per_s": round(evaluated / options.seconds, 1),
        "lost": one["lost"] + many["lost"],
    }


def rss_mb(pid: int) -> float:
    """Resident memory of a process in MB; 0 if it is gone."""
    try:
        return psutil.Process(pid).memory_info().rss / 1e6
    except psutil.Error:
        return 0.0


def memory_of(stats: dict[str, Any]) -> tuple[float, float]:
    """(resident MB of the engine, MB of evicted prompts that it keeps in memory)."""
    return _number(stats, "process", "rss_bytes") / 1e6, _number(stats, "host_cache", "bytes") / 1e6


async def eight(bench: Bench) -> dict[str, Any]:
    """All windows typed at, and the memory of engine and servers with one window and with all."""
    options, sources = bench.options, list(sources_for(bench))
    async with household(session_options(options, bench.model)) as home:
        windows = [await open_window(home, sources[0])]
        typists = [typist_for(windows[0].client, sources[0], 0, options.seed)]
        first = await typists[0].type_for(min(options.seconds / 4, 30.0))
        one = memory_of(await sure_figures(home))
        bench.say(f"eight: one window: {figures(first)}")
        for number, source in enumerate(sources[1:], start=1):
            windows.append(await open_window(home, source))
            typists.append(typist_for(windows[-1].client, source, number, options.seed))
            bench.say(f"eight: window {len(windows)} of {len(sources)} is open")
        typed = await asyncio.gather(*(t.type_for(options.seconds) for t in typists))
        stats = await sure_figures(home)
        servers = [rss_mb(w.client.process.pid) for w in windows if w.client.process is not None]
    many, each = memory_of(stats), [figures(asked) for asked in typed]
    shares = [one_["answered_share"] for one_ in each]
    return {
        "lost": sum(f["lost"] + f["refused"] for f in [*each, figures(first)]),
        "answered_share_min": min(shares),
        "answered_share_mean": round(sum(shares) / len(shares), 4),
        "answered_share_min_over_mean": _over(min(shares), sum(shares) / len(shares)),
        "engine_rss_ratio": _over(many[0] - many[1], one[0] - one[1]),
        "engine_rss_mb": {"one": round(one[0], 1), "all": round(many[0], 1)},
        "kept_prompts_mb": {"one": round(one[1], 1), "all": round(many[1], 1)},
        "server_rss_mb": round(sum(servers) / len(servers), 1),
        "server_rss_mb_max": round(max(servers), 1),
        "together": figures([one_ for asked in typed for one_ in asked]),
        "windows": len(windows),
        "counters": stats.get("counters", {}),
    }
