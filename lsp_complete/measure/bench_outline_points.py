"""Places where the outline has to stand for its file: a line to complete inside a function, with both contexts around it. Pure.

The rule: two lines in the middle of a function's body are not written yet, nor is anything of them below the cursor. The first point
stops within the first of them; the second has the first one written and stops within the second. So the two share everything but
the text that is typed, as two keys of a session do. `full` is the whole file around the cursor; `slim` is the outline "signature only
outside the cursor's function", made as the product makes it: from the tree that followed the deletion; `fleshed` is that outline with
the bodies that `syntax.flesh` adds up to its share of the file.

Rules:
- Places depend on the seed and the file only and lie APART lines from each other. Lines that begin inside of a string or comment
  (documentation, most of all) are no places.
- A place whose function cannot be found once, and only once, in the rendered outline is left out (before anything is asked).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..syntax import pieces
from ..syntax.facts_at import facts_at
from ..syntax.flesh import levels_with_flesh
from ..syntax.languages import Grammar
from ..syntax.nodes import Outline, OutlineNode
from ..syntax.outline import levels_for_cursor, merge_last_good, outline_of, render, shifted, update_outline
from ..syntax.trees import SyntaxTree, edited, hull, parse
from ..text.buffer import TextBuffer
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding
from .corpus import APART, eligible_lines
from .edits import body, split_lines

BLOCK = 2
"""Lines that are not written yet."""
MARGIN = 2
"""Lines of the body, at least, between its ends and the block."""
PAIRS_OF_A_FILE = 3


@dataclass(frozen=True, slots=True)
class Around:
    """Text before the cursor, and below its line. first_line: the block's first line in `before`, for the anchor."""

    before: str
    after: str
    first_line: int


@dataclass(frozen=True, slots=True)
class Point:
    """One cursor. rest: what was there up to the line's end, right-stripped."""

    file: str
    language: str
    line: int
    column: int
    rest: str
    full: Around
    slim: Around
    fleshed: Around

    def around(self, context: str) -> Around:
        """What stands around the cursor. context: "full" | "slim" | "fleshed"."""
        return {"full": self.full, "slim": self.slim, "fleshed": self.fleshed}[context]

    @property
    def key(self) -> str:
        """Its identity, for resuming and pairing."""
        return f"{self.file}:{self.line + 1}:{self.column}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole file with its tree and outline."""

    name: str
    grammar: Grammar
    document: Document
    tree: SyntaxTree
    outline: Outline


