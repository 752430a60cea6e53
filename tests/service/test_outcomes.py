"""What became of suggestions, read off an editor's messages."""

from __future__ import annotations

import asyncio

import pytest

from lsp_complete.service.outcomes import Outcomes, agreed
from lsp_complete.service.types import Query, Suggestion
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding

URI = "file:///a.py"


class Editor:
    """An editor with one document, whose cursor stands at its end."""

    def __init__(self, text: str = "total = ") -> None:
        self.now = 0.0
        self.document = Document.open(URI, "python", 1, text)
        self.waits: list[float] = []
        self.outcomes = Outcomes(lambda: self.now, lambda _uri: self.document, lambda delay, _do: self.waits.append(delay))
        self.ids = 0

    def gets(self, text: str, *, menu: bool = False) -> str:
        self.ids += 1
        at = self.document.buffer.length
        given = Suggestion(f"s{self.ids}", text, at, at)
        self.outcomes.answered(Query(self.document, at, 0.0, menu=menu), (given,))
        return given.id

    def puts(self, text: str, back: int = 0) -> None:
        end = self.document.buffer.position(self.document.buffer.length)
        start = (end[0], end[1] - back)
        change = Change((start, end), text)
        self.document, edits = self.document.apply([change], Encoding.UTF32, self.document.version + 1)
        self.outcomes.changed(self.document, edits)

    def counts(self) -> dict[str, object]:
        told = self.outcomes.snapshot()
        return {k: v for k, v in told.items() if v and k not in ("answered", "chars_shown", "still_there")}


def test_an_acceptance_told_by_a_command_counts_once() -> None:
    editor = Editor()
    given = editor.gets("width * height")
    editor.puts("width * height")
    assert editor.counts() == {"shown": 1, "accepted": 1, "chars_taken": 14}
    assert editor.outcomes.accepted(given) == URI and editor.outcomes.accepted("s9") == ""
    assert editor.counts() == {"shown": 1, "accepted": 1, "chars_taken": 14}


def test_typing_it_all_is_not_accepting_and_another_key_is_typed_over() -> None:
    editor = Editor()
    editor.gets("ab")
    editor.puts("a")
    editor.gets("b")
    editor.puts("b")
    assert editor.counts() == {"shown": 1, "typed_out": 1}
    editor.gets(" + 1")
    editor.puts(";")
    assert editor.counts() == {"shown": 2, "typed_out": 1, "typed_over": 1}


def test_words_accepted_one_by_one_and_then_left() -> None:
    editor = Editor()
    given = editor.gets("width * height")
    editor.puts("width")
    editor.outcomes.partially_accepted(given, 5)
    assert editor.counts() == {"shown": 1}
    editor.gets(" * height")
    editor.puts(" *")
    editor.puts("\n")
    assert editor.counts() == {"shown": 1, "partly_accepted": 1, "chars_taken": 7}


def test_acceptance_over_what_was_typed_and_from_a_menu() -> None:
    editor = Editor()
    editor.gets("width * height")
    editor.puts("w")
    editor.puts("width * height", back=1)
    assert editor.counts()["accepted"] == 1
    given = editor.gets("other", menu=True)
    assert editor.counts()["shown"] == 1
    editor.puts("other")
    assert editor.outcomes.accepted(given) == URI
    assert editor.counts()["accepted"] == 2


def test_moving_away_and_closing_dismiss() -> None:
    editor = Editor()
    editor.gets("width")
    editor.outcomes.moved(URI, 8)
    assert editor.counts() == {"shown": 1}
    editor.outcomes.moved(URI, 2)
    editor.gets("height")
    editor.outcomes.closed(URI)
    assert editor.counts() == {"shown": 2, "dismissed": 2}


def test_edits_elsewhere_move_the_place_along() -> None:
    editor = Editor("x = 1\ntotal = ")
    editor.gets("width")
    change = Change(((0, 0), (0, 0)), "# one more\n")
    editor.document, edits = editor.document.apply([change], Encoding.UTF32, 2)
    editor.outcomes.changed(editor.document, edits)
    editor.puts("width")
    assert editor.counts() == {"shown": 1, "accepted": 1, "chars_taken": 5}


async def test_accepted_text_is_looked_for_again() -> None:
    editor = Editor()
    editor.gets("width * height")
    editor.puts("width * height")
    assert [round(wait) for wait in editor.waits] == [30, 120, 600]
    editor.now = 31.0
    await editor.outcomes.look()
    assert editor.outcomes.snapshot()["still_there"] == {"30": 1.0}
    editor.puts("wrong", back=22)
    editor.now = 700.0
    await editor.outcomes.look()
    await editor.outcomes.look()
    assert editor.outcomes.snapshot()["still_there"] == {"30": 1.0, "120": 0.0, "600": 0.0}
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("left", "put", "count"),
    [
        ("foo(x)", "f", 1),
        ("(x)", "()", 1),
        ("(x)", "(y", 0),
        ("\n    return x", "\n    ", 5),
        ("\n    return x", "\n\t", 5),
        ("abc", "abc", 3),
        ("abc", "x", 0),
        ("abc", "", 0),
    ],
)
def test_what_agrees(left: str, put: str, count: int) -> None:
    assert agreed(left, put) == count
