"""VS Code's `workspaceRecording@1.0` as a recording of ours. Pure, but for reading the file.

Rules:
- Its offsets are UTF-16 units and all edits of an entry refer to the same state: they are turned round, last place first,
  so that each applies to what the one before left.
- The log's order is what happened; its times are only nearly in order, so a time never goes back here.
- Entries that say nothing about text or cursor (`documentEvent`, `event`, `opened`, `focused`, `meta`, …) are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..syntax.languages import language_for
from ..text.positions import Encoding, column_from_lsp
from .recording import (
    MAX_BYTES,
    Changed,
    Event,
    Header,
    Moved,
    Opened,
    Recording,
    RecordingError,
    Splice,
    spliced,
)


def read(path: Path) -> Recording:
    """Import a file. Raises RecordingError, OSError."""
    if path.stat().st_size > MAX_BYTES:
        raise RecordingError(f"{path}: larger than {MAX_BYTES >> 20} MB.")
    try:
        log = json.loads(path.read_text(encoding="utf-8"))["log"]
        return from_log(log)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RecordingError(
            f"{path}: not a workspaceRecording@1.0 ({type(error).__name__}: {str(error)[:80]})."
        ) from None


def from_log(log: list[Mapping[str, Any]]) -> Recording:
    """The recording of a log. Raises LookupError, TypeError, ValueError, ArithmeticError, AttributeError or RecordingError where an entry is
    not what it should be."""
    times = [float(entry["time"]) for entry in log if "time" in entry]
    began = times[0] if times else 0.0
    return Recording(Header("vscode", created=began / 1000), tuple(_events(log, began)))


def _events(log: list[Mapping[str, Any]], began: float) -> Iterator[Event]:
    paths: dict[int, str] = {}
    texts: dict[int, str] = {}
    stored: dict[tuple[int, str], str] = {}
    at = 0.0
    for entry in log:
        at = max(at, float(entry.get("time", began)) - began)
        kind, doc = entry["kind"], entry.get("id", -1)
        if kind == "documentEncountered":
            paths[doc] = entry["relativePath"]
        elif kind == "setContent":
            yield from _content(at, doc, paths[doc], texts, entry["content"])
        elif kind == "storeContent":
            stored[doc, entry["contentId"]] = texts[doc]
        elif kind == "restoreContent":
            yield from _content(at, doc, paths[doc], texts, stored[doc, entry["contentId"]])
        elif kind == "changed":
            edits = splices(texts[doc], entry["edit"])
            texts[doc] = spliced(texts[doc], edits)
            yield Changed(at, doc, edits, sum(len(edit[2]) for edit in edits))
        elif kind == "selectionChanged" and entry["selection"]:
            offset = _points(texts[doc], entry["selection"][0][1])
            yield Moved(at, doc, offset)


def _content(at: float, doc: int, path: str, texts: dict[int, str], new: str) -> Iterator[Event]:
    if not isinstance(new, str) or not isinstance(path, str):
        raise TypeError("content or path")
    old, texts[doc] = texts.get(doc), new
    if old is None:
        facts = language_for("", path)
        yield Opened(at, doc, path, facts.ids[0] if facts else "plaintext", new)
    elif old != new:
        yield Changed(at, doc, ((0, len(old), new),), len(new))


def splices(text: str, edit: list[tuple[int, int, str]]) -> tuple[Splice, ...]:
    """Edits in UTF-16 units of one state, as edits in code points that apply one after another."""
    ordered = [
        (_points(text, start), _points(text, end), new)
        for start, end, new in sorted(edit, key=lambda e: e[:2])
    ]
    return tuple(reversed(ordered))


def _points(text: str, units: int) -> int:
    if text.isascii():
        return units
    return column_from_lsp(
        text + " ", units, Encoding.UTF16
    )  # the blank keeps a last line end from being cut off
