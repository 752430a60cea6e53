"""`bench load`, part `restore`: what a prompt of 2,000 tokens costs that was evaluated before, and the first suggestion after a restart.

Strategy: an engine with one slot, so that every other prompt evicts the one before. From memory: two prompts take turns. From
disk: the engine is ended and started again over the same directory, without memory for evicted prompts. Then the whole
way: a window's engine is told to end, and the same place is asked for until it answers again.

Rules: restore_ms is the engine's own time for reading, checking and putting the state back; answer_ms is request to answer for one
token. The first suggestion counts from the first request that found the model loaded (asked every 20 ms).
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from ..engine.client import EngineClient
from ..engine.options import EngineOptions
from .bench_load import Bench
from .bench_load_engine import Prompts, private_engine, request, token_stream
from .client import Answer, LspClient
from .corpus import Source, places_in
from .edits import Position, apply_edits
from .session import Session, SessionOptions, household, settle, warm_up
from .typist import script_for

LENGTH, OTHER = 2000, 400
ASK_EVERY_S = 0.02
LIMIT_S = 120.0
LINE_TOKENS = 12
PLACES = 10
SETTLE_S = 10.0


async def _again(engine: EngineClient, prompt: tuple[int, ...], tokens: int) -> dict[str, float]:
    started = perf_counter()
    answer = await engine.complete(request(prompt, "kept", tokens))
    took = (perf_counter() - started) * 1000
    timing = answer.timing
    return {
        "restore_ms": timing.restore_ms, "restored": timing.restored, "evaluated": timing.evaluated,
        "prefill_ms": timing.prefill_ms, "answer_ms": took,
    }  # fmt: skip


def _median(runs: list[dict[str, float]], name: str) -> float | None:
    values = [run[name] for run in runs if run["restored"] > 0]
    return round(statistics.median(values), 2) if values else None


async def from_memory(bench: Bench, options: EngineOptions, prompts: Prompts) -> dict[str, Any]:
    """Evicted by another prompt and asked for again, several times."""
    kept, runs = prompts.next(LENGTH), []
    async with private_engine(replace(options, disk_cache_dir=None)) as engine:
        cold = await _again(engine, kept, 1)
        for _ in range(bench.rounds(8)):
            await engine.complete(request(prompts.next(OTHER), "other", 0))
            runs.append(await _again(engine, kept, 1))
            bench.say(f"restore from memory {len(runs)}: {runs[-1]}")
    return {
        "restore_ms": _median(runs, "restore_ms"), "answer_ms": _median(runs, "answer_ms"),
        "cold_prefill_ms": round(cold["prefill_ms"], 1), "restored": [int(run["restored"]) for run in runs],
    }  # fmt: skip


async def from_disk(bench: Bench, options: EngineOptions, prompts: Prompts) -> dict[str, Any]:
    """Restarted engines over one directory, without a memory cache."""
    kept, runs, firsts = prompts.next(LENGTH), [], []
    with tempfile.TemporaryDirectory(prefix="lspd-") as folder:
        options = replace(options, disk_cache_dir=folder, host_cache_bytes=0)
        async with private_engine(options) as engine:
            await _again(engine, kept, 1)
        for number in range(bench.rounds(4)):
            async with private_engine(options) as engine:
                runs.append(await _again(engine, kept, LINE_TOKENS))
                firsts.append(runs[-1]["answer_ms"])
                await engine.complete(request(prompts.next(OTHER), "other", 0))
                runs.append(await _again(engine, kept, LINE_TOKENS))
            bench.say(f"restore from disk {number + 1}: {runs[-2]}")
        size = await asyncio.to_thread(_largest, Path(folder))
    return {
        "restore_ms": _median(runs, "restore_ms"),
        "first_restore_ms": _median(runs[::2], "restore_ms"),
        "first_answer_ms": round(statistics.median(firsts), 1),
        "first_answer_tokens": LINE_TOKENS,
        "restored": [int(run["restored"]) for run in runs],
        "file_mb": round(size / 1e6, 1),
    }


def _largest(folder: Path) -> int:
    """Bytes of the largest saved prompt."""
    return max((path.stat().st_size for path in folder.glob("*.kv")), default=0)


async def _when_there(client: LspClient, uri: str, cursor: Position) -> Answer:
    """The first answer of a loaded model. Raises TimeoutError."""
    until = perf_counter() + LIMIT_S
    while perf_counter() < until:
        answer = await client.inline(uri, cursor)
        if answer.stages.get("outcome", "unavailable") not in ("unavailable", "error"):
            return answer
        await asyncio.sleep(ASK_EVERY_S)
    raise TimeoutError("the engine did not come back")


def states(source: Source, seed: int) -> Iterator[tuple[str, Position]]:
    """Moments of typing in the file: (text, cursor), a character into each of several lines."""
    for place in places_in(source, PLACES, seed):
        script = script_for(source.text, place.line, source.language_id)
        text = apply_edits(source.text, [script.removal])
        for key in script.keys:
            text = apply_edits(text, key.edits)
            if key.asks and key.kind == "char":
                yield text, key.cursor
                break


async def _with_suggestion(window: Session, source: Source, seed: int) -> Position:
    """Open the file at a place where the whole prompt's answer is a suggestion. Raises ValueError if none of several is."""
    client, uri = window.client, source.path.as_uri()
    for text, cursor in states(source, seed):
        client.open(uri, source.language_id, text)
        for _ in range(3):  # the small prompt's answer, then the whole prompt's, which is made ready behind it
            answer = await client.inline(uri, cursor)
            await settle(window, SETTLE_S)
        if answer.items:
            return cursor
        client.close(uri)
    raise ValueError("The model suggests nothing in this file; another --seed may help.")


