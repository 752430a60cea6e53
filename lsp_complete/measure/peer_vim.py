"""What llama.vim asks of llama-server's `/infill`, as values: local context, extra chunks, the request. Pure.

Strategy: written from llama.vim's documented behaviour and defaults, so that the peer of `bench typing --peer` is driven as its
users drive it: 256 lines above and 64 below the cursor, sampling by top-k 40, top-p 0.9 and infill, and a ring of at most 16 chunks of
the files visited. Stop and token limit are the caller's, so that both sides have the same.

Rules:
- Chunks are gathered where llama.vim gathers them: on entering a file and on leaving it, and at the first request after a move of more
  than 32 lines. They are sent for evaluation while nobody types (`Ring.update`), one at a time, as its timer does.
- What llama.vim does only to hide latency (its cache of answers, the second request behind a shown hint) is left out: closed
  mode asks at every key and counts the answer.
- The random source is the caller's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LINES_ABOVE, LINES_BELOW = 256, 64
RING_CHUNKS, CHUNK_LINES, RING_SCOPE = 16, 64, 1024
QUEUE = 16
FAR = 32
FIRST_MS, PROMPT_MS = 250, 500
SIMILAR, TOO_NEAR = 0.9, 0.5
_BLANK = re.compile(r"\s*$")


@dataclass(frozen=True, slots=True)
class Local:
    """What stands around the cursor, as the request has it. indent: characters before the line's text."""

    prefix: str
    middle: str
    suffix: str
    indent: int


def local(lines: Sequence[str], row: int, column: int) -> Local:
    """The context at a cursor. lines: without their ends; row, column: zero-based, code points."""
    line = lines[row]
    before, after = line[:column], line[column:]
    indent = len(line) - len(line.lstrip())
    if _BLANK.match(line):
        before, after, indent = "", "", 0
    above, below = lines[max(0, row - LINES_ABOVE) : row], lines[row + 1 : row + 1 + LINES_BELOW]
    return Local("\n".join(above) + "\n", before, "\n".join([after, *below]) + "\n", indent)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines of a file, as extra context."""

    name: str
    lines: tuple[str, ...]

    def plain(self) -> dict[str, str]:
        """The wire form."""
        return {"text": "\n".join(self.lines) + "\n", "filename": self.name}


def similarity(a: Sequence[str], b: Sequence[str]) -> float:
    """Share of lines that both have, 0–1."""
    there = set(b)
    return 2.0 * sum(line in there for line in a) / (len(a) + len(b)) if a or b else 0.0


@dataclass(slots=True)
class Ring:
    """The chunks that go with each request, and those that wait for a quiet moment. limit: chunks at most, 0 for none."""

    rng: random.Random
    limit: int = RING_CHUNKS
    chunks: list[Chunk] = field(default_factory=list)
    queued: list[Chunk] = field(default_factory=list)
    picked: int | None = None
    """Row of the last request that gathered chunks."""

    def pick(self, name: str, lines: Sequence[str], evict: bool) -> None:
        """Queue some of the lines. evict: what is much like them goes; else they are not taken if there is such."""
        if self.limit <= 0 or len(lines) < 3:
            return
        chunk = Chunk(name, tuple(self._part(lines)))
        if any(chunk.lines == other.lines for other in (*self.chunks, *self.queued)):
            return
        alike = [c for c in (*self.chunks, *self.queued) if similarity(c.lines, chunk.lines) > SIMILAR]
        if alike and not evict:
            return
        self.chunks = [c for c in self.chunks if c not in alike]
        self.queued = [*(c for c in self.queued if c not in alike), chunk][-QUEUE:]

    def _part(self, lines: Sequence[str]) -> Sequence[str]:
        if len(lines) + 1 < CHUNK_LINES:
            return lines
        start = self.rng.randint(0, max(0, len(lines) - CHUNK_LINES // 2))
        return lines[start : start + CHUNK_LINES // 2 + 1]

    def entered(self, name: str, lines: Sequence[str], row: int) -> None:
        """A file was entered, or is about to be left, with the cursor at row."""
        self.pick(name, lines[max(0, row - CHUNK_LINES // 2) : row + CHUNK_LINES // 2 + 1], evict=True)

    def asked(self, name: str, lines: Sequence[str], row: int) -> None:
        """A request went out at row: gather what is further away, if the cursor has moved far."""
        if self.picked is not None and abs(row - self.picked) <= FAR:
            return
        self.picked = row
        self.pick(name, lines[max(0, row - RING_SCOPE) : max(1, row - LINES_ABOVE + 1)], evict=False)
        self.pick(name, lines[row + LINES_BELOW : row + LINES_BELOW + CHUNK_LINES + 1], evict=False)

    def near(self, lines: Sequence[str], row: int) -> None:
        """Before a request: drop chunks that are much like what surrounds the cursor."""
        around = self._part(lines[max(0, row - CHUNK_LINES // 2) : row + CHUNK_LINES // 2 + 1])
        self.chunks = [c for c in self.chunks if similarity(c.lines, around) <= TOO_NEAR]

    def update(self) -> bool:
        """A quiet moment: one queued chunk joins the others. False if none waits."""
        if not self.queued:
            return False
        self.chunks = [*self.chunks, self.queued.pop(0)][-self.limit :]
        return True


def request(
    where: Local, chunks: Sequence[Chunk], *, tokens: int, stop: Sequence[str], seed: int
) -> Mapping[str, Any]:
    """The body of a request. tokens: to generate at most; stop: texts that end it."""
    return {
        "id_slot": 0,
        "input_prefix": where.prefix,
        "input_suffix": where.suffix,
        "input_extra": [chunk.plain() for chunk in chunks],
        "prompt": where.middle,
        "n_predict": tokens,
        "stop": list(stop),
        "n_indent": where.indent,
        "top_k": 40,
        "top_p": 0.9,
        "seed": seed,
        "stream": False,
        "samplers": ["top_k", "top_p", "infill"],
        "cache_prompt": True,
        "t_max_prompt_ms": PROMPT_MS,
        "t_max_predict_ms": FIRST_MS,
        "response_fields": ["content", "timings", "truncated", "tokens_cached"],
    }


def warming(chunks: Sequence[Chunk]) -> Mapping[str, Any]:
    """The body that has new chunks evaluated while nobody types."""
    return {
        "input_prefix": "",
        "input_suffix": "",
        "input_extra": [chunk.plain() for chunk in chunks],
        "prompt": "",
        "n_predict": 0,
        "temperature": 0.0,
        "stream": False,
        "samplers": [],
        "cache_prompt": True,
        "t_max_prompt_ms": 1,
        "t_max_predict_ms": 1,
        "response_fields": [""],
    }


def shown(content: str, lines: Sequence[str], row: int, column: int) -> str:
    """What llama.vim would show of an answer's text ("" for nothing): blank ends, and repeats of what stands there, go."""
    parts = content.split("\n")
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        return ""
    line = lines[row]
    if _BLANK.match(line):  # the request began at the line's start: what is indented already is not shown again
        lead = min(len(parts[0]) - len(parts[0].lstrip()), len(line))
        line, parts[0] = parts[0][:lead], parts[0][lead:]
    if len(parts) == 1 and parts[0] == line[column:]:
        return ""
    following = next((r for r in range(row + 1, len(lines)) if lines[r].strip()), row + 1)
    if len(parts) == 1 and following < len(lines) and line[:column] + parts[0] == lines[following]:
        return ""
    text = "\n".join(parts)
    return text if text.strip() else ""
