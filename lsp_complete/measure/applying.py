"""What the cursor's line becomes when a suggestion is accepted, and whether that is what was meant. Pure.

Rules:
- A suggestion is judged by its effect on the document: its range is replaced by its text.
- Only the first line counts here; of a suggestion of several lines, what stands right of the cursor moves down.
- Trailing blanks do not count.
"""

from __future__ import annotations

from .client import Item
from .edits import Position, body, column_index, split_lines
from .typist import Key


def line_after(line: str, cursor_line: int, item: Item) -> str:
    """The cursor's line (its text before: `line`) up to its first line end, after acceptance of item."""
    end = item.end if item.end.line == cursor_line else Position(cursor_line, 1 << 30)
    start = item.start if item.start.line == cursor_line else Position(cursor_line, 0)
    before, after = line[: column_index(line, start.character)], line[column_index(line, end.character) :]
    return body(split_lines(before + item.text + after)[0])


def ghost(line: str, cursor: Position, item: Item) -> str:
    """What the editor shows after the cursor: the text without what it repeats left of the cursor."""
    if item.start.line != cursor.line:
        return item.text
    typed = line[column_index(line, item.start.character) : column_index(line, cursor.character)]
    return item.text[len(typed) :] if item.text.startswith(typed) else ""


def line_exact(key: Key, target: str, item: Item) -> bool:
    """Acceptance makes the line exactly the target."""
    return line_after(key.left + key.right, key.cursor.line, item).rstrip() == target.rstrip()


def right_to_closer(key: Key, target: str, item: Item) -> bool:
    """Exact, or right up to the first closer that the editor put right of the cursor: what an insertion at the
    cursor can at best be when the line goes on after them."""
    if line_exact(key, target, item):
        return True
    shown = body(split_lines(ghost(key.left + key.right, key.cursor, item))[0])
    left = key.rest[len(shown) :]
    return bool(key.right and shown and key.rest.startswith(shown) and left.startswith(key.right[0]))
