"""Does the outline serve the model as well as its whole file? The same lines to complete, with the file, the outline, and the outline with
local flesh around them.

Strategy: the points of `bench_outline_points` in the pinned files of `bench_outline`, the product's own anchored and healed prompt over
each text, one engine, greedy. Points are asked file by file, and there one context after the other, so that a prompt continues the
one before it and little is evaluated twice. On two cores the 50 points take up to half an hour, most of it for the whole files.

Rules:
- The answer's first line must be the rest of the line. Answers are paired point by point; files are drawn as clusters.
- Every answer is kept in the results file, if there is one, and not asked again: a run may be done in parts.
- `cold_prefill_ms` counts, of each file, the first prompt of each context only: the others find most of theirs evaluated.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..context.anchor import Anchor
from ..context.prompt import PromptPlan, build_head, plan_anchored
from ..engine.api import CompletionRequest, Engine, StopRules
from ..engine.local import LocalEngine
from ..engine.options import EngineOptions
from ..service.planning import LoadedModel, cutter
from ..service.startup import load_model
from ..text.buffer import TextBuffer
from ..text.tokens import TokenTable
from .bench_outline_points import Around, Parsed, Point, choose_points, read_file
from .compare import paired
from .envelope import commit
from .infill import edit_similarity, first_line
from .statistics import percentile, ratio

POINTS = 50
MAX_TOKENS = 48
TIME_LIMIT_MS = 3_600_000.0
"""No answer is to be cut short by a busy machine: what is compared are texts."""
CONTEXTS = ("full", "slim", "fleshed")
SHORT = CONTEXTS[1:]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One point with one context. first: the file's first prompt of this context. evaluated: prompt tokens not found in the cache."""

    key: str
    file: str
    language: str
    context: str
    answer: str
    rest: str
    exact: bool
    similarity: float
    tokens: int
    evaluated: int
    prefill_ms: float
    first: bool


def prompt_of(around: Around, model: LoadedModel) -> PromptPlan:
    """The anchored prompt over the whole of a text. The anchor hangs on the block, so the points of one share it."""
    buffer = TextBuffer.from_text(f"{around.before}\n{around.after}")
    table, cursor = TokenTable(model.tokenizer, buffer, model.spans), len(around.before)
    start = buffer.line_start(max(around.first_line - model.window.anchor_lines, 0))
    anchor = Anchor(0, start, cursor + 1, buffer.slice(0, start), around.after, at_cursor=False)
    head = build_head(model.fim, anchor, table.ids, model.spans.ids, ())
    return plan_anchored(head, anchor, buffer, cursor, table.ids, cutter(model.pre), model.tokenizer.piece)


async def ask(engine: Engine, model: LoadedModel, point: Point, context: str, first: bool) -> Verdict:
    """One point with one context."""
    plan = prompt_of(point.around(context), model)
    done = await engine.complete(
        CompletionRequest(
            plan.prompt, plan.forced, key=f"{context}:{point.file}", max_tokens=MAX_TOKENS, time_limit_ms=TIME_LIMIT_MS,
            stop=StopRules("line"), speculate=False,
        )
    )  # fmt: skip
    text = first_line(done.candidates[0].text.decode("utf-8", "replace")) if done.candidates else ""
    return Verdict(
        point.key, point.file, point.language, context, text, point.rest, text == point.rest,
        round(edit_similarity(text, point.rest), 4), len(plan.prompt), done.timing.evaluated, round(done.timing.prefill_ms, 1), first,
    )  # fmt: skip


