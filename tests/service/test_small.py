"""The small prompt of a cold place: as large as the deadline allows at the measured rate, with what stands around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_complete.context.anchor import Window
from lsp_complete.service.documents import OpenDocument
from lsp_complete.service.planning import plan
from lsp_complete.service.small import LEAST_TOKENS, LINES, small_room, small_window
from lsp_complete.service.windows import SMALL
from lsp_complete.text.document import Document

from .test_context_join import MODEL, spelled

TEXT = "class Box:\n    def open(self, key):\n" + "".join(f"        self.step_{n:02d}(key)\n" for n in range(40)) + "        self."


def document(text: str = TEXT) -> OpenDocument:
    return OpenDocument(Document.open("file:///a.py", "python", 1, text), 0.0)


def test_the_rate_and_the_deadline_give_the_room() -> None:
    assert small_room(300.0, 800.0) == 144 and small_room(10.0, 800.0) == LEAST_TOKENS
    assert small_room(300.0, 400.0) == 72


@pytest.mark.parametrize("room", [700, 400, 250, 10])
def test_as_many_lines_as_fit(room: int) -> None:
    state = document()
    window = small_window(state, len(TEXT), MODEL, room)
    prompt = plan(state, len(TEXT), MODEL, window).prompt.prompt
    assert window.small and (window.lines_above, window.lines_below) == (window.anchor_lines, SMALL.lines_below)
    assert len(prompt) <= room + 3 or window.lines_above == LINES[-1], "the three are the family's own tokens"
    larger = [n for n in LINES if n > window.lines_above]
    if larger:
        wider = replace(window, lines_above=larger[-1], anchor_lines=larger[-1])
        assert len(plan(document(), len(TEXT), MODEL, wider).prompt.prompt) > room


def test_the_heads_of_the_blocks_around_it_stand_before_it() -> None:
    state = document()
    text = spelled(plan(state, len(TEXT), MODEL, replace(SMALL, lines_above=4, anchor_lines=4)).prompt.prompt)
    assert text.startswith("<P>class Box:\n    def open(self, key):\n        self.step_3") and text.count("self.step") == 5
    few = spelled(plan(document(), len(TEXT), MODEL, Window(lines_above=8, lines_below=2, anchor_lines=4)).prompt.prompt)
    assert few.startswith("<P>class Box:\n    def open(self, key):\n        self.step_3"), "and before any window of so few lines"
    usual = spelled(plan(document(), len(TEXT), MODEL, Window(lines_above=20, lines_below=2, anchor_lines=4)).prompt.prompt)
    assert "class Box" not in usual
