"""The order of chunks in the prompt, kept from one prompt to the next as far as it goes. Pure.

Strategy: what stands in a prompt was paid for: tokens whose ids and positions agree cost nothing the next time. So chunks that stay
keep their place and their bytes, new ones come after them, and if something must go, it is looked for from the end. A chunk no longer
wanted may stay for the sake of those behind it while there is room.

Rules:
- The result holds every chosen chunk once, at its form or a longer one that was there before.
- If all that is wanted stands already, nothing changes at all.
- Own chunks (of the open file) are not laid out here: they follow the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .budget import HEADING, Chosen, Count

STALE_SHARE = 0.35
"""Most of the budget that chunks no longer wanted may take."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk as it stands in the prompt."""

    key: str
    path: str
    text: str
    tokens: int


def placed(chosen: Chosen) -> Placed:
    """A chosen chunk, to be put somewhere."""
    return Placed(chosen.chunk.key, chosen.chunk.path, chosen.text, chosen.tokens)


def canonical(chosen: Sequence[Chosen]) -> list[Placed]:
    """The order without a past: files with less wanted chunks first, so that what matters stands near the cursor; within a
    file the order of its lines."""
    weight: dict[str, tuple[str, float]] = {}
    for one in chosen:
        rank = (one.chunk.tier, -one.chunk.weight)
        weight[one.chunk.path] = min(weight.get(one.chunk.path, rank), rank)
    order = sorted(chosen, key=lambda one: (one.chunk.path, one.chunk.line))
    order.sort(key=lambda one: weight[one.chunk.path], reverse=True)
    return [placed(one) for one in order]


def tokens_of(layout: Sequence[Placed], count: Count) -> int:
    """Tokens of a layout with its headings."""
    total, last = 0, ""
    for one in layout:
        total += one.tokens + (count(one.path) + HEADING if one.path != last else 0)
        last = one.path
    return total


def arrange(chosen: Sequence[Chosen], previous: Sequence[Placed], budget: int, count: Count) -> tuple[Placed, ...]:
    """The next layout. See the module's strategy."""
    wanted = {one.chunk.key: one for one in chosen if not one.chunk.own}
    fresh = canonical(list(wanted.values()))
    if not previous:
        return tuple(fresh)
    stands = set(wanted) <= {p.key for p in previous}
    stale = sum(p.tokens for p in previous if p.key not in wanted)
    good = all(_serves(old, wanted[old.key]) for old in previous if old.key in wanted)
    if stands and good and stale <= STALE_SHARE * budget:
        return tuple(previous)
    for keep in range(len(previous), -1, -1):
        head = previous[:keep]
        if keep and any(p.key in wanted and not _serves(p, wanted[p.key]) for p in head):
            continue
        stale = sum(p.tokens for p in head if p.key not in wanted)
        standing = {p.key for p in head}
        made = [*head, *(p for p in fresh if p.key not in standing)]
        if stale <= STALE_SHARE * budget and (not stale or tokens_of(made, count) <= budget):
            return tuple(made)
    return tuple(fresh)


def _serves(old: Placed, chosen: Chosen) -> bool:
    """Whether what stands there says at least what is wanted now."""
    forms = chosen.chunk.forms
    return old.text in forms and forms.index(old.text) <= chosen.form


def first_difference(old: Sequence[int], new: Sequence[int]) -> int:
    """Position of the first token that differs; the length of the shorter if one begins with the other."""
    for at, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return at
    return min(len(old), len(new))
