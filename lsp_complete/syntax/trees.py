"""Parsing, and trees that follow edits.

Strategy: a tree is updated by telling it what moved (`edited`, microseconds, on the event loop) and parsing again with
the old tree as a start (`parse`, off the loop), which reads only the surroundings of the change. The parser reads
through a callback, so neither step copies the file; the callbacks also give the interpreter lock away every
millisecond, so a long parse does not delay the event loop.

Rules:
- `SyntaxTree` is immutable: `edited` copies (cheap, shared inside). Any thread may read it.
- `exact` says that the tree is the parse of `buffer`. After `edited` it is not: nodes outside the edits are right, those around
  them are the last good guess.
- An incremental parse equals a fresh one wherever the text is whole. In broken text tree-sitter's error recovery may depend on what
  it could reuse (seen: 1 of 2,300 random edits), so such a tree is marked `settled = False`, to be parsed afresh at idle.
- Not parsed at all: more than MAX_CHARS code points, binary content, what would overflow the language's scanner (`limits.py`), and
  what takes more than BASE_SECONDS + SECONDS_PER_CHAR × length, or MAX_GROWTH (some grammars run away on odd text).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import psutil
import tree_sitter

from lsp_complete.syntax.encode import BYTES, read
from lsp_complete.syntax.languages import Grammar
from lsp_complete.syntax.limits import too_deep
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.edits import Edit

MAX_CHARS = 1_000_000
BASE_SECONDS, SECONDS_PER_CHAR = 0.5, 5e-6
MAX_GROWTH = 512 << 20
"""Bytes that the process may grow by during one parse: error recovery in some grammars takes a gigabyte a second (Lua, over `/*/*/*…`)."""
WIDE_ERROR = 3_000
"""Children of one ERROR node above which nothing is asked of a tree: a query takes quadratic time over them (brackets without end)."""
_FULL_READ, _EDIT_READ = 16_384, 1_024
_YIELD_SECONDS = 0.001
_LOOK_SECONDS = 0.02
"""Between two looks at the memory: an ordinary parse takes one, at its start."""


@dataclass(frozen=True, slots=True, eq=False)
class SyntaxTree:
    """A tree with its grammar and the text that its offsets refer to. See the module's rules for `exact`, `settled`."""

    grammar: Grammar
    tree: tree_sitter.Tree
    buffer: TextBuffer
    exact: bool = True
    settled: bool = True

    @property
    def root(self) -> tree_sitter.Node:
        """The root node. Offsets are `byte // BYTES`; never read text from nodes."""
        return self.tree.root_node


def looks_binary(buffer: TextBuffer) -> bool:
    """Whether the first 8,192 characters hold a NUL, or more than a tenth of control characters or undecodable bytes."""
    head = buffer.slice(0, 8192)
    if "\0" in head:
        return True
    odd = sum(1 for char in set(head) if _odd(char) for _ in range(head.count(char)))
    return odd * 10 > len(head)


def _odd(char: str) -> bool:
    return char == "\ufffd" or (char < " " and char not in "\t\n\r\f\v\x1b") or "\ud800" <= char <= "\udfff"


def why_not_parsed(buffer: TextBuffer) -> str:
    """Why a text is left without a tree: a reason for logs and status, "" if it can be parsed. Bounded time."""
    if buffer.length > MAX_CHARS:
        return f"larger than {MAX_CHARS:,} characters"
    return "binary content" if looks_binary(buffer) else ""


