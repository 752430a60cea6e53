"""Real files under random edits, awkward contents, and the document benchmark's parts with a tokenizer of one id per byte."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.measure import bench_documents_typing as bench
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change, Edit, merge
from lsp_complete.text.positions import Encoding, units
from lsp_complete.text.tokens import TokenTable
from tests.text.plain import hostile, plain_lines, plain_offset
from tests.text.samples import SAMPLES
from tests.text.test_tokens import Letters

quotes = st.sampled_from(['"', "'", "'''", "/*", "*/", "#", "//", "`", "<!--", "\r", "\n", "\r\n", "{", "}"])


@settings(deadline=None)
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 90), st.sampled_from([0, 0, 1, 3]), hostile | quotes),
        max_size=6,
    ),
    st.sampled_from(list(Encoding)),
)
def test_edited_files_equal_plain_text(
    name: str, edits: list[tuple[int, int, int, str]], encoding: Encoding
) -> None:
    text = SAMPLES[name]
    document = Document.open("file:///a", "x", 1, text)
    for line, column, lines, new in edits:
        a, b = (line, column), (line + lines, column // 2)
        start, end = sorted((plain_offset(text, *a, encoding.value), plain_offset(text, *b, encoding.value)))
        text = text[:start] + new + text[end:]
        document, _ = document.apply([Change((a, b), new)], encoding, document.version + 1)
        assert document.buffer.lines(0, 10**6) == plain_lines(text)
    assert document.buffer.text() == text


@given(hostile, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), hostile), min_size=1, max_size=5))
def test_merged_edits_cover_all_that_changed(text: str, steps: list[tuple[int, int, str]]) -> None:
    first = last = Document.open("file:///a", "x", 1, text)
    edits: list[Edit] = []
    for at, length, new in steps:
        span = (last.buffer.position(at), last.buffer.position(at + length))
        last, made = last.apply([Change(span, new)], Encoding.UTF32, 2)
        edits += made
    merged = merge(edits)
    assert merged is not None
    old, new_text = first.buffer.text(), last.buffer.text()
    assert old[: merged.start] == new_text[: merged.start]
    assert old[merged.old_end :] == new_text[merged.new_end :]
    assert merged.start_point == first.buffer.position(merged.start)
    assert merged.old_end_point == first.buffer.position(merged.old_end)
    assert merged.new_end_point == last.buffer.position(merged.new_end)


def test_no_edits_merge_to_none() -> None:
    assert merge([]) is None


@pytest.mark.parametrize("seed", range(3))
def test_binary_content_is_text_like_any_other(seed: int) -> None:
    content = random.Random(seed).randbytes(60_000).decode("latin-1")
    document = Document.open("file:///a", "x", 1, content)
    table = TokenTable(Letters("starcoder"), document.buffer)
    assert document.buffer.text() == content
    assert table.ids(1000, 9000) == Letters().tokenize(content[1000:9000])


def test_a_huge_line_is_read_in_windows() -> None:
    letters = Letters()
    document = Document.open("file:///a", "x", 1, "x = 1; " * 300_000)
    table = TokenTable(letters, document.buffer)
    letters.asked = 0
    for _ in range(5):
        old = document
        document, edits = old.apply([Change(((0, 10**6), (0, 10**6)), "é")], Encoding.UTF16, 2)
        table.update(old.buffer, document.buffer, edits)
        assert table.ids(999_000, 1_001_000) == Letters().tokenize(document.buffer.slice(999_000, 1_001_000))
    assert letters.asked == 5 * 2000


def test_a_file_of_50_mb_costs_a_key_what_a_small_one_does() -> None:
    """Work and memory are counted, not timed: chunks made anew, characters tokenized, bytes allocated."""
    letters = Letters()
    document = Document.open("file:///a", "x", 1, "    some line = of(code, that, is, like, others)\n" * 1_020_000)
    assert document.buffer.length > 49_000_000
    table = TokenTable(letters, document.buffer)
    letters.asked = 0
    tracemalloc.start()
    for key in range(6):
        old, line = document, 170_000 * key
        document, edits = old.apply([Change(((line, 4), (line, 4)), "x")], Encoding.UTF16, 2)
        table.update(old.buffer, document.buffer, edits)
        at = edits[0].new_end
        assert table.ids(at - 2000, at + 1000) == list(document.buffer.slice(at - 2000, at + 1000).encode())
        assert len({*map(id, document.buffer.chunks)} - {*map(id, old.buffer.chunks)}) <= 2
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert letters.asked <= 6 * 3000
    assert most < 3_000_000


def test_opening_takes_memory_in_proportion() -> None:
    for line in ("x\n", "\n", "a = some(longer, line)\r\n", "é😀" * 30 + "\n"):
        text = line * (400_000 // len(line))
        tracemalloc.start()
        buffer = Document.open("file:///a", "x", 1, text).buffer
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert buffer.length == len(text)
        assert most < 25 * len(text), line


def test_a_line_of_2_mb_in_every_unit() -> None:
    """Positions in the middle of a huge line, in all encodings, and edits there."""
    unit = "é😀x"
    document = Document.open("file:///a", "x", 1, unit * 700_000)
    for encoding, size in ((Encoding.UTF8, 7), (Encoding.UTF16, 4), (Encoding.UTF32, 3)):
        at = (0, 350_000 * size)
        after, (edit,) = document.apply([Change((at, at), "‸\n")], encoding, 2)
        assert edit.start == 350_000 * 3
        assert after.buffer.line_count == 2 and after.buffer.line(0).endswith("x‸\n")
        assert after.buffer.length == document.buffer.length + 2


def test_the_benchmarks_typist_is_repeatable_and_changes_what_it_says() -> None:
    document = Document.open("file:///a", "x", 1, bench.source_text(500))
    assert document.buffer.line_count == 501
    assert list(bench.keys(500, 3)) == list(bench.keys(500, 3)) != list(bench.keys(500, 4))
    for line, typed in bench.keys(501, 3):
        before = document.buffer.line_content(line)
        document, (edit,) = document.apply([bench.change(document, line, typed)], Encoding.UTF16, 2)
        assert document.buffer.line_content(line) == (
            before if typed == "\n" else before + typed if typed else before[:-1]
        )
        assert edit.delta == (len(typed) if typed else -1)
    assert units("a😀", Encoding.UTF16) == 3


def test_the_benchmarks_figures() -> None:
    letters = Letters()
    document = Document.open("file:///a", "x", 1, bench.source_text(2000))
    times, reuse = bench.type_keys(document, letters, seed=1, scratch_every=100)
    keys = sum(1 for _ in bench.keys(2000, 1))
    assert len(times.total()) == len(times.apply) == keys
    assert len(times.scratch) == -(-keys // 100)
    assert 0.98 < reuse["tokens_reused"] <= 1.0
    assert 0.5 < reuse["window_tokens_reused"] < 1.0


def test_a_wrong_table_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenTable, "ids", lambda *_: [1, 2, 3])
    with pytest.raises(ValueError, match="differ"):
        bench.type_keys(Document.open("file:///a", "x", 1, "a\n" * 50), Letters(), seed=1, scratch_every=10)
