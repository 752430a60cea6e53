"""The budget controller: which form of which chunk, within so many tokens. Pure; counts are exact, never guessed from characters.

Strategy: everything starts at its longest form. When that is too much, C is compressed to its shortest forms, then B's bodies go, then
C leaves from the least wanted, then B is compressed and leaves likewise. A loses its first lines only when nothing else is left to
lose, and never its signatures.

Rules:
- `count` gives the tokens of a text exactly (from the token table's cache); a chunk's cost is that of its text and of its file's
  heading where it is the first of its file.
- The same chunks and budget give the same choice. What is chosen is at most the budget, unless tier A alone exceeds it: then A's
  shortest forms are all there is, `over` tells by how much, and chunks beyond `limit` are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .symbol import Chunk

Count = Callable[[str], int]
HEADING = 3
"""Tokens of a file's heading beside its path."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A chunk and the form that was chosen of it."""

    chunk: Chunk
    form: int
    tokens: int

    @property
    def text(self) -> str:
        """What stands in the prompt."""
        return self.chunk.forms[self.form]


@dataclass(frozen=True, slots=True)
class Choice:
    """What fits. over: tokens by which tier A alone exceeds the budget."""

    chosen: tuple[Chosen, ...]
    tokens: int
    over: int = 0


def header_tokens(base: int, prefill_tps: float, seconds: float = 2.0, most: int = 6_000) -> int:
    """Tokens for context beside the file's own window. base: the model's, found by measuring; prefill_tps: measured, 0 if
    unknown. A fast machine gets more, a slow one as much as `seconds` of evaluation allow, never under a quarter."""
    if prefill_tps <= 0:
        return base
    affordable = int(prefill_tps * seconds)
    if affordable >= 8 * base:
        return min(4 * base, most)
    return max(min(base, affordable), base // 4)


class _Fitting:
    """The state of one fitting: a form per chunk, −1 for left out; the total is kept along."""

    def __init__(self, chunks: Sequence[Chunk], count: Count) -> None:
        self.chunks = chunks
        self.form = [0] * len(chunks)
        self._costs = [[count(form) for form in chunk.forms] for chunk in chunks]
        self._headings = {chunk.path: count(chunk.path) + HEADING for chunk in chunks if not chunk.own}
        self._shown = Counter(chunk.path for chunk in chunks if not chunk.own)
        self.total = sum(costs[0] for costs in self._costs) + sum(self._headings.values())

    def cost(self, index: int) -> int:
        return self._costs[index][self.form[index]] if self.form[index] >= 0 else 0

    def set(self, index: int, form: int) -> None:
        """Choose a form of a chunk; −1 leaves it out, and with the last chunk of a file goes its heading."""
        chunk, before = self.chunks[index], self.cost(index)
        if form < 0 and not chunk.own:
            self._shown[chunk.path] -= 1
            if not self._shown[chunk.path]:
                self.total -= self._headings[chunk.path]
        self.form[index] = form
        self.total += self.cost(index) - before

    def least_first(self, tier: str) -> list[int]:
        """Chunks of a tier, least wanted first; ties: the later ones first."""
        found = [index for index, chunk in enumerate(self.chunks) if chunk.tier == tier]
        return sorted(found, key=lambda index: (self.chunks[index].weight, -index))

    def compress(self, tier: str, budget: int, keep: int = 0) -> None:
        """Shorter forms until it fits: the least wanted chunk goes down to its shortest before the next one is touched, so that
        what matters most keeps most. keep: forms at the end not to be used."""
        for index in self.least_first(tier):
            while self.total > budget and 0 <= self.form[index] < len(self.chunks[index].forms) - 1 - keep:
                self.set(index, self.form[index] + 1)

    def drop(self, tier: str, budget: int) -> None:
        """Leave out, least wanted first, until it fits."""
        for index in self.least_first(tier):
            if self.total <= budget:
                return
            if self.form[index] >= 0:
                self.set(index, -1)

    def grow(self, budget: int) -> None:
        """Give back longer forms where room is left, most wanted first."""
        order = [index for tier in ("C", "B", "A") for index in self.least_first(tier)]
        for index in reversed(order):
            while self.form[index] > 0:
                self.set(index, self.form[index] - 1)
                if self.total > budget:
                    self.set(index, self.form[index] + 1)
                    break

    def choice(self, over: int = 0) -> Choice:
        chosen = tuple(
            Chosen(chunk, self.form[index], self.cost(index)) for index, chunk in enumerate(self.chunks) if self.form[index] >= 0
        )
        return Choice(chosen, self.total, over)


def fit(chunks: Sequence[Chunk], budget: int, count: Count, limit: int | None = None) -> Choice:
    """Choose forms so that all fits into `budget` tokens. See the module's strategy. limit: hard bound, also for A."""
    state = _Fitting(chunks, count)
    state.compress("C", budget)
    state.compress("B", budget, keep=1)
    state.drop("C", budget)
    state.compress("B", budget)
    state.drop("B", budget)
    state.compress("A", budget)
    over = max(0, state.total - budget)
    if over and limit is not None:
        state.drop("A", max(limit, budget))
        over = max(0, state.total - budget)
    if not over:
        state.grow(budget)
    return state.choice(over)
