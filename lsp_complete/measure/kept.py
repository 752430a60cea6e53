"""Comparisons that were made, kept for the dashboard: which runs, when, and the figures. No text of anyone's code.

Strategy: `replay compare` and `replay gate` leave one small JSON file each in a private folder of the user's state; the newest KEEP stay.

Rules: names that occur in suggestions are left out, too. A file that cannot be read is passed over. Trouble in keeping one is told by
the caller's exception, never by a wrong entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from ..errors import LspCompleteError
from .recording import Answered, Asked, Became, Changed, Opened, Recording, private_folder
from .replay_compare import Comparison
from .statistics import percentile

KEEP = 50
MAX_BYTES = 1 << 18
LATEST = 253_402_300_800.0
"""The year 10000, seconds since 1970: no date beyond it can be told."""


def folder() -> Path:
    """Where comparisons are kept."""
    return Path(platformdirs.user_state_dir("lsp-complete")) / "comparisons"


def keep(
    result: Comparison, names: tuple[str, str], models: tuple[str, str], verdict: str, where: Path, now: float | None = None
) -> Path:
    """Keep a comparison. names: of the runs; models: file names. Raises RecordingError, OSError."""
    now = time.time() if now is None else now
    plain = {k: v for k, v in result.as_dict().items() if k != "gained_names"}
    entry = {"created": now, "names": names, "models": models, "verdict": verdict, "summary": result.summary(), "result": plain}
    private_folder(where)
    path = where / f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{os.getpid()}-{time.monotonic_ns() % 10**9:09d}.json"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump(entry, out)
    for old in sorted(where.glob("*.json"), reverse=True)[KEEP:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def keep_if_possible(
    result: Comparison, names: tuple[str, str], models: tuple[str, str], verdict: str, say: Callable[[str], None]
) -> None:
    """Keep a comparison in the user's state; say why where that cannot be. A verdict does not hang on it: a home may be read only."""
    try:
        keep(result, names, models, verdict, folder())
    except (LspCompleteError, OSError) as error:
        say(f"The comparison is not kept for the dashboard: {error}")


def comparisons(where: Path) -> dict[str, dict[str, Any]]:
    """What is kept, by file name without suffix, newest first."""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError):
        for path in sorted(where.glob("*.json"), reverse=True)[:KEEP]:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                if path.stat().st_size <= MAX_BYTES:
                    entry = json.loads(path.read_text(encoding="utf-8"))
                    if _whole(entry):
                        found[path.stem] = entry
    return found


def _whole(entry: Any) -> bool:
    """What the dashboard's list shows of an entry is there."""
    if not isinstance(entry, dict) or not isinstance(entry.get("result"), dict):
        return False
    created, names, models = entry.get("created"), entry.get("names"), entry.get("models", [])
    return isinstance(created, int | float) and 0 <= created < LATEST and isinstance(names, list) and isinstance(models, list)


def counted(recording: Recording) -> dict[str, Any]:
    """A recording in figures: what is in it, how requests ended, how long they took (ms)."""
    events = recording.events
    answers = [event.stages for event in events if isinstance(event, Answered)]
    times = [float(stages["total_ms"]) for stages in answers if _timed(stages)]
    outcomes: dict[str, int] = {}
    for stages in answers:
        word = str(stages.get("outcome", "")) or "not told"
        outcomes[word] = outcomes.get(word, 0) + 1
    became = [event.what for event in events if isinstance(event, Became)]
    return {
        "source": recording.header.source,
        "content": recording.header.content,
        "minutes": round((events[-1].at_ms - events[0].at_ms) / 60_000, 1) if events else 0.0,
        "documents": sum(isinstance(event, Opened) for event in events),
        "edits": sum(isinstance(event, Changed) for event in events),
        "characters typed": sum(event.typed for event in events if isinstance(event, Changed)),
        "requests": sum(isinstance(event, Asked) for event in events),
        "accepted": became.count("accepted") + became.count("partly"),
        "p50_ms": round(percentile(times, 0.5), 1) if times else None,
        "p95_ms": round(percentile(times, 0.95), 1) if times else None,
        "outcomes": outcomes,
    }


def _timed(stages: Mapping[str, Any]) -> bool:
    return stages.get("outcome") in ("shown", "empty", "held_back") and isinstance(stages.get("total_ms"), int | float)
