"""`bench load`, part `exact`, and the test beside it: whatever way a prompt's KV came back, the greedy text is that of a cold prompt.

Strategy: random edits over a few documents in an engine that is too small for them, so that every way of reuse happens:
tokens still in their slot, a prefix shared from another slot, state from host memory, and, after each restart, from disk.
Each answer is compared with the same prompt evaluated cold by a second engine that keeps nothing.

Rules:
- Greedy and seeded. Where two tokens nearly tie, float noise of other batch shapes may choose the other one: such cases are
  recognised by their log-probabilities against the measured tolerance, counted and shown. Any other difference is `different`.
- A sequence counts for each way by which its tokens came back.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..engine.api import Candidate, Completion, CompletionRequest, Engine, StopRules
from ..engine.local import LocalEngine
from ..engine.options import EngineOptions
from ..engine.vocab import load_vocab
from .bench_load import Bench

NEAR_TIE = 0.38
"""Natural-log units: measured P99.9 of how much the gap between the two best tokens moves when 260 positions of source are
evaluated in batches of 50, of 8, or mixed instead of one by one (q8_0 KV): 0.38, 0.34 and 0.29."""

DOCUMENTS, WINDOW_CHARS, FIRST_LINES = 4, 1600, 34
CONTEXT, SLOTS, TOKENS = 1024, 3, 8
SNIPPETS = ("    return self", "\n    x = ", "for i in ", "kv[", "# note\n")


@dataclass(slots=True)
class Tally:
    """What was compared. different: what parted beyond a near tie, told without the documents' text."""

    same: int = 0
    near_ties: int = 0
    different: list[str] = field(default_factory=list)
    ways: dict[str, int] = field(default_factory=lambda: {"reused": 0, "shared": 0, "memory": 0, "disk": 0, "cold": 0})

    @property
    def count(self) -> int:
        return self.same + self.near_ties + len(self.different)

    def as_dict(self) -> dict[str, Any]:
        """For a report."""
        return {
            "sequences": self.count, "same": self.same, "near_ties": self.near_ties, "different": len(self.different),
            "differences": self.different, "ways": dict(self.ways),
        }  # fmt: skip


def compare(tally: Tally, got: Candidate, cold: Candidate) -> None:
    """Count one pair."""
    if got.text == cold.text:
        tally.same += 1
        return
    at = next((i for i, (a, b) in enumerate(zip(got.tokens, cold.tokens, strict=False)) if a != b), None)
    if at is not None and abs(got.logprobs[at] - cold.logprobs[at]) < NEAR_TIE:
        tally.near_ties += 1
        return
    where = "at its end" if at is None else f"at token {at}, log-probabilities {got.logprobs[at]:.3f} and {cold.logprobs[at]:.3f}"
    tally.different.append(f"sequence {tally.count}: parted {where}")


def edited(text: str, others: Sequence[str], lines: Sequence[str], rng: random.Random) -> str:
    """A document after a random edit: mostly typing at its end, sometimes an insertion above, or the beginning of another."""
    if rng.random() < 0.25:
        at = rng.randrange(len(text) // 2, len(text))
        text = text[:at] + "# note\n" + text[at:]
    else:
        text += rng.choice([*SNIPPETS, lines[rng.randrange(len(lines))]])
    if rng.random() < 0.15:  # less than half of another's prompt: its slot is not taken over, the prefix is shared
        other = rng.choice(others)
        text = other[: len(other) * 2 // 5]
    return text[-WINDOW_CHARS:]


async def _counters(engine: Engine) -> dict[str, int]:
    counters = (await engine.stats()).get("counters")
    return dict(counters) if isinstance(counters, dict) else {}


def _note_ways(tally: Tally, answer: Completion, before: dict[str, int], after: dict[str, int]) -> None:
    timing = answer.timing
    from_disk = after["restored_from_disk"] > before["restored_from_disk"]
    shared = after["shared"] > before["shared"]
    tally.ways["disk"] += from_disk
    tally.ways["memory"] += timing.restored > 0 and not from_disk
    tally.ways["shared"] += shared
    tally.ways["reused"] += timing.reused > 0 and not shared
    tally.ways["cold"] += not timing.reused and not timing.restored


async def _cold(engine: LocalEngine, request: CompletionRequest, number: int) -> Completion:
    """The same prompt where nothing of it is: another one takes the only slot before."""
    other = (request.prompt[0] + 1) % 1000
    await engine.complete(CompletionRequest((other, number % 1000), key="other", max_tokens=0, time_limit_ms=100_000))
    answer = await engine.complete(replace(request, key="cold", speculate=False))
    if answer.timing.evaluated != len(request.prompt):
        raise RuntimeError(f"the cold engine evaluated {answer.timing.evaluated} of {len(request.prompt)} tokens")
    return answer


@asynccontextmanager
async def _engine(options: EngineOptions) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(options)
    try:
        await engine.info()
        yield engine
    finally:
        await engine.close()


async def sequences(
    model: Path, text: str, count: int, seed: int, folder: Path, *, restarts: int = 1, say: Callable[[str], None] = lambda text: None
) -> Tally:
    """`count` edit-and-complete sequences over stretches of `text`. folder: for saved prompts. restarts: spread over the run.

    Raises ModelError.
    """
    rng = random.Random(seed)  # noqa: S311 (random edits)
    vocab = load_vocab(str(model))
    lines = text.splitlines(keepends=True)
    step = max(1, (len(lines) - FIRST_LINES) // DOCUMENTS)
    texts = {f"document {i}": "".join(lines[i * step : i * step + FIRST_LINES]) for i in range(DOCUMENTS)}
    options = EngineOptions(str(model), context=CONTEXT, slots=SLOTS, disk_cache_dir=str(folder))
    tally, done = Tally(), 0
    async with _engine(EngineOptions(str(model), context=CONTEXT, slots=1, host_cache_bytes=0)) as cold_engine:
        for life in range(restarts + 1):
            async with _engine(options) as engine:
                while done < count * (life + 1) // (restarts + 1):
                    key = rng.choice(list(texts))
                    texts[key] = edited(texts[key], list(texts.values()), lines, rng)
                    prompt, stop = tuple(vocab.tokenize(texts[key])), StopRules("free", max_lines=3)
                    request = CompletionRequest(prompt, key=key, max_tokens=TOKENS, stop=stop, time_limit_ms=100_000)
                    before = await _counters(engine)
                    answer = await engine.complete(request)
                    cold = await _cold(cold_engine, request, done)
                    compare(tally, answer.candidates[0], cold.candidates[0])
                    _note_ways(tally, answer, before, await _counters(engine))
                    done += 1
                    if done % 10 == 0:
                        say(f"exact {done}/{count}: {tally.same} same, {tally.near_ties} near ties, {len(tally.different)} different")
    return tally


async def exact(bench: Bench) -> dict[str, Any]:
    """The full number of sequences over the first pinned Python file."""
    text = next(source.text for source in bench.sources if source.language_id == "python")
    with tempfile.TemporaryDirectory(prefix="lspx-") as folder:
        tally = await sequences(
            bench.model, text, bench.options.sequences, bench.options.seed, Path(folder), restarts=3, say=bench.say
        )
    return {**tally.as_dict(), "tolerance": NEAR_TIE}
