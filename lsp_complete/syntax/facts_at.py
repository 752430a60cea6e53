"""What the syntax says about one place in a text, as plain values.

Strategy: two query passes limited to the cursor (what surrounds it) and one limited to the enclosing function (names), so the cost does
not depend on the file. Text rules fill in where the tree is broken around the cursor, as it usually is while typing.

Rules:
- Everything returned is a value; no tree object leaves this package. Event loop or any thread; about a millisecond.
- `names` is a superset of what is in scope: names of the file's outline, and every identifier of the enclosing function (or of the
  surroundings, at the top level). Whoever holds back unknown names must not hold back known ones.
- Without a tree use `plain_facts`; it knows strings, comments and openers by text alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import tree_sitter

from lsp_complete.syntax.encode import BYTES
from lsp_complete.syntax.languages import LanguageFacts
from lsp_complete.syntax.lines import empty_body, open_call, state_on_line
from lsp_complete.syntax.nodes import Outline, OutlineNode
from lsp_complete.syntax.scopes import AROUND, probe_of, scopes_at
from lsp_complete.syntax.trees import SyntaxTree, edited, error_spans, parse, span, wide_error
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.edits import Edit

NAMES_MOST = 30_000
ERRORS_AROUND = 10_000
MAX_KINDS = 32


@dataclass(frozen=True, slots=True)
class Scope:
    """An enclosing definition. first_line … signature_line hold its signature, decorators included."""

    name: str
    kind: str
    container: str
    start: int
    end: int
    body_start: int
    first_line: int
    signature_line: int
    last_line: int
    signature: str


@dataclass(frozen=True, slots=True)
class SyntaxFacts:
    """One place. exact: the tree is the parse of this very text. errors: error spans within ERRORS_AROUND characters.

    callee: text of what is called, when in an argument list. kinds: node kinds from the innermost outwards.
    calls: names called in the enclosing function, first use first.
    """

    language: str = ""
    exact: bool = False
    in_string: bool = False
    in_comment: bool = False
    in_arguments: bool = False
    callee: str = ""
    empty_body: bool = False
    function: Scope | None = None
    enclosing_class: Scope | None = None
    kinds: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    errors: int = 0


def facts_at(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, outline: Outline | None = None
) -> SyntaxFacts:
    """What surrounds `offset`. `outline`: of the same text, for the file's names; without it only near ones are known."""
    facts = tree.grammar.facts
    offset = min(max(offset, 0), buffer.length)
    if wide_error(tree):
        return plain_facts(buffer, offset, facts)
    errors = error_spans(tree, max(offset - ERRORS_AROUND, 0), min(offset + ERRORS_AROUND, buffer.length))
    function, enclosing, scopes = scopes_at(tree, buffer, offset, outline, errors)
    in_comment, in_string = _literal(tree, buffer, offset, errors)
    in_arguments, callee = (
        (False, "") if in_comment or in_string else _arguments(tree, buffer, offset, errors)
    )
    names, calls = _names(tree, buffer, offset, function)
    if outline is not None:
        names |= outline.names()
    names |= {scope.name for scope in scopes if scope.name}
    return SyntaxFacts(
        language=facts.key,
        exact=tree.exact,
        in_string=in_string,
        in_comment=in_comment,
        in_arguments=in_arguments,
        callee=callee,
        empty_body=not (in_string or in_comment) and empty_body(buffer, offset, facts),
        function=_scope(function),
        enclosing_class=_scope(enclosing),
        kinds=_kinds(tree, probe_of(buffer, offset, facts)),
        names=names,
        calls=calls,
        errors=len(errors),
    )


def plain_facts(buffer: TextBuffer, offset: int, facts: LanguageFacts | None) -> SyntaxFacts:
    """The same by text alone, for files without a tree (too large, not parsed yet, no wheel)."""
    if facts is None:
        return SyntaxFacts()
    line, column = buffer.position(offset)
    state = state_on_line(buffer.line(line)[:column], facts)
    if state:
        return SyntaxFacts(language=facts.key, in_string=state == "string", in_comment=state == "comment")
    callee = open_call(buffer, offset, facts)
    return SyntaxFacts(
        language=facts.key,
        in_arguments=callee is not None,
        callee=callee or "",
        empty_body=empty_body(buffer, offset, facts),
    )


def _scope(node: OutlineNode | None) -> Scope | None:
    if node is None:
        return None
    at, has_body = node.span, node.has_body
    signature_line = at.first_line + node.signature.count("\n") if has_body else at.last_line
    return Scope(
        node.name, node.kind, node.container, at.start, at.end, at.body_start, at.first_line, signature_line, at.last_line,
        node.signature,
    )  # fmt: skip


