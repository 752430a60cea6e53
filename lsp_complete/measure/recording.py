"""A recording: what an editing session did, as events in order, in a file of JSON lines.

Strategy: documents are kept as edits, so a recording is small, and any state of any document can be made again by
`Texts`. The first line is the header, every other line one event. Events are frozen values; `plain` and `event_of`
turn them into JSON values and back.

Rules:
- Offsets are code points of the document's text before the edit; the edits of one event apply in order, each to what the
  one before left.
- `at_ms` counts from the recording's start and never goes back.
- A recording may hold source code: its folder has mode 0700 and its file 0600, and both are made so. A content-free
  recording holds digests in place of paths, and no text: it can be counted, not replayed.
- Reading is strict: a line that is no event is an error that names the line. A last line cut short (a crash) is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from ..errors import LspCompleteError

FORMAT = "lsp-complete-recording@1"
SUFFIX = ".lspc.jsonl"
DAY_S = 86400.0
MAX_BYTES = 1 << 30

Splice = tuple[int, int, str]
"""(start, end, text): replace start … end by text."""


class RecordingError(LspCompleteError):
    """A recording cannot be read, or does not fit what is asked of it."""


@dataclass(frozen=True, slots=True)
class Header:
    """source: "server" | "vscode" | "git". content: whether texts are in it. created: seconds since 1970."""

    kind: ClassVar[str] = "header"
    source: str
    content: bool = True
    created: float = 0.0
    version: str = ""
    format: str = FORMAT


@dataclass(frozen=True, slots=True)
class Opened:
    """A document appears with this text. doc: its number in the recording."""

    kind: ClassVar[str] = "opened"
    at_ms: float
    doc: int
    path: str
    language_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Edits by the user or the editor. typed: characters put in (all that a content-free recording keeps)."""

    kind: ClassVar[str] = "changed"
    at_ms: float
    doc: int
    edits: tuple[Splice, ...]
    typed: int = 0


@dataclass(frozen=True, slots=True)
class Moved:
    """The cursor stands here."""

    kind: ClassVar[str] = "moved"
    at_ms: float
    doc: int
    offset: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The document is closed."""

    kind: ClassVar[str] = "closed"
    at_ms: float
    doc: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for suggestions. trigger: "automatic" | "explicit"."""

    kind: ClassVar[str] = "asked"
    at_ms: float
    doc: int
    request: int
    offset: int
    trigger: str = "automatic"


@dataclass(frozen=True, slots=True)
class Prompted:
    """The prompt that the model was given for a request. shared: how many ids of the recording's prompt before this
    one come first; ids: the rest."""

    kind: ClassVar[str] = "prompted"
    at_ms: float
    request: int
    ids: tuple[int, ...]
    shared: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """What was answered: texts, best first, each with the range it replaces, and the stage record."""

    kind: ClassVar[str] = "answered"
    at_ms: float
    request: int
    suggestions: tuple[Splice, ...]
    stages: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a suggestion. what: "shown" | "accepted" | "partly"."""

    kind: ClassVar[str] = "became"
    at_ms: float
    request: int
    what: str
    length: int = 0


Event = Opened | Changed | Moved | Closed | Asked | Prompted | Answered | Became
_KINDS: dict[str, type[Any]] = {
    cls.kind: cls for cls in (Opened, Changed, Moved, Closed, Asked, Prompted, Answered, Became)
}


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording."""

    header: Header
    events: tuple[Event, ...]


class Texts:
    """Documents of a recording as its events go by. `apply` an event; `text[doc]` is the state after it."""

    def __init__(self) -> None:
        self.text: dict[int, str] = {}
        self.opened: dict[int, Opened] = {}

    def apply(self, event: Event) -> None:
        """Raises RecordingError for a change of a document that is not there, or outside of it."""
        if isinstance(event, Opened):
            self.text[event.doc], self.opened[event.doc] = event.text, event
        elif isinstance(event, Changed):
            if event.doc not in self.text:
                raise RecordingError(f"The recording changes document {event.doc} before it is opened.")
            self.text[event.doc] = spliced(self.text[event.doc], event.edits)


def spliced(text: str, edits: Iterable[Splice]) -> str:
    """The text after the edits, in order. Raises RecordingError for one outside of the text."""
    for start, end, new in edits:
        if not 0 <= start <= end <= len(text):
            raise RecordingError(f"The recording edits {start}..{end} of a text of {len(text)} characters.")
        text = text[:start] + new + text[end:]
    return text


def final_texts(recording: Recording) -> dict[str, str]:
    """Text of each document at the end, by path."""
    state = Texts()
    for event in recording.events:
        state.apply(event)
    return {state.opened[doc].path: text for doc, text in state.text.items()}


