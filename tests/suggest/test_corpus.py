"""A corpus of faulty suggestions of the kinds users complain of: each is handled as written beside it, and none
leaves a document worse than it was, by checks that know nothing of the filters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lsp_complete.suggest.pipeline import RawCandidate, polish
from tests.suggest.golden_tool import CURSOR, Case, polish_context

ROWS = [json.loads(x) for x in (Path(__file__).parent / "corpus.jsonl").read_text("utf-8").splitlines()]
PAIRS = {")": "(", "]": "[", "}": "{"}
IDS = [f"{i}-{r['kind']}-{r['language']}" for i, r in enumerate(ROWS)]


def _polished(row: dict[str, object], suggestion: str | None = None) -> tuple[str, str, str, str]:
    options = dict(row.get("options", {}))  # type: ignore[call-overload]
    case = Case("", options, str(row["place"]), str(row["suggestion"]), "", "")
    raw = (case.suggestion if suggestion is None else suggestion).encode()
    done = polish(RawCandidate(raw, options.get("stop", "eog")), polish_context(case, str(row["language"])))
    before, _, after = case.place.partition(CURSOR)
    return before, done.text, after, done.reason


def _brackets(text: str) -> tuple[int, int]:
    """(closers without an opener, openers without a closer), strings and comments left out roughly."""
    text = re.sub(r"//[^\n]*|#[^\n]*", "", text)
    text = re.sub(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", "", text)
    stack: list[str] = []
    wrong = 0
    for char in text:
        if char in "([{":
            stack.append(char)
        elif char in PAIRS:
            if stack and stack[-1] == PAIRS[char]:
                stack.pop()
            else:
                wrong += 1
    return wrong, len(stack)


def test_the_corpus_is_large_enough_and_broad() -> None:
    assert len(ROWS) >= 60
    assert len({r["kind"] for r in ROWS}) >= 10
    assert {"python", "typescript", "go", "rust", "java", "cpp"} <= {r["language"] for r in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_handled_as_written(row: dict[str, object]) -> None:
    _, text, _, reason = _polished(row)
    shown = f"(dropped: {reason})" if reason else text.replace("\r\n", "\n")
    assert shown == row["want"]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_brackets_are_no_worse_than_before(row: dict[str, object]) -> None:
    before, text, after, _ = _polished(row)
    wrong, opened = _brackets(before + after)
    now_wrong, now_opened = _brackets(before + text + after)
    assert now_wrong <= wrong
    assert now_opened <= opened or not after.partition("\n")[0].strip()


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_text_after_the_cursor_is_not_doubled(row: dict[str, object]) -> None:
    before, text, after, _ = _polished(row)
    if not text:
        return
    rest, _, below = after.partition("\n")
    if rest.strip() and not re.search(r"[(\[{]", text):
        assert not text.rstrip().endswith(rest.strip())
    last = (before + text).rpartition("\n")[2].rstrip()
    following = next((x.rstrip() for x in below.split("\n") if x.strip()), "")
    assert not last or rest.strip() or last != following


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_indentation_is_the_files_own(row: dict[str, object]) -> None:
    _, text, _, _ = _polished(row)
    tabs = row.get("options", {}).get("tabs") == "1"  # type: ignore[attr-defined]
    for line in text.replace("\r\n", "\n").split("\n")[1:]:
        space = line[: len(line) - len(line.lstrip(" \t"))]
        assert line.strip() or line is text.rpartition("\n")[2] or not line
        assert " " not in space if tabs else "\t" not in space
    if text and not text.endswith("\n"):
        assert text == text.rstrip() or "\n" not in text


@pytest.mark.parametrize("row", ROWS, ids=IDS)
@pytest.mark.parametrize("token", ["<|endoftext|>", "<|fim_middle|>", "<fim_suffix>", "<｜fim▁hole｜>", "<|new_kind|>"])
def test_no_special_token_is_ever_shown(row: dict[str, object], token: str) -> None:
    text = str(row["suggestion"])
    for at in (0, len(text) // 2, len(text)):
        shown = _polished(row, text[:at] + token + text[at:])[1]
        assert token not in shown and token[:4] not in shown
