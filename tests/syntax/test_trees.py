"""Incremental trees equal fresh ones, whatever is typed; limits; offsets."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.syntax import extract, trees
from lsp_complete.syntax.encode import BYTES, encode, read
from lsp_complete.syntax.facts_at import facts_at
from lsp_complete.syntax.outline import outline_of
from lsp_complete.syntax.trees import SyntaxTree, edited, error_spans, hull, parse, why_not_parsed
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.syntax.helpers import (
    PIECES,
    SAMPLES,
    TWELVE,
    changes,
    document,
    dump,
    endings,
    grammar_of,
    tree_of,
)

SLOW_OK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equality is not a matter of time: a busy machine must not stop a parse here."""
    monkeypatch.setattr(trees, "BASE_SECONDS", 600.0)


def settled(tree: SyntaxTree | None) -> SyntaxTree:
    """What a document's tree is at rest: an unsettled one is parsed afresh."""
    assert tree is not None
    return tree if tree.settled else settled(parse(tree.grammar, tree.buffer))


@pytest.mark.slow
@pytest.mark.parametrize("language", TWELVE)
@SLOW_OK
@given(data=st.data())
def test_incremental_tree_equals_fresh_tree(language: str, data: st.DataObject) -> None:
    grammar = grammar_of(language)
    current = document(data.draw(endings(SAMPLES[language])))
    tree = settled(parse(grammar, current.buffer))
    for _ in range(data.draw(st.integers(1, 4))):
        following, edits = data.draw(changes(current))
        moved = edited(tree, edits, following.buffer)
        tree = settled(parse(grammar, following.buffer, moved))
        fresh = parse(grammar, following.buffer)
        assert fresh is not None
        assert dump(tree) == dump(fresh)
        current = following


@pytest.mark.slow
@pytest.mark.parametrize("language", TWELVE)
@SLOW_OK
@given(data=st.data())
def test_without_errors_incremental_is_fresh_at_once(language: str, data: st.DataObject) -> None:
    """No second parse is behind the equality where the text is whole."""
    grammar = grammar_of(language)
    current = document(data.draw(endings(SAMPLES[language])))
    tree = settled(parse(grammar, current.buffer))
    following, edits = data.draw(changes(current, most=1))
    incremental = parse(grammar, following.buffer, edited(tree, edits, following.buffer))
    fresh = parse(grammar, following.buffer)
    assert incremental is not None and fresh is not None
    if incremental.settled:
        assert dump(incremental) == dump(fresh)
    else:
        assert fresh.root.has_error or incremental.root.has_error


def _kept_whole(rng: random.Random, current: Document, tree: SyntaxTree) -> list[Change]:
    """Changes that mostly leave a text whole: a longer name, another blank, a line commented out, a definition twice or gone."""
    facts, buffer = tree.grammar.facts, current.buffer
    line = rng.randrange(buffer.line_count)
    text, ending = buffer.line_content(line), current.newline
    kind = rng.randrange(7)
    if kind == 0 and (names := list(re.finditer(r"[A-Za-z_]{4,}", text))):
        at = (line, rng.choice(names).start() + 2)
        return [Change((at, at), rng.choice(["q", "_z", "é"]))]
    if kind == 1 and " " in text.strip():
        at = (line, text.rindex(" "))
        return [Change((at, at), rng.choice([" ", "  "]))]
    if kind == 2:
        at = (line, len(text))
        return [Change((at, at), rng.choice([ending, ending * 3, "  ", " \t"]))]
    if kind == 3 and facts.line_comment:
        return [Change(((line, 0), (line, 0)), f"{facts.line_comment} it's (a 😀 \u2028 e\u0301{ending}")]
    if kind == 4 and facts.block_comment:
        begin, end = facts.block_comment
        last = min(line + rng.randrange(4), buffer.line_count - 1)
        at = (last, len(buffer.line_content(last)))
        return [Change((at, at), end), Change(((line, 0), (line, 0)), begin)]  # closed first, then opened
    children = tree.root.named_children
    if kind > 4 and children:
        child = rng.choice(children)
        first, last = child.start_byte // BYTES, child.end_byte // BYTES
        points = (buffer.position(first), buffer.position(last))
        return [Change(points, buffer.slice(first, last) + ending + buffer.slice(first, last) if kind == 5 else "")]
    return []


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_whole_text_after_whole_text(language: str, ending: str) -> None:
    """Every language; no second parse behind the equality, and the text is whole often enough for it to say something."""
    rng = random.Random(f"{language}{ending}")
    start = document(SAMPLES[language].replace("\n", ending), language)
    current, tree = start, tree_of(language, start.buffer.text())
    compared = 0
    for _ in range(90):
        following, edits = current.apply(_kept_whole(rng, current, tree), Encoding.UTF32, current.version + 1)
        after = parse(tree.grammar, following.buffer, edited(tree, edits, following.buffer))
        fresh = parse(tree.grammar, following.buffer)
        assert after is not None and fresh is not None
        if after.settled:
            assert dump(after) == dump(fresh)
            compared += bool(edits)
            current, tree = following, after
        if rng.randrange(12) == 0 or following.buffer.length < start.buffer.length // 2:
            current, tree = start, tree_of(language, start.buffer.text())
    assert compared >= 25


