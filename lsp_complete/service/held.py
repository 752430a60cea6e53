"""What the model said and was held back as unsure: while the typing agrees with it, asking again would say the same, so nobody asks.

Strategy: the candidate is kept with its numbers. What is typed of it is no longer uncertain: its tokens leave the sum. So at a later key either
the rest has become sure, and is shown without the model, or it is as unsure as before, and nothing is shown without the model.

Rules:
- Where the typing stands inside a token that was not nearly certain, the model is asked: what is typed of it (healing) may settle it.
- Where decoding was given up and the rest has become sure, the model is asked, since the text ends too early.
- The text right of the cursor must be the same, and something must be left on the line.
- Answers of the small prompt are not kept: a better one is on its way. Pure values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..engine.api import Candidate
from ..suggest.typed import typed_since

CERTAIN = -0.25
"""Natural-log probability from which a token that is half typed counts as settled (0.78)."""
LONGEST = 200
"""Characters typed since, at most."""
MAX_AGE_S = 60.0
"""After so long more may be known, here or in other files."""


@dataclass(frozen=True, slots=True)
class Held:
    """before, after: the document's text around the place where it was asked (windows). at: clock seconds. Others as in `Generation`."""

    before: str
    after: str
    candidate: Candidate
    mode: str
    base_indent: int
    frozen_suffix: str | None
    at: float = 0.0

    def left(self, before: str, after: str, now: float = 0.0) -> Candidate | None:
        """What is left of it at a cursor; None if the model must be asked."""
        holds = after == self.after and now - self.at <= MAX_AGE_S
        typed = typed_since(self.before, before, LONGEST) if holds else None
        if typed is None or not _goes_on(self.candidate, typed):
            return None
        size, starts = len(typed.encode()), (0, *self.candidate.offsets[:-1])
        for start, end, value in zip(starts, self.candidate.offsets, self.candidate.logprobs, strict=False):
            if start < size < end and value < CERTAIN:
                return None
        return left_over(self.candidate, typed)


def _goes_on(candidate: Candidate, typed: str) -> bool:
    """Whether the candidate begins with what was typed and has more on that line."""
    text = candidate.text.decode("utf-8", "replace")
    rest = text[len(typed) :] if text.startswith(typed) else ""
    return bool(rest.partition("\n")[0].strip())


def left_over(candidate: Candidate, typed: str) -> Candidate:
    """The candidate without its beginning `typed`, and without the tokens that are typed whole."""
    size = len(typed.encode())
    kept = [i for i, offset in enumerate(candidate.offsets) if offset > size] if size else range(len(candidate.offsets))
    return replace(
        candidate,
        text=candidate.text[size:],
        tokens=(),
        logprobs=tuple(candidate.logprobs[i] for i in kept),
        masses=tuple(candidate.masses[i] for i in kept) if candidate.masses else (),
        offsets=tuple(candidate.offsets[i] - size for i in kept),
    )
