"""Context that is no symbol of the code at hand: recent edits, files looked at lately, the project's rules. Pure.

Rules: each is small, bounded and last in line; an edit is shown as what it was and what it became.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .forms import cut, one_line
from .symbol import Chunk, Symbol

MAX_EDIT_LINES = 6
MAX_EDITS = 3
MAX_OUTLINE = 12
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """A place that was changed lately. before, after: whole lines. age: 0 the newest. line: where it begins now."""

    path: str
    before: str
    after: str
    line: int = 0
    age: int = 0


def edit_chunks(edits: Sequence[RecentEdit], path: str, visible: tuple[int, int], near: Sequence[str] = ()) -> list[Chunk]:
    """Edits that the window does not show, newest first, those that concern names near the cursor with more weight."""
    chunks = []
    names = set(near)
    for edit in sorted(edits, key=lambda one: one.age)[: 2 * MAX_EDITS]:
        if edit.path == path and visible[0] <= edit.line <= visible[1]:
            continue
        before, after = _lines(edit.before), _lines(edit.after)
        if before == after or not (before or after):
            continue
        lines = [f"-{line}" for line in before] + [f"+{line}" for line in after]
        shared = bool(names & set(_WORDS.findall(edit.before + edit.after)))
        short = "".join(f"+{line}\n" for line in after) or f"-{before[0]}\n"
        forms = ("".join(line + "\n" for line in lines), short)
        weight = (1.2 if shared else 0.4) - 0.1 * edit.age
        chunks.append(
            Chunk(f"edit:{edit.path}:{edit.line}", edit.path, "B" if shared else "C", weight, forms if len(short) < len(forms[0]) else forms[:1], edit.line)
        )
    return chunks[:MAX_EDITS]


def _lines(text: str) -> list[str]:
    return [cut(line.rstrip()) for line in text.splitlines() if line.strip()][:MAX_EDIT_LINES]


def outline_chunk(path: str, symbols: Sequence[Symbol], rank: int) -> Chunk | None:
    """A file that was looked at lately: its definitions at the top, one line each; else their names."""
    wanted = [s for s in symbols if not s.container and s.role in ("class", "function")][:MAX_OUTLINE]
    if not wanted:
        return None
    lines = "".join(one_line(symbol) for symbol in wanted)
    names = cut(", ".join(symbol.name for symbol in wanted)) + "\n"
    forms = (lines, names) if len(names) < len(lines) else (lines,)
    return Chunk(f"outline:{path}", path, "C", 0.3 / (1 + rank), forms)


def rules_chunk(path: str, text: str, *, wished: bool = False) -> Chunk | None:
    """The project's rules in one line: the first sentence of prose in the file, or the user's own line (wished)."""
    sentence = text.strip() if wished else first_prose(text)
    if not sentence:
        return None
    return Chunk("rules", path, "A" if wished else "C", 9.0 if wished else 0.1, (cut(sentence) + "\n",))


def first_prose(markdown: str) -> str:
    """The first line of a document that is a sentence, no heading, link list, badge or code."""
    fenced = False
    for line in markdown.splitlines()[:80]:
        text = line.strip()
        fenced = fenced != text.startswith("```")
        if fenced or not text or text[0] in "#<![|`=>" or text.startswith(("---", "***")):
            continue
        text = text.lstrip("-*0123456789. ")
        if len(_WORDS.findall(text)) >= 5:
            return text
    return ""
