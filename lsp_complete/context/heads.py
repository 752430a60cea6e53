"""What a window of a few lines stands inside of: the lines above it that open the blocks around the cursor. By indentation. Pure.

Strategy: from the cursor upwards, each line that is indented less than all below it opens a block around the cursor, in any language
that is indented. A line that begins with a closer (`) -> None:`) ends what began on a line of the same indentation: all of it counts.

Rules:
- Bounded: LOOK lines, HEADS heads, LONGEST lines and CHARS characters of each; the innermost are kept.
- Comments, preprocessor lines and access labels open nothing.
- A wrong guess costs a few tokens, so no tree is waited for: this is for places that were just opened.
"""

from __future__ import annotations

import re

from ..text.buffer import TextBuffer

LOOK, HEADS, LONGEST, CHARS = 400, 3, 8, 300
_TAB = 4
_OPENS_NOTHING = re.compile(r"(?:#|//|/\*|\*|--|@|(?:public|private|protected|default|case)\b[^{]*:\s*\Z)")


def indent_of(line: str) -> int:
    """Columns of leading white space."""
    return len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())


def enclosing_heads(buffer: TextBuffer, first_line: int, cursor_line: int) -> str:
    """The heads above `first_line` of the blocks around `cursor_line`, outermost first, each with its line end; "" for none."""
    level = _level_at(buffer, cursor_line)
    heads: list[str] = []
    line = cursor_line - 1
    while line >= max(0, cursor_line - LOOK) and level > 0:
        text = buffer.line_content(line)[:CHARS]
        if text.strip() and indent_of(text) < level and not _OPENS_NOTHING.match(text.lstrip()):
            level = indent_of(text)
            start = _start_of(buffer, line, level)
            if line < first_line:
                heads.append("".join(f"{buffer.line_content(at)[:CHARS].rstrip()}\n" for at in range(start, line + 1)))
            line = start
        line -= 1
    return "".join(reversed(heads[:HEADS]))


def _level_at(buffer: TextBuffer, line: int) -> int:
    """Indentation of the cursor's line; of a line with nothing on it, what is typed of it or the line above has."""
    text = buffer.line_content(line)[:CHARS]
    if text.strip():
        return indent_of(text)
    above = next((buffer.line_content(at)[:CHARS] for at in range(line - 1, max(-1, line - 8), -1) if buffer.line_content(at).strip()), "")
    return max(len(text.expandtabs(_TAB)), indent_of(above))


def _start_of(buffer: TextBuffer, line: int, level: int) -> int:
    """Where a head that ends on `line` begins."""
    if buffer.line_content(line).lstrip()[:1] not in (")", "]", "}"):
        return line
    for at in range(line - 1, max(-1, line - LONGEST), -1):
        text = buffer.line_content(at)[:CHARS]
        if text.strip() and indent_of(text) == level and text.lstrip()[:1] not in (")", "]", "}"):
            return at
    return line
