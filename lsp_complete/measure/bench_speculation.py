"""`lsp-complete bench speculation`: how much quicker is text made with proposals, and is it the same text?

Strategy: one engine per model in this process. Each point's prompt is evaluated first; then every variant decodes it, in an
order that changes from point to point, once per repetition, so that a variant and plain decoding meet the same machine. A
variant is a proposer of its own, so none learns from another; all learn the same batch costs.

Rules:
- Greedy, the same token limit and stop for all. Time is from the start of the request to its end, with the prompt already there.
- `identical` is the share of texts equal to the plain one. Where they part and the two tokens' log-probabilities lie within
  the measured noise of batch shapes, it counts as `near_ties`; everything else is `different`.
- Nothing of the text that a point took out is in what proposers may look at; the store holds the other files only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ..engine.adaptive import Adaptive, Length
from ..engine.api import Completion, CompletionRequest, Engine, ModelInfo, StopRules
from ..engine.backend import PieceTable
from ..engine.batchcost import BatchCost
from ..engine.draftmodel import DraftModel, draft_problem
from ..engine.local import BackendFactory, LocalEngine, load_llama
from ..engine.options import EngineOptions
from ..engine.speculate import Speculator
from ..errors import ModelError
from ..models.installed import resolve
from ..service.planning import LoadedModel
from ..service.startup import load_model
from .bench_speculation_best import measure_best
from .bench_speculation_points import BACK_TOKENS, Point, make_points
from .bench_speculation_policies import judge
from .bench_speculation_report import Measured, Run, Runs, report, variant_report
from .bench_speculation_saved import keep, load_saved, since
from .corpus import Source, load_corpus, load_files
from .session import run_to_end

ALWAYS = 1e9
"""A gain for which any cost is paid."""
FIXED_TOKENS = 4
"""Proposed by the draft model in `model_fixed`, whatever it costs: acceptance is measured even where it does not pay."""

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "all": ("ngram", "lookup", "store"), "ngram": ("ngram",), "lookup": ("lookup",), "store": ("store",),
    "draft": ("draft",), "all_line": ("ngram", "lookup", "store"), "model": ("model",), "model_fixed": ("model",),
}  # fmt: skip
"""Which sources each variant uses; those that end in `_line` stop at the line end and are compared with `plain_line`."""


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """models: names or files, the last one's figures stand at the top. draft: a draft model for the last one.

    per_proposer: also measure each source alone, on the last model. gpu_layers: −1 puts all of a model on the GPU.
    files: instead of the pinned ones. candidates: how many are compared with greedy (under 2: none). save: file that keeps every
    point; what it holds is not measured again. seconds: per model, after which no further point is begun (0: no limit).
    """

    models: tuple[str, ...]
    draft: str = ""
    points: int = 120
    max_tokens: int = 48
    repetitions: int = 1
    seed: int = 1
    per_proposer: bool = True
    gpu_layers: int = 0
    files: tuple[Path, ...] = ()
    candidates: int = 4
    save: Path | None = None
    seconds: float = 0.0


class Switch:
    """The engine's proposer: whichever variant is measured now. Changed only while the engine is idle."""

    def __init__(self, cost: BatchCost) -> None:
        self.cost = cost
        self.active: Speculator | None = None

    def propose(
        self, context: Sequence[int], generated: Sequence[int], request: CompletionRequest, limit: int
    ) -> list[int]:
        """See `engine.proposer.Proposer`. Engine thread."""
        return self.active.propose(context, generated, request, limit) if self.active else []

    def observe(self, request: CompletionRequest, proposed: int, accepted: int) -> None:
        """See `engine.proposer.Proposer`. Engine thread."""
        if self.active is not None:
            self.active.observe(request, proposed, accepted)


class _Fixed(Adaptive):
    """Always the same length."""

    def length(self, kind: str, available: int, extra: float = 0.0) -> Length:
        return Length(min(available, FIXED_TOKENS), ALWAYS)


