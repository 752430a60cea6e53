"""`lsp-complete bench typing`: how soon, how often, how right, key by key, in real files.

Strategy: seeded lines of pinned files are deleted and typed again through the real server (`closed`, `rhythm`). This module
chooses places and variants and turns samples into the figures.

Figures of `closed`: first_* and jump_*: first request in a file just opened, and after a jump in a warm file. The others
are over the keys after those: p50_ms, p95_ms key → answer; evaluated_per_key_*; context_tokens_p50. Over all keys
where something is left to suggest: empty (nothing offered), line_exact (accepting the first suggestion makes the line
exactly right), right_to_closer (or right up to the closers that the editor inserted).

`standard` is healed prefix-suffix-middle with 160 lines above and 40 below, on the same keys, taking turns with the product.
`peer` is another program's `/infill` (`peer`), on the same keys; both sides then stop at the line end and generate at most TOKENS tokens.
Its ratios say how many times slower the peer's key → answer is.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .closed import KeySample, Variant, run_closed
from .closed_saved import SavedRun, tag_of
from .compare import paired, quantile_ratio
from .corpus import Place, choose_places, load_corpus, load_files
from .peer import TOKENS, Peer, address
from .rhythm import RhythmRun, run_rhythm
from .session import SERVER, SessionOptions, run_to_end
from .statistics import WITHOUT_MODEL, percentile, ratio

LOOP: Mapping[str, Any] = {"typed_through": False, "level": "eager", "min_chars": 1, "time_limit_ms": 30000}
"""Closed mode measures the loop, so nothing is held back for being unsure, short or late; both layouts alike."""
CLOSED_SETTINGS: Mapping[str, Any] = {"suggest": LOOP}
AGAINST_PEER: Mapping[str, Any] = {"suggest": {"multiline": "never", "max_tokens": TOKENS}}
"""The same stop and limit as the peer's requests have."""
STANDARD_SETTINGS: Mapping[str, Any] = {
    "suggest": LOOP,
    "context": {"layout": "standard", "lines_above": 160, "lines_below": 40},
}


@dataclass(frozen=True, slots=True)
class TypingOptions:
    """What to run. accept, revisit, on_off, small: see `bench_typing_ahead`. settings are added to the product variant's (dotted groups as in the settings file)."""

    places: int = 32
    seed: int = 1
    files: tuple[Path, ...] = ()
    model: str = ""
    closed: bool = True
    rhythm: bool = True
    standard: bool = True
    settings: Mapping[str, Any] | None = None
    command: tuple[str, ...] = SERVER
    peer: Peer | None = None
    accept: bool = False
    revisit: bool = False
    on_off: bool = False
    small: bool = False

    @property
    def ahead(self) -> bool:
        """Whether figures of `bench_typing_ahead` are wanted."""
        return self.accept or self.revisit or self.on_off or self.small

    def __post_init__(self) -> None:
        """Raises ValueError for a peer elsewhere, or one without closed mode."""
        if self.peer is not None:
            address(self.peer.url)
            if not self.closed:
                raise ValueError("The peer is compared in closed mode; leave out --mode rhythm.")


