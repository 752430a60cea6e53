"""How sure the model was: where to cut a suggestion, whether to show it, and which of several is best.

Strategy: the log-probabilities that come with the text are turned into a few numbers of its first line (sum,
mean, least) and compared with a table of levels (`data/confidence.json`). The table is data because it is chosen by
measuring, not by taste.

Rules:
- Probabilities under token healing are within the allowed set; the set's own mass stands beside them.
- A cut never ends inside a word or inside a UTF-8 character; past the first line it ends at a line end.
- Values as `engine.api.Candidate` has them, as plain tuples. Missing values mean "sure".
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

LENGTH_POWER = 0.7
"""Ranking divides the summed log-probability by tokens ** this: 0 favours short texts, 1 ignores length."""


@dataclass(frozen=True, slots=True)
class Level:
    """One row of the table; see the note in `data/confidence.json`. None means "no floor"."""

    first_token: float | None
    token: float
    line: float
    sum: float | None
    mean: float | None
    mass: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's text and its numbers, in parallel over the tokens that contributed (healed ones included).
    offsets: bytes of `text` that exist once token i is consumed."""

    text: bytes
    logprobs: tuple[float, ...] = ()
    masses: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.logprobs) or (self.masses and len(self.masses) != len(self.logprobs)):
            raise ValueError("logprobs, masses and offsets must run in parallel")


@dataclass(frozen=True, slots=True)
class FirstLine:
    """Numbers of the first visible line. sum includes the weighted mass; least is its worst token."""

    tokens: int
    sum: float
    mean: float
    least: float


@lru_cache(maxsize=1)
def levels() -> dict[str, Level]:
    """The table: "eager" | "balanced" | "quiet"."""
    raw = json.loads(resources.files(__package__).joinpath("data/confidence.json").read_text("utf-8"))
    return {name: Level(**row) for name, row in raw["levels"].items()}


def level_of(name: str) -> Level:
    """A level by its name; an unknown name gives "balanced" (settings are checked where they are read)."""
    return levels().get(name) or levels()["balanced"]


def _first_line_end(text: bytes) -> int:
    body = len(text) - len(text.lstrip())
    end = text.find(b"\n", body)
    return len(text) if end < 0 else end


def first_line(c: Scored, level: Level) -> FirstLine:
    """Numbers of the first line. A token counts if any of its bytes lie in it, healed tokens always."""
    end = _first_line_end(c.text)
    count = sum(1 for start in (0, *c.offsets[:-1]) if start < max(end, 1)) if c.offsets else 0
    used = [min(0.0, x) for x in c.logprobs[:count]]
    masses = c.masses[:count]
    penalty = level.mass * sum(math.log(max(m, 1e-9)) for m in masses if m < 1.0)
    total = sum(used)
    return FirstLine(count, total + penalty, total / count if count else 0.0, min(used, default=0.0))


def cut_point(c: Scored, level: Level) -> int:
    """Bytes of the text to keep: the first line up to the first token below `first_token`, later lines
    up to the first with a token below `token` or a mean below `line`. 0 means nothing is left."""
    first = _first_line_end(c.text)
    for i, value in enumerate(c.logprobs):
        start = c.offsets[i - 1] if i else 0
        if start >= first:
            break
        if level.first_token is not None and value < level.first_token and c.offsets[i] > 0:
            return _word_start(c.text, start)
    return _unsure_line(c, level, first)


def _unsure_line(c: Scored, level: Level, end: int) -> int:
    """Offset of the line end before the first later line that is unsure, or the whole length."""
    i = 0
    while end < len(c.text):
        stop = c.text.find(b"\n", end + 1)
        stop = len(c.text) if stop < 0 else stop
        values = []
        while i < len(c.offsets) and (c.offsets[i - 1] if i else 0) < stop:
            if c.offsets[i] > end:
                values.append(c.logprobs[i])
            i += 1
        if values and (min(values) < level.token or sum(values) / len(values) < level.line):
            return end
        end = stop
    return len(c.text)


def _word_start(text: bytes, at: int) -> int:
    """`at`, moved left so that it is not inside a word (a byte above ASCII counts as part of a word)."""

    def wordish(byte: int) -> bool:
        return byte >= 0x80 or byte == 0x5F or chr(byte).isalnum()

    if at < len(text) and wordish(text[at]):
        while at > 0 and wordish(text[at - 1]):
            at -= 1
    return at


def confident(c: Scored, level: Level) -> bool:
    """The first line is sure enough to be shown unasked."""
    line = first_line(c, level)
    if level.sum is not None and line.sum < level.sum:
        return False
    return level.mean is None or line.mean >= level.mean


def rank_value(c: Scored) -> float:
    """Larger is better: summed log-probability over tokens ** `LENGTH_POWER`."""
    count = max(1, len(c.logprobs))
    return sum(min(0.0, x) for x in c.logprobs) / float(count**LENGTH_POWER)


def rank(candidates: Sequence[Scored], texts: Sequence[str], penalties: Sequence[float] = ()) -> list[int]:
    """Indices of the candidates worth offering, best first. texts: what each became after the filters ("" is left
    out; equal texts are merged, the best kept). penalties: to add to each value, ≤ 0 (unknown names, flat habits)."""
    if len(texts) != len(candidates) or (penalties and len(penalties) != len(candidates)):
        raise ValueError("candidates, texts and penalties must run in parallel")
    value = [rank_value(c) + (penalties[i] if penalties else 0.0) for i, c in enumerate(candidates)]
    order = sorted(range(len(candidates)), key=lambda i: (-value[i], i))
    seen: set[str] = set()
    out: list[int] = []
    for i in order:
        key = texts[i].strip()
        if key and key not in seen:
            seen.add(key)
            out.append(i)
    return out
