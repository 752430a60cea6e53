"""Whether what was typed since a suggestion agrees with it, and what of it is left.

Strategy: two questions, both on plain text. `typed_since`: by which text did the window before the cursor
grow? `remaining`: does the suggestion begin with that text, and what follows?

Rules:
- Auto-indent is reconciled: after a line end, white space of the same width in columns agrees; white
  space on a line that is blank in the suggestion agrees too.
- Nothing else is forgiven: one other character and the suggestion is no longer valid.
"""

from __future__ import annotations

from lsp_complete.suggest.lines import columns, is_closers, leading

COMPARE_BACK = 600
"""Characters before the suggestion's position that must agree, as far as both windows reach."""
COMPARE_AHEAD = 200
"""Characters after the cursor that must agree, closers at the start aside."""
_SLACK = 64


def typed_since(old_before: str, new_before: str, limit: int) -> str | None:
    """The text by which `new_before` continues `old_before`, or None. Both are windows that end at a cursor
    and may begin at different lines (windows that begin at the same line leave no doubt, others may where lines
    repeat). At most `limit` characters (plus a little for auto-indent) are looked at."""
    above, newline, line = old_before.rpartition("\n")
    if new_before.startswith(old_before) and len(new_before) - len(old_before) <= limit + _SLACK:
        return new_before[len(old_before) :]
    tail = above.rpartition("\n")[2][-200:] + newline + line
    if not tail:
        return None
    low = max(0, len(new_before) - limit - _SLACK - len(tail))
    at = new_before.rfind(tail, low)
    while at >= 0:
        old_head = old_before[: len(old_before) - len(tail)]
        common = min(len(old_head), at, COMPARE_BACK)
        if not common or old_head[-common:] == new_before[at - common : at]:
            return new_before[at + len(tail) :]
        at = new_before.rfind(tail, low, at + len(tail) - 1)
    return None


def remaining(text: str, typed: str, tab_width: int) -> str | None:
    """What of `text` is left once `typed` is there, or None if they disagree. "" when all is typed."""
    if text.startswith(typed):
        return text[len(typed) :]
    ours, theirs = text.split("\n"), typed.split("\n")
    if len(theirs) > len(ours):
        return None
    if theirs[0] != ours[0] and (len(theirs) == 1 or theirs[0].rstrip() != ours[0].rstrip()):
        return None
    for i in range(1, len(theirs) - 1):
        if not _same_line(ours[i], theirs[i], tab_width):
            return None
    return _last_line(ours[len(theirs) - 1 :], theirs[-1], tab_width)


def _same_line(ours: str, theirs: str, tab_width: int) -> bool:
    if ours.strip() != theirs.strip():
        return False
    width = columns(leading(ours), tab_width), columns(leading(theirs), tab_width)
    return not ours.strip() or width[0] == width[1]


def _last_line(ours: list[str], theirs: str, tab_width: int) -> str | None:
    line, rest = ours[0], ours[1:]
    if line.startswith(theirs):
        return "\n".join([line[len(theirs) :], *rest])
    if not line.strip() and not theirs.strip():
        return "\n".join(["", *rest]) if rest else None
    if columns(leading(line), tab_width) != columns(leading(theirs), tab_width):
        return None
    body, typed_body = line.lstrip(" \t"), theirs.lstrip(" \t")
    if not body.startswith(typed_body):
        return None
    return "\n".join([body[len(typed_body) :], *rest])


def _core(after: str) -> str:
    """The text after the cursor without closers and blanks at its start."""
    at = 0
    while at < len(after) and is_closers(after[at]):
        at += 1
    return after[at:]


def after_agrees(old_after: str, new_after: str) -> bool:
    """The text right of the cursor is the same but for closers and blanks at its start (which editors
    insert and users type over; `reconcile` looks at them again)."""
    if old_after == new_after:
        return True
    old, new = _core(old_after), _core(new_after)
    if bool(old) != bool(new):
        return False
    common = min(len(old), len(new), COMPARE_AHEAD)
    return old[:common] == new[:common]
