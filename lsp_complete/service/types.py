"""Values that cross between `lsp` and `service`. Offsets are code points in the snapshot of the request."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine.api import Candidate
from ..measure.stages import StageRecord
from ..text.document import Document


@dataclass(frozen=True, slots=True)
class Query:
    """One request for suggestions, as it stood when its message was dispatched.

    offset: the cursor. trigger: "automatic" | "explicit". received: clock seconds at dispatch.
    selected: text of the item selected in the editor's popup, with the offset where it would start; the
    suggestion must begin with it.
    menu: the request came from a completion menu. single_line: never answer with more than one line.
    """

    document: Document
    offset: int
    received: float
    trigger: str = "automatic"
    selected: str = ""
    selected_start: int = -1
    menu: bool = False
    single_line: bool = False
    candidates: int = 1


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One suggestion: insert `text` at start (end > start only where text is replaced)."""

    id: str
    text: str
    start: int
    end: int
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Considered:
    """What the model said before it was cut, polished and judged, and what judging needs besides the place. For
    benchmarks that ask for it; never logged or recorded. typed: what was typed since it was asked for. Others as in `Generation`."""

    candidates: tuple[Candidate, ...]
    typed: str
    mode: str
    base_indent: int
    frozen_suffix: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer, best suggestion first, and the record of how it came about. considered: None unless the model was asked."""

    suggestions: tuple[Suggestion, ...] = ()
    stages: StageRecord = field(default_factory=lambda: StageRecord(request=0))
    considered: Considered | None = None
