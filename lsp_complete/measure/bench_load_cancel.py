"""`bench load`, part `cancel`: from `$/cancelRequest` in the middle of a long prefill to the engine doing something else.

Strategy: a window asks at a place whose prompt is about 2,000 tokens and cold, the small first answer turned off. While
the engine evaluates it, a second client asks for something tiny at background priority, which has to wait: on a CPU nothing of lower
priority runs beside an interactive request. Then the window cancels. The tiny request's answer shows that the engine has done
something else: the time from the cancel to that answer is cancel_to_answer; less the time that the tiny request takes
when nothing runs (something_else_ms, a median) it is the time until the engine began with it, cancel_p95_ms.

Rules: the prompt is cold each time because its second line changes (one before the first would stand outside of the window). A round in which the tiny request was answered
before the cancel, or the long one had ended, does not count.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from pathlib import Path
from time import perf_counter
from typing import Any

from ..engine.api import CompletionRequest, Priority
from ..engine.connection import Connection, Dialer, dial
from ..engine.paths import Endpoint, endpoint_names
from ..engine.wire import to_json
from ..errors import EngineUnavailable
from .bench_load import Bench
from .client import CANCELLED, LspClient
from .edits import Edit, Position, split_lines, utf16
from .session import Household, SessionOptions, household, warm_up
from .statistics import percentile

LINES = 275
SETTINGS: dict[str, Any] = {
    "prefetch": "off",
    "first_deadline_ms": 60_000,
    "suggest": {"time_limit_ms": 60_000, "level": "eager", "min_chars": 1, "typed_through": False},
    "context": {"lines_above": 1000, "lines_below": 5},
}
WAIT_S = (0.4, 3.0)
"""How far into the prefill the cancel comes."""

PROBE_LEAD_S = 0.08
POLL_S = 0.01
LIMIT_S = 60.0


async def engine_connection(home: Household) -> Connection:
    """A connection of our own to the household's engine. Raises EngineUnavailable if there is none."""
    for name in endpoint_names(home.runtime):
        return await dial(Endpoint(home.runtime, name, False), Dialer())
    raise EngineUnavailable("the servers have started no engine")


async def _running(engine: Connection) -> int:
    stats = await engine.call("stats")
    running = stats.get("running") if isinstance(stats, dict) else 0
    return running if isinstance(running, int) else 0


async def _until_running(engine: Connection) -> bool:
    """Wait until the engine works; False if it did not begin in time."""
    until = perf_counter() + LIMIT_S
    while perf_counter() < until:
        if await _running(engine):
            return True
        await asyncio.sleep(POLL_S)
    return False


def _probe(number: int) -> dict[str, Any]:
    """Two tokens to evaluate that were not evaluated before."""
    prompt = (1000 + number, 70_000 + number)
    tiny = CompletionRequest(prompt, key=f"probe {number}", max_tokens=0, priority=Priority.BACKGROUND, time_limit_ms=LIMIT_S * 1000)
    return {"request": to_json(tiny), "deltas": False}


async def _one_round(client: LspClient, engine: Connection, uri: str, cursor: Position, number: int, wait_s: float) -> float | None:
    """Milliseconds, or None if the round does not count."""
    client.change(uri, [Edit(Position(1, 0), Position(1, 0), f"# {number} {wait_s}\n")])
    cursor = Position(cursor.line + number + 1, cursor.character)
    call = client.ask(uri, cursor)
    if not await _until_running(engine):
        return None
    await asyncio.sleep(wait_s)
    probe = asyncio.create_task(engine.call("complete", _probe(number)))
    await asyncio.sleep(PROBE_LEAD_S)
    valid = not probe.done() and not call.reply.done()
    started = perf_counter()
    client.cancel(call)
    await asyncio.wait_for(probe, LIMIT_S)
    ended = perf_counter()
    reply = await asyncio.wait_for(call.reply, LIMIT_S)
    return (ended - started) * 1000 if valid and reply.code == CANCELLED else None


async def _alone(engine: Connection, count: int) -> float:
    """Milliseconds of the tiny request when nothing else runs: what the figure contains beside the cancelling."""
    times = []
    for number in range(count):
        started = perf_counter()
        await engine.call("complete", _probe(50_000 + number))
        times.append((perf_counter() - started) * 1000)
    return statistics.median(times)


def long_text(bench: Bench) -> str:
    """The first lines of the pinned Python files, enough for a prompt of some 2,000 tokens."""
    lines = [line for s in bench.sources if s.language_id == "python" for line in split_lines(s.text)]
    return "".join(lines[:LINES])


async def cancel(bench: Bench) -> dict[str, Any]:
    """See the module's strategy."""
    rng = random.Random(f"cancel:{bench.options.seed}")  # noqa: S311 (moments)
    options = SessionOptions(SETTINGS, model=str(bench.model))
    rounds, times = bench.rounds(40), []
    async with household(options) as home:
        root: Path = bench.sources[0].root
        window = await home.window(root)
        await warm_up(window, root)
        client, engine = window.client, await engine_connection(home)
        text, uri = long_text(bench), (root / "lsp_complete_cancel.py").as_uri()
        client.open(uri, "python", text)
        lines = split_lines(text)
        cursor = Position(len(lines) - 2, utf16(lines[-2].rstrip("\r\n")))
        whole = await client.inline(uri, cursor, limit_s=180)
        for number in range(rounds):
            took = await _one_round(client, engine, uri, cursor, number, rng.uniform(*WAIT_S))
            bench.say(f"cancel {number + 1}/{rounds}: {'does not count' if took is None else f'{took:.0f} ms'}")
            if took is not None:
                times.append(took)
        alone = await _alone(engine, 9)
        await engine.close()
    return {
        "cancel_p95_ms": round(percentile(times, 0.95) - alone, 1) if times else None,
        "cancel_p50_ms": round(percentile(times, 0.5) - alone, 1) if times else None,
        "cancel_to_answer_p95_ms": round(percentile(times, 0.95), 1) if times else None,
        "something_else_ms": round(alone, 1),
        "prompt_tokens": whole.stages.get("prompt_tokens"),
        "rounds": len(times),
        "not_counted": rounds - len(times),
    }
