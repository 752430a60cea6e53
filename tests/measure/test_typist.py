"""The typist: whatever the file, the keys lead back to it exactly, and the editor's habits show."""

from __future__ import annotations

import math
import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.measure.edits import Edit, Position, apply_edits, offset_at, split_lines
from lsp_complete.measure.screen import Screen, answered, typed
from lsp_complete.measure.typist import Script, indent_unit, lexical_state, rhythm_ms, script_for

LANGUAGES = ("python", "javascript", "cpp", "rust", "unknown")


def states(text: str, script: Script) -> list[str]:
    """The document before the first key and after each."""
    found = [apply_edits(text, [script.removal])]
    for key in script.keys:
        found.append(apply_edits(found[-1], key.edits))
    return found


def check_script(text: str, line: int, language: str) -> Script:
    script = script_for(text, line, language)
    after = states(text, script)
    assert after[-1] == text
    for key, state in zip(script.keys, after[1:], strict=True):
        here = split_lines(state)[line]
        at = offset_at(split_lines(state), key.cursor) - offset_at(split_lines(state), Position(line, 0))
        assert here[:at] == key.left
        assert here[at:].rstrip("\r\n") == key.right or key.char == "\x7f"
        if key.kind == "char":
            assert key.left + key.rest == script.target
    return script


SNIPPET = st.text(alphabet="abf \t(){}[]\"'`\\:,=#/.😀é", max_size=24)


@given(
    st.lists(SNIPPET, min_size=2, max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(LANGUAGES),
)
def test_keys_restore_the_file_whatever_it_holds(lines: list[str], newline: str, language: str) -> None:
    text = newline.join(lines)
    for number in range(1, len(lines)):
        if lines[number].strip():
            check_script(text, number, language)


def test_closers_are_inserted_overwritten_and_removed() -> None:
    script = check_script("x = 1\ny = f(a[0], 'b')\nz = 2\n", 1, "python")
    by_char = {i: k for i, k in enumerate(script.keys)}
    opened = next(k for k in script.keys if k.char == "(")
    assert opened.edits[0].text == "()" and opened.right == ")"
    closed = next(k for k in reversed(script.keys) if k.char == ")")
    assert closed.edits == (Edit(Position(1, 15), Position(1, 16), ")"),)
    assert closed.right == "" and by_char[len(script.keys) - 1] is closed

    left_open = check_script("a = 1\nfoo(\n    b)\n", 1, "python")
    assert left_open.keys[-1].kind == "fix" and not left_open.keys[-1].asks


def test_a_key_expects_nothing_when_only_closers_remain() -> None:
    script = script_for("a\nprint(abc)\n", 1, "python")
    before_closer = next(k for k in script.keys if k.left == "print(abc")
    assert before_closer.asks and not before_closer.expects
    assert all(k.expects for k in script.keys if k.left in ("", "print", "print(", "print(ab"))


@pytest.mark.parametrize(
    ("text", "line", "language", "given_indent", "kinds"),
    [
        ("def f():\n    return 1\n", 1, "python", "    ", ["enter"]),
        ("def f():\n    return 1\n\nx = 2\n", 3, "python", "", ["enter"]),
        ("if a:\n    b()\nc()\n", 2, "python", "    ", ["enter", "fix"]),
        ("int f() {\n\tint a;\n\treturn 0;\n}\n", 2, "cpp", "\t", ["enter"]),
    ],
)
def test_enter_indents_as_the_file_does(
    text: str, line: int, language: str, given_indent: str, kinds: list[str]
) -> None:
    script = check_script(text, line, language)
    assert script.keys[0].edits[0].text == "\n" + given_indent
    assert [k.kind for k in script.keys if k.kind != "char"] == kinds
    assert [k.asks for k in script.keys[: len(kinds)]] == [k is kinds[-1] for k in kinds]


def test_a_closing_bracket_moves_out() -> None:
    script = check_script("f() {\n    if (a) {\n        b;\n    } else { return 7; }\n}\n", 3, "cpp")
    closer = script.keys[1]
    assert closer.char == "}" and closer.edits == (Edit(Position(3, 0), Position(3, 8), "    }"),)


def test_quotes_close_only_where_editors_close_them() -> None:
    assert script_for("a\nx = f'{b}' + \"c\"\n", 1, "python").keys[6].edits[0].text == "''"
    apostrophe = next(k for k in script_for("a\n# don't close this\n", 1, "python").keys if k.char == "'")
    assert apostrophe.edits[0].text == "'"
    inside = next(k for k in script_for('a\nx = "it\'s so"\n', 1, "javascript").keys if k.char == "'")
    assert inside.edits[0].text == "'"
    lifetime = next(k for k in script_for("a\nlet x: &'a str = y;\n", 1, "rust").keys if k.char == "'")
    assert lifetime.edits[0].text == "'"


def test_lexical_state_and_unit() -> None:
    from lsp_complete.measure.typist import habits_of

    python = habits_of("python")
    assert lexical_state("x = 'a\\'b", python) == "'"
    assert lexical_state("x = 'a' # it's", python) == "comment"
    assert lexical_state("x = '#' + ", python) == "code"
    assert indent_unit(["a", "  b", "    c", "  d"]) == "  "
    assert indent_unit(["a", "\tb"]) == "\t"
    assert indent_unit(["a"]) == "    "


@pytest.mark.parametrize("line", [0, 5, 1])
def test_lines_that_cannot_be_retyped_are_refused(line: int) -> None:
    with pytest.raises(ValueError, match="retyped"):
        script_for("a\n\nb", line, "python")


def test_rhythm_is_seeded_and_has_the_stated_quantiles() -> None:
    first = list(islice(rhythm_ms(random.Random(3)), 20000))
    assert first[:50] == list(islice(rhythm_ms(random.Random(3)), 50))
    ordered = sorted(first)
    assert math.isclose(ordered[10000], 92, rel_tol=0.05)
    assert math.isclose(ordered[18000], 250, rel_tol=0.07)


def test_screen_keeps_what_agrees_and_counts_flicker() -> None:
    keys = {k.left: k for k in script_for("a\nprint(abc)\n", 1, "python").keys}
    screen = typed(Screen("rint(abc)"), keys["pr"])
    assert screen == Screen("int(abc)", True)
    assert answered(screen, "int(abc)") == (Screen("int(abc)"), False)
    assert answered(screen, "int(x)") == (Screen("int(x)"), True)
    assert answered(typed(screen, keys["print("]), "abc") == (Screen("abc"), False)
    assert typed(Screen("x"), keys["pr"]) == Screen()
    assert typed(Screen("r"), keys["pr"]) == Screen()