def _literal(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, errors: list[tuple[int, int]]
) -> tuple[bool, bool]:
    """(in a comment, in a string) at the cursor."""
    cursor = tree_sitter.QueryCursor(tree.grammar.place)
    cursor.set_byte_range(BYTES * max(offset - 1, 0), BYTES * (offset + 1))
    found = cursor.captures(tree.root)
    best, size = "", 1 << 60
    for kind in ("comment", "string", "code"):
        for node in found.get(kind, ()):
            start, end = span(node)
            at_end = offset == end and kind == "comment" and _runs_to_line_end(tree, buffer, start)
            if (start < offset < end or at_end) and end - start < size:
                best, size = kind, end - start
    line, column = buffer.position(offset)
    if not best and (not tree.exact or _touches_line(errors, buffer, line)):
        best = state_on_line(buffer.line(line)[:column], tree.grammar.facts)
    return best == "comment", best == "string"


def _runs_to_line_end(tree: SyntaxTree, buffer: TextBuffer, start: int) -> bool:
    mark = tree.grammar.facts.line_comment
    return bool(mark) and buffer.slice(start, start + len(mark)) in (mark, "#!")


def _touches_line(errors: list[tuple[int, int]], buffer: TextBuffer, line: int) -> bool:
    start = buffer.line_start(line)
    end = start + len(buffer.line(line))
    return any(low <= end and high >= start for low, high in errors)


def _arguments(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, errors: list[tuple[int, int]]
) -> tuple[bool, str]:
    cursor = tree_sitter.QueryCursor(tree.grammar.place)
    cursor.set_byte_range(BYTES * max(offset - 1, 0), BYTES * (offset + 1))
    best, size, callee = "", 1 << 60, ""
    for _pattern, found in cursor.matches(tree.root):
        for kind in ("arguments", "block", "parameters"):
            for node in found.get(kind, ()):
                start, end = span(node)
                open_end = offset == end and buffer.slice(end - 1, end) not in (")", "}", "]")
                if (start < offset < end or (open_end and start < offset)) and end - start <= size:
                    if end - start < size or "callee" in found:
                        callee = buffer.slice(*span(found["callee"][0])) if "callee" in found else ""
                    best, size = kind, end - start
    if best == "arguments":
        return True, callee[:200]
    if errors or not tree.exact:
        called = open_call(buffer, offset, tree.grammar.facts)
        if called is not None:
            return True, called
    return False, ""


def _kinds(tree: SyntaxTree, offset: int) -> tuple[str, ...]:
    node = tree.root.named_descendant_for_byte_range(BYTES * max(offset - 1, 0), BYTES * offset)
    kinds: list[str] = []
    while node is not None and len(kinds) < MAX_KINDS:
        kinds.append(node.type)
        node = node.parent
    return tuple(kinds)


def _names(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, function: OutlineNode | None
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Identifiers around the cursor, and names called in the enclosing function."""
    start, end = max(offset - AROUND, 0), offset + AROUND
    if function is not None:
        start = max(function.span.start, offset - NAMES_MOST)
        end = min(max(function.span.end, offset), offset + NAMES_MOST)
    cursor = tree_sitter.QueryCursor(tree.grammar.place)
    cursor.set_byte_range(BYTES * start, BYTES * end)
    text = buffer.slice(start, end)
    names = set()
    for node in cursor.captures(tree.root).get("identifier", ()):
        low, high = span(node)
        if low >= start and high <= end and not low < offset == high:  # not the word being typed
            names.add(text[low - start : high - start])
    calls = function.calls if function is not None else ()
    return frozenset(name for name in names if name), calls


def identifiers(tree: SyntaxTree, buffer: TextBuffer, start: int, end: int) -> list[tuple[int, str]]:
    """Identifiers between two offsets as (offset, name), in order. For look-ups by nearness."""
    cursor = tree_sitter.QueryCursor(tree.grammar.place)
    cursor.set_byte_range(BYTES * start, BYTES * end)
    spans = (span(node) for node in cursor.captures(tree.root).get("identifier", ()))
    return sorted((low, buffer.slice(low, high)) for low, high in spans if start <= low and high <= end)


def parses_ok(
    tree: SyntaxTree, buffer: TextBuffer, offset: int, inserted: str, replace_to: int | None = None
) -> bool:
    """Whether putting `inserted` at `offset` (over the text up to `replace_to`) breaks nothing that was whole.

    True if the errors near the insertion are no more than before. `tree` must be exact or shifted to `buffer`.
    An incremental parse: about a millisecond; True if it takes too long to know.
    """
    old_end = max(replace_to if replace_to is not None else offset, offset)
    new = buffer.replace(offset, old_end, inserted)
    new_end = offset + len(inserted)
    points = (buffer.position(offset), buffer.position(old_end), new.position(new_end))
    base = tree if tree.exact else parse(tree.grammar, buffer, tree)
    if base is None:
        return True
    moved = edited(base, (Edit(offset, old_end, new_end, *points),), new)
    after = parse(tree.grammar, new, moved)
    if after is None:
        return True
    low, high = max(offset - ERRORS_AROUND, 0), new_end + ERRORS_AROUND
    before = error_spans(base, low, min(old_end + ERRORS_AROUND, buffer.length))
    return len(error_spans(after, low, min(high, new.length))) <= len(before)
