"""A change of files as typing, asked about at a sample of places. Pure.

Strategy: `import_git` asks after every character, which is what an editor does and far too much to judge a model by. Here a few lines of
a few runs of changed lines are typed, and suggestions are asked for at seeded places inside of those lines; all other changes come as
one edit each. Lines of one run share their prompt, so that a point costs little more than its own decoding. One place in each line: what a second one
would tell of a model, the first has mostly told.

Rules:
- Only whole lines of LINE_MIN to LINE_MAX characters are typed, at least half of them code (no comments, no prose in strings); at most LINES of a
  run, at PLACES places each.
- The final texts are the new ones, exactly.
- The random source is the caller's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..suggest.language import facts_for
from ..suggest.scan import code_only
from ..syntax.languages import language_for
from .corpus import COMMENT_STARTS
from .edits import body, split_lines
from .import_git import JUMP_MS, KEY_MS, hunks
from .recording import Asked, Changed, Closed, Event, Header, Moved, Opened, Recording

LINE_MIN, LINE_MAX = 16, 90
LINES, PLACES = 9, 1
REACH = 36
"""Lines of a run that are looked at, from the first one that can be typed."""

Pair = tuple[str, str, str]
"""(path, old text, new text)."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of changed lines that can be asked about. file, hunk: which; lines: (start, end) of the lines to type, in the run's text."""

    file: int
    hunk: int
    lines: tuple[tuple[int, int], ...]


def runs(pairs: Sequence[Pair]) -> list[Run]:
    """All that can be asked about, in order."""
    found = []
    for number, (path, old, new) in enumerate(pairs):
        known = language_for("", path, old[:80].partition("\n")[0])
        if known is None:
            continue
        code = code_only(new, facts_for(known.ids[0]))
        for index, (start, _, text) in enumerate(hunks(old, new)):  # a run starts where its text does in the new file
            lines = tuple(_lines(text, start == 0 or new[start - 1] in "\r\n", code[start : start + len(text)]))
            if lines:
                found.append(Run(number, index, lines))
    return found


def _lines(text: str, whole: bool, code: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the first lines that can be typed. whole: the text begins at a line's start; code: the text without
    comments and strings, of the same length."""
    offset, first, taken = 0, -1, 0
    for number, line in enumerate(split_lines(text)):
        content = body(line).strip()
        ends = len(line) > len(body(line))
        fit = LINE_MIN <= len(content) <= LINE_MAX and not content.startswith(COMMENT_STARTS)
        fit = fit and 2 * len("".join(code[offset : offset + len(line)].split())) >= len("".join(content.split()))
        if fit and ends and (whole or number) and taken < LINES and (first < 0 or number - first < REACH):
            first, taken = (number if first < 0 else first), taken + 1
            yield offset, offset + len(body(line).rstrip())
        offset += len(line)


def choose(by_project: Mapping[str, Sequence[Run]], count: int, rng: random.Random) -> dict[str, list[Run]]:
    """Runs of about `count` points in all, taking turns over the projects; the longer runs of each first."""
    left = {}
    for name, found in by_project.items():
        shuffled = rng.sample(list(found), len(found))
        left[name] = sorted(shuffled, key=lambda run: -len(run.lines))
    chosen: dict[str, list[Run]] = {name: [] for name in by_project}
    points = 0
    while points < count and any(left.values()):
        for name, waiting in left.items():
            if waiting and points < count:
                run = waiting.pop(0)
                chosen[name].append(run)
                points += len(run.lines) * PLACES
    return chosen


def recording(pairs: Sequence[Pair], chosen: Sequence[Run], rng: random.Random, created: float = 0.0) -> Recording:
    """The files of the chosen runs, typed."""
    return Recording(Header("git", created=created), tuple(_events(pairs, chosen, rng)))


def _events(pairs: Sequence[Pair], chosen: Sequence[Run], rng: random.Random) -> Iterator[Event]:
    wanted = {(run.file, run.hunk): run for run in chosen}
    at, asked = 0.0, 0
    for doc, number in enumerate(sorted({run.file for run in chosen})):
        path, old, new = pairs[number]
        facts = language_for("", path, old[:80].partition("\n")[0])
        yield Opened(at, doc, path, facts.ids[0] if facts else "plaintext", old)
        for index, (start, end, text) in enumerate(hunks(old, new)):
            at += JUMP_MS
            run = wanted.get((number, index))
            if run is None:
                yield Changed(at, doc, ((start, end, text),), len(text))
                continue
            yield Moved(at, doc, start)
            if end > start:
                yield Changed(at, doc, ((start, end, ""),))
            end_of = max(text.rfind("\n"), text.rfind("\r"))  # from the last line end on it is there first: else the next line would
            end_of -= text[end_of - 1 : end_of + 1] == "\r\n"  # stand right of the cursor
            yield Changed(at, doc, ((start, start, text[end_of:]),), len(text) - end_of)
            text, done = text[:end_of], 0
            for place in places(text, run, rng):
                at += KEY_MS[1] * (place - done)
                yield Changed(at, doc, ((start + done, start + done, text[done:place]),), place - done)
                yield Asked(at, doc, asked, start + place)
                asked, done = asked + 1, place
            yield Changed(at, doc, ((start + done, start + done, text[done:]),), len(text) - done)
        yield Closed(at, doc)


def places(text: str, run: Run, rng: random.Random) -> list[int]:
    """Offsets in a run's text where suggestions are asked for: inside of its lines, behind their first character."""
    found = []
    for start, end in run.lines:
        indent = len(text[start:end]) - len(text[start:end].lstrip())
        inside = range(start + indent + 1, end - 1)
        found += sorted(rng.sample(inside, min(PLACES, len(inside))))
    return found