def digest(path: str) -> str:
    """What stands for a path where names must not be told: 12 hex digits."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def without_content(event: Event) -> Event:
    """The event with times, counts and lengths only."""
    if isinstance(event, Opened):
        return replace(event, path=digest(event.path), text="")
    if isinstance(event, Changed):
        return replace(event, edits=(), typed=event.typed or sum(len(e[2]) for e in event.edits))
    if isinstance(event, Prompted):
        return replace(event, ids=(), text="", shared=event.shared + len(event.ids))
    if isinstance(event, Answered):
        return replace(event, suggestions=())
    return event


# -- lines ---------------------------------------------------------------------------------------------


def line_of(value: Header | Event) -> str:
    """One line of the file, with its line end."""
    plain = {"kind": value.kind, **asdict(value)} if not isinstance(value, Answered) else _answered(value)
    return json.dumps(plain, separators=(",", ":")) + "\n"


def _answered(event: Answered) -> dict[str, Any]:
    rest = {"at_ms": event.at_ms, "request": event.request, "suggestions": event.suggestions}
    return {"kind": event.kind, **rest, "stages": dict(event.stages)}


def event_of(plain: Any) -> Event:
    """The event of a JSON value. Raises ValueError, KeyError, TypeError or OverflowError for anything else."""
    fields = dict(plain)
    cls = _KINDS[fields.pop("kind")]
    for name in ("edits", "suggestions"):
        if name in fields:
            fields[name] = tuple((int(start), int(end), str(text)) for start, end, text in fields[name])
    if "ids" in fields:
        fields["ids"] = tuple(int(number) for number in fields["ids"])
    for name in ("doc", "request", "offset", "typed", "shared", "length"):
        if name in fields and (type(fields[name]) is not int or fields[name] < 0):
            raise TypeError(name)
    for name in ("path", "language_id", "text", "trigger", "what"):
        if name in fields and not isinstance(fields[name], str):
            raise TypeError(name)
    if type(fields["at_ms"]) not in (int, float) or not math.isfinite(fields["at_ms"]) or not isinstance(fields.get("stages", {}), dict):
        raise TypeError("at_ms, stages")
    event: Event = cls(**fields)
    return event


def read(path: Path) -> Recording:
    """A recording from its file. Raises RecordingError, OSError."""
    if path.stat().st_size > MAX_BYTES:
        raise RecordingError(f"{path}: larger than {MAX_BYTES >> 20} MB; no recording of ours is.")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        first = json.loads(lines[0])
        if first.pop("kind") != "header" or first["format"] != FORMAT:
            raise ValueError
        header = Header(**first)
        if not isinstance(header.source, str) or not isinstance(header.content, bool):
            raise TypeError
    except UnicodeDecodeError:
        raise RecordingError(f"{path}: not a recording ({FORMAT}): it is no UTF-8 text.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RecordingError(f"{path}: not a recording ({FORMAT}) in its first line.") from None
    return Recording(header, tuple(_events(path, lines)))


def _events(path: Path, lines: list[str]) -> Iterator[Event]:
    last = len(lines) - 1  # after the last line end: empty, or a line that was cut short
    for number, line in enumerate(lines[1:last], start=2):
        try:
            yield event_of(json.loads(line))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise RecordingError(f"{path}: line {number} is no event of a recording.") from None


# -- files ---------------------------------------------------------------------------------------------


def private_folder(path: Path) -> Path:
    """Make a folder of mode 0700 if it is missing. Raises RecordingError if others can reach one that exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    info = path.lstat()
    if not path.is_dir() or path.is_symlink():
        raise RecordingError(f"{path}: not a folder; recordings need one of their own.")
    if os.name == "posix" and (info.st_mode & 0o077 or info.st_uid != os.getuid()):
        raise RecordingError(f"{path}: others can reach it; run: chmod 700 {path}")
    return path


def write(path: Path, recording: Recording) -> None:
    """Write a whole recording to a new private file (an old one of that name goes)."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(line_of(recording.header))
        out.writelines(map(line_of, recording.events))


def prune(
    folder: Path, max_bytes: int, days: float, now: float | None = None, keep: Path | None = None
) -> int:
    """Remove recordings older than `days`, then the oldest until the rest fits max_bytes; how many went.

    keep: a recording that is being written; it counts but stays. now: seconds since 1970.
    """
    now = time.time() if now is None else now
    found = []
    for path in folder.glob("*" + SUFFIX):
        with contextlib.suppress(OSError):
            info = path.lstat()
            found.append((info.st_mtime, info.st_size, path))
    found.sort(reverse=True)
    gone = total = 0
    for modified, size, path in found:
        total += size
        if path != keep and (total > max_bytes or now - modified > days * DAY_S):
            total -= size
            with contextlib.suppress(OSError):
                path.unlink()
                gone += 1
    return gone
