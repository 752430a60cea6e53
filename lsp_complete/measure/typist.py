"""A typist at an editor: the edits that each key of a retyped line causes, and when the keys come.

Strategy: a line is taken out of an intact file and typed again. The editor does what editors do by default: Enter
indents, an opening bracket or quote brings its closer, typing the closer overwrites it, a closing bracket at the
start of a line moves it out. What the editor inserted too much is deleted at the end, so the file is whole again.

Rules:
- Pure and deterministic; the rhythm takes a seeded random source.
- Left of the cursor stands exactly what was typed of the target line; right of it only closers that the editor inserted.
- The habits are VS Code's defaults for the language, reduced to what one line can show.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .edits import Edit, Position, body, split_lines, utf16

MEDIAN_MS = 92.0
P90_MS = 250.0
BURST = 0.5
SIGMA = math.log(P90_MS / MEDIAN_MS) / 1.2815515655446004
"""Log-normal spread that puts the 90th percentile at P90_MS."""

BEFORE_CLOSER = " \t;:.,=}])>"
STRING_PREFIXES = frozenset({"r", "b", "f", "u", "rb", "br", "fr", "rf"})


@dataclass(frozen=True, slots=True)
class Habits:
    """What the editor does in one language. openers: line ends after which Enter indents one more."""

    quotes: str = "\"'"
    comment: str = "//"
    openers: str = "{(["
    leavers: re.Pattern[str] | None = None
    brackets: tuple[tuple[str, str], ...] = (("(", ")"), ("[", "]"), ("{", "}"))


_PYTHON = Habits(comment="#", openers=":{([", leavers=re.compile(r"\s*(return|raise|pass|break|continue)\b"))
_HABITS = {
    "python": _PYTHON,
    "javascript": Habits(quotes="\"'`"),
    "typescript": Habits(quotes="\"'`"),
    "go": Habits(quotes="\"'`"),
    "rust": Habits(quotes='"'),
}


def habits_of(language_id: str) -> Habits:
    """The table's row, or the C-like default."""
    return _HABITS.get(language_id, Habits())


@dataclass(frozen=True, slots=True)
class Key:
    """One key and the document after it.

    kind: "enter" | "char" | "fix" (indentation or left-over closers put right by hand). left and right: the cursor's
    line either side of the cursor. rest: what of the target line is still to come; right stands for a part of it.
    asks: whether an editor's automatic request after this key is worth measuring (something is left to suggest).
    """

    kind: str
    char: str
    edits: tuple[Edit, ...]
    cursor: Position
    left: str
    right: str
    rest: str
    asks: bool

    @property
    def expects(self) -> bool:
        """False where all that is left to type already stands right of the cursor."""
        return self.asks and self.rest.rstrip() != self.right.rstrip()


@dataclass(frozen=True, slots=True)
class Script:
    """Retyping one line. removal leads from the intact text to the state before the first key."""

    line: int
    target: str
    removal: Edit
    keys: tuple[Key, ...]


def indent_of(line: str) -> str:
    """Leading blanks and tabs."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_unit(lines: list[str]) -> str:
    """The file's own step: a tab if most indented lines begin with one, else the most frequent widening."""
    indents = [indent_of(line) for line in lines if line.strip()]
    if sum("\t" in i for i in indents) * 2 > sum(bool(i) for i in indents):
        return "\t"
    steps = Counter(len(b) - len(a) for a, b in pairwise(indents) if 1 < len(b) - len(a) <= 8)
    return " " * (min(steps, key=lambda s: (-steps[s], s)) if steps else 4)


def auto_indent(lines: list[str], line: int, unit: str, habits: Habits) -> str:
    """What Enter puts at the start of `line`, from the last line above it that is not blank."""
    above = next((body(x) for x in reversed(lines[:line]) if x.strip()), "")
    indent = indent_of(above)
    if above.rstrip().endswith(tuple(habits.openers)):
        return indent + unit
    if habits.leavers and habits.leavers.match(above):
        return indent[: max(0, len(indent) - len(unit))]
    return indent


