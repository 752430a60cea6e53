"""`bench load`, parts `batching` and `idle_slots`, and the private engine process that the engine parts ask.

Strategy: a real engine process in a private directory, asked over its socket as a window would. Prompts are stretches of
the pinned files, never the same twice where a cold one is wanted. What is compared takes turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from ..engine.api import Completion, CompletionRequest, StopRules
from ..engine.client import EngineClient
from ..engine.control import stop_all
from ..engine.launch import EngineLaunch, ServeRules
from ..engine.options import EngineOptions
from ..engine.vocab import load_vocab
from .bench_load import Bench

FREE = StopRules("free", max_lines=1000)
LIMIT_MS = 600_000.0
END_S = 30.0

BATCH, BATCH_PROMPT, BATCH_TOKENS = 8, 200, 24
IDLE_SLOTS, OWN_PROMPT, IDLE_TOKENS = 7, 1024, 32


@contextlib.asynccontextmanager
async def private_engine(options: EngineOptions) -> AsyncIterator[EngineClient]:
    """An engine process of our own, ready; it has ended, orderly, when this is left. Raises what loading raises."""
    folder = Path(tempfile.mkdtemp(prefix="lspe-"))
    rules, options = ServeRules(idle_s=3600.0), replace(options, max_time_limit_ms=LIMIT_MS)
    launch = EngineLaunch(options.model_path, options.as_dict(), rules, str(folder / "logs"))
    client = EngineClient(launch, directory=folder, tcp=False)
    process: psutil.Process | None = None
    try:
        await client.info()
        process = await process_of(client)
        yield client
    finally:
        await client.close()
        await stop_all(folder, False)
        if process is not None:
            await asyncio.to_thread(_end, process)
        shutil.rmtree(folder, ignore_errors=True)


async def process_of(client: EngineClient) -> psutil.Process | None:
    """The engine's process."""
    figures = (await client.stats()).get("process")
    pid = figures.get("pid") if isinstance(figures, dict) else None
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid) if isinstance(pid, int) else None
    return None


def _end(process: psutil.Process) -> None:
    """Wait for an orderly end (prompts are being saved), then insist."""
    with contextlib.suppress(psutil.Error):
        _, alive = psutil.wait_procs([process], END_S)
        for left in alive:
            left.kill()


def token_stream(bench: Bench) -> list[int]:
    """All pinned files as one row of tokens."""
    vocab = load_vocab(str(bench.model))
    return [token for source in bench.sources for token in vocab.tokenize(source.text)]


class Prompts:
    """Stretches of a row of tokens at seeded places, each begun by a number of its own, so that no two share a prefix."""

    def __init__(self, tokens: Sequence[int], seed: int, name: str) -> None:
        self._tokens, self._count = tokens, 0
        self._rng = random.Random(f"{name}:{seed}")  # noqa: S311 (choice of places)

    def next(self, length: int) -> tuple[int, ...]:
        """A prompt that no earlier one begins like."""
        self._count += 1
        start = self._rng.randrange(max(1, len(self._tokens) - length))
        mark = self._tokens[self._count % len(self._tokens)]
        return (mark, self._count % 1000, *self._tokens[start : start + length - 2])


def request(prompt: tuple[int, ...], key: str, max_tokens: int, **more: Any) -> CompletionRequest:
    """A request that nothing but its token count ends early, and that proposes nothing."""
    values: dict[str, Any] = {"time_limit_ms": LIMIT_MS, "stop": FREE, "speculate": False, **more}
    return CompletionRequest(prompt, key=key, max_tokens=max_tokens, **values)


def tokens_of(answers: Sequence[Completion]) -> int:
    """Tokens evaluated and generated for these answers."""
    return sum(a.timing.evaluated + a.timing.decoded for a in answers)


