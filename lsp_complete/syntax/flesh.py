"""Local flesh for an outline: of the functions outside the cursor's, the bodies that have most in common with what stands around it.

Strategy: what a model completes is often what the file does elsewhere, in a body that "signature only" leaves out. Bodies are ranked by
the words that they share with the lines around the cursor, each word weighed by how few of the file's functions have it (inverse document
frequency, Sparck Jones 1972) and the sum by the square root of the body's length; the best are written whole while there is room, one
that is too long for it gives its first lines.

Rules: pure; any thread; linear in the text. The order of the text stays (`render`). Only levels grow, and only of functions. Room is
counted in characters of the rendered text, so a share of a file's characters stands for the same share of its tokens.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.syntax.render import Level, render, render_node
from lsp_complete.text.buffer import TextBuffer

SHARE = 0.38
"""Of the file's characters: just below the share of tokens that an outline may take (0.40)."""
NEAR_LINES = 12
"""Lines above and below the cursor that say what it is about."""
_WORD = re.compile(r"[^\W\d]\w+")


def levels_with_flesh(
    outline: Outline, buffer: TextBuffer, offset: int, levels: Mapping[int, Level], share: float = SHARE
) -> dict[int, Level]:
    """`levels` (of `levels_for_cursor`) with bodies added until the text takes `share` of the file's characters."""
    grown = dict(levels)
    room = int(share * buffer.length) - len(render(outline, buffer, levels))
    wanted = _around(outline, buffer, offset)
    bodies = {
        index: Counter(_WORD.findall(buffer.slice(node.span.body_start, node.span.body_end)))
        for index, node in enumerate(outline.nodes)
        if node.role == "function" and node.has_body and levels.get(index, Level.FULL) < Level.FULL
    }
    for index in _ranked(wanted, bodies):
        for level in (Level.FULL, Level.HEAD):
            if level <= grown[index]:
                continue
            before, after = (len(render_node(outline, buffer, index, one)) for one in (grown[index], level))
            if after - before <= room:
                room -= after - before
                grown[index] = level
                break
    return grown


def _around(outline: Outline, buffer: TextBuffer, offset: int) -> Counter[str]:
    """Words of the lines around the cursor, within its function if there is one."""
    line = buffer.position(min(max(offset, 0), buffer.length))[0]
    first, last = max(line - NEAR_LINES, 0), min(line + NEAR_LINES, buffer.line_count - 1)
    function: OutlineNode | None = outline.enclosing(offset, "function")
    if function is not None:
        first, last = max(first, function.span.first_line), min(last, max(function.span.last_line, line))
    return Counter(_WORD.findall("\n".join(buffer.line_content(number) for number in range(first, last + 1))))


def _ranked(wanted: Mapping[str, int], bodies: Mapping[int, Mapping[str, int]]) -> list[int]:
    """Indices of bodies that share a word, the most alike first."""
    having = Counter(word for body in bodies.values() for word in body)
    rarity = {word: math.log((1 + len(bodies)) / (1 + having[word])) + 1 for word in wanted if word in having}
    scores = {
        index: sum(weight for word, weight in rarity.items() if word in body) / math.sqrt(sum(body.values()))
        for index, body in bodies.items()
        if body
    }
    return sorted((index for index, score in scores.items() if score > 0), key=lambda index: (-scores[index], index))
