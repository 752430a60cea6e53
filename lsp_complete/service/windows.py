"""The window in force: the model's own, changed by settings where they say more than 0."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import Settings
from ..context.anchor import Window
from .planning import LoadedModel

SMALL = Window(lines_above=10, lines_below=3, anchor_lines=10, max_tail_lines=20, small=True)
"""The near-cursor prompt that answers first in a cold place."""


@dataclass(frozen=True, slots=True)
class PrefillRate:
    """Prompt tokens per second, learned from answers (only from evaluations large enough to tell)."""

    tokens_per_s: float = 200.0

    def learned(self, evaluated: int, prefill_ms: float) -> PrefillRate:
        """The rate after one more answer."""
        if evaluated < 64 or prefill_ms <= 0:
            return self
        return PrefillRate(0.7 * self.tokens_per_s + 0.3 * evaluated / prefill_ms * 1000)


def window_for(model: LoadedModel, settings: Settings) -> Window:
    """The model's window with the user's settings applied."""
    base, wish = model.window, settings.context
    anchor_lines = wish.anchor_lines or base.anchor_lines
    return Window(
        lines_above=wish.lines_above or base.lines_above,
        lines_below=wish.lines_below or base.lines_below,
        anchor_lines=anchor_lines,
        max_tail_lines=max(anchor_lines + 8, base.max_tail_lines if not wish.anchor_lines else anchor_lines * 2),
        standard=wish.layout == "standard",
    )
