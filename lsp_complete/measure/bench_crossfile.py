"""`lsp-complete bench crossfile`: does context from other files pay? The same masks, with and without, at the same budget.

Strategy: the product's own service answers, in this process, with one engine for all variants: `in_file` spends the whole budget on a
longer prefix, `tiers` gives part of it to other files, `tiers_half_budget` has half of it in all. Answers are compared mask by
mask, files drawn as clusters.

Rules:
- Greedy, explicit requests, first line counts; nothing kept from before, no small prompt first.
- Every answer is written to the results file at once, and masks that are there are not asked again: a long run may be
  done in parts.
- `unknown_identifiers` counts names that stand nowhere in the project, in the language or in the modules that the file imports.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..config import Settings
from ..engine.api import Completion, CompletionRequest, DeltaCallback, ModelInfo
from ..engine.local import LocalEngine
from ..engine.options import EngineOptions
from ..service import Query, Service
from ..service.brain import Opened
from ..service.planning import LoadedModel
from ..service.startup import load_model, model_path
from ..text.document import Document
from .bench_crossfile_masks import Mask, Project, Stdlib, all_masks, read_project, unknown
from .compare import paired
from .corpus import PACKAGES, Package, cache_folder, obtain
from .infill import edit_similarity, first_line
from .statistics import percentile, ratio

BUDGET = 800
VARIANTS = ("in_file", "tiers", "tiers_half_budget")


def _wheel(name: str, version: str, sha256: str, since: int) -> Package:
    return Package(name, version, f"{name}-{version}-py3-none-any.whl", sha256, since)


PROJECTS = (
    PACKAGES["httpcore"],
    _wheel("starlette", "0.47.3", "89c0778ca62a76b826101e7c709e70680a1699ca7da6b44d38eb0a7e61fe4b51", 2018),
    _wheel("werkzeug", "3.1.3", "54b78bf3716d19a65be4fceccc0d1d7b89e608834989dfae50ea87564639213e", 2007),
    _wheel("rich", "14.1.0", "536f5f1785986d6dbdea3c75205c473f970777b4a0d6c6dd1b696aa05a3fa04f", 2019),
    PACKAGES["coverage"],
    PACKAGES["pydantic-handlebars"],
    PACKAGES["anyplotlib"],
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One mask under one variant. tokens: of the prompt; header: of what is not the file's own window."""

    key: str
    project: str
    path: str
    kind: str
    variant: str
    answer: str
    rest: str
    exact: bool
    similarity: float
    unknown: int
    names: int
    tokens: int
    ms: float
    outcome: str


def settings_for(variant: str, budget: int, base: Mapping[str, Any] | None = None) -> Settings:
    """Settings of a variant."""
    tokens = budget // 2 if variant == "tiers_half_budget" else budget
    return Settings.model_validate(
        {
            **(base or {}),
            "first_deadline_ms": 0,
            "prefetch": "off",
            "suggest": {"typed_through": False, "time_limit_ms": 60_000},
            "context": {"budget_tokens": tokens, "cross_file": variant != "in_file"},
        }
    )


class Shared:
    """One engine for several services: closing it is the owner's business."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    async def info(self) -> ModelInfo:
        return await self._engine.info()

    async def complete(self, request: CompletionRequest, on_delta: DeltaCallback | None = None) -> Completion:
        return await self._engine.complete(request, on_delta)

    async def stats(self) -> dict[str, object]:
        return await self._engine.stats()

    async def close(self) -> None:
        """Nothing."""


async def ask(service: Service, project: Project, mask: Mask) -> tuple[str, int, str]:
    """(first line of the answer, prompt tokens, outcome) of one mask in a fresh document."""
    uri = (project.root / mask.path).as_uri()
    document = Document.open(uri, "python", 1, mask.text)
    service.open(document)
    await service.context.ready(service.documents.get(uri))  # type: ignore[arg-type]  # just opened
    answer = await service.answer(Query(document, mask.offset, time.perf_counter(), "explicit", single_line=True))
    service.closed(uri)
    text = first_line(answer.suggestions[0].text) if answer.suggestions else ""
    return text, answer.stages.prompt_tokens, answer.stages.outcome


def judge(
    mask: Mask, variant: str, project: Project, stdlib: Stdlib, answer: tuple[str, int, str], ms: float
) -> Verdict:
    """What an answer is worth."""
    text, tokens, outcome = answer
    strange, names = unknown(text, project, mask.text, stdlib)
    return Verdict(
        mask.key, mask.project, mask.path, mask.kind, variant, text, mask.rest, text == mask.rest,
        edit_similarity(text, mask.rest), strange, names, tokens, round(ms, 1), outcome,
    )  # fmt: skip


async def run_masks(
    projects: Sequence[Project], masks: Sequence[Mask], model: str, budget: int, done: set[tuple[str, str]],
    variants: Sequence[str], keep: Callable[[Verdict], None], seconds: float,
) -> str:  # fmt: skip
    """Ask what is not done yet, for at most `seconds` (0: no limit). Returns the model's file name."""
    path = model_path(Settings(model=model) if model else Settings())
    engine, stdlib = LocalEngine(EngineOptions(str(path), host_cache_bytes=0)), Stdlib()
    await engine.start()
    loaded = await asyncio.to_thread(load_model, path, await engine.info())
    until = time.monotonic() + seconds if seconds else float("inf")
    by_name = {project.name: project for project in projects}
    services: dict[tuple[str, str], Service] = {}
    try:
        for mask in masks:  # in an order that mixes projects, so that any part of a run is a fair sample
            project = by_name[mask.project]
            for variant in variants:
                if (mask.key, variant) in done or time.monotonic() > until:
                    continue
                if (project.name, variant) not in services:
                    services[project.name, variant] = await start_service(project, settings_for(variant, budget), engine, loaded)
                began = time.perf_counter()
                answer = await ask(services[project.name, variant], project, mask)
                keep(judge(mask, variant, project, stdlib, answer, (time.perf_counter() - began) * 1000))
    finally:
        for service in services.values():
            await service.close()
        await engine.close()
    return path.name


