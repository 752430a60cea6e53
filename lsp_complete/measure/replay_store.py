"""The folder that a replay run leaves, and what it holds while the run is under way, so that one that was stopped goes on.

Strategy: a finished run is `run.json` (what ran), `points.jsonl` (one line a request) and, later, `grades.jsonl` (what a person said). While it runs,
`part.jsonl` gets one line for each recording that is through.

Rules:
- It holds source code, so the folder is private like a recording. Files are ASCII: half a surrogate pair, which an imported recording may
  hold, is no UTF-8.
- What was begun is gone on with only for the same recordings, model, settings and version (`tag_of`); half a line, of a run that was killed, is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from .envelope import envelope
from .recording import Recording, RecordingError, line_of, private_folder
from .replay_compare import HIGHER_IS_BETTER

RUN, POINTS, GRADES, PART = "run.json", "points.jsonl", "grades.jsonl", "part.jsonl"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A run under way. rows: by recording, those that are through; model: file name of what answered ("" before anything did)."""

    folder: Path
    tag: str
    rows: dict[str, list[Row]] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)

    @property
    def model(self) -> str:
        return self.models[-1] if self.models else ""

    def add(self, title: str, rows: list[Row], model: str) -> None:
        """A recording is through. Raises OSError."""
        self.rows[title] = rows
        self.models.append(model)
        line = json.dumps({"tag": self.tag, "recording": title, "model": model, "rows": rows})
        append(self.folder / PART, line + "\n")


def tag_of(recordings: Mapping[str, Recording], what: Mapping[str, Any]) -> str:
    """A digest of all that a run's answers depend on."""
    digest = hashlib.sha256(json.dumps([__version__, what], sort_keys=True, default=str).encode())
    for title, recording in recordings.items():
        digest.update(f"\0{title}\0{line_of(recording.header)}".encode("utf-8", "surrogatepass"))
        for event in recording.events:
            digest.update(line_of(event).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def begin(folder: Path, tag: str) -> Part:
    """The run under way in a folder, made if it is not there. Raises RecordingError for a finished run or the beginning of another; OSError."""
    if (folder / RUN).exists():
        raise RecordingError(f"{folder}: holds a run already; choose another folder.")
    part = Part(private_folder(folder), tag)
    path = folder / PART
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
        found = _read(line)
        if found is None:
            continue
        if found["tag"] != tag:
            raise RecordingError(f"{folder}: holds the beginning of another run (other recordings, model or settings); choose another folder.")
        part.rows[found["recording"]] = found["rows"]
        part.models.append(found["model"])
    return part


def _read(line: str) -> dict[str, Any] | None:
    try:
        raw: dict[str, Any] = json.loads(line)
        for row in raw["rows"]:
            check(row)
        return raw if all(isinstance(raw[name], str) for name in ("tag", "recording", "model")) else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def finish(part: Part, recordings: Iterable[str], about: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """All recordings are through: write the run; gives `run.json`'s content. about: what else stands there. Raises OSError."""
    names = list(recordings)
    rows = [row for name in names for row in part.rows[name]]
    result = {"recordings": sorted(names), **about, "points": len(rows), "shown": sum(bool(row["text"]) for row in rows)}
    wrapped = envelope("replay", result, model=part.model or "auto", settings=settings, seed=0)
    _write(part.folder / POINTS, "".join(json.dumps(row) + "\n" for row in rows))
    _write(part.folder / RUN, json.dumps(wrapped, indent=2) + "\n")
    (part.folder / PART).unlink(missing_ok=True)
    return wrapped


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def append(path: Path, text: str) -> None:
    """Add a line to a private file; what was cut off in the middle of one before stays a line of its own. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        lost = file.tell() and path.read_bytes()[-1:] != b"\n"
        file.write((b"\n" if lost else b"") + text.encode("utf-8"))


def load_run(folder: Path) -> tuple[dict[str, Any], list[Row]]:
    """`run.json` and the points of a run. Raises RecordingError, OSError."""
    try:
        about = json.loads((folder / RUN).read_text(encoding="utf-8"))
        lines = (folder / POINTS).read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line]
        for row in rows:
            check(row)
        if not isinstance(about, dict) or not isinstance(about.get("product", {}), dict) or not _texts(about.get("recordings", [])):
            raise TypeError
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise RecordingError(f"{folder}: not the folder of a replay run.") from None
    return about, rows


def check(row: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError, ValueError for what is no point of a run."""
    texts: Sequence[str] = ("recording", "path", "language_id", "place", "outcome", "text", "before", "after", "wanted")
    judged, stages = row["judged"], row["stages"]
    if not _texts([row[name] for name in texts]) or not isinstance(judged, dict) or not isinstance(stages, dict) or type(row["point"]) is not int:
        raise TypeError
    times = [row["wall_ms"], *(value for name, value in stages.items() if name.endswith("_ms") and value is not None)]
    figures = [judged["exact"], *(judged[name] for name in HIGHER_IS_BETTER if judged.get(name) is not None)]
    if not _texts(judged["names"]) or not _numbers([*times, *figures]) or not all(map(math.isfinite, times)):
        raise TypeError


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _numbers(values: Iterable[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)
