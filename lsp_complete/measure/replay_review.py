"""`replay review`: a person grades a random sample of a run's suggestions.

Rules: the sample depends on the seed alone, and grades are kept with the run, one line each as soon as given, so that a review may
be broken off and gone on with. Text from a recording is shown with control characters made visible.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .replay_store import GRADES, append

GRADE_WORDS: Mapping[str, str] = {
    "1": "wrong",
    "2": "of little use",
    "3": "usable with changes",
    "4": "good",
    "5": "exactly right",
}

Row = Mapping[str, Any]

_UNSEEN = ("Cc", "Cf", "Cs")
"""Controls, marks that change how others are shown (the order of writing among them), halves of surrogate pairs."""


def sample(rows: Sequence[Row], count: int, seed: int) -> list[Row]:
    """At most count rows with a suggestion, drawn by the seed, in drawn order."""
    shown = [row for row in rows if row["text"]]
    return random.Random(seed).sample(shown, min(count, len(shown)))  # noqa: S311 (a draw to look at)


def grades(folder: Path) -> dict[tuple[str, int], int]:
    """Grades given so far, by recording and point; the last one counts."""
    path = folder / GRADES
    if not path.exists():
        return {}
    found: dict[tuple[str, int], int] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            found[entry["recording"], int(entry["point"])] = int(entry["grade"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue  # a line cut short by a crash
    return found


def visible(text: str) -> str:
    """The text with control characters (but tab and line end) as pictures, so that no terminal obeys them or fails at them."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _UNSEEN else "�" for c in text)


def show(row: Row) -> str:
    """What the person sees of one suggestion."""
    place = f"{row['path']} line {row['place'].partition(':')[2]}"
    body = f"{row['before']}⟦{row['text']}⟧{row['after']}"
    return f"── {visible(place)}\n{visible(body)}\n── finally: {visible(str(row.get('wanted', '')))}"


def review(
    folder: Path,
    rows: Sequence[Row],
    count: int,
    seed: int,
    ask: Callable[[str], str],
    say: Callable[[str], None],
) -> dict[str, int]:
    """Go through the sample; how often each grade stands now. ask: shows a prompt and gives the answer ("" skips, "q"
    ends); raises EOFError at the end of input, which ends too."""
    done = grades(folder)
    left = [row for row in sample(rows, count, seed) if (row["recording"], row["point"]) not in done]
    words = ", ".join(f"{key} {word}" for key, word in GRADE_WORDS.items())
    for number, row in enumerate(left, start=1):
        say(show(row))
        answer = _grade(ask, f"[{number}/{len(left)}] {words}; Enter skips, q ends: ")
        if answer == "q":
            break
        if answer:
            _keep(
                folder / GRADES, {"recording": row["recording"], "point": row["point"], "grade": int(answer)}
            )
    return {word: count for word, count in _counts(grades(folder).values())}


def _grade(ask: Callable[[str], str], prompt: str) -> str:
    while True:
        try:
            answer = ask(prompt).strip().lower()
        except EOFError:
            return "q"
        if answer in ("", "q") or answer in GRADE_WORDS:
            return answer


def _keep(path: Path, entry: Mapping[str, Any]) -> None:
    append(path, json.dumps(entry) + "\n")


def _counts(given: Any) -> Iterator[tuple[str, int]]:
    values = list(given)
    for key, word in GRADE_WORDS.items():
        yield word, values.count(int(key))
