"""What ghost text is on the screen, key by key, as an editor with inline completion shows it. Pure.

Rules: a suggestion stays while the typing agrees with it, cut by what was typed; any other change of the document
clears it; an answer for the newest state replaces it. An answer that changes text which the last key agreed with is a flicker.
"""

from __future__ import annotations

from dataclasses import dataclass

from .typist import Key


@dataclass(frozen=True, slots=True)
class Screen:
    """The ghost text; "" if none. agreed: the last key left it standing."""

    text: str = ""
    agreed: bool = False


def typed(screen: Screen, key: Key) -> Screen:
    """After a key. A typed closer that overwrote the editor's own agrees as any other character does."""
    if not screen.text or key.kind == "fix":
        return Screen()
    inserted = key.edits[-1].text if key.kind == "enter" else key.char
    if screen.text.startswith(inserted) and len(screen.text) > len(inserted):
        return Screen(screen.text[len(inserted) :], True)
    return Screen()


def answered(screen: Screen, text: str) -> tuple[Screen, bool]:
    """After the answer for the newest state ("" for no suggestion); True if that is a flicker."""
    return Screen(text, False), screen.agreed and text != screen.text
