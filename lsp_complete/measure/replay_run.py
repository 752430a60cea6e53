"""Replaying recordings through the real server, and the folder that a run leaves.

Strategy: one private server for all recordings; each gets a folder of its own with the files as they were when opened. The
events go out as an editor sends them. Answers are judged when all is over, so that judging costs no measured time.

Rules:
- As fast as possible: every request is waited for. Real rhythm: events go out at their times (pauses of at most
  MAX_PAUSE_S) and requests overtake each other as they did.
- A run's folder holds `run.json` (what ran), `points.jsonl` (one line a request) and `grades.jsonl` (what a person said).
  It holds source code, so it is private like a recording.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

from .client import AUTOMATIC, INVOKED, Answer, LspClient
from .edits import offset_at, split_lines
from .envelope import envelope
from .import_vscode import read as read_vscode
from .recording import (
    Changed,
    Closed,
    Moved,
    Opened,
    Recording,
    RecordingError,
    Texts,
    private_folder,
)
from .recording import read as read_own
from .replay_points import Point, lsp_edits, points, position_at
from .replay_quality import judge
from .session import SERVER, Session, SessionOptions, model_name, run_to_end, session, warm_up

MAX_PAUSE_S = 3.0
LIMIT_S = 120.0
CONTEXT_LINES = 15
RUN, POINTS, GRADES = "run.json", "points.jsonl", "grades.jsonl"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """limit: points asked at most in all (0: no limit); later points are typed, not asked."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    rhythm: bool = False
    limit: int = 0
    command: tuple[str, ...] = SERVER
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that went out: the document's text then, and the answer to come."""

    recording: str
    point: Point
    opened: Opened
    text: str
    answer: asyncio.Task[Answer]


def read_any(path: Path) -> Recording:
    """A recording of ours or of VS Code. Raises RecordingError, OSError."""
    recording = read_vscode(path) if path.suffix == ".json" else read_own(path)
    if not recording.header.content:
        raise RecordingError(
            f"{path}: recorded without content; it can be counted (`lsp-complete stats`), not replayed."
        )
    return recording


def run(recordings: Mapping[str, Recording], options: ReplayOptions, out: Path) -> dict[str, Any]:
    """Replay all and write the run's folder; gives `run.json`'s content. Raises LspCompleteError, OSError."""
    if (out / RUN).exists():
        raise RecordingError(f"{out}: holds a run already; choose another folder.")
    private_folder(out)
    ((rows, model),) = run_to_end(replay_sides(recordings, [options]))
    return keep(recordings, options, out, rows, model)


def keep(
    recordings: Mapping[str, Recording], options: ReplayOptions, out: Path, rows: Sequence[Mapping[str, Any]], model: str
) -> dict[str, Any]:
    """Write a run's folder (it exists and is private); gives `run.json`'s content."""
    result = {
        "recordings": sorted(recordings),
        "rhythm": options.rhythm,
        "points": len(rows),
        "shown": sum(bool(row["text"]) for row in rows),
    }
    wrapped = envelope(
        "replay", result, model=model or options.model or "auto", settings=options.settings, seed=0
    )
    _write(out / POINTS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    _write(out / RUN, json.dumps(wrapped, indent=2, ensure_ascii=False) + "\n")
    return wrapped


def _write(path: Path, text: str) -> None:
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)


async def replay_sides(
    recordings: Mapping[str, Recording], sides: Sequence[ReplayOptions], say: Callable[[str], None] = lambda text: None
) -> list[tuple[list[dict[str, Any]], str]]:
    """The points and the model's file name of each side. Each has a server of its own; they take turns recording by recording, in an
    order that alternates, so that a change of the machine's speed meets all of them."""
    asked: list[list[_Asked]] = [[] for _ in sides]
    models = []
    with tempfile.TemporaryDirectory(prefix="lspc-replay-") as name:
        async with AsyncExitStack() as stack:
            running = []
            for number, options in enumerate(sides):
                root = Path(name) / str(number)
                root.mkdir()
                start = SessionOptions(options.settings, options.model, root, options.command, options.variables)
                running.append(await stack.enter_async_context(session(start)))
                await warm_up(running[-1], root)
                models.append(await model_name(running[-1]))
            for turn, (title, recording) in enumerate(recordings.items()):
                for number in sorted(range(len(sides)), reverse=bool(turn % 2)):
                    folder = Path(name) / str(number) / str(turn)
                    folder.mkdir()
                    await _play(running[number], folder, title, recording, sides[number], asked[number])
                    say(f"{title} ({turn + 1}/{len(recordings)}), side {number + 1}/{len(sides)}: {len(asked[number])} points so far")
            rows = [[_row(each, await each.answer) for each in side] for side in asked]
    return list(zip(rows, models, strict=True))


