"""The near-cursor prompt that answers first in a cold place: as many lines as can be evaluated in part of the deadline.

Strategy: the engine's measured rate says how many tokens that is; the rest of the deadline is for writing the answer. The lines are few,
so the heads of the blocks around them stand before them (`context.heads`).

Rules: pure but for the token table, which keeps what it counts. Some tenths of a millisecond.
"""

from __future__ import annotations

from dataclasses import replace

from ..context.anchor import Window, choose
from .documents import OpenDocument
from .planning import LoadedModel, heads_above
from .windows import SMALL

SHARE = 0.6
"""Of the deadline, for evaluating."""
LEAST_TOKENS = 64
LINES = (16, 13, 10, 8, 6, 4)
"""Lines above the cursor that are tried, most first."""


def small_room(tokens_per_s: float, deadline_ms: float) -> int:
    """Tokens that a small prompt may have."""
    return max(LEAST_TOKENS, int(tokens_per_s * deadline_ms / 1000 * SHARE))


def small_window(state: OpenDocument, cursor: int, model: LoadedModel, room: int) -> Window:
    """The small window with as many lines above as fit into `room` tokens."""
    buffer, table = state.document.buffer, state.ensure_table(model.tokenizer, model.spans)
    window = SMALL
    for lines in LINES:
        window = replace(SMALL, lines_above=lines, anchor_lines=lines)
        anchor = choose(buffer, cursor, window)
        below = min(buffer.length, anchor.suffix_start + len(anchor.suffix))
        heads = model.spans_count(heads_above(buffer, anchor, cursor))
        if heads + len(table.ids(anchor.window_start, cursor)) + len(table.ids(anchor.suffix_start, below)) <= room:
            break
    return window
