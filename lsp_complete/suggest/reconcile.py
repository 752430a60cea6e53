"""Cut from a suggestion what stands to the right of the cursor already.

Strategy: the model continued a prompt that does not show what the editor has inserted since (closing brackets
and quotes, the `}` line that Enter makes between braces) nor the closers right of the cursor. So its text
often ends with them. Of all ways to shorten the suggestion the longest is taken that leaves every bracket and
string as it was: scanning "before + suggestion + right" must end in the same state as "before + right".

Rules:
- The result is always a prefix of the suggestion, and accepting it only inserts.
- A line of closers is a duplicate only at the same indentation, unless it is known to close the place.
- Never raises. Line ends are `\\n` here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_complete.suggest.language import LanguageFacts
from lsp_complete.suggest.lines import (
    indent_columns,
    is_closers,
    is_word_char,
    split_cursor,
)
from lsp_complete.suggest.scan import CLOSERS, OPENERS, Scan, State, scan
from lsp_complete.suggest.window import scan_window

_SHORT = 8
_LEADING_CLOSERS = re.compile(r"(?:[ \t]*\n)+[ \t]*([)\]}])[)\]}]*")
MOST_CUTS = 64
"""Places where a suggestion may be cut that are tried, of each kind: one with more closers that close nothing is noise, and each costs a scan."""
PROBE = 2000
"""Characters of the frozen suffix that must be found again below the cursor."""


@dataclass(frozen=True, slots=True)
class Right:
    """The text right of the cursor. rest: on its line (trailing blanks removed). closers: the beginning of the
    following lines, with their leading `\\n`, that closes what the cursor stands in: inserted by the editor, or
    at the indentation of the line with the opener. below: the lines below the cursor's, closers included."""

    rest: str
    closers: str
    below: str


def split_right(before: str, after: str, frozen_suffix: str | None, facts: LanguageFacts, tab_width: int) -> Right:
    """Tell what closes the place from the rest. frozen_suffix: what the model saw below the cursor's
    line (`\\n` first or not), None if unknown: then only the shape of the text counts."""
    _, _, rest, below = split_cursor(before, after)
    head = ""
    if frozen_suffix is not None:
        seen = frozen_suffix if frozen_suffix.startswith("\n") else "\n" + frozen_suffix
        probe = seen[:PROBE]
        at = below.find(probe) if probe.strip() else len(below.rstrip())
        head = below[:at].rstrip() if at > 0 and is_closers(below[:at]) else ""
    if not head.strip() and not rest.strip():
        head = _own_closers(before, below, facts, tab_width)
    return Right(rest.rstrip(), head, below)


def _own_closers(before: str, below: str, facts: LanguageFacts, tab_width: int) -> str:
    """The closers that begin the next non-blank line, if they close the innermost bracket open at the cursor."""
    found = _LEADING_CLOSERS.match(below)
    opened = scan_window(before, facts).opened
    if found is None or not opened or OPENERS.get(before[opened[-1]]) != found.group(1):
        return ""
    line_start = before.rfind("\n", 0, opened[-1]) + 1
    space = found.group().rpartition("\n")[2]
    level = indent_columns(before[line_start:], tab_width)
    return found.group() if indent_columns(space, tab_width) == level else ""


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


@dataclass(frozen=True, slots=True)
class _Wall:
    """The text that stays, what it may leave open, and how many of its closers fit nothing already. ends: the state
    it leaves now, and where the cursor's string is closed nowhere, also the one with the string closed."""

    text: str
    ends: tuple[State, ...]
    misfits: int
    on_line: bool


def _fits(part: Scan, wall: _Wall, facts: LanguageFacts, unfinished: bool) -> bool:
    """With this beginning of the suggestion the wall still closes what it closes now. unfinished: where nothing
    follows on the cursor's line the suggestion may leave a bracket of its own open; the next lines will close it."""
    bad = sum(1 for o in part.outer if o.fits is False or (o.fits is None and o.char != "}"))
    after = scan(wall.text, facts, part.end)
    if bad + sum(1 for o in after.outer if o.fits is not True) <= wall.misfits and after.end in wall.ends:
        return True
    return unfinished and not wall.on_line and not bad and not part.outer and not part.end.string


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


def cut_in_prose(text: str, before: str, rest: str, facts: LanguageFacts) -> str:
    """In a comment or a string brackets open nothing for the language, but the editor closes them all the same: cut the suggestion where
    it closes the bracket whose closer stands right of the cursor. A closer behind which a one-line string does not end belongs to the code."""
    at = scan_window(before, facts)
    if at.end.in_code or rest[:1] not in CLOSERS or not at.opaque:
        return text
    if at.end.string and at.end.string not in rest and at.end.string not in facts.long_quotes:
        return text
    begin = max(at.opaque[-1][0], before.rfind("\n") + 1)
    open_here = _plain_stack(before[begin:])
    if not open_here or open_here[-1] != CLOSERS[rest[0]]:
        return text
    depth = 0
    for offset, char in enumerate(text.partition("\n")[0]):
        depth += (char == open_here[-1]) - (char == rest[0])
        if depth < 0:
            return text[:offset]
    return text


def _plain_stack(text: str) -> list[str]:
    """Brackets that a text leaves open, innermost last, whatever they stand in; a closer that fits nothing changes nothing."""
    stack: list[str] = []
    for char in text:
        if char in OPENERS:
            stack.append(char)
        elif char in CLOSERS and stack and stack[-1] == CLOSERS[char]:
            stack.pop()
    return stack


def fit(text: str, before: str, rest: str, closers: str, facts: LanguageFacts) -> str:
    """The longest beginning of `text` that the text right of the cursor (`rest` of the line, `closers` of
    the lines below) completes to the same open brackets and strings as now. Where nothing is there only
    closers that nothing opened are cut; none whose opener may stand before the window, as that of an earlier closer does."""
    if facts.char_quote and rest[:1] == "'" and before[-1:] == "'":
        return re.split(r"(?<!\\)'", text, maxsplit=1)[0]
    wall = rest + closers
    seen = scan_window(before, facts)
    state = seen.end
    whole = scan(text, facts, state)
    if not wall:
        inside = any(o.fits is None for o in seen.outer)
        for o in whole.outer:
            if o.fits is False or (o.fits is None and o.char != "}" and not inside):
                return text[: o.offset]
        return text
    base = scan(wall, facts, state)
    misfits = sum(1 for o in base.outer if o.fits is not True)
    ends = [base.end]
    if state.string and state.string not in rest:
        ends.append(scan(wall, facts, State(state.stack)).end)
    stays = _Wall(wall, tuple(ends), misfits, bool(rest))
    overlaps = [*_overlaps(text, wall)[:MOST_CUTS], *_loose_overlap(text, wall), len(text)]
    cuts = [o.offset for o in reversed(whole.outer[:MOST_CUTS])]
    if whole.string_end > 0 and state.string:
        cuts.append(whole.string_end - len(state.string))
    cuts += reversed(whole.opened[-MOST_CUTS:])
    for keeps, unfinished in ((overlaps, False), ([len(text)], True), (cuts, False), (cuts, True)):
        for keep in keeps:
            if _fits(scan(text[:keep], facts, state), stays, facts, unfinished):
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
    if not right.rest or "\n" in text:
        text = cut_following(text, line_before if not right.rest else line_before or "-", right.below, tab_width)
    text = cut_in_prose(text, before, right.rest, facts)
    text = fit(text, before, right.rest, right.closers, facts)
    if not right.rest and "\n" in text and not text.rpartition("\n")[2].strip():
        text = text.rstrip(" \t\n") if text.strip() else ""
    return text