async def _play(
    running: Session,
    root: Path,
    title: str,
    recording: Recording,
    options: ReplayOptions,
    asked: list[_Asked],
) -> None:
    client, state = running.client, Texts()
    uris: dict[int, str] = {}
    here: dict[int, list[Point]] = {}
    left = max(0, options.limit - len(asked))
    for point in points(recording, left) if left or not options.limit else ():
        here.setdefault(point.event, []).append(point)
    clock, before = perf_counter(), 0.0
    for index, event in enumerate(recording.events):
        if options.rhythm:
            clock += min(MAX_PAUSE_S, (event.at_ms - before) / 1000)
            before = event.at_ms
            await asyncio.sleep(max(0.0, clock - perf_counter()))
        if isinstance(event, Changed) and event.doc in uris:
            client.change(uris[event.doc], lsp_edits(state.text[event.doc], event.edits))
        state.apply(event)
        if isinstance(event, Opened):
            uris[event.doc] = _open(client, root, event)
        elif isinstance(event, Moved) and event.doc in uris:
            client.move_cursor(uris[event.doc], position_at(state.text[event.doc], event.offset))
        elif isinstance(event, Closed) and event.doc in uris:
            client.close(uris.pop(event.doc))
        for point in here.get(index, ()):
            if point.doc in uris:
                await _ask(client, uris[point.doc], title, point, state, options.rhythm, asked)
    if options.rhythm:
        await asyncio.gather(*(each.answer for each in asked))
    for uri in uris.values():
        client.close(uri)


def place_of(root: Path, path: str) -> Path:
    """A file inside of root for a path of a recording, whatever that path says."""
    parts = [
        part.replace(":", "_")
        for part in PurePosixPath(path.replace("\\", "/")).parts
        if part not in ("/", ".", "..", "")
    ]
    return root.joinpath(*parts) if parts else root / "unnamed"


def _open(client: LspClient, root: Path, event: Opened) -> str:
    path = place_of(root, event.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(event.text, encoding="utf-8", errors="replace", newline="")
    client.open(path.as_uri(), event.language_id, event.text)
    return path.as_uri()


async def _ask(
    client: LspClient, uri: str, title: str, point: Point, state: Texts, rhythm: bool, asked: list[_Asked]
) -> None:
    text = state.text[point.doc]
    cursor = position_at(text, point.offset)
    call = client.ask(uri, cursor, INVOKED if point.trigger == "explicit" else AUTOMATIC)
    task = asyncio.get_running_loop().create_task(client.answer(call, cursor, LIMIT_S))
    asked.append(_Asked(title, point, state.opened[point.doc], text, task))
    if not rhythm:
        await asyncio.wait([task])


def _row(each: _Asked, answer: Answer) -> dict[str, Any]:
    point, text, first = each.point, each.text, None
    if answer.items:
        item, lines = answer.items[0], split_lines(text)
        first = (offset_at(lines, item.start), offset_at(lines, item.end), item.text)
    head, tail = text[: point.offset].split("\n"), text[point.offset :].split("\n")
    return {
        "recording": each.recording,
        "point": point.index,
        "path": each.opened.path,
        "language_id": each.opened.language_id,
        "place": f"{point.doc}:{text.count(chr(10), 0, point.offset) + 1}",
        "wall_ms": round((answer.received - answer.sent) * 1000, 3),
        "outcome": str(answer.stages.get("outcome", "")) or ("shown" if first else "empty"),
        "stages": dict(answer.stages),
        "text": first[2] if first else "",
        "before": "\n".join(head[-CONTEXT_LINES:]),
        "after": "\n".join(tail[: CONTEXT_LINES // 2]),
        "wanted": point.line,
        "judged": asdict(judge(point, text, each.opened.language_id, first)),
    }


def load_run(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """`run.json` and the points of a run. Raises RecordingError, OSError."""
    try:
        about = json.loads((folder / RUN).read_text(encoding="utf-8"))
        lines = (folder / POINTS).read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line]
        for row in rows:
            _check(row)
    except (ValueError, KeyError, TypeError):
        raise RecordingError(f"{folder}: not the folder of a replay run.") from None
    return about, rows


def _check(row: Mapping[str, Any]) -> None:
    texts: Sequence[str] = ("recording", "path", "language_id", "place", "outcome", "text", "before", "after")
    if not all(isinstance(row[name], str) for name in texts) or not isinstance(row["judged"]["exact"], float):
        raise TypeError
    float(row["wall_ms"]), int(row["point"]), dict(row["stages"])
