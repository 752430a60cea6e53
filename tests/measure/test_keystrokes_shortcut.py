"""What `bench keystrokes` leaves out (keys at which an earlier answer still agrees) against asking at every key, through the real server.

The engine is a toy that knows each line and says its rest, so that both recordings can be compared figure by figure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.measure.bench_keystrokes import FLOORS, report
from lsp_complete.measure.bench_keystrokes_record import (
    FLAGS,
    SETTINGS,
    Stretch,
    record_line,
    tasks,
    uri_of,
)
from lsp_complete.measure.bench_keystrokes_replay import LinePlayer, RecordedLine
from lsp_complete.measure.client import AUTOMATIC
from lsp_complete.measure.corpus import Source
from lsp_complete.measure.edits import Position
from lsp_complete.suggest.confidence import Scored
from tests.lsp.harness import prompt_text, session

TEXT = """import os
import json


def area(width, height):
    total = width * height
    names = [os.path.basename(name) for name in total]
    print("area", json.dumps({"total": total, "names": names}))
    if total > width and not names:
        raise ValueError(f"too small: {total}")
    return [total, *names][0]
"""
FILLED = tuple(n for n, line in enumerate(TEXT.split("\n")) if n and line.strip())
WRONG = {" * height": " + height", "basename(name)": "dirname(name)", "not names": "names[0]"}
"""What the toy believes instead; it is put right once the line contradicts it."""
Sure = Callable[[int], float]


@dataclass(frozen=True)
class Toy:
    """Knows the lines of TEXT, some of them wrongly. Its tokens are pieces of `size` bytes, counted from the line's start. sure: the
    log-probability of the piece that begins at a byte. healed: what is left of it if a part is given already, as a share."""

    size: int
    sure: Sure
    healed: float = 1.0

    def __call__(self, request: CompletionRequest) -> Completion:
        if not request.max_tokens:
            return Completion((), EngineTiming())
        left = (prompt_text(request.prompt) + request.forced.decode()).rpartition("\n")[2].rpartition("<M>")[2]
        line = next((x for x in beliefs() if x.startswith(left) and len(x) > len(left)), left)
        return Completion((self.candidate(line.encode(), len(left.encode())),), EngineTiming())

    def candidate(self, line: bytes, given: int) -> Candidate:
        first = given - given % self.size
        starts = range(first, len(line), self.size)
        logprobs = [self.sure(start) * (self.healed if start < given else 1.0) for start in starts]
        offsets = [min(len(line), start + self.size) - given for start in starts]
        return Candidate(line[given:], tuple(starts), tuple(logprobs), (), tuple(offsets), "line")


def beliefs() -> list[str]:
    """All lines: as believed, then as they are."""
    lines = TEXT.split("\n")
    believed = []
    for line in lines:
        for right, wrong in WRONG.items():
            line = line.replace(right, wrong)
        believed.append(line)
    return [*believed, *lines]


def uneven(low: float) -> Sure:
    """A log-probability between `low` and 0 for each byte, the same at every asking."""
    values = [low * random.Random(n).random() for n in range(200)]
    return values.__getitem__


async def recordings(tmp_path: Path, toy: Toy) -> tuple[list[RecordedLine], list[RecordedLine]]:
    """The lines as the benchmark records them, and with every key asked at."""
    path = tmp_path / "a.py"
    path.write_text(TEXT, encoding="utf-8")
    stretch = Stretch(Source("a.py", path, tmp_path, "python", TEXT), FILLED)
    both: list[list[RecordedLine]] = []
    options: dict[str, Any] = {"settings": {**SETTINGS, "first_deadline_ms": 0}, **dict.fromkeys(FLAGS, True)}
    for every_key in (False, True):
        async with session(ScriptedEngine(toy), options) as (client, server, _engine):
            client.open(uri_of(stretch), "python", TEXT)
            await client.inline(uri_of(stretch), Position(1, 0), AUTOMATIC)
            assert server.service.brain._task is not None
            await asyncio.wait([server.service.brain._task])
            both.append([await record_line(client, stretch, n, task, every_key) for n, task in tasks(stretch)])
    return both[0], both[1]


def figures(lines: list[RecordedLine]) -> dict[str, Any]:
    """All that the benchmark tells but how often it asked."""
    return {name: value for name, value in report(lines).items() if name not in ("asked", "silent")}


def said(lines: list[RecordedLine]) -> list[tuple[str, Scored]]:
    """At each key that is asked at: the cursor's line left of it, and what the model said there, as far as the recording tells."""
    found = []
    for line in lines:
        player = LinePlayer(line)
        for index, key in enumerate(line.keys):
            known = player.candidate(index) if key.asks else None
            if known is not None:
                found.append((key.left, known[0]))
    return found


async def test_where_tokens_are_characters_all_figures_are_the_same(tmp_path: Path) -> None:
    few, all_ = await recordings(tmp_path, Toy(1, uneven(-0.6)))
    asked = [sum(len(line.answers) for line in lines) for lines in (few, all_)]
    assert asked[1] == sum(key.asks for line in all_ for key in line.keys) > 2 * asked[0] > 0
    assert said(few) == said(all_) and len(said(all_)) == asked[1]
    assert figures(few) == figures(all_)
    assert figures(few)["eager"]["keys_saved"] > 0.3 and figures(few)["balanced"]["right"] > 0


async def test_inside_of_a_token_what_was_left_out_looks_less_sure_than_it_is(tmp_path: Path) -> None:
    """The one way in which the shortcut differs: a token of which a part is typed already is more probable given that part, and only
    asking again tells. Where nothing depends on how sure it is, all is the same; under a floor the shortcut saves no more keys."""
    few, all_ = await recordings(tmp_path, Toy(5, uneven(-0.6), healed=0.2))
    less_sure = 0
    for (left, mine), (_, whole) in zip(said(few), said(all_), strict=True):
        assert (mine.text, mine.offsets, mine.logprobs[1:]) == (whole.text, whole.offsets, whole.logprobs[1:])
        if mine.logprobs != whole.logprobs:
            assert len(left) % 5 and mine.logprobs[0] < whole.logprobs[0]
            less_sure += 1
    assert less_sure > 50
    short, full = figures(few), figures(all_)
    assert short["eager"] == full["eager"]
    assert short["curve"][FLOORS.index(None)] == full["curve"][FLOORS.index(None)]
    saved = [[point["keys_saved"] for point in made["curve"]] for made in (short, full)]
    assert all(mine <= whole for mine, whole in zip(*saved, strict=True)) and saved[0] != saved[1]
    assert short["balanced"]["keys_saved"] < full["balanced"]["keys_saved"]