async def batching(bench: Bench) -> dict[str, Any]:
    """Eight cold requests at once against eight one after the other; rounds take turns."""
    prompts = Prompts(token_stream(bench), bench.options.seed, "batching")
    gains: list[float] = []
    rates: dict[str, list[float]] = {"one": [], "together": []}

    def cold() -> list[CompletionRequest]:
        return [request(prompts.next(BATCH_PROMPT), f"batch {n}", BATCH_TOKENS) for n in range(BATCH)]

    async with private_engine(EngineOptions(str(bench.model), host_cache_bytes=0)) as engine:
        await engine.complete(request(prompts.next(BATCH_PROMPT), "warm", 4))
        for number in range(bench.rounds(6)):
            for kind in ("one", "together") if number % 2 else ("together", "one"):
                asked, started = cold(), perf_counter()
                if kind == "one":
                    answers = [await engine.complete(one) for one in asked]
                else:
                    answers = list(await asyncio.gather(*(engine.complete(one) for one in asked)))
                rates[kind].append(tokens_of(answers) / (perf_counter() - started))
            gains.append(rates["together"][-1] / rates["one"][-1])
            bench.say(f"batching {number + 1}: {gains[-1]:.3f}")
    return {
        "batching_gain": round(statistics.median(gains), 3),
        "batching_gain_each": [round(gain, 3) for gain in gains],
        "tokens_per_s_one": round(statistics.median(rates["one"]), 1),
        "tokens_per_s_together": round(statistics.median(rates["together"]), 1),
        "requests": BATCH,
        "prompt_tokens": BATCH_PROMPT,
        "decoded_tokens": BATCH_TOKENS,
    }


def slot_prompts(prompts: Prompts, context: int, own: int, output: int) -> Iterator[tuple[int, ...]]:
    """Prompts for the idle slots that fill the context but for our own slot."""
    each = (context - own - output - 16) // IDLE_SLOTS
    for _ in range(IDLE_SLOTS):
        yield prompts.next(each)


async def talkative(engine: EngineClient, prompts: Prompts) -> tuple[int, ...]:
    """A prompt after which the model does not end its text at once. Raises ValueError if none of several is."""
    for _ in range(8):
        own = prompts.next(OWN_PROMPT)
        if (await engine.complete(request(own, "own", IDLE_TOKENS))).timing.decoded == IDLE_TOKENS:
            return own
    raise ValueError("The model ends its text at once after every stretch of the files; another --seed may help.")


async def idle_slots(bench: Bench) -> dict[str, Any]:
    """Milliseconds per decoded token in one slot, with seven full idle slots and without; two engines take turns."""
    tokens = token_stream(bench)
    prompts = Prompts(tokens, bench.options.seed, "idle slots")
    options = EngineOptions(str(bench.model), host_cache_bytes=0)
    times: dict[str, list[float]] = {"alone": [], "full": []}
    async with private_engine(options) as alone, private_engine(replace(options, max_waiting=255)) as full:
        own = await talkative(alone, prompts)
        filling = list(slot_prompts(prompts, options.context, OWN_PROMPT, IDLE_TOKENS))
        for number, prompt in enumerate(filling):
            await full.complete(request(prompt, f"idle {number}", 0))
            bench.say(f"idle_slots: slot {number + 1} of {IDLE_SLOTS} filled")
        for engine in (alone, full):
            await engine.complete(request(own, "own", IDLE_TOKENS))
        held = await full.stats()
        for number in range(bench.rounds(16)):
            pairs = [("alone", alone), ("full", full)]
            for kind, engine in pairs if number % 2 else reversed(pairs):
                answer = await engine.complete(request(own, "own", IDLE_TOKENS))
                if answer.timing.decoded >= 8:
                    times[kind].append(answer.timing.decode_ms / (answer.timing.decoded - 1))
    without, with_ = statistics.median(times["alone"]), statistics.median(times["full"])
    return {
        "decode_ratio": round(with_ / without, 3),
        "decode_ms_without": round(without, 2),
        "decode_ms_with_idle_slots": round(with_, 2),
        "idle_slots": IDLE_SLOTS,
        "tokens_held": held.get("tokens"),
        "slots": held.get("slots") and [slot["tokens"] for slot in held["slots"]],  # type: ignore[attr-defined]
        "runs": len(times["full"]),
    }
