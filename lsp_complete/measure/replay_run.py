"""Replaying recordings through the real server.

Strategy: one private server for all recordings; each gets a folder of its own with the files as they were when opened. The
events go out as an editor sends them. Answers are judged when their recording is over, so that judging costs no measured time, and kept then
(`replay_store`), so that a run that is stopped goes on with the next recording.

Rules:
- As fast as possible: every request is waited for. Real rhythm: events go out at their times (pauses of at most
  MAX_PAUSE_S) and requests overtake each other as they did.
- How likely the model finds what was finally written is asked behind the answer, outside of its time, and only where nothing stands right
  of the cursor on its line: what stands there is in the prompt as what follows, not as what is to be written.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

from .client import AUTOMATIC, INVOKED, Answer, LspClient
from .edits import body, offset_at, split_lines
from .import_vscode import read as read_vscode
from .recording import (
    Changed,
    Closed,
    Moved,
    Opened,
    Recording,
    RecordingError,
    Texts,
    digest,
)
from .recording import read as read_own
from .replay_points import Point, lsp_edits, points, position_at
from .replay_quality import judge
from .replay_store import Part, begin, finish, tag_of
from .session import SERVER, Session, SessionOptions, model_name, run_to_end, session, warm_up

MAX_PAUSE_S = 3.0
LIMIT_S = 120.0
CONTEXT_LINES = 15
LONGEST_NAME = 200
"""Bytes of a file's name."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """limit: points asked at most in all (0: no limit); later points are typed, not asked. likelihood: also ask how likely the model finds
    what was finally written there (not in rhythm)."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    rhythm: bool = False
    limit: int = 0
    command: tuple[str, ...] = SERVER
    variables: Mapping[str, str] = field(default_factory=dict)
    likelihood: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that went out: the document's text then, and the answer to come."""

    recording: str
    point: Point
    opened: Opened
    text: str
    answer: asyncio.Task[Answer]
    likelihood: Mapping[str, Any] | None = None


Say = Callable[[str], None]


def read_any(path: Path) -> Recording:
    """A recording of ours or of VS Code. Raises RecordingError, OSError."""
    recording = read_vscode(path) if path.suffix == ".json" else read_own(path)
    if not recording.header.content:
        raise RecordingError(
            f"{path}: recorded without content; it can be counted (`lsp-complete stats`), not replayed."
        )
    return recording


def run(recordings: Mapping[str, Recording], options: ReplayOptions, out: Path, say: Say = lambda text: None) -> dict[str, Any]:
    """Replay all, or what is left of it, and write the run's folder; gives `run.json`'s content. Raises LspCompleteError, OSError."""
    part = started(recordings, options, out)
    run_to_end(replay_sides(recordings, [options], [part], say))
    return ended(part, recordings, options)


def started(recordings: Mapping[str, Recording], options: ReplayOptions, out: Path) -> Part:
    """The run in a folder, new or begun before. Raises RecordingError, OSError."""
    file = Path(options.model)
    stat = file.stat() if options.model and file.is_file() else None
    return begin(out, tag_of(recordings, {**asdict(options), "file": (stat.st_size, stat.st_mtime_ns) if stat else None}))


def ended(part: Part, recordings: Mapping[str, Recording], options: ReplayOptions) -> dict[str, Any]:
    """All recordings are through: `run.json`'s content."""
    return finish(part, recordings, {"rhythm": options.rhythm}, options.settings)


async def replay_sides(
    recordings: Mapping[str, Recording], sides: Sequence[ReplayOptions], parts: Sequence[Part], say: Say = lambda text: None
) -> None:
    """Replay what is left of each side into its part. Each has a server of its own; they take turns recording by recording, in an
    order that alternates, so that a change of the machine's speed meets all of them."""
    if all(title in part.rows for title in recordings for part in parts):
        return
    with tempfile.TemporaryDirectory(prefix="lspc-replay-") as name:
        async with AsyncExitStack() as stack:
            running, models = [], []
            for number, options in enumerate(sides):
                root = Path(name) / str(number)
                root.mkdir()
                start = SessionOptions(options.settings, options.model, root, options.command, options.variables)
                running.append(await stack.enter_async_context(session(start)))
                await warm_up(running[-1], root)
                models.append(await model_name(running[-1]))
            for turn, (title, recording) in enumerate(recordings.items()):
                for number in sorted(range(len(sides)), reverse=bool(turn % 2)):
                    part = parts[number]
                    if title not in part.rows:
                        folder = Path(name) / str(number) / str(turn)
                        folder.mkdir()
                        asked = await _play(running[number], folder, title, recording, sides[number], _count(part))
                        part.add(title, [_row(each, await each.answer) for each in asked], models[number])
                    say(f"{title} ({turn + 1}/{len(recordings)}), side {number + 1}/{len(sides)}: {_count(part)} points so far")


