"""Recording what the model says while lines are retyped through the real server, one JSON object per line typed.

Strategy: each line is taken out of the intact file and typed again; where an earlier answer of the line still agrees with the
typing nothing is asked (`known_at`), which spares about half of the requests. With `every_key` all are asked. The two differ only inside
of tokens: a token of which a part is typed already is more probable given that part, and only asking again tells. So without `every_key`
what depends on a floor (balanced, quiet, the curve) is a little on the low side in `keys_saved`; eager is the same.
Lines that the file of an earlier run holds already are passed over.

Rules:
- The server runs at level eager and shows what the model said ("candidateNotifications"), so all levels follow from one recording.
- After each line the document is whole again. In a new file (`from_empty`) nothing stands below the line.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from ..engine.api import Candidate
from ..service.surroundings import AFTER_CHARS, BEFORE_CHARS, indent_style
from ..suggest.lines import IndentStyle
from ..text.document import Document
from .bench_keystrokes_replay import RecordedLine, Told, known_at
from .client import AUTOMATIC, Answer, LspClient
from .corpus import Source
from .edits import Edit, Position, body, offset_at, split_lines, utf16
from .session import Session
from .typist import Key, Script, script_for

Say = Callable[[str], None]
SETTINGS: Mapping[str, Any] = {"suggest": {"typed_through": False, "level": "eager", "time_limit_ms": 30000}}
FLAGS = ("stageNotifications", "candidateNotifications")
SUFFIX_CHARS = 2400


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of one file to retype, in order. from_empty: the file is written anew, with nothing below the cursor."""

    source: Source
    lines: tuple[int, ...]
    from_empty: bool = False


def stretch_of(source: Source, count: int, seed: int) -> Stretch:
    """`count` consecutive lines (blank ones passed over) at a seeded place of the file, not before its second line."""
    filled = [n for n, line in enumerate(split_lines(source.text)) if n and line.strip()]
    rng = random.Random(f"{seed}:{source.name}")  # noqa: S311 (choice of lines)
    start = rng.randrange(max(1, len(filled) - count + 1))
    return Stretch(source, tuple(filled[start : start + count]))


def first_lines(source: Source, count: int) -> Stretch:
    """The file's first lines after the very first one, as they are typed into a new file."""
    filled = [n for n, line in enumerate(split_lines(source.text)) if n and line.strip()]
    return Stretch(source, tuple(filled[:count]), True)


def uri_of(stretch: Stretch) -> str:
    """Where the document stands; a new file must not be mistaken for the one on disk."""
    path = stretch.source.path
    return (path.with_name(f"new_{path.name}") if stretch.from_empty else path).as_uri()


@dataclass(frozen=True, slots=True)
class Task:
    """One line on its way: the script, the text in which its line is whole, and how the document gets there from the last one."""

    script: Script
    text: str
    edits: tuple[Edit, ...]


def tasks(stretch: Stretch) -> Iterator[tuple[int, Task]]:
    """The lines of a stretch in order."""
    lines = split_lines(stretch.source.text)
    language, now = stretch.source.language_id, body(lines[0])
    for number in stretch.lines:
        text = stretch.source.text
        before: tuple[Edit, ...] = ()
        if stretch.from_empty:
            text = "".join(lines[:number]) + body(lines[number])
            end = Position(len(split_lines(now)) - 1, utf16(split_lines(now)[-1]))
            before, now = (Edit(end, end, text[len(now) :]),), text
        script = script_for(text, number, language)
        yield number, Task(script, text, (*before, script.removal))


def opening_text(stretch: Stretch) -> str:
    """The document as it is opened."""
    return body(split_lines(stretch.source.text)[0]) if stretch.from_empty else stretch.source.text


def told_of(answer: Answer, ms: float) -> Told:
    """An answer as it is kept."""
    said, stages = answer.considered, answer.stages
    found = (said.get("candidates") or [None])[0]
    candidate = Candidate(b"", stop="none")
    if found is not None:
        text = found["text"].encode()
        candidate = Candidate(
            text, (), tuple(found["logprobs"]), tuple(found["masses"]),
            tuple(min(x, len(text)) for x in found["offsets"]), found["stop"],
        )  # fmt: skip
    frozen = said.get("frozen_suffix")
    return Told(
        candidate, str(stages.get("outcome", "")), str(stages.get("reason", "")), said.get("mode", "line"),
        said.get("base_indent", 0), None if frozen is None else frozen[:SUFFIX_CHARS], round(ms, 1),
    )  # fmt: skip