def test_an_edit_reads_only_its_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "package m\n" + "func f(a int) int {\n\treturn a + 1\n}\n" * 3000
    tree = tree_of("go", text)
    current = document(text)
    following, edits = current.apply([Change(((4501, 6), (4501, 6)), "x")], Encoding.UTF32, 2)
    asked: list[int] = []

    def counting(buffer: TextBuffer, offset: int, size: int) -> bytes:
        data = read(buffer, offset, size)
        asked.append(len(data) // BYTES)
        return data

    monkeypatch.setattr(trees, "read", counting)
    assert parse(tree.grammar, following.buffer, edited(tree, edits, following.buffer)) is not None
    assert sum(asked) < len(text) / 20


@given(st.text(alphabet=st.sampled_from("ab\r\n\0é😀𝒳\u2028"), max_size=40), st.integers(0, 40))
def test_every_code_point_takes_two_bytes_and_any_cut_reads_the_same(text: str, cut: int) -> None:
    whole = encode(text)
    buffer = TextBuffer.from_text(text)
    assert len(whole) == BYTES * len(text)
    assert read(buffer, 0, cut) + read(buffer, cut, len(text)) == whole


def test_rows_of_the_parser_are_lines_of_the_buffer() -> None:
    text = "a = 1\rb = '😀'\r\nc = 3\n\rd = 4"
    tree = tree_of("python", text)
    rows = [child.start_point[0] for child in tree.root.children]
    assert (
        rows
        == [tree.buffer.position(child.start_byte // BYTES)[0] for child in tree.root.children]
        == [0, 1, 2, 4]
    )


@given(data=st.data())
def test_hull_of_edits_covers_them(data: st.DataObject) -> None:
    current = document(SAMPLES["python"])
    following, edits = data.draw(changes(current))
    covered = hull(edits, current.buffer, following.buffer)
    old, new = current.buffer.text(), following.buffer.text()
    assert old[: covered.start] + new[covered.start : covered.new_end] + old[covered.old_end :] == new


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * (trees.MAX_CHARS + 1), "larger"),
        ("\0\1\2\3", "binary"),
        ("\ufffd" * 50 + "abc", "binary"),
        ("\x01\x02" * 20 + "a" * 100, "binary"),
        ("# é 😀 ünïcode\nx = 1\n", ""),
        ("\x1b[0m" * 10, ""),
        ("", ""),
    ],
)
def test_what_is_not_parsed(text: str, reason: str) -> None:
    found = why_not_parsed(TextBuffer.from_text(text))
    assert (reason in found) if reason else found == ""


def test_a_parse_stops_when_told() -> None:
    buffer = TextBuffer.from_text("x = [1, 2, 3]\n" * 5000)
    assert parse(grammar_of("python"), buffer, should_stop=lambda: True) is None


def test_a_grammar_that_runs_away_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "BASE_SECONDS", 0.0)
    monkeypatch.setattr(trees, "SECONDS_PER_CHAR", 0.0)
    assert parse(grammar_of("kotlin"), TextBuffer.from_text(SAMPLES["kotlin"] * 50)) is None


