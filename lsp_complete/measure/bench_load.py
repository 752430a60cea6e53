"""`lsp-complete bench load`: many windows at one engine, and what cancelling, idle slots and restoring cost.

Strategy: each part is a measurement of its own and leaves nothing behind for the next. `typist` and `eight` run real servers
that share an engine, typed at in the rhythm of real typing; the other parts ask an engine process directly, but for
`cancel`, which goes through the server because its grace belongs to the time a person waits.

Parts and their figures (times in milliseconds):
- typist: p95_ratio: one typist beside seven idle windows with background work, against the same typist alone.
- eight: lost; answered_share_min and _mean over clients; engine_rss_ratio of eight clients over one, server_rss_mb.
- batching: batching_gain: tokens per second of eight requests at once over one at a time.
- cancel: cancel_p95_ms: from $/cancelRequest in the middle of a long prefill to the engine doing something else.
- idle_slots: decode_ratio: time per token with seven full idle slots over none.
- restore: restore_ms of a prompt of 2,000 tokens from memory and disk; the first suggestion after an engine's restart.
- exact: reuse against cold prompts (`bench_exact`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..models.installed import resolve
from .bench_load_bars import LOAD, verdicts
from .corpus import Source, load_corpus
from .session import run_to_end

Say = Callable[[str], None]
DEFAULT_MODEL = "qwen2.5-coder-0.5b"
PARTS = ("typist", "eight", "batching", "cancel", "idle_slots", "restore", "exact")
DEFAULT_PARTS = PARTS[:-1]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """seconds: of typing, per run. rounds: repetitions of the parts that count instead of typing (0: each part's own number).

    sequences: edit-and-complete sequences of `exact`. windows: all windows together, in `typist` and `eight`.
    """

    parts: tuple[str, ...] = DEFAULT_PARTS
    seconds: float = 120.0
    rounds: int = 0
    sequences: int = 200
    windows: int = 8
    model: str = DEFAULT_MODEL
    seed: int = 1

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise ValueError(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        if self.seconds <= 0 or self.rounds < 0 or self.sequences < 1 or self.windows < 2:
            raise ValueError("seconds and sequences must be positive, and there must be two windows at least")


@dataclass(frozen=True, slots=True)
class Bench:
    """What every part gets."""

    options: LoadOptions
    model: Path
    sources: Sequence[Source]
    say: Say

    def rounds(self, default: int) -> int:
        """Repetitions of a part."""
        return self.options.rounds or default


Part = Callable[[Bench], Awaitable[dict[str, Any]]]


def parts() -> dict[str, Part]:
    """The parts by name. Imported late: each needs what only it uses."""
    from .bench_exact import exact
    from .bench_load_cancel import cancel
    from .bench_load_engine import batching, idle_slots
    from .bench_load_restore import restore
    from .bench_load_typists import eight, typist

    return {
        "typist": typist, "eight": eight, "batching": batching, "cancel": cancel, "idle_slots": idle_slots,
        "restore": restore, "exact": exact,
    }  # fmt: skip


async def measure(
    bench: Bench, done: dict[str, Any], keep: Callable[[dict[str, Any]], None], known: Mapping[str, Part]
) -> dict[str, Any]:
    """All parts in order; those in `done` are not run again. keep: told after each part what there is so far.

    A part that fails is told as {"error": …}, not kept, and costs the others nothing.
    """
    result: dict[str, Any] = dict(done)
    failed: dict[str, Any] = {}
    for name in bench.options.parts:
        if name in result:
            bench.say(f"{name}: kept from an earlier run")
            continue
        bench.say(f"{name}: begins")
        try:
            result[name] = await known[name](bench)
        except Exception as error:  # whatever it was: the next part has processes of its own
            failed[name] = {"error": f"{type(error).__name__}: {error}"}
            bench.say(f"{name}: failed: {failed[name]['error']}")
            continue
        bench.say(f"{name}: {json.dumps(result[name])}")
        keep(result)
    return {name: result.get(name) or failed[name] for name in bench.options.parts}


def recipe(options: LoadOptions) -> dict[str, Any]:
    """What must be equal for kept parts to count: everything but which parts are wanted."""
    values = asdict(options)
    del values["parts"]
    return values


def load_kept(save: Path | None, options: LoadOptions) -> dict[str, Any]:
    """Parts that an earlier run with the same options left in the file; {} if there are none."""
    if save is None or not save.is_file():
        return {}
    try:
        kept = json.loads(save.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    same = isinstance(kept, dict) and kept.get("options") == recipe(options)
    return dict(kept["parts"]) if same else {}


def run(options: LoadOptions, save: Path | None = None) -> dict[str, Any]:
    """The whole benchmark; progress on standard error. save: parts are kept there as they end, and not run again.

    Raises ModelError, DownloadError, EngineUnavailable, OSError.
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def keep(result: dict[str, Any]) -> None:
        if save is not None:
            save.write_text(json.dumps({"options": recipe(options), "parts": result}, indent=1), encoding="utf-8")

    bench = Bench(options, resolve(options.model), load_corpus(say), say)
    result = run_to_end(measure(bench, load_kept(save, options), keep, parts()))
    return {"model": str(bench.model), **result, "bars": verdicts(result, LOAD)}