async def record_line(client: LspClient, stretch: Stretch, number: int, task: Task, every_key: bool) -> RecordedLine:
    """Retype one line. The document is `task.text` afterwards."""
    uri, script = uri_of(stretch), task.script
    client.change(uri, task.edits)
    answers: dict[int, Told] = {}
    for index, key in enumerate(script.keys):
        client.change(uri, key.edits)
        if not key.asks or (not every_key and known_at(script.keys, answers, index) is not None):
            continue
        started = perf_counter()
        answer = await client.inline(uri, key.cursor, AUTOMATIC)
        answers[index] = told_of(answer, (answer.received - started) * 1000)
    lines = split_lines(task.text)
    start = offset_at(lines, Position(number, 0))
    document = Document.open(uri, stretch.source.language_id, 1, task.text)
    above = task.text[max(0, start - BEFORE_CHARS) : start]
    if start > BEFORE_CHARS:
        above = above[above.find("\n") + 1 :]
    below = task.text[start + len(script.target) :][:AFTER_CHARS]
    return RecordedLine(
        stretch.source.name, number, stretch.source.language_id, script.target, above, below, script.keys, answers,
        indent_style(document.buffer, number), document.newline, stretch.from_empty,
    )  # fmt: skip


async def record(
    running: Session, stretches: Sequence[Stretch], done: Mapping[tuple[str, bool], set[int]], keep: Callable[[RecordedLine], None],
    say: Say, *, every_key: bool = False,
) -> None:  # fmt: skip
    """All lines of all stretches that are not done yet; `keep` is called with each as soon as it is complete."""
    client, root = running.client, None
    total = sum(len(s.lines) for s in stretches)
    count, asked, started = sum(map(len, done.values())), 0, perf_counter()
    for stretch in stretches:
        have = done.get((stretch.source.name, stretch.from_empty), set())
        if have.issuperset(stretch.lines):
            continue
        if root != stretch.source.root:
            client.move_workspace(root, stretch.source.root)
            root = stretch.source.root
        uri = uri_of(stretch)
        client.open(uri, stretch.source.language_id, opening_text(stretch))
        for number, task in tasks(stretch):
            if number in have:
                if stretch.from_empty:
                    client.change(uri, task.edits[:-1])
                continue
            line = await record_line(client, stretch, number, task, every_key)
            keep(line)
            count, asked = count + 1, asked + len(line.answers)
            say(
                f"line {count}/{total} {line.file}:{number + 1}{' (new file)' if line.from_empty else ''}: asked at "
                f"{len(line.answers)} of {len(line.keys)} keys, {asked} in {perf_counter() - started:.0f} s"
            )
        client.close(uri)


def to_json(line: RecordedLine) -> dict[str, Any]:
    """A recorded line as plain JSON values."""
    return {
        **{k: getattr(line, k) for k in ("file", "number", "language", "target", "above", "below", "newline", "from_empty")},
        "indent": asdict(line.indent),
        "keys": [[k.kind, k.char, k.left, k.right, k.rest, k.asks] for k in line.keys],
        "answers": {
            str(index): {
                **asdict(told), "candidate": {**asdict(told.candidate), "text": told.candidate.text.decode("utf-8", "ignore")}
            }
            for index, told in line.answers.items()
        },
    }  # fmt: skip


def from_json(raw: Mapping[str, Any]) -> RecordedLine:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    keys = tuple(
        Key(kind, char, (), Position(raw["number"], utf16(left)), left, right, rest, asks)
        for kind, char, left, right, rest, asks in raw["keys"]
    )
    answers = {}
    for index, told in raw["answers"].items():
        said = told["candidate"]
        numbers = {k: tuple(said[k]) for k in ("tokens", "logprobs", "masses", "offsets")}
        candidate = Candidate(text=said["text"].encode(), stop=said["stop"], **numbers)
        answers[int(index)] = Told(**{**told, "candidate": candidate})
    plain = {k: raw[k] for k in ("file", "number", "language", "target", "above", "below", "newline", "from_empty")}
    return RecordedLine(**plain, keys=keys, answers=answers, indent=IndentStyle(**raw["indent"]))


def load(path: Path) -> tuple[dict[str, Any], list[RecordedLine]]:
    """The head of a recording and its lines. A last line that was cut off is left out. Raises OSError, ValueError."""
    head: dict[str, Any] = {}
    lines: list[RecordedLine] = []
    for number, text in enumerate(path.read_text("utf-8").splitlines()):
        try:
            raw = json.loads(text)
            if number == 0:
                head = dict(raw)
            else:
                lines.append(from_json(raw))
        except (ValueError, KeyError, TypeError):
            if number == 0:
                raise ValueError(f"{path} is no recording of this benchmark. Give another file, or none.") from None
    return head, lines
