"""Names near the cursor, and what kind of thing a name stands for. Text rules, the same for every language. Pure.

Strategy: what the next line needs is mostly named in the lines above it. Names are weighted by their distance from the cursor, the
ones the cursor touches most of all. What `thing.` is comes from the nearest place that says so: an annotation, a construction, a
declaration.

Rules:
- Bounded: looks at no more than LINES_NEAR lines and at SCOPE_CHARS characters of the scope.
- A wrong guess costs a few tokens of the budget, so guesses are taken only from a line that names the type.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

LINES_NEAR = 24
BELOW = 6
SCOPE_CHARS = 12_000
MAX_NAMES = 60
MAX_USED = 12
_NAME = re.compile(r"(?:((?:[A-Za-z_]\w*(?:\(\))?(?:\.|->|::))+)\s*)?([A-Za-z_]\w*)")
_AT_CALL = re.compile(r"(?:((?:[A-Za-z_]\w*(?:\(\))?(?:\.|->|::))+)\s*)?([A-Za-z_]\w*)\s*\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)$")
_AT_MEMBER = re.compile(r"((?:[A-Za-z_]\w*(?:\(\))?(?:\.|->|::))+)(\w*)$")
_SEPARATORS = re.compile(r"\.|->|::")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WRAPPERS = frozenset(
    {"Optional", "Final", "ClassVar", "Annotated", "Required", "Awaitable", "Type", "type", "Promise", "Readonly",
     "const", "mut", "final", "var", "let", "val", "public", "private", "protected", "static", "readonly"}
)  # fmt: skip
_PLAIN = frozenset(
    {"None", "str", "int", "float", "bool", "bytes", "dict", "list", "set", "tuple", "object", "Any", "string", "number", "boolean",
     "void", "null", "undefined", "return", "in", "if", "else", "new", "await", "not", "and", "or", "is", "elif", "import", "from", "raise",
     "yield", "lambda", "with", "as", "for", "while", "case", "throw", "async", "typeof", "delete", "del", "assert", "except"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Near:
    """A name near the cursor. receiver: names before its last dot, "" if none. weight: 1.0 at the cursor, falling with distance."""

    name: str
    receiver: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class AtCursor:
    """What the cursor stands in: the arguments of a call (callee with receiver), or behind `receiver.`; names may be ""."""

    callee: str = ""
    callee_receiver: tuple[str, ...] = ()
    receiver: tuple[str, ...] = ()
    started: str = ""


def parts(receiver: str) -> tuple[str, ...]:
    """The names of `a.b().c.`: ("a", "b", "c")."""
    return tuple(name.removesuffix("()") for name in _SEPARATORS.split(receiver) if name)


def names_near(before: str, after: str) -> list[Near]:
    """Names by weight, most wanted first, each once per receiver. before, after: text around the cursor."""
    above = before.split("\n")[-LINES_NEAR:]
    below = after.split("\n")[1 : BELOW + 1]
    weighted = [(line, 1.0 / (1.0 + 0.15 * distance)) for distance, line in enumerate(reversed(above))]
    weighted += [(line, 0.5 / (1.0 + 0.15 * distance)) for distance, line in enumerate(below, 1)]
    found: dict[tuple[str, tuple[str, ...]], float] = {}
    for line, weight in weighted:
        for match in _NAME.finditer(line[:400]):
            name = match.group(2)
            if len(name) < 2 or name in _PLAIN:
                continue
            key = name, parts(match.group(1) or "")
            found[key] = max(found.get(key, 0.0), weight)
    ordered = sorted(found.items(), key=lambda item: -item[1])[:MAX_NAMES]
    return [Near(name, receiver, round(weight, 2)) for (name, receiver), weight in ordered]


def at_cursor(line_before: str) -> AtCursor:
    """What the end of the cursor's line says is coming."""
    text = line_before[-400:]
    call = _AT_CALL.search(text)
    callee, receiver = (call.group(2), parts(call.group(1) or "")) if call else ("", ())
    member = _AT_MEMBER.search(text)
    if member:
        return AtCursor(callee, receiver, parts(member.group(1)), member.group(2))
    return AtCursor(callee, receiver)


def type_names(text: str) -> list[str]:
    """Names in a type expression that may be types of the project: `Optional["Box[int]"]` → Box."""
    found = [name for name in _WORD.findall(text[:200]) if name not in _WRAPPERS and name not in _PLAIN]
    return found[:3]


@dataclass(frozen=True, slots=True)
class Guess:
    """What a variable was set from. types: names of types it was declared as; made_by: dotted name of what was called."""

    types: tuple[str, ...] = ()
    made_by: tuple[str, ...] = ()


def guess(variable: str, scope: str) -> Guess:
    """What the nearest statement above says of a variable (`name` or `self.name`). scope: text up to the cursor."""
    text, name = scope[-SCOPE_CHARS:], re.escape(variable)
    best: tuple[int, Guess] = (-1, Guess())
    annotated = re.compile(rf"(?<![\w.]){name}\??\s*:(?!=)([^\n=;{{}}]{{1,160}})")
    made = re.compile(
        rf"(?<![\w.]){name}\s*(?::[^=\n]{{1,60}})?(?::=|=)(?!=)\s*(?:await\s+|new\s+|&|\*|try\s+)*([A-Za-z_][\w.]*(?:::\w+)*)\s*[({{]"
    )
    opened = re.compile(rf"(?<![\w.])([A-Za-z_][\w.]*)\([^()\n]*\)\s+as\s+{name}(?!\w)")
    typed = re.compile(
        rf"(?<![\w.])(?:([A-Z]\w*)(?:<[^<>\n]*>)?(?:\s*[*&]\s*|\s+){name}\s*(?=[,;=):])|{name}\s+[*&]?([A-Z]\w*)\s*(?=[,)]))"
    )
    for match in annotated.finditer(text):
        types = tuple(type_names(_annotation(match.group(1))))
        if types and match.start() > best[0]:
            best = match.start(), Guess(types=types)
    for pattern in (made, opened):
        for match in pattern.finditer(text):
            if match.start() > best[0]:
                best = match.start(), Guess(made_by=parts(match.group(1) + "."))
    for match in typed.finditer(text):
        declared = match.group(1) or match.group(2)
        if match.start() > best[0] and declared not in _PLAIN:
            best = match.start(), Guess(types=(declared,))
    return best[1]


def members_used(receiver: tuple[str, ...], text: str) -> list[str]:
    """Names that the file uses behind `a.b.`, most used first, at most MAX_USED."""
    dotted = r"(?:\.|->|::)".join(map(re.escape, receiver))
    used = Counter(re.findall(rf"(?<![\w.]){dotted}(?:\.|->|::)([A-Za-z_]\w*)", text))
    return [name for name, _ in used.most_common(MAX_USED)]


def _annotation(text: str) -> str:
    """A type expression up to the comma or bracket that ends it."""
    depth = 0
    for at, char in enumerate(text):
        if char in "[(<":
            depth += 1
        elif char in "])>":
            depth -= 1
        if depth < 0 or (char == "," and not depth):
            return text[:at]
    return text


def returned(signature: str) -> tuple[str, ...]:
    """Types that a function's signature says it returns."""
    close = signature.rfind(")")
    tail = signature[close + 1 :] if close >= 0 else ""
    tail = tail.lstrip(" ->:").rstrip(" :{")
    return tuple(type_names(tail))
