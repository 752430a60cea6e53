"""The quantization gate: two model files, or two types of the attention cache, on the same recordings. `lsp-complete replay gate`.

Strategy: every point is asked afresh, with the full prompt, nothing held back and nothing made ready ahead, so that what differs is the model. The sides run
behind servers of their own and take turns (`replay_run.replay_sides`); then the runs are compared (`replay_compare`). With
a control the first side runs twice: two identical runs must come out as the same, which shows that the corpus and the machine can be judged by.

The sharpest figure is `surprise`: how many bits the model needs for what the user finally wrote at the place. It is asked of the model itself, so it tells
files apart whose suggestions are the same text at nearly every place.

The checks, after the article ("judge by behaviour on replayed requests, not perplexity"): *text* (what the user finally had), *types* (the
types named, names and syntax that nobody knows), *brackets*, *naming* (safe habits such as `result`, repeats). A check fails where one of its figures is worse.

Rules: the verdict is about quality alone; latency is told beside it, and is a little lower than in use, since what was asked about is evaluated
when the next place comes. "Same" means that no difference was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .recording import Recording, private_folder
from .replay_compare import Comparison, compare
from .replay_run import ReplayOptions, ended, replay_sides, started
from .session import run_to_end

SETTINGS: Mapping[str, Any] = {
    "first_deadline_ms": 0,
    "prefetch": "off",
    "suggest": {"typed_through": False, "level": "eager", "min_chars": 1, "time_limit_ms": 60_000},
    "index": {"enabled": False},
}
CHECKS: Mapping[str, tuple[str, ...]] = {
    "text": ("exact", "similarity", "kept", "surprise"),
    "types": ("types", "unknown", "errors"),
    "brackets": ("brackets",),
    "naming": ("safe", "repeated"),
}
"""Each check, and the figures of `replay_quality.Judged` that it looks at."""
FIRST, SECOND, CONTROL = "first", "second", "control"


@dataclass(frozen=True, slots=True)
class Side:
    """A model (name or file; "" the user's own) and a type of the attention cache ("" the user's own)."""

    model: str = ""
    kv_type: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """word: "same", "worse", "better", "mixed" or "few" (too few points to tell), of the second side; checks: the same word for each check."""

    word: str
    checks: Mapping[str, str]
    comparison: Comparison

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"verdict": self.word, "checks": dict(self.checks), **self.comparison.as_dict()}


def word_of(verdicts: set[str]) -> str:
    """What several figures say together."""
    if {"worse", "better"} <= verdicts:
        return "mixed"
    return next((word for word in ("worse", "better", "same") if word in verdicts), "few")


def judge(comparison: Comparison) -> Verdict:
    """The gate's verdict of a comparison."""
    by_name = {figure.name: figure.verdict for figure in comparison.quality}
    checks = {check: word_of({by_name[name] for name in names}) for check, names in CHECKS.items()}
    return Verdict(word_of(set(by_name.values())), checks, comparison)


def options_of(side: Side, base: ReplayOptions) -> ReplayOptions:
    """How a side is replayed. base: what both have in common; its settings win over the gate's own."""
    variables = {**base.variables, **({"LSP_COMPLETE_ENGINE_KV_TYPE": side.kv_type} if side.kv_type else {})}
    return replace(base, model=side.model, variables=variables)


def run(
    recordings: Mapping[str, Recording], first: Side, second: Side, base: ReplayOptions, out: Path, *,
    control: bool, seed: int, say: Callable[[str], None],
) -> dict[str, Verdict]:  # fmt: skip
    """Replay all sides, or what is left of them, and keep their runs in folders of `out`. The verdicts: "second", and "control" if asked for.

    Raises LspCompleteError, OSError, ValueError (nothing was answered by both).
    """
    sides = {FIRST: first, SECOND: second, **({CONTROL: first} if control else {})}
    private_folder(out)
    options = {name: replace(options_of(side, base), likelihood=True) for name, side in sides.items()}
    parts = {name: started(recordings, chosen, out / name) for name, chosen in options.items()}
    run_to_end(replay_sides(recordings, list(options.values()), list(parts.values()), say))
    rows = {}
    for name, part in parts.items():
        ended(part, recordings, options[name])
        rows[name] = [row for title in recordings for row in part.rows[title]]
    return {name: judge(compare(rows[FIRST], rows[name], seed=seed)) for name in sides if name != FIRST}