def merge(base: Mapping[str, Any], over: Mapping[str, Any] | None) -> dict[str, Any]:
    """base with over's values, group by group."""
    result = dict(base)
    for key, value in (over or {}).items():
        below = result.get(key)
        result[key] = (
            merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return result


def _quantile(values: Sequence[float], q: float) -> float | None:
    return round(percentile(values, q), 1) if values else None


def closed_figures(samples: Sequence[KeySample]) -> dict[str, Any]:
    """Figures of one variant."""
    later = [s for s in samples if not s.opening]
    judged = [s for s in samples if s.expects]
    times = [s.ms for s in later]
    evaluated = [s.evaluated for s in later if s.evaluated >= 0]
    return {
        "first_p50_ms": _quantile([s.ms for s in samples if s.opening == "new"], 0.5),
        "jump_p50_ms": _quantile([s.ms for s in samples if s.opening == "jump"], 0.5),
        "p50_ms": _quantile(times, 0.5),
        "p95_ms": _quantile(times, 0.95),
        "evaluated_per_key_p50": _quantile(evaluated, 0.5),
        "evaluated_per_key_p95": _quantile(evaluated, 0.95),
        "empty": round(ratio(sum(not s.offered for s in judged), len(judged)), 4),
        "line_exact": round(ratio(sum(s.exact for s in judged), len(judged)), 4),
        "right_to_closer": round(ratio(sum(s.to_closer for s in judged), len(judged)), 4),
        "context_tokens_p50": _quantile([s.prompt for s in later if s.prompt >= 0], 0.5),
        "decoded_p50": _quantile([s.decoded for s in later if s.decoded >= 0], 0.5),
        "drafted_share": round(ratio(sum(s.drafted > 0 for s in later), len(later)), 4),
        "acceptance": round(ratio(sum(max(0, s.accepted) for s in later), sum(max(0, s.drafted) for s in later)), 4),
        "stages_p50_ms": stage_medians(later),
        "stages_add_up": adding_up(samples),
        "empty_because": reasons(judged),
        "places": len({s.place for s in samples}),
        "keys": len(samples),
        "keys_judged": len(judged),
    }


def reasons(samples: Sequence[KeySample]) -> dict[str, int]:
    """Why nothing was offered: outcome and reason with their counts, the most frequent first."""
    counts = Counter(f"{s.outcome} {s.reason}".strip() or "not told" for s in samples if not s.offered)
    return dict(counts.most_common())


def stage_medians(samples: Sequence[KeySample]) -> dict[str, float | None]:
    """Median of each stage that took any time, in milliseconds (medians do not add up)."""
    told = [s.stage_ms for s in samples if s.stage_ms]
    names = [name for name in (told[0] if told else {}) if any(stages.get(name) for stages in told)]
    return {name: _quantile([stages.get(name, 0.0) for stages in told], 0.5) for name in names}


def adding_up(samples: Sequence[KeySample]) -> float | None:
    """Share of the keys whose stages sum to key → answer as the client measured it, within 5 % or 2 ms."""
    told = [(s.ms, sum(v for name, v in s.stage_ms.items() if name != "total")) for s in samples if s.stage_ms.get("total")]
    return round(ratio(sum(abs(ms - total) <= max(0.05 * ms, 2.0) for ms, total in told), len(told)), 4) if told else None


def comparison(ours: Sequence[KeySample], theirs: Sequence[KeySample], seed: int) -> dict[str, Any]:
    """Paired differences of the same keys, 95 % intervals by whole places."""
    other = {(s.place, s.key): s for s in theirs}
    both = [(s, other[s.place, s.key]) for s in ours if (s.place, s.key) in other]
    judged = [(a, b) for a, b in both if a.expects]
    later = [(a, b) for a, b in both if not a.opening and not b.opening]
    rng = random.Random(f"bootstrap:{seed}")  # noqa: S311 (resampling)
    result: dict[str, Any] = {}
    if judged:
        pairs = [(float(a.exact), float(b.exact)) for a, b in judged]
        result["line_exact_gain"] = paired(pairs, rng, clusters=[a.place for a, _ in judged]).as_dict()
    if later:
        times = [(a.ms, b.ms) for a, b in later]
        labels = [a.place for a, _ in later]
        for name, q in (("p50_ratio", 0.5), ("p95_ratio", 0.95)):
            result[name] = paired(times, rng, quantile_ratio(q), labels).as_dict(2)
    return result


def rhythm_figures(run: RhythmRun) -> dict[str, Any]:
    """Figures of a run in rhythm."""
    judged = [s for s in run.keys if s.expects]
    agreed = [s for s in run.keys if s.agreed]
    firsts = {
        name: [p.first_ms for p in run.places if p.opening == kind and p.first_ms is not None]
        for name, kind in (("first_p50_ms", "new"), ("jump_p50_ms", "jump"))
    }
    told = [s.source for s in run.keys if s.source]
    return {
        "shown_before_next_key": round(ratio(sum(s.on_screen for s in judged), len(judged)), 4),
        "answered_before_next_key": round(ratio(sum(s.fresh for s in judged), len(judged)), 4),
        "flicker": round(ratio(sum(s.flicker for s in run.keys), len(agreed)), 4),
        "keys_agreed": len(agreed),
        "cpu_s_per_100_keys": round(ratio(run.cpu_s * 100, len(run.keys)), 2),
        "without_model": round(ratio(sum(s in WITHOUT_MODEL for s in told), len(run.keys)), 4),
        "sources": {name: told.count(name) for name in sorted(set(told))},
        **{name: _quantile(values, 0.5) for name, values in firsts.items()},
        "places_without_suggestion": sum(p.first_ms is None for p in run.places),
        "wall_s": round(run.wall_s, 1),
        "memory_mb": round(run.memory_mb),
        "places": len(run.places),
        "keys": len(run.keys),
    }


def variant_of(name: str, settings: Mapping[str, Any], options: TypingOptions) -> Variant:
    """One side: `settings`, and over them what the options set."""
    merged = merge(settings, options.settings)
    if options.peer is not None and settings:
        merged = merge(merged, AGAINST_PEER)
    return Variant(name, SessionOptions(merged, model=options.model, command=options.command))


async def _closed(
    options: TypingOptions, places: Sequence[Place], say: Callable[[str], None], result: dict[str, Any], save: Path | None
) -> None:
    """Closed mode's figures into result."""
    variants = [variant_of("lsp-complete", CLOSED_SETTINGS, options)]
    if options.standard:
        variants.append(variant_of("standard", STANDARD_SETTINGS, options))
    if options.peer is not None:
        variants.append(Variant("peer", peer=options.peer))
    saved = SavedRun(save, tag_of(variants, places, options.seed))
    done = saved.load([v.name for v in variants], places)
    saved.rewrite()
    if done:
        say(f"{done} of {len(places)} places stand in {save}")
    run = await run_closed(variants, places, options.seed, say, saved, done)
    result["model"] = run.model
    sides = {v.name: [s for s in run.samples if s.variant == v.name] for v in variants}
    ours = sides["lsp-complete"]
    result["closed"] = {"settings": variants[0].options.settings, **closed_figures(ours)}
    if options.standard:
        result["closed"]["standard"] = closed_figures(sides["standard"])
        result["closed"]["against_standard"] = comparison(ours, sides["standard"], options.seed)
    if options.peer is not None:
        result["peer"] = peer_figures(ours, sides["peer"], options.peer, run.models["peer"])
        if run.models["peer"] != run.model:
            say(f"The peer serves {run.models['peer'] or 'an unknown model'}, not {run.model}: this compares two models, too.")


def peer_figures(ours: Sequence[KeySample], theirs: Sequence[KeySample], peer: Peer, model: str) -> dict[str, Any]:
    """The peer's own figures, and how many times slower it is (p50_ratio, p95_ratio; keys after the first of a place)."""
    compared = comparison(ours, theirs, peer.seed)
    ratios: dict[str, Any] = {name: compared[name]["estimate"] for name in ("p50_ratio", "p95_ratio") if name in compared}
    mine, other = closed_figures(ours), closed_figures(theirs)
    return {
        **ratios,
        "line_exact": {"lsp-complete": mine["line_exact"], "peer": other["line_exact"]},
        "model": model,
        "chunks": peer.chunks,
        "max_tokens": peer.tokens,
        "intervals": compared,
        "figures": other,
    }


async def measure(
    options: TypingOptions, places: Sequence[Place], say: Callable[[str], None], save: Path | None = None
) -> dict[str, Any]:
    """Run the modes asked for. save: see `run`. Raises EngineUnavailable, OSError."""
    result: dict[str, Any] = {}
    if options.closed:
        await _closed(options, places, say, result, save)
    if options.rhythm:
        typed = await run_rhythm(variant_of("lsp-complete", {}, options), places, options.seed, say)
        result["rhythm"], result["model"] = rhythm_figures(typed), typed.model
    if options.ahead:
        from .bench_typing_ahead import measure_ahead

        result |= await measure_ahead(options, places, say)
    return result


def run(options: TypingOptions, save: Path | None = None) -> dict[str, Any]:
    """The whole benchmark; progress on standard error. save: file for the single keys of closed mode, one JSON object a line;
    the same run goes on where that file ends (its rhythm is typed anew).

    Raises DownloadError, EngineUnavailable, OSError, ValueError (no usable line).
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    sources = load_files(options.files) if options.files else load_corpus(say)
    places = choose_places(sources, options.places, options.seed)
    if not places:
        raise ValueError("No line of the files has 20 to 70 characters, so there is nothing to type.")
    result = run_to_end(measure(options, places, say, save))
    return {"files": [source.name for source in sources], **result}
