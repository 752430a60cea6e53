"""Windows that begin in the middle of a string or a comment are read the right way round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.how_much import decide, situation
from lsp_complete.suggest.language import facts_for
from lsp_complete.suggest.scan import scan
from lsp_complete.suggest.window import scan_window

PYTHON = '''class A:
    """A thing, (open bracket in prose.

    More about it; don't panic.
    """

    def area(self, w):
        """Return the area."""
        return w * self.h

    def size(self):
        """Another one.

        With a second paragraph.
        """
        total = self.area(2)
        return '''

JAVA = """/** A thing (open
 * and it's fine.
 */
class A {
    int f(int a) {
        return """


@pytest.mark.parametrize("first", range(16))
def test_a_window_from_any_line_ends_in_code(first: int) -> None:
    window = "\n".join(PYTHON.split("\n")[first:])
    assert scan_window(window, facts_for("python")).end.in_code


@pytest.mark.parametrize("first", range(6))
def test_a_window_from_inside_a_comment(first: int) -> None:
    window = "\n".join(JAVA.split("\n")[first:])
    assert scan_window(window, facts_for("java")).end.in_code


@pytest.mark.parametrize("cut", ["More about", "With a second"])
def test_a_cursor_in_a_documentation_string_is_in_a_string(cut: str) -> None:
    for first in (0, 1, 7):
        lines = PYTHON[: PYTHON.index(cut) + len(cut)].split("\n")
        if first < len(lines) - 3:
            assert scan_window("\n".join(lines[first:]), facts_for("python")).end.string


def test_the_amount_follows() -> None:
    window = "\n".join(PYTHON.split("\n")[2:])
    assert decide(situation("python", window, "\n")).reason == "line"


TEXT = st.text(st.sampled_from("ab =():\n\"'*/#{}"), max_size=60)


@given(text=TEXT, language=st.sampled_from(["python", "java", "typescript", "x"]))
def test_never_raises(text: str, language: str) -> None:
    facts = facts_for(language)
    found = scan_window(text, facts)
    assert '"""' in text or "'''" in text or "*/" in text or found == scan(text, facts)
