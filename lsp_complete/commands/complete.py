"""`lsp-complete complete FILE --line N --column M`: one suggestion, as an explicit request of an editor would get it.

Rules: standard output holds the suggestion's text and nothing else, or one JSON object; the engine that is started (or
joined) is the one that editors use, and it ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LspCompleteError, RequestFailed

if TYPE_CHECKING:
    from ..cli import Sub
    from ..config import Settings
    from ..service import Answer
    from ..text.document import Document

PATIENCE_MS = 60_000


def add_parser(sub: Sub) -> None:
    """`complete FILE --line N [--column M] [--json]`."""
    parser = sub.add_parser("complete", help="suggest once at a place in a file")
    parser.add_argument("file", type=Path, help="source file")
    parser.add_argument("--line", type=_positive, required=True, metavar="N", help="line, from 1")
    parser.add_argument(
        "--column", type=_positive, metavar="M", help="column in characters, from 1 (default: the line's end)"
    )
    parser.add_argument(
        "--language", default="", metavar="ID", help="LSP language id (default: by the file's name)"
    )
    parser.add_argument("--json", action="store_true", help="suggestions and stage times as JSON")
    parser.set_defaults(run=_run)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("lines and columns count from 1")
    return number


def _run(args: argparse.Namespace) -> int:
    from ..config import gather, load

    path = args.file.resolve()
    text = read_source(path)
    root = workspace_of(path)
    loaded = load(gather([root]))
    for problem in loaded.problems:
        print(f"lsp-complete: {problem}", file=sys.stderr)
    document, offset = _place(path, text, args.language, args.line, args.column)
    answer = asyncio.run(suggest(document, offset, root, patient(loaded.settings)))
    if args.json:
        print(json.dumps(_plain(args.file, document, offset, answer), ensure_ascii=False))
    elif answer.suggestions:
        sys.stdout.write(answer.suggestions[0].text + "\n")
    else:
        reason = answer.stages.reason or answer.stages.outcome
        print(f"lsp-complete: no suggestion here ({reason})", file=sys.stderr)
    return 0 if answer.stages.outcome not in ("error", "unavailable") else 1


def patient(settings: Settings) -> Settings:
    """The settings for somebody who waits: the whole prompt is read, however long that takes."""
    suggest = settings.suggest.model_copy(update={"time_limit_ms": PATIENCE_MS, "debounce_ms": 0})
    return settings.model_copy(update={"suggest": suggest, "first_deadline_ms": PATIENCE_MS})


def read_source(path: Path) -> str:
    """The file's text, line ends kept. Raises RequestFailed if it is not UTF-8 text, OSError if unreadable."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise RequestFailed(f"{path} is not UTF-8 text; convert it first, for example with iconv") from None


def workspace_of(path: Path) -> Path:
    """The nearest folder above with a `.git`, else the file's own folder."""
    return next((folder for folder in path.parents if (folder / ".git").exists()), path.parent)


def _place(path: Path, text: str, language: str, line: int, column: int | None) -> tuple[Document, int]:
    from ..syntax.languages import language_for
    from ..text.document import Document, to_offset
    from ..text.positions import Encoding

    first_line = text[:200].split("\n", 1)[0]
    facts = language_for(language, path.name, first_line)
    language = language or (facts.ids[0] if facts else "plaintext")
    document = Document.open(path.as_uri(), language, 1, text)
    count = document.buffer.line_count
    if line > count:
        raise RequestFailed(f"{path.name} has {count} lines; there is no line {line}")
    at = column - 1 if column is not None else len(text)  # a column past the end is the line's end
    return document, to_offset(document.buffer, (line - 1, at), Encoding.UTF32)


async def suggest(document: Document, offset: int, root: Path, settings: Settings) -> Answer:
    """Start or join the engine, ask once, let go. Raises LspCompleteError if no model can be had."""
    from ..service import Query, Service
    from ..service.startup import open_engine

    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def status(kind: str, message: str, busy: bool = False) -> None:
        if not ready.done() and not busy and kind in ("Normal", "Error"):
            ready.set_result("" if kind == "Normal" else message)

    service = Service(settings, open_engine, lambda level, message: None, status)
    try:
        service.set_roots([root])
        service.open(document)
        problem = await ready
        if problem:
            raise LspCompleteError(problem)
        return await service.answer(Query(document, offset, time.perf_counter(), "explicit"))
    finally:
        await service.close()


def _plain(file: Path, document: Document, offset: int, answer: Answer) -> dict[str, object]:
    return {
        "file": str(file),
        "language": document.language_id,
        "offset": offset,
        "suggestions": [
            {"text": found.text, "start": found.start, "end": found.end, "score": found.score}
            for found in answer.suggestions
        ],
        "stages": answer.stages.as_dict(),
    }