def read_file(name: str, grammar: Grammar, text: str) -> Parsed | None:
    """Parse a file; None if that takes too long. Line ends become `\\n`, as both contexts are compared as text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    document = Document.open(f"file:///{name}", grammar.facts.key, 1, text)
    tree = parse(grammar, document.buffer)
    return None if tree is None else Parsed(name, grammar, document, tree, outline_of(tree))


def blocks(file: Parsed, seed: int) -> list[int]:
    """First lines of up to PAIRS_OF_A_FILE blocks, in a seeded order."""
    rng = random.Random(f"{seed}:{file.name}")  # noqa: S311 (choice of lines)
    eligible = set(eligible_lines(file.document.buffer.text()))
    found = [
        line
        for node in file.outline.nodes
        if node.role == "function" and node.has_body
        for line in range(node.span.body_line + MARGIN, node.span.last_line - MARGIN - BLOCK + 2)
        if all(line + more in eligible and _is_code(file, line + more) for more in range(BLOCK))
    ]
    rng.shuffle(found)
    chosen: list[int] = []
    for line in found:
        if len(chosen) < PAIRS_OF_A_FILE and all(abs(line - other) >= APART for other in chosen):
            chosen.append(line)
    return chosen


def _is_code(file: Parsed, line: int) -> bool:
    """Whether a line begins outside of strings and comments."""
    buffer = file.document.buffer
    text = buffer.line_content(line)
    facts = facts_at(file.tree, buffer, buffer.line_start(line) + len(text) - len(text.lstrip()))
    return not (facts.in_string or facts.in_comment)


def points_of(file: Parsed, line: int, seed: int) -> list[Point]:
    """The points of a block; [] if its function is not to be found in one of the outlines."""
    lines = split_lines(file.document.buffer.text())
    made = []
    for number in range(BLOCK):
        text = body(lines[line + number])
        rng = random.Random(f"{seed}:{file.name}:{line + number}")  # noqa: S311 (choice of a column)
        indent = len(text) - len(text.lstrip())
        column = rng.randint(indent + 1, len(text.rstrip()) - 4)
        before = "".join(lines[: line + number]) + text[:column]
        full = Around(before, "".join(lines[line + BLOCK :]), line)
        outlines = outlines_around(file, line, number, column)
        if outlines is None:
            return []
        made.append(Point(file.name, file.grammar.facts.key, line + number, column, text[column:].rstrip(), full, *outlines))
    return made


def outlines_around(file: Parsed, line: int, number: int, column: int) -> tuple[Around, Around] | None:
    """What stands around the cursor in the outline of the file with the rest of the block gone: slim, and with flesh.

    Bodies are chosen at the block's first line, so that its two points have the same."""
    buffer = file.document.buffer
    cursor = buffer.line_start(line + number) + column
    end = buffer.line_start(line + BLOCK) - 1
    span = (buffer.position(cursor), buffer.position(end))
    after, edits = file.document.apply([Change(span, "")], Encoding.UTF32, 2)
    moved = edited(file.tree, edits, after.buffer)
    tree = parse(file.grammar, after.buffer, moved)
    if tree is None:
        return None
    change = hull(edits, buffer, after.buffer)
    last = shifted(file.outline, edits)
    fresh = update_outline(last, moved, tree, [(change.start, change.new_end)])
    outline = merge_last_good(last, fresh, after.buffer)
    around = [node for node in outline.at(cursor) if node.role == "function"]
    if not around:
        return None
    slim = levels_for_cursor(outline, cursor)
    fleshed = levels_with_flesh(outline, after.buffer, buffer.line_start(line), slim)
    made = [_located(render(outline, after.buffer, levels), after.buffer, around[0], cursor, line) for levels in (slim, fleshed)]
    return None if made[0] is None or made[1] is None else (made[0], made[1])


def _located(shown: str, buffer: TextBuffer, function: OutlineNode, cursor: int, line: int) -> Around | None:
    """The rendered outline parted at the cursor: its function is in there as it stands in the file."""
    whole = "\n".join(pieces.text_lines(buffer, function, function.span.start, function.span.end))
    if shown.count(whole) != 1:
        return None
    indent = len(pieces.indent_of(buffer, function))
    at = shown.index(whole) + indent + cursor - function.span.start
    before, after = shown[:at], shown[at:].partition("\n")[2]
    below = line - function.span.first_line
    return Around(before, after, shown[: shown.index(whole)].count("\n") + below)


def choose_points(files: Sequence[Parsed], count: int, seed: int) -> list[Point]:
    """Up to `count` points, as many of each file as of any other; those of a file in the order of its lines, so that a prompt
    begins as the one before it did."""
    usable = [[pair for line in blocks(file, seed) if (pair := points_of(file, line, seed))] for file in files]
    taken: list[list[list[Point]]] = [[] for _ in files]
    for index, pair in _in_turn(usable):
        if sum(len(one) for pairs in taken for one in pairs) >= count:
            break
        taken[index].append(pair)
    return [point for pairs in taken for pair in sorted(pairs, key=lambda one: one[0].line) for point in pair][:count]


def _in_turn(pairs: Sequence[Sequence[list[Point]]]) -> Iterator[tuple[int, list[Point]]]:
    """The first pair of each file, then the second of each, …"""
    for turn in range(max(map(len, pairs), default=0)):
        yield from ((index, of_file[turn]) for index, of_file in enumerate(pairs) if turn < len(of_file))
