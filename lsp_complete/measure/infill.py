"""HumanEval-Infilling, single line, by the mid-line rule: problems, cursors and scores. Pure.

The rule: the gap is one whole line of the solution; the cursor stands at a seeded place inside it, everything before it
typed, a line end and the rest of the file below. The answer's first line must be the rest of the line. Lines
with fewer than four characters after their indentation are left out.

Source: Bavarian et al. 2022 (the data); the mid-line rule is this project's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One line to complete: before + rest + newline + suffix is the reference; test checks entry_point."""

    task_id: str
    entry_point: str
    before: str
    rest: str
    suffix: str
    test: str

    @property
    def document(self) -> str:
        """What the editor shows."""
        return f"{self.before}\n{self.suffix}"

    @property
    def cursor(self) -> tuple[int, int]:
        """Zero-based line and column in code points (the data is ASCII to its few exceptions)."""
        return self.before.count("\n"), len(self.before) - self.before.rfind("\n") - 1

    def program(self, rest: str) -> str:
        """The program to run with `rest` in the gap."""
        return f"{self.before}{rest}\n{self.suffix}\n{self.test}\ncheck({self.entry_point})\n"


def problems(lines: Iterable[str]) -> Iterator[Problem]:
    """Problems of a JSON-lines file, in order. Raises ValueError for a line that is none."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
            line = row["canonical_solution"].rstrip("\n")
            found = _problem(row, line)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
            raise ValueError(f"Line {number} of the data is no infilling problem.") from None
        if found is not None:
            yield found


def _problem(row: dict[str, str], line: str) -> Problem | None:
    indent = len(line) - len(line.lstrip())
    if len(line) - indent < 4:
        return None
    k = random.Random(row["task_id"]).randint(indent, len(line) - 2)  # noqa: S311 (the data set's rule)
    before = row["prompt"] + line[:k]
    return Problem(row["task_id"], row["entry_point"], before, line[k:], row["suffix"], row["test"])


def levenshtein(a: str, b: str) -> int:
    """Edits of one character that turn a into b."""
    if len(a) < len(b):
        a, b = b, a
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def edit_similarity(a: str, b: str) -> float:
    """1 − edits / length of the longer; 1.0 for two empty texts."""
    longest = max(len(a), len(b))
    return 1.0 - levenshtein(a, b) / longest if longest else 1.0


def first_line(text: str) -> str:
    """Up to the first line end, right-stripped, as the rule compares it."""
    return text.replace("\r", "\n").split("\n", 1)[0].rstrip()


def exact(answer: str, problem: Problem) -> bool:
    """The mid-line rule's verdict on an answer's text."""
    return first_line(answer) == problem.rest.rstrip()
