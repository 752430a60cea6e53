"""Cut from a suggestion what stands to the right of the cursor already.

Strategy: the model continued a prompt that does not show what the editor has inserted since (closing brackets
and quotes, the `}` line that Enter makes between braces) nor the closers right of the cursor. So its text
often ends with them. Of all ways to shorten the suggestion the longest is taken that leaves every bracket and
string as it was: scanning "before + suggestion + right" must end in the same state as "before + right".

Rules:
- The result is always a prefix of the suggestion, and accepting it only inserts.
- A line of closers is a duplicate only at the same indentation, unless it is known that the editor inserted it.
- Never raises. Line ends are `\\n` here.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.lines import (
    indent_columns,
    is_closers,
    is_word_char,
    last_nonblank,
    opens_block,
    split_cursor,
)
from lsp_complete.suggest.scan import Scan, State, scan

_SHORT = 8


@dataclass(frozen=True, slots=True)
class Right:
    """The text right of the cursor. rest: on its line (trailing blanks removed). inserted: following lines,
    each with its leading `\\n`, that the editor has put there and the model has not seen. below: what follows."""

    rest: str
    inserted: str
    below: str


def split_right(before: str, after: str, frozen_suffix: str | None, facts: LanguageFacts, tab_width: int) -> Right:
    """Tell the editor's insertions from the document. frozen_suffix: what the model saw below the cursor's
    line (`\\n` first or not), None if unknown: then only the shape left by Enter between braces counts."""
    above, line, rest, below = split_cursor(before, after)
    head = ""
    if frozen_suffix is not None:
        seen = frozen_suffix if frozen_suffix.startswith("\n") else "\n" + frozen_suffix
        probe = seen[:2000]
        at = below.find(probe) if probe.strip() else len(below.rstrip())
        head = below[:at] if at > 0 else ""
    elif not line.strip() and not rest.strip():
        first = below[1:].partition("\n")[0]
        opener = last_nonblank(above)
        level = indent_columns(first, tab_width) == indent_columns(opener, tab_width)
        if first.strip() and is_closers(first) and level and opens_block(opener, facts):
            head = "\n" + first
    if not head.strip() or not is_closers(head):
        head = ""
    return Right(rest.rstrip(), head.rstrip(), below[len(head.rstrip()) :])


def cut_following(text: str, line_before: str, below: str, tab_width: int) -> str:
    """Cut the suggestion where its lines begin to repeat the lines below the cursor."""
    following = [x for x in below.split("\n") if x.strip()]
    if not following:
        return text
    lines = text.split("\n")
    start = 0 if not line_before.strip() else 1
    for i in range(start, len(lines)):
        whole = line_before + lines[0] if i == 0 else lines[i]
        if whole.strip() and _repeats([whole, *lines[i + 1 :]], following, tab_width):
            return "\n".join(lines[:i])
    return text


def _repeats(lines: list[str], following: list[str], tab_width: int) -> bool:
    lines = [x for x in lines if x.strip()]
    for n, (ours, theirs) in enumerate(zip(lines, following, strict=False)):
        a, b = ours.strip(), theirs.strip()
        if a != b:
            return n > 0 and n == len(lines) - 1 and b.startswith(a)
        same_place = indent_columns(ours, tab_width) == indent_columns(theirs, tab_width)
        if not same_place and (n == 0 and (len(a) < _SHORT or is_closers(a))):
            return False
    return True


def _fits(end: State, result: Scan, wall: str, facts: LanguageFacts, base: State, allowed: int) -> bool:
    bad = sum(1 for o in result.outer if o.fits is False or (o.fits is None and o.char != "}"))
    after = scan(wall, facts, end)
    bad += sum(1 for o in after.outer if o.fits is not True)
    return bad <= allowed and after.end == base


def _overlaps(text: str, wall: str) -> list[int]:
    """Lengths of text to keep so that its cut tail equals a beginning of the wall, longest tail first."""
    stripped = text.rstrip()
    keep: list[int] = []
    for k in range(min(len(stripped), len(wall)), 0, -1):
        if not stripped.endswith(wall[:k]):
            continue
        whole = k == len(wall)
        clean = not (is_word_char(wall[k - 1 : k]) and is_word_char(wall[k : k + 1]))
        if whole or (clean and (k >= 3 or not wall[:k].isalnum())):
            keep.append(len(stripped) - k)
    return keep


def _loose_overlap(text: str, wall: str) -> list[int]:
    """The same across lines, where white space may differ: the wall's non-blank characters end the text."""
    want = "".join(wall.split())
    if not want or ("\n" not in wall and " " not in wall):
        return []
    at = len(text)
    for char in reversed(want):
        at -= 1
        while at >= 0 and text[at].isspace():
            at -= 1
        if at < 0 or text[at] != char:
            return []
    return [at]


def fit(text: str, before: str, wall: str, facts: LanguageFacts) -> str:
    """The longest beginning of `text` that the wall (text right of the cursor that stays) completes to the
    same open brackets and strings as now. Without a wall only closers that nothing opened are cut."""
    state = scan(before, facts).end
    whole = scan(text, facts, state)
    if not wall:
        for o in whole.outer:
            if o.fits is False or (o.fits is None and o.char != "}"):
                return text[: o.offset]
        return text
    base = scan(wall, facts, state)
    allowed = sum(1 for o in base.outer if o.fits is not True)
    keeps = [*_overlaps(text, wall), *_loose_overlap(text, wall), len(text)]
    keeps += [o.offset for o in reversed(whole.outer)]
    if whole.string_end > 0 and state.string:
        keeps.append(whole.string_end - len(state.string))
    keeps += sorted((o for o in whole.opened), reverse=True)
    for keep in keeps:
        part = scan(text[:keep], facts, state)
        if _fits(part.end, part, wall, facts, base.end, allowed):
            return text[:keep]
    return "" if whole.outer or whole.opened else text


def reconcile(
    text: str,
    before: str,
    after: str,
    facts: LanguageFacts,
    frozen_suffix: str | None = None,
    tab_width: int = 4,
) -> str:
    """What of `text` to insert at the cursor so that nothing to its right is doubled or left unbalanced.

    before, after: the document around the cursor (windows suffice). Returns a prefix of `text`, perhaps "".
    """
    right = split_right(before, after, frozen_suffix, facts, tab_width)
    line_before = before.rpartition("\n")[2]
    if not right.rest:
        text = cut_following(text, line_before, right.inserted + right.below, tab_width)
    elif "\n" in text:
        text = cut_following(text, line_before or "-", right.below, tab_width)
    text = fit(text, before, right.rest + right.inserted, facts)
    if not right.rest and "\n" in text and not text.rpartition("\n")[2].strip():
        text = text.rstrip(" \t\n") if text.strip() else ""
    return text
