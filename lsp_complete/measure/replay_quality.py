"""How good a replayed suggestion is: against what the user finally had, and by itself. Pure.

Strategy: a suggestion is judged by what its acceptance makes of the document. No suggestion leaves the document as it is,
which is right where the user wanted nothing more on the line.

Rules:
- exact and similarity look at the cursor's line alone, as the user sees first; kept looks at the whole text.
- A figure that cannot be had (no suggestion, a language without grammar) is None, never 0.
- Errors and brackets count only what acceptance adds, so that unfinished code is not held against the suggestion.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..suggest.language import LanguageFacts, facts_for
from ..suggest.names import names_in, repeated_share, safe_share, unknown_names
from ..suggest.scan import code_only
from ..syntax.languages import language_for, load
from ..syntax.trees import error_spans, parse, why_not_parsed
from ..text.buffer import TextBuffer
from .edits import body, split_lines
from .replay_points import Point

_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
_BUILT_IN = frozenset(re.findall(r"\w+", """
    int float str bytes bool list dict set tuple object frozenset complex string number boolean any unknown void never char double
    long short unsigned size_t uint8_t uint32_t int32_t int64_t byte rune error i32 i64 u8 u32 u64 usize f32 f64
"""))  # fmt: skip
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Judged:
    """exact: 0 or 1; similarity, kept, types, repeated, safe: 0–1; brackets, errors, unknown: counts (0 is best). types: of the type
    names in the line's rest, suggested or finally there, the share that is in both. surprise: bits per byte that the model, not the suggestion,
    needs for what is finally on the line."""

    exact: float
    similarity: float
    kept: float | None = None
    brackets: float | None = None
    errors: float | None = None
    unknown: float | None = None
    repeated: float | None = None
    safe: float | None = None
    types: float | None = None
    surprise: float | None = None
    names: tuple[str, ...] = ()


def judge(point: Point, text: str, language_id: str, suggestion: tuple[int, int, str] | None) -> Judged:
    """The figures of the first suggestion, (start, end, new text) in code points of the document's text, or None."""
    start = max(text.rfind("\n", 0, point.offset), text.rfind("\r", 0, point.offset)) + 1
    typed = point.offset - start
    after = text if suggestion is None else text[: suggestion[0]] + suggestion[2] + text[suggestion[1] :]
    line = body(split_lines(after[start:])[0]).rstrip()
    target = point.line.rstrip()
    exact = float(line == target)
    mine, theirs = line[typed:], body(split_lines(point.rest)[0]).rstrip() if point.rest else ""
    similarity = 1.0 if mine == theirs else SequenceMatcher(None, mine, theirs, autojunk=False).ratio()
    if suggestion is None:
        return Judged(exact, similarity)
    new = suggestion[2]
    ghost = new[max(0, point.offset - suggestion[0]) :]
    facts = facts_for(language_id)
    state = text[start : point.offset]
    known = frozenset(_WORD.findall(text)) | frozenset(_WORD.findall(point.rest))
    return Judged(
        exact,
        similarity,
        kept=_common(ghost, point.rest) / len(ghost) if ghost else None,
        brackets=float(max(0, _imbalance(after, language_id) - _imbalance(text, language_id))),
        errors=_errors(text, after, language_id),
        unknown=float(len(unknown_names(ghost, facts, known, state))),
        repeated=repeated_share(ghost),
        safe=safe_share(ghost, facts),
        types=_types_agree(mine, theirs, facts),
        names=tuple(name.text for name in names_in(ghost, facts)),
    )


def _types_agree(mine: str, theirs: str, facts: LanguageFacts) -> float | None:
    a, b = (type_names(text, facts) for text in (mine, theirs))
    return len(a & b) / len(a | b) if a or b else None


def type_names(text: str, facts: LanguageFacts) -> frozenset[str]:
    """Names that stand for types, as their form and place say: `Capitalized`, or a type built in (`int`, `str`, `bool`, …)."""
    names = {name.text for name in names_in(text, facts)}
    return frozenset(name for name in names if name in _BUILT_IN or (name[0].isupper() and not name.isupper()))


def _common(a: str, b: str) -> int:
    """Length of the common head, blanks at line ends aside."""
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length


def _imbalance(text: str, language_id: str) -> int:
    code = Counter(code_only(text, facts_for(language_id)))
    return sum(abs(code[opener] - code[closer]) for opener, closer in _PAIRS)


def _errors(before: str, after: str, language_id: str) -> float | None:
    facts = language_for(language_id)
    grammar = load(facts) if facts else None
    if grammar is None:
        return None
    counts = []
    for text in (before, after):
        buffer = TextBuffer.from_text(text)
        tree = None if why_not_parsed(buffer) else parse(grammar, buffer)
        if tree is None:
            return None
        counts.append(len(error_spans(tree)))
    return float(max(0, counts[1] - counts[0]))