def lexical_state(left: str, habits: Habits) -> str:
    """ "code", "comment", or the quote character that is open at the end of `left` (one line is looked at)."""
    quote = ""
    index = 0
    while index < len(left):
        char = left[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote = ""
        elif left.startswith(habits.comment, index):
            return "comment"
        elif char in habits.quotes:
            quote = char
        index += 1
    return quote or "code"


def closer_for(char: str, left: str, right: str, habits: Habits) -> str:
    """The closer that the editor adds when `char` is typed between left and right, or ""."""
    if right and right[0] not in BEFORE_CLOSER:
        return ""
    for opener, closer in habits.brackets:
        if char == opener:
            return closer
    if char not in habits.quotes or lexical_state(left, habits) != "code":
        return ""
    word = re.search(r"\w*$", left)
    before = word.group() if word else ""
    if before and not (habits is _PYTHON and before.lower() in STRING_PREFIXES):
        return ""
    return "" if left.endswith((char, "\\")) else char


def script_for(text: str, line: int, language_id: str) -> Script:
    """The keys that retype `line` (zero-based, not the first). Raises ValueError for the first line or a blank one."""
    lines = split_lines(text)
    if not 0 < line < len(lines) or not lines[line].strip():
        raise ValueError("Only a line that is not blank and not the first one can be retyped.")
    target = body(lines[line])
    above = body(lines[line - 1])
    removal = Edit(Position(line - 1, utf16(above)), Position(line, utf16(target)), "")
    newline = lines[line - 1][len(above) :]
    habits = habits_of(language_id)
    keys = tuple(_keys(lines, line, target, newline, habits))
    return Script(line, target, removal, keys)


def _keys(lines: list[str], line: int, target: str, newline: str, habits: Habits) -> Iterator[Key]:
    above = body(lines[line - 1])
    wanted = indent_of(target)
    given = auto_indent(lines, line, indent_unit(lines), habits)
    electric = target[len(wanted)] in ")]}"
    end = Position(line - 1, utf16(above))
    right_at_once = given == wanted or electric
    start = Position(line, len(given))
    rest = target[len(wanted) :]
    yield Key("enter", "\n", (Edit(end, end, newline + given),), start, given, "", rest, right_at_once)
    if not right_at_once:
        fix = Edit(Position(line, 0), start, wanted)
        yield Key("fix", "\t", (fix,), Position(line, len(wanted)), wanted, "", rest, True)
    left, right = (given if electric else wanted), ""
    for index in range(len(wanted), len(target)):
        char, rest = target[index], target[index + 1 :]
        at = Position(line, utf16(left))
        if electric and index == len(wanted):
            edit, left = Edit(Position(line, 0), at, wanted + char), wanted + char
        elif right.startswith(char):  # typing the closer overwrites it
            edit, left, right = Edit(at, Position(line, at.character + 1), char), left + char, right[1:]
        else:
            closer = closer_for(char, left, right, habits)
            edit, left, right = Edit(at, at, char + closer), left + char, closer + right
        cursor = Position(line, utf16(left))
        yield Key("char", char, (edit,), cursor, left, right, rest, bool(rest.strip()))
    if right:
        at = Position(line, utf16(left))
        over = Edit(at, Position(line, at.character + utf16(right)), "")
        yield Key("fix", "\x7f", (over,), at, left, "", "", False)


def rhythm_ms(rng: random.Random) -> Iterator[float]:
    """Endless delays before each key, in milliseconds: log-normal (median 92, 90 % below 250), with
    neighbours alike, so that bursts and pauses come about."""
    z = rng.gauss(0, 1)
    while True:
        yield MEDIAN_MS * math.exp(SIGMA * z)
        z = BURST * z + math.sqrt(1 - BURST * BURST) * rng.gauss(0, 1)
