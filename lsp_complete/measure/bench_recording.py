"""`lsp-complete bench recording`: what recording costs per key. No model needed.

Strategy: the product's own recorder takes what a key brings (an edit, the cursor, a request, a prompt that shares its head with the one before, an answer), and
its worker writes real files into a folder of the measurement's own. Time on the event loop is what a key waits for; the processor time of all threads is what recording
takes from the machine. Both are set against key → answer.

Figures: loop_us_p50, loop_us_p95 (microseconds of the event loop per key), cpu_us (all threads, per key), bytes (per key), and
share: cpu_us over key → answer, with `answer_ms` the median of this machine as the caller measured it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from ..config import RecordSettings
from ..service.recorder import Recorder
from ..service.types import Answer, Query, Suggestion
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding
from .stages import StageRecord
from .statistics import percentile

LINES = 1000
PROMPT = 700
"""Tokens of a prompt; a key changes the last of them."""
PAUSE_EVERY = 50
"""Keys between two moments in which the worker may write."""


def run(keys: int = 2000, answer_ms: float = 100.0, seed: int = 1) -> dict[str, Any]:
    """The figures. keys: typed; answer_ms: key → answer to compare with. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="lspc-recording-") as name:
        loop_s, cpu_s = asyncio.run(_keys(keys, Path(name) / "r", random.Random(seed)))  # noqa: S311
        size = sum(path.stat().st_size for path in (Path(name) / "r").iterdir())
    cpu_us = cpu_s / keys * 1e6
    return {
        "keys": keys,
        "loop_us_p50": round(percentile(loop_s, 0.5) * 1e6, 1),
        "loop_us_p95": round(percentile(loop_s, 0.95) * 1e6, 1),
        "cpu_us": round(cpu_us, 1),
        "bytes": round(size / keys),
        "answer_ms": answer_ms,
        "share": round(cpu_us / (answer_ms * 1000), 5),
    }


async def _keys(count: int, folder: Path, rng: random.Random) -> tuple[list[float], float]:
    recorder = Recorder(RecordSettings(enabled=True, dir=str(folder)), perf_counter)
    text = "".join(f"    value_{number} = function(argument_{number}, other={number})\n" for number in range(LINES))
    document = Document.open("file:///project/module.py", "python", 1, text)
    recorder.opened(document)
    prompt = [rng.randrange(150_000) for _ in range(PROMPT)]
    line, times = LINES // 2, list[float]()
    cpu = process_time()
    spent = 0.0
    for key in range(count):
        point = (line, key % 20)
        before = process_time()
        changed, edits = document.apply([Change((point, point), "x")], Encoding.UTF32, key + 2)
        offset = changed.buffer.offset(point[0], point[1] + 1)
        prompt[-1 - key % 8 :] = [rng.randrange(150_000) for _ in range(1 + key % 8)]
        query = Query(changed, offset, 0.0)
        answer = Answer((Suggestion(f"s{key}", " = function(argument, other=1)", offset, offset),), StageRecord(key, total_ms=100.0))
        spent += process_time() - before  # an editor's and an engine's work, not the recorder's
        began = perf_counter()
        recorder.changed(document, changed, edits)
        recorder.asked(query, key)
        recorder.prompted(document.uri, tuple(prompt))
        recorder.answered(key, answer)
        times.append(perf_counter() - began)
        document = changed
        if key % PAUSE_EVERY == PAUSE_EVERY - 1:
            recorder._flush()
            await asyncio.sleep(0)
    await recorder.close()
    return times, process_time() - cpu - spent