def parse(
    grammar: Grammar,
    buffer: TextBuffer,
    previous: SyntaxTree | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> SyntaxTree | None:
    """Parse `buffer`, from `previous` if given (already `edited` to this text). None: stopped, over its time or memory, or
    more than the grammar's scanner can bear (`limits.too_deep`).

    Thread: any; takes 0.1 µs per character afresh (up to 1 µs for C++), some milliseconds after an edit.
    """
    if too_deep(buffer, grammar.facts):
        return None
    old = previous.tree if previous is not None else None
    tree = _run(grammar, buffer, old, should_stop)
    if tree is None:
        return None
    return SyntaxTree(grammar, tree, buffer, settled=old is None or not tree.root_node.has_error)


def _memory() -> int:
    """Bytes of memory that the process holds. Some 10 µs."""
    return int(_process().memory_info().rss)


@lru_cache(maxsize=1)
def _process() -> psutil.Process:
    return psutil.Process()


def _run(
    grammar: Grammar, buffer: TextBuffer, old: tree_sitter.Tree | None, should_stop: Callable[[], bool]
) -> tree_sitter.Tree | None:
    started = turn = time.monotonic()
    allowed = BASE_SECONDS + SECONDS_PER_CHAR * buffer.length
    size = _FULL_READ if old is None else _EDIT_READ

    def source(byte: int, _point: tree_sitter.Point) -> bytes:
        return read(buffer, byte // BYTES, size)

    looked, held = started, _memory()

    def overdue(_byte: int, _error: bool) -> bool:
        nonlocal turn, looked
        now = time.monotonic()
        if now - turn > _YIELD_SECONDS:
            time.sleep(0)  # gives the interpreter lock to whoever waits for it
            turn = time.monotonic()
        if now - looked > _LOOK_SECONDS:
            looked = now
            if _memory() - held > MAX_GROWTH:
                return True
        return now - started > allowed or should_stop()

    parser = tree_sitter.Parser(grammar.language)
    try:
        if old is None:  # the binding takes no None here, whatever its stub says
            return parser.parse(source, encoding="utf16le", progress_callback=overdue)
        return parser.parse(source, old, encoding="utf16le", progress_callback=overdue)
    except ValueError:  # what the binding raises for a stopped parse
        return None


def edited(tree: SyntaxTree, edits: Sequence[Edit], buffer: TextBuffer) -> SyntaxTree:
    """The tree with its nodes moved by `edits` (in order, from the tree's text to `buffer`). Event loop; microseconds."""
    if not edits:
        return tree
    moved = tree.tree.copy()
    if len(edits) > 1 and (_has_return(tree.buffer) or _has_return(buffer)):
        edits = (hull(edits, tree.buffer, buffer),)
    for edit in edits:
        _move(moved, _from_return(edit, tree.buffer) if len(edits) == 1 else edit)
    return replace(tree, tree=moved, buffer=buffer, exact=False)


def _move(tree: tree_sitter.Tree, edit: Edit) -> None:
    points = [
        (line, BYTES * column) for line, column in (edit.start_point, edit.old_end_point, edit.new_end_point)
    ]
    tree.edit(BYTES * edit.start, BYTES * edit.old_end, BYTES * edit.new_end, points[0], points[1], points[2])


def _has_return(buffer: TextBuffer) -> bool:
    return any("\r" in chunk.text for chunk in buffer.chunks)


def _from_return(edit: Edit, old: TextBuffer) -> Edit:
    """The edit, begun one character earlier if that is a `\\r`, whose encoding depends on what follows."""
    if edit.start == 0 or old.slice(edit.start - 1, edit.start) != "\r":
        return edit
    return replace(edit, start=edit.start - 1, start_point=old.position(edit.start - 1))


def hull(edits: Sequence[Edit], old: TextBuffer, new: TextBuffer) -> Edit:
    """One edit that covers all of `edits`, from the text before the first to the text after the last."""
    start, old_end, new_end = edits[0].start, edits[0].old_end, edits[0].new_end
    for edit in edits[1:]:
        beyond = max(edit.old_end - new_end, 0)
        old_end += beyond
        new_end = max(new_end, edit.old_end) + edit.delta
        start = min(start, edit.start)
    return Edit(start, old_end, new_end, old.position(start), old.position(old_end), new.position(new_end))


def span(node: tree_sitter.Node) -> tuple[int, int]:
    """Start and end of a node as code-point offsets."""
    return node.start_byte // BYTES, node.end_byte // BYTES


def changed_spans(old: SyntaxTree, new: SyntaxTree) -> list[tuple[int, int]]:
    """Where the structure of two trees differs, as offsets of the new text. `old` must be `edited` to that text."""
    return [(part.start_byte // BYTES, part.end_byte // BYTES) for part in old.tree.changed_ranges(new.tree)]


def wide_error(tree: SyntaxTree) -> bool:
    """Whether an ERROR node has more than WIDE_ERROR children. Goes only where errors are."""
    waiting = [tree.root] if tree.root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.is_error and node.child_count > WIDE_ERROR:
            return True
        waiting.extend(child for child in node.children if child.has_error)
    return False


def error_spans(
    tree: SyntaxTree, start: int = 0, end: int | None = None, limit: int = 200
) -> list[tuple[int, int]]:
    """Spans of ERROR nodes and of the parents of missing tokens that touch start … end. Empty for a whole text.

    Goes only where errors are, so the cost is that of the errors and of their ancestors' children.
    """
    low, high = BYTES * start, BYTES * (tree.buffer.length if end is None else end)
    found: set[tuple[int, int]] = set()
    waiting = [tree.root] if tree.root.has_error else []
    if waiting and tree.root.is_error:
        found.add(span(tree.root))
    while waiting and len(found) < limit:
        around = waiting.pop()
        for node in around.children:
            if not node.has_error or node.end_byte < low or node.start_byte > high:
                continue
            if node.is_missing:
                found.add(span(around))
            else:
                waiting.append(node)
                if node.is_error:
                    found.add(span(node))
    return sorted(found)