async def ask_all(
    engine: Engine, model: LoadedModel, points: Sequence[Point], verdicts: list[Verdict], keep: Callable[[Verdict], None],
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Ask what is not answered yet, file by file; `verdicts` grows, `keep` sees every new one."""
    known = {(one.key, one.context) for one in verdicts}
    files = list(dict.fromkeys(point.file for point in points))
    began = time.monotonic()
    for number, file in enumerate(files, 1):
        mine = [point for point in points if point.file == file]
        for context in CONTEXTS:
            for place, point in enumerate(mine):
                if (point.key, context) not in known:
                    verdict = await ask(engine, model, point, context, place == 0)
                    verdicts.append(verdict)
                    keep(verdict)
        counts = ", ".join(f"{c} {sum(v.exact for v in verdicts if v.context == c)}" for c in CONTEXTS)
        say(f"outline quality: {number}/{len(files)} files, {time.monotonic() - began:.0f} s, exact so far: {counts}")


def report(verdicts: Sequence[Verdict], seed: int) -> dict[str, Any]:
    """Both contexts' figures over the points that have all answers, and the paired differences to the whole file."""
    by_key: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        by_key.setdefault(verdict.key, {})[verdict.context] = verdict
    pairs = [both for both in by_key.values() if len(both) == len(CONTEXTS)]
    result: dict[str, Any] = {
        "points": len(pairs),
        "files": len({both["full"].file for both in pairs}),
        "languages": sorted({both["full"].language for both in pairs}),
        **{context: _summary([both[context] for both in pairs]) for context in CONTEXTS},
    }
    if not pairs:
        return result
    cold = {c: [both[c].prefill_ms for both in pairs if both[c].first] for c in CONTEXTS}
    full_tokens = sum(b["full"].tokens for b in pairs)
    for short in SHORT:
        result |= {
            f"{short}_minus_full": _differences(pairs, short, seed),
            f"{short}_against_full": {
                "only_full_exact": sum(both["full"].exact > both[short].exact for both in pairs),
                f"only_{short}_exact": sum(both[short].exact > both["full"].exact for both in pairs),
                "prompt_tokens_ratio": round(ratio(sum(b[short].tokens for b in pairs), full_tokens), 4),
                "prefill_saved_measured": round(1 - ratio(sum(cold[short]), sum(cold["full"])), 4) if sum(cold["full"]) else None,
            },
        }
    return result


def _summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    n = len(verdicts)
    return {
        "exact_match": round(ratio(sum(v.exact for v in verdicts), n), 4),
        "edit_similarity": round(ratio(sum(v.similarity for v in verdicts), n), 4),
        "prompt_tokens_p50": percentile([v.tokens for v in verdicts], 0.5) if n else None,
        "cold_prefill_ms_p50": percentile([v.prefill_ms for v in verdicts if v.first], 0.5) if n else None,
        "n": n,
    }


def _differences(pairs: Sequence[Mapping[str, Verdict]], short: str, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)  # noqa: S311 - bootstrap, no secret
    clusters = [both["full"].file for both in pairs]
    exact = paired([(float(b[short].exact), float(b["full"].exact)) for b in pairs], rng, clusters=clusters)
    similar = paired([(b[short].similarity, b["full"].similarity) for b in pairs], rng, clusters=clusters)
    return {
        "exact_match": exact.as_dict(),
        "edit_similarity": similar.as_dict(),
        "worse_beyond_error": exact.high < 0,
    }


def load_verdicts(path: Path | None, program: str = "") -> list[Verdict]:
    """Answers of earlier parts. program: the commit that they must be of, since outlines change with it. A line that was cut off or is of
    another commit or format is left out."""
    found = []
    if path is not None and path.is_file():
        for line in path.read_text("utf-8").splitlines():
            try:
                raw = json.loads(line)
                if raw.pop("program", "") == program:
                    found.append(Verdict(**raw))
            except (ValueError, TypeError, AttributeError):
                continue
    return found


async def _run(
    path: Path, files: Sequence[Parsed], count: int, seed: int, save: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    points = choose_points(files, count, seed)
    wanted = {point.key for point in points}
    program = commit()
    verdicts = [one for one in load_verdicts(save, program) if one.key in wanted]

    def keep(verdict: Verdict) -> None:
        if save is not None:
            with open(save, "a", encoding="utf-8") as out:
                out.write(json.dumps({"program": program, **asdict(verdict)}) + "\n")

    say(f"outline quality: {len(points)} points in {len(files)} files, {len(verdicts)} answers at hand")
    engine = LocalEngine(EngineOptions(str(path), host_cache_bytes=0, max_time_limit_ms=TIME_LIMIT_MS))
    await engine.start()
    try:
        model = await asyncio.to_thread(load_model, path, await engine.info())
        await ask_all(engine, model, points, verdicts, keep, say)
    finally:
        await engine.close()
    return {"model": path.name, **report(verdicts, seed)}


def run(
    path: Path, files: Sequence[tuple[str, Any, str]], say: Callable[[str], None], *, count: int = POINTS, seed: int = 1,
    save: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The figures. path: a model file; files: (name, grammar, text); save: where answers are kept. Raises ModelError."""
    parsed = [made for name, grammar, text in files if (made := read_file(name, grammar, text)) is not None]
    return asyncio.run(_run(path, parsed, count, seed, save, say))
