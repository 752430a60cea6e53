"""Completion points for the speculation benchmark: real lines taken out of real files, and short prompts for them.

Strategy: at each place some lines are taken out, as if not written yet; the cursor stands within the first of them. The prompt
is the product's own anchored and healed one, with a window that is made smaller until it fits. What of the file the prompt
does not show is the look-up text, as an editor's server would send it.

Rules: nothing of what was taken out is in prompt, look-up or store. Choices depend on the seed only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..context.anchor import Window, choose
from ..context.prompt import build_head, plan_anchored
from ..service.planning import LoadedModel
from ..text.buffer import TextBuffer
from ..text.pretokens import last_pretoken_start
from .corpus import Place, Source, choose_places
from .edits import body, split_lines

HOLE_LINES = 6
PROMPT_TOKENS = 400
LOOKUP_TOKENS = 4000
BACK_TOKENS = 3
"""The earlier suggestion is one asked so many tokens before the cursor."""

_FILE_TOKENS = 20_000
_WIDEST = Window(lines_above=32, lines_below=10, anchor_lines=6)


@dataclass(frozen=True, slots=True)
class Point:
    """One cursor. prompt, forced: as the engine takes them; reference: tokens that were taken out, from the cut on.

    lookup: tokens of the file that the prompt does not show. repeated: share of the reference's 4-grams that stand in the rest of
    the file. place: file and line. line: what was taken out of the cursor's line.
    """

    place: str
    source: str
    prompt: tuple[int, ...]
    forced: bytes
    reference: tuple[int, ...]
    lookup: tuple[int, ...]
    repeated: float
    line: str = ""


def repeated_share(reference: Sequence[int], others: Sequence[Sequence[int]]) -> float:
    """Share of the reference's token 4-grams that occur in one of the other sequences; 0.0 if it is shorter."""
    known = {tuple(o[i : i + 4]) for o in others for i in range(len(o) - 3)}
    wanted = [tuple(reference[i : i + 4]) for i in range(len(reference) - 3)]
    return sum(w in known for w in wanted) / len(wanted) if wanted else 0.0


def make_point(place: Place, model: LoadedModel, seed: int, max_tokens: int) -> Point | None:
    """The point at a place; None where no window fits. Tokenizes the file."""
    lines = split_lines(place.source.text)
    line = lines[place.line]
    indent = len(line) - len(line.lstrip())
    rng = random.Random(f"{seed}:{place.source.name}:{place.line}")  # noqa: S311 (choice of a column)
    column = rng.randint(indent, max(indent, len(body(line)) - 4))
    before = "".join(lines[: place.line]) + line[:column]
    taken = line[column:] + "".join(lines[place.line + 1 : place.line + HOLE_LINES])
    after = "".join(lines[place.line + HOLE_LINES :])
    buffer = TextBuffer.from_text(before + "\n" + after)
    tokenize, piece = model.tokenizer.tokenize, model.tokenizer.piece

    def ids_of(start: int, end: int) -> list[int]:
        return tokenize(buffer.slice(start, end))

    window = _WIDEST
    while True:
        anchor = choose(buffer, len(before), window)
        head = build_head(model.fim, anchor, ids_of, tokenize, ())
        plan = plan_anchored(
            head, anchor, buffer, len(before), ids_of, lambda t: last_pretoken_start(t, model.pre), piece
        )
        if len(plan.prompt) <= PROMPT_TOKENS:
            break
        if window.lines_above <= 6:
            return None
        window = replace(
            window, lines_above=window.lines_above * 3 // 4, lines_below=window.lines_below * 3 // 4
        )
    healed = plan.forced.decode("utf-8", "replace")
    reference = tuple(tokenize(healed + taken)[:max_tokens])
    above, below = tokenize(before[-8 * _FILE_TOKENS :]), tokenize(after[: 8 * _FILE_TOKENS])
    unseen_above = tokenize(buffer.slice(0, anchor.window_start))[-LOOKUP_TOKENS // 2 :]
    unseen_below = tokenize(buffer.slice(anchor.suffix_start + len(anchor.suffix), buffer.length))
    return Point(
        f"{place.source.name}:{place.line + 1}",
        place.source.name,
        plan.prompt,
        plan.forced,
        reference,
        (*unseen_above, *unseen_below[: LOOKUP_TOKENS // 2]),
        repeated_share(reference, (above, below)),
        body(line)[column:],
    )


def make_points(
    sources: Sequence[Source], count: int, model: LoadedModel, seed: int, max_tokens: int
) -> list[Point]:
    """Up to `count` points spread over the sources, in a seeded order."""
    made = [make_point(p, model, seed, max_tokens) for p in choose_places(sources, 2 * count, seed)]
    points = [p for p in made if p is not None and len(p.reference) > BACK_TOKENS]
    random.Random(seed).shuffle(points)  # noqa: S311 (order of measuring)
    return points[:count]