def test_a_grammar_that_takes_memory_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limit this takes more than ten gigabytes."""
    monkeypatch.setattr(trees, "MAX_GROWTH", 64 << 20)
    assert parse(grammar_of("lua"), TextBuffer.from_text("/*" * 30_000)) is None


@pytest.mark.parametrize("piece", PIECES)
def test_error_spans_lie_in_the_text(piece: str) -> None:
    text = SAMPLES["typescript"].replace("super();", piece)
    tree = tree_of("typescript", text)
    for start, end in error_spans(tree):
        assert 0 <= start <= end <= len(text)
    assert bool(error_spans(tree)) == tree.root.has_error


@pytest.mark.parametrize(
    "text",
    [
        "- " * 300 + "a\n",
        "".join(" " * depth + "a:\n" for depth in range(300)),
        "x: 1\r" + "? " * 300 + "a\r",
        "".join(" " * depth + "- a:\n" for depth in range(0, 600, 2)),
    ],
)
def test_what_would_overflow_a_scanner_is_not_parsed(text: str) -> None:
    """Without the limit each of these ends the process."""
    assert parse(grammar_of("yaml"), TextBuffer.from_text(text)) is None
    shallow = "".join(" " * depth + "- a:\n" for depth in range(0, 180, 2))
    assert parse(grammar_of("yaml"), TextBuffer.from_text(shallow)) is not None


def _blocks(depth: int, unit: str = " ") -> str:
    """Blocks in blocks, and a string in the innermost: what the scanner then writes goes beyond its buffer."""
    return "".join(unit * row + "if x:\n" for row in range(depth)) + unit * depth + 'f"{a} b"\n'


@pytest.mark.parametrize(
    "text",
    [
        _blocks(511),
        _blocks(600),
        _blocks(80) + _blocks(700).replace("\n", "\r\n"),
        "".join(" " * (row % 8) + "\t" * (row // 8) + "if x:\n" for row in range(600)) + "\t" * 75 + "y = 'a'\n",
        "".join("\t" * (row // 8) + " " * (row % 8) + "if x:\n" for row in range(600)) + "\t" * 75 + "y = 'a'\n",
        "".join(" " * (row // 2) + "\\\n" + " " * (row - row // 2) + "if x:\n" for row in range(600)) + "y = 'a'\n",
    ],
)
def test_indentations_beyond_the_scanners_buffer_are_not_parsed(text: str) -> None:
    """Without the limit each of these ends the process."""
    assert parse(grammar_of("python"), TextBuffer.from_text(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        _blocks(100),
        _blocks(100, "\t"),
        "f(\n" + "".join(" " * column + "a,\n" for column in range(0, 2000, 8)) + ")\n",
        'x = """\n' + (" " * 1000 + "\n") * 400 + '"""\n',
        "x = a + \\\n    b\n" * 400,
    ],
)
def test_what_is_indented_far_is_parsed(text: str) -> None:
    assert parse(grammar_of("python"), TextBuffer.from_text(text)) is not None


def _heredocs(count: int, word: str) -> str:
    return "f(" + ", ".join(f"<<~{word}" for _ in range(count)) + ")\n" + f"  x\n{word}\n" * count


@pytest.mark.parametrize(
    "text",
    [
        _heredocs(93, "LETTERS"),
        _heredocs(31, "L" * 29),
        _heredocs(11, "L" * 89),
        _heredocs(93, "LETTERS").replace("\n", "\r"),
        _heredocs(93, "LETTERS").replace("<<~LETTERS", "<<'LETTERS'"),
        "x = 1\n" * 3000 + "".join("<<~LETTERS\n#{" for _ in range(93)),
    ],
)
def test_heredocs_beyond_the_scanners_buffer_are_not_parsed(text: str) -> None:
    """Without the limit the first three end the process."""
    assert parse(grammar_of("ruby"), TextBuffer.from_text(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        _heredocs(20, "LETTERS"),
        "".join(f"x{row} = <<~SQL\n  select {row}\nSQL\n" for row in range(1000)),
        "".join(f"x{row} = <<'A B'.strip\r\n  #{{y}}\r\n  A B\r\nA B\r\n" for row in range(1000)),
        "class << self\nend\n" * 500,
        "a = 1<<2 | b<<c\nout<<text\nlist << 'item'\n" * 500,
    ],
)
def test_heredocs_as_people_write_them_are_parsed(text: str) -> None:
    assert parse(grammar_of("ruby"), TextBuffer.from_text(text)) is not None


@pytest.mark.parametrize("language", ["python", "javascript", "c", "json"])
def test_brackets_without_end_are_asked_nothing(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query over one ERROR node of that many children takes seconds, and longer by the square."""
    text = "[" * 50_000
    tree = tree_of(language, text)
    assert trees.wide_error(tree)
    monkeypatch.setattr(extract, "_cursor", lambda *_: pytest.fail("a query was run"))
    outline = outline_of(tree)
    assert outline.nodes == () and outline.broken
    assert facts_at(tree, tree.buffer, 25_000, outline).language == language
    assert not trees.wide_error(tree_of(language, SAMPLES[language] + "[" * 50))
