"""Guard against a quantized model's flat habits (after the source article, section 5.3).

Strategy: measure the share of safe names and of repeated fragments in each candidate; where the best one is
flat, prefer another candidate that is not, or the reference model's most recent suggestion for the same place. The
references are an ordinary `SuggestionStore` (a few per document), so they hold only where the surrounding text agrees.

Rules: the guard chooses among texts that exist; it never changes one, and a flat text is better than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.names import names_in, repeated_share, safe_share
from lsp_complete.suggest.scan import State

SAFE_LIMIT = 0.67
REPEAT_LIMIT = 0.5
FEWEST_NAMES = 2


@dataclass(frozen=True, slots=True)
class Habits:
    """What was measured of one text. flat: it consists of habits."""

    safe: float
    repeated: float
    flat: bool


def measure(text: str, facts: LanguageFacts, state: State | None = None) -> Habits:
    """Shares of safe names and of repeated fragments in a suggestion."""
    safe, repeated = safe_share(text, facts, state), repeated_share(text)
    enough = len(names_in(text, facts, state)) >= FEWEST_NAMES
    return Habits(safe, repeated, (enough and safe >= SAFE_LIMIT) or repeated >= REPEAT_LIMIT)


def known_habits(text: str, surroundings: str, facts: LanguageFacts, state: State | None = None) -> Habits:
    """Like `measure`, but safe names that the surrounding text uses itself are the file's style, not a habit."""
    found = measure(text, facts, state)
    if not found.flat or found.repeated >= REPEAT_LIMIT:
        return found
    there = {n.text for n in names_in(surroundings, facts)}
    foreign = [n.text for n in names_in(text, facts, state) if n.text not in there]
    return found if foreign else Habits(found.safe, found.repeated, False)


def prefer(habits: Sequence[Habits], reference: str | None = None) -> int | None:
    """Which of the ranked candidates to show: the first that is not flat; None means "the reference"; 0 if
    all are flat and there is no reference. habits: of the candidates, best first; must not be empty."""
    if not habits:
        raise ValueError("there is no candidate to choose from")
    for i, each in enumerate(habits):
        if not each.flat:
            return i
    return None if reference else 0