def make_speculators(
    names: Sequence[str], vocab: PieceTable, size: int, cost: BatchCost, model: DraftModel | None
) -> dict[str, Speculator]:
    """One per variant; the stores are filled by `feed_store`."""
    made: dict[str, Speculator] = {}
    for name in names:
        kinds = VARIANTS[name]
        limit = 400_000 if "store" in kinds else 0
        spec = Speculator(vocab, size, cost, limit, model if "model" in kinds else None, learn=False)
        spec.kinds = kinds
        if name == "model_fixed":
            spec.adaptive = _Fixed(cost)
        made[name] = spec
    return made


def feed_store(spec: Speculator, tokens: Mapping[str, Sequence[int]], leave_out: str) -> None:
    """Fill the store anew with all files but one."""
    if spec.store is not None:
        spec.store.clear()
        for name, ids in tokens.items():
            if name != leave_out:
                spec.store.add(ids)


def base_request(point: Point, max_tokens: int) -> CompletionRequest:
    """A point's request as all variants begin from it."""
    return CompletionRequest(
        point.prompt, forced=point.forced, max_tokens=max_tokens, stop=StopRules("free"), time_limit_ms=100_000,
        speculate=False, key="bench",
    )  # fmt: skip


async def measure_point(
    engine: Engine, switch: Switch, specs: Mapping[str, Speculator], point: Point, max_tokens: int, repetitions: int,
    turn: int,
) -> Runs:  # fmt: skip
    """All variants at one point, and plain decoding with and without the line stop."""
    base = base_request(point, max_tokens)
    drafts: tuple[tuple[int, ...], ...] = ()
    if "draft" in specs:
        drafts = await _earlier(engine, base, point)
    await engine.complete(replace(base, max_tokens=1))
    names = ["plain", *(["plain_line"] if any(n.endswith("_line") for n in specs) else []), *specs]
    runs: Runs = {}
    for repetition in range(repetitions):
        shift = (turn + repetition) % len(names)
        for name in names[shift:] + names[:shift]:
            spec = switch.active = specs.get(name)
            request = replace(
                base,
                speculate=spec is not None,
                stop=StopRules("line" if name.endswith("_line") else "free"),
                lookup=point.lookup if spec is not None and "lookup" in spec.kinds else (),
                drafts=drafts if name == "draft" else (),
            )
            _add(runs, name, await engine.complete(request))
    switch.active = None
    return runs


async def _earlier(engine: Engine, base: CompletionRequest, point: Point) -> tuple[tuple[int, ...], ...]:
    """What was suggested some tokens before the cursor, without what was typed since if it agrees with that."""
    cut = len(point.prompt) - BACK_TOKENS
    answer = await engine.complete(replace(base, prompt=point.prompt[:cut], forced=b""))
    tokens = answer.candidates[0].tokens
    typed = point.prompt[cut:]
    return (tokens[BACK_TOKENS:] if tokens[:BACK_TOKENS] == typed else tokens,)


def _add(runs: Runs, name: str, answer: Completion) -> None:
    run = runs.setdefault(name, Run(answer.candidates[0]))
    run.times.append(answer.timing.total_ms - answer.timing.queue_ms)
    run.drafted += answer.timing.drafted
    run.accepted += answer.timing.accepted


def variant_names(options: SpeculationOptions, last: bool) -> list[str]:
    """What is measured on a model."""
    names = ["all", "all_line"]
    if last and options.per_proposer:
        names += ["ngram", "lookup", "store", "draft"]
    if last and options.draft:
        names += ["model", "model_fixed"]
    return names


Describe = Callable[[Path, ModelInfo], LoadedModel]
"""Vocabulary and prompt format of a loaded model."""