def _count(part: Part) -> int:
    return sum(map(len, part.rows.values()))


async def _play(
    running: Session,
    root: Path,
    title: str,
    recording: Recording,
    options: ReplayOptions,
    before: int,
) -> list[_Asked]:
    """before: how many points the recordings before this one had."""
    client, state, asked = running.client, Texts(), list[_Asked]()
    uris: dict[int, str] = {}
    here: dict[int, list[Point]] = {}
    left = max(0, options.limit - before)
    for point in points(recording, left) if left or not options.limit else ():
        here.setdefault(point.event, []).append(point)
    clock, last = perf_counter(), 0.0
    for index, event in enumerate(recording.events):
        if options.rhythm:
            clock += min(MAX_PAUSE_S, (event.at_ms - last) / 1000)
            last = event.at_ms
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
                asked.append(await _ask(client, uris[point.doc], title, point, state, options))
    if options.rhythm:
        await asyncio.gather(*(each.answer for each in asked))
    for uri in uris.values():
        client.close(uri)
    return asked


def place_of(root: Path, path: str) -> Path:
    """A file inside of root for a path of a recording, whatever that path says."""
    parts = [_name(part) for part in PurePosixPath(path.replace("\\", "/")).parts if part not in ("/", ".", "..", "")]
    return root.joinpath(*parts) if parts else root / "unnamed"


def _name(part: str) -> str:
    """A name that a file system takes. A server's recording has addresses: one letter of a far script is nine characters there."""
    name = part.replace(":", "_").replace("\0", "_").encode("utf-8", "replace").decode().replace("?", "_")
    if len(name.encode()) <= LONGEST_NAME:
        return name
    suffix = PurePosixPath(name).suffix
    return digest(part) + (suffix if len(suffix.encode()) < 20 else "")


def _open(client: LspClient, root: Path, event: Opened) -> str:
    path = place_of(root, event.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(event.text, encoding="utf-8", errors="replace", newline="")
    client.open(path.as_uri(), event.language_id, event.text)
    return path.as_uri()


async def _ask(client: LspClient, uri: str, title: str, point: Point, state: Texts, options: ReplayOptions) -> _Asked:
    text = state.text[point.doc]
    cursor = position_at(text, point.offset)
    call = client.ask(uri, cursor, INVOKED if point.trigger == "explicit" else AUTOMATIC)
    task = asyncio.get_running_loop().create_task(client.answer(call, cursor, LIMIT_S))
    made = _Asked(title, point, state.opened[point.doc], text, task)
    if options.rhythm:
        return made
    await asyncio.wait([task])
    wanted = wanted_line(point, text) if options.likelihood else ""
    return replace(made, likelihood=await client.likelihood(uri, cursor, wanted, LIMIT_S)) if wanted else made


def wanted_line(point: Point, text: str) -> str:
    """What was finally written on the cursor's line from there on, its line end included; "" where something stands there already."""
    here = body(split_lines(text[point.offset :])[0]) if text[point.offset :] else ""
    return "" if here.strip() or not point.rest else split_lines(point.rest)[0]


def surprise(found: Mapping[str, Any] | None) -> float | None:
    """Bits per byte: 0 for what the model was certain of."""
    value = -found["logprob"] / math.log(2) / found["bytes"] if found and found.get("bytes") else math.inf
    return value if math.isfinite(value) else None


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
        "outcome": str(answer.stages.get("outcome", "")) or ("error" if answer.code else "shown" if first else "empty"),
        "stages": dict(answer.stages),
        "text": first[2] if first else "",
        "before": "\n".join(head[-CONTEXT_LINES:]),
        "after": "\n".join(tail[: CONTEXT_LINES // 2]),
        "wanted": point.line,
        "judged": asdict(replace(judge(point, text, each.opened.language_id, first), surprise=surprise(each.likelihood))),
    }