async def after_restart(bench: Bench) -> dict[str, Any]:
    """A window's engine ends and comes back; the first suggestion at the place that was being edited."""
    options = SessionOptions({"suggest": {"typed_through": False, "level": "eager", "min_chars": 1}}, model=str(bench.model))
    source = bench.sources[0]
    firsts: list[Answer] = []
    async with household(options) as home:
        window = await home.window(source.root)
        await warm_up(window, source.root)
        uri = source.path.as_uri()
        cursor = await _with_suggestion(window, source, bench.options.seed)
        for _ in range(bench.rounds(4)):
            engine = home.engine()
            if engine is None:
                break
            engine.terminate()
            await asyncio.to_thread(psutil.wait_procs, [engine], 60)
            firsts.append(await _when_there(window.client, uri, cursor))
            bench.say(f"restart: {(firsts[-1].received - firsts[-1].sent) * 1000:.0f} ms {dict(firsts[-1].stages)}")
            await settle(window)
    times = [(answer.received - answer.sent) * 1000 for answer in firsts]
    return {
        "first_suggestion_ms": round(statistics.median(times), 1) if times else None,
        "first_suggestion_each_ms": [round(time, 1) for time in times],
        "restored": [answer.stages.get("restored") for answer in firsts],
        "prompt_tokens": [answer.stages.get("prompt_tokens") for answer in firsts],
        "suggestions": sum(bool(answer.items) for answer in firsts),
        "sources": [answer.stages.get("source") for answer in firsts],
        "prefill_ms": [answer.stages.get("prefill_ms") for answer in firsts],
    }


async def restore(bench: Bench) -> dict[str, Any]:
    """See the module's strategy."""
    prompts = Prompts(token_stream(bench), bench.options.seed, "restore")
    options = EngineOptions(str(bench.model), context=4096, slots=1)
    return {
        "prompt_tokens": LENGTH,
        "memory": await from_memory(bench, options, prompts),
        "disk": await from_disk(bench, options, prompts),
        "restart": await after_restart(bench),
    }