async def measure_model(
    path: Path,
    draft_path: Path | None,
    options: SpeculationOptions,
    sources: Sequence[Source],
    last: bool,
    say: Callable[[str], None],
    factory: BackendFactory = load_llama,
    describe: Describe = load_model,
) -> dict[str, Any]:
    """Load one model, measure all points, let go of it. Raises ModelError."""
    began = perf_counter()
    draft = factory(_engine_options(draft_path, options)) if draft_path is not None else None
    switch = Switch(BatchCost(options.gpu_layers != 0))
    engine = LocalEngine(_engine_options(path, options), factory, switch)
    try:
        info = await engine.info()
        model = await asyncio.to_thread(describe, path, info)
        vocab: Any = model.tokenizer  # a `Vocab` serves both sides
        if draft is not None:
            problem = draft_problem(vocab, info.vocab_size, draft.vocab, draft.info.vocab_size)
            if problem:
                raise ModelError(f"{options.draft} cannot be the draft model of {path.name}. {problem}")
        second = None
        if draft is not None:
            second = DraftModel(draft)
            second.measure()
        specs = make_speculators(variant_names(options, last), vocab, info.vocab_size, switch.cost, second)
        points = make_points(sources, options.points, model, options.seed, options.max_tokens)
        if not points:
            raise ValueError("no completion points: the files have no lines that can be taken out")
        tokens = {s.name: model.tokenizer.tokenize(s.text) for s in sources}
        tag = tag_of(path, options, list(specs))
        done = load_saved(options.save, tag)
        for turn, point in enumerate(points):
            if point.place in done:
                continue
            if options.seconds and perf_counter() - began > options.seconds:
                break
            for spec in specs.values():
                feed_store(spec, tokens, point.source)
            one = await _one_point(engine, switch, specs, point, options, turn)
            if second is not None:  # the engine is idle, so nobody else asks it
                one.judged = judge(second, point.prompt, one.runs["plain"].candidate.tokens)
            done[point.place] = one
            keep(options.save, tag, one)
            if len(done) % 5 == 0 or len(done) == len(points):
                runs = [m.runs for m in done.values()]
                say(f"{path.stem}: {len(done)}/{len(points)} points, gain {variant_report('all', runs, runs)['gain']:.3f}")
        wanted = [done[p.place] for p in points if p.place in done]
        if not wanted:
            raise ValueError("no point was measured: the time was over before the first")
        return report(wanted)
    finally:
        await engine.close()
        if draft is not None:
            draft.close()


async def _one_point(
    engine: Engine, switch: Switch, specs: Mapping[str, Speculator], point: Point, options: SpeculationOptions, turn: int
) -> Measured:
    before = {name: spec.report() for name, spec in specs.items()}
    runs = await measure_point(engine, switch, specs, point, options.max_tokens, options.repetitions, turn)
    best = None
    if options.candidates > 1:
        base = base_request(point, options.max_tokens)
        best = await measure_best(engine, base, point.line, options.candidates, turn)
    kinds = {name: since(before[name], spec.report()) for name, spec in specs.items()}
    costs = {str(n): ratio for n, ratio in switch.cost.table().items()}
    return Measured(point.place, point.repeated, runs, kinds, best, costs)


def tag_of(path: Path, options: SpeculationOptions, variants: Sequence[str]) -> str:
    """What a saved point belongs to."""
    parts = (path.name, options.draft, options.max_tokens, options.repetitions, options.seed, options.candidates, options.gpu_layers)
    return ":".join(map(str, (*parts, *variants)))


def _engine_options(path: Path, options: SpeculationOptions) -> EngineOptions:
    return EngineOptions(str(path), context=2048, slots=1, host_cache_bytes=0, gpu_layers=options.gpu_layers)


def run(options: SpeculationOptions) -> dict[str, Any]:
    """The whole benchmark; progress on standard error. Raises ModelError, DownloadError, OSError, ValueError."""
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    paths = [resolve(name) for name in options.models]
    draft = resolve(options.draft) if options.draft else None
    sources = load_files(options.files) if options.files else load_corpus(say)
    models = {}
    for path in paths:
        last = path is paths[-1]
        work = measure_model(path, draft if last else None, options, sources, last, say)
        models[path.stem] = run_to_end(work)
    top = models[paths[-1].stem]
    return {
        "model": paths[-1].stem,
        **{k: v for k, v in top.items() if k != "variants"},
        "models": models,
    }