async def start_service(project: Project, settings: Settings, engine: LocalEngine, loaded: LoadedModel) -> Service:
    """A service over a project, indexed, on an engine that others use too."""

    async def opener(_settings: Settings, _state: Callable[[str, str], None]) -> Opened:
        return Opened(Shared(engine), lambda _info: loaded)

    service = Service(settings, opener, lambda _l, _m: None, lambda _k, _m, busy=False: None)
    service.set_roots([project.root])
    service.configure(settings)
    ready = asyncio.Event()
    service.brain.start(settings, ready.set)
    await ready.wait()
    if service.context.worker is not None:
        await asyncio.to_thread(service.context.worker.wait_idle)
    return service


def summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Shares over one variant's answers."""
    n = len(verdicts)
    return {
        "exact_match": round(ratio(sum(v.exact for v in verdicts), n), 4),
        "edit_similarity": round(ratio(sum(v.similarity for v in verdicts), n), 4),
        "unknown_identifiers": round(ratio(sum(v.unknown for v in verdicts), sum(v.names for v in verdicts)), 4),
        "prompt_tokens_p50": percentile([v.tokens for v in verdicts], 0.5) if n else None,
        "empty": round(ratio(sum(not v.answer for v in verdicts), n), 4),
        "n": n,
    }


def report(verdicts: Sequence[Verdict], variants: Sequence[str], seed: int) -> dict[str, Any]:
    """Figures per variant over the masks that all variants answered, and paired differences to the first."""
    by_key: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        by_key[verdict.key][verdict.variant] = verdict
    whole = [answers for answers in by_key.values() if all(v in answers for v in variants)]
    result: dict[str, Any] = {"masks": len(whole), "projects": len({a[variants[0]].project for a in whole})}
    for variant in variants:
        result[variant] = summary([answers[variant] for answers in whole])
        result[variant]["by_kind"] = {
            kind: summary([a[variant] for a in whole if a[variant].kind == kind])["exact_match"] for kind in ("call", "member")
        }
    rng = random.Random(seed)  # noqa: S311 - bootstrap, no secret
    for variant in variants[1:] if whole else ():
        result[f"{variant}_minus_{variants[0]}"] = _differences(whole, variant, variants[0], rng)
    return result


def _differences(
    whole: Sequence[Mapping[str, Verdict]], variant: str, base: str, rng: random.Random
) -> dict[str, Any]:
    clusters = [f"{a[base].project}:{a[base].path}" for a in whole]
    exact = paired([(float(a[variant].exact), float(a[base].exact)) for a in whole], rng, clusters=clusters)
    similar = paired([(a[variant].similarity, a[base].similarity) for a in whole], rng, clusters=clusters)
    strange = {name: ratio(sum(a[name].unknown for a in whole), sum(a[name].names for a in whole)) for name in (variant, base)}
    return {
        "exact_match": exact.as_dict(),
        "edit_similarity": similar.as_dict(),
        "fewer_unknown": round(1 - ratio(strange[variant], strange[base]), 4) if strange[base] else 0.0,
    }


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def load_verdicts(path: Path | None) -> list[Verdict]:
    """Answers of earlier parts. A last line that was cut off is left out."""
    found = []
    if path is not None and path.is_file():
        for line in path.read_text("utf-8").splitlines():
            try:
                found.append(Verdict(**json.loads(line)))
            except (ValueError, TypeError):
                continue
    return found


def run(
    *, model: str = "", count: int = 320, budget: int = BUDGET, seed: int = 1, variants: Sequence[str] = VARIANTS,
    save: Path | None = None, seconds: float = 0,
) -> dict[str, Any]:  # fmt: skip
    """The whole benchmark, or the next `seconds` of it. Progress on standard error. Raises DownloadError, ModelError."""
    projects = []
    for package in PROJECTS:
        projects.append(read_project(package.name, obtain(package, cache_folder(), say)))
    masks = all_masks(projects, count, seed)
    verdicts = load_verdicts(save)
    done = {(v.key, v.variant) for v in verdicts}
    say(f"{len(masks)} masks, {len(done)} answers at hand")

    def keep(verdict: Verdict) -> None:
        verdicts.append(verdict)
        if save is not None:
            with open(save, "a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(verdict)) + "\n")

    loaded = asyncio.run(run_masks(projects, masks, model, budget, done, variants, keep, seconds))
    wanted = {mask.key for mask in masks}
    mine = [v for v in verdicts if v.key in wanted]
    return {"model": loaded, "budget_tokens": budget, **report(mine, variants, seed)}
