"""A deterministic toy model that notices every wrong reuse of KV.

Each cell holds (token, position, chain), where chain is a hash over everything before it in its sequence *at the time it was
evaluated*. The next token's logits are derived from the last cell's chain, so KV reused after other ids, at other
positions, or after a gap gives other text than a cold prompt. Cells are counted like llama.cpp's unified buffer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lsp_complete.engine.api import ModelInfo
from lsp_complete.engine.backend import Floats, Ints, Segment, Status
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.shrink import half
from lsp_complete.errors import MemoryPlanError

WORDS = [
    b"def ",
    b"return",
    b"    ",
    b"self",
    b".x",
    b" = ",
    b"foo",
    b"bar",
    b"(a, b)",
    b"\n    ",
    b"\n\n",
    b"elf",
]
EOG = 256 + len(WORDS)
SPECIAL = EOG + 1
SIZE = EOG + 2


class FakeVocab:
    """256 single bytes, some words, one end token, one special token without bytes."""

    def __init__(self) -> None:
        self._pieces = [bytes([b]) for b in range(256)] + WORDS + [b"", b""]
        order = sorted((p, t) for t, p in enumerate(self._pieces) if p)
        self.pieces: list[bytes] = [p for p, _ in order]
        self.ids: Ints = np.array([t for _, t in order], dtype=np.int32)

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def is_eog(self, token: int) -> bool:
        return token == EOG


def encode(text: str) -> tuple[int, ...]:
    """Byte tokens of a text."""
    return tuple(text.encode())


def chain(before: str, token: int, pos: int) -> str:
    """The toy's hidden state."""
    return hashlib.blake2b(f"{before}|{token}|{pos}".encode(), digest_size=8).hexdigest()


Cell = tuple[int, str]  # token, chain
Brain = Callable[[list[int], str], Floats]


def noisy_brain(ids: list[int], last: str) -> Floats:
    """Pseudo-random logits from the chain; printable bytes and words are likelier, the end token rare."""
    rng = np.random.default_rng(int(last, 16))
    logits = rng.normal(size=SIZE).astype(np.float32)
    logits[:32] -= 6.0
    logits[127:256] -= 6.0
    logits[SPECIAL] -= 20.0
    return logits


def scripted_brain(text: str, prompt_length: int) -> Brain:
    """Says `text` byte by byte after a prompt of this length, then ends; a wrong chain is not noticed by this one."""
    data = text.encode()

    def brain(ids: list[int], last: str) -> Floats:
        at = len(ids) - prompt_length
        logits = np.zeros(SIZE, dtype=np.float32)
        logits[data[at] if 0 <= at < len(data) else EOG] = 10.0
        return logits

    return brain


class FakeBackend:
    """See `backend.Backend`. `before_ubatch` is called with the number of the micro-batch and may call `abort`."""

    def __init__(
        self,
        context: int = 512,
        slots: int = 4,
        scratch: int = 8,
        ubatch: int = 16,
        can_drop_tail: bool = True,
        gpu: bool = False,
        brain: Brain = noisy_brain,
    ) -> None:
        self.vocab = FakeVocab()
        self.sequences = slots + (scratch if can_drop_tail else 0)
        self.max_outputs = 64
        self.brain = brain
        self.info = ModelInfo("fake", "fake", "toy", "toy", SIZE, context, slots, 1, 1, can_drop_tail, gpu)
        self.kv: dict[int, dict[int, Cell]] = {s: {} for s in range(self.sequences)}
        self.ubatch = ubatch
        self.batches: list[list[Segment]] = []
        self.before_ubatch: Callable[[int], None] = lambda n: None
        self.fail_next: Status | None = None
        self.saves = self.loads = self.shrinks = 0
        self.shrink_fails = False
        self.closed = False
        self._abort = False
        self._rows: list[Floats] = []

    def used_cells(self) -> int:
        """Distinct cells over all sequences."""
        return len({(p, c) for kv in self.kv.values() for p, (_, c) in kv.items()})

    def decode(self, segments: Sequence[Segment]) -> Status:
        assert len({s.seq for s in segments}) == len(segments), "a sequence twice in one batch"
        self.batches.append(list(segments))
        if self.fail_next is not None:
            status, self.fail_next = self.fail_next, None
            return status
        flat = [
            (s.seq, s.start + i, t, i >= len(s.tokens) - s.outputs)
            for s in segments
            for i, t in enumerate(s.tokens)
        ]
        for s in segments:
            assert s.start == len(self.kv[s.seq]), f"segment starts at {s.start}, {len(self.kv[s.seq])} held"
        if self.used_cells() + len(flat) > self.info.context:
            return Status.NO_ROOM
        self._rows = []
        for number, at in enumerate(range(0, len(flat), self.ubatch)):
            part = flat[at : at + self.ubatch]
            self.before_ubatch(number)
            if self._abort:
                return Status.ABORTED
            for seq, pos, token, output in part:
                self._evaluate(seq, pos, token, output)
        return Status.OK

    def _evaluate(self, seq: int, pos: int, token: int, output: bool) -> None:
        kv = self.kv[seq]
        before = kv[pos - 1][1] if pos - 1 in kv else f"gap{pos}" if pos else ""
        kv[pos] = (token, chain(before, token, pos))
        if output:
            self._rows.append(self.brain([kv[p][0] for p in sorted(kv)], kv[pos][1]))

    def logits(self, row: int) -> Floats:
        return self._rows[row]

    def seq_rm(self, seq: int, start: int) -> bool:
        if start > 0 and not self.info.can_drop_tail and any(p >= start for p in self.kv[seq]):
            return False
        self.kv[seq] = {p: c for p, c in self.kv[seq].items() if p < start}
        return True

    def seq_cp(self, source: int, target: int, end: int) -> None:
        assert not self.kv[target], "seq_cp into a sequence that is not empty"
        self.kv[target] = {p: c for p, c in self.kv[source].items() if end < 0 or p < end}

    def pos_min(self, seq: int) -> int:
        return min(self.kv[seq], default=-1)

    def pos_max(self, seq: int) -> int:
        return max(self.kv[seq], default=-1)

    def cells(self, seq: int) -> int:
        return len(self.kv[seq])

    def state_get(self, seq: int) -> bytearray | None:
        self.saves += 1
        return bytearray(json.dumps(sorted((p, *c) for p, c in self.kv[seq].items())).encode())

    def state_set(self, seq: int, state: Any) -> bool:
        self.loads += 1
        assert not self.kv[seq], "restore into a sequence that is not empty"
        try:
            rows = json.loads(bytes(state))
        except ValueError:
            return False
        if self.used_cells() + len(rows) > self.info.context:
            return False
        self.kv[seq] = {p: (t, c) for p, t, c in rows}
        return True

    def shrink(self) -> bool:
        self.shrinks += 1
        smaller = half(EngineOptions("fake", context=self.info.context, slots=self.info.slots))
        if smaller is None or self.shrink_fails:
            if self.shrink_fails:
                raise MemoryPlanError("no context could be had")
            return False
        scratch = self.sequences - self.info.slots
        self.info = replace(self.info, context=smaller.context, slots=smaller.slots)
        self.sequences = smaller.slots + scratch
        self.kv = {s: {} for s in range(self.sequences)}
        return True

    def set_threads(self, decode: int, batch: int) -> None:
        return None

    def abort(self) -> None:
        self._abort = True

    def clear_abort(self) -> None:
        self._abort = False

    def close(self) -> None:
        self.closed = True
