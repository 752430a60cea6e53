"""Text, tokens, tree and outline of real files in ten languages follow the same random edits, and equal what is made afresh."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.syntax import trees
from lsp_complete.syntax.languages import all_languages
from lsp_complete.syntax.outline import outline_of, shifted, update_outline
from lsp_complete.syntax.trees import SyntaxTree, edited, hull, parse
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from lsp_complete.text.tokens import SpanCache, TokenTable
from tests.real import LANGUAGES, MAX_LINES, REAL
from tests.syntax.helpers import PIECES, changes, document, dump, endings, grammar_of
from tests.text import vocabs
from tests.text.plain import plain_lines, plain_offset

FAMILIES = ("qwen2", "starcoder", "deepseek-coder", "llama-bpe", "llama-spm", "gemma-4", "tekken@llama-bpe")
SOME = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equality is not a matter of time: a busy machine must not stop a parse here."""
    monkeypatch.setattr(trees, "BASE_SECONDS", 600.0)


@st.composite
def starting(draw: st.DrawFn, language: str) -> Document:
    """A real file with one of the line endings, blanks before them, or all in one huge line."""
    text = REAL[language]
    return document(text.replace("\n", " ") if draw(st.integers(0, 5)) == 0 else draw(endings(text)), language)


def settled(tree: SyntaxTree | None) -> SyntaxTree:
    """A tree at rest: one of broken text is parsed afresh."""
    assert tree is not None
    return tree if tree.settled else settled(parse(tree.grammar, tree.buffer))


def test_ten_languages() -> None:
    assert len(LANGUAGES) >= 10 and set(LANGUAGES) <= set(all_languages())
    assert set(LANGUAGES) - set(REAL) <= {"cpp", "html"}  # of packages that may be missing
    assert all(len(text) > 700 for text in REAL.values())


@pytest.mark.parametrize("language", sorted(REAL))
@SOME
@given(data=st.data(), encoding=st.sampled_from(list(Encoding)))
def test_incremental_text_is_the_plain_text(language: str, data: st.DataObject, encoding: Encoding) -> None:
    """Positions are the editor's, counted character by character in the plain text."""
    current = data.draw(starting(language))
    text = current.buffer.text()
    for _ in range(data.draw(st.integers(1, 4))):
        line, lines = data.draw(st.integers(0, MAX_LINES)), data.draw(st.sampled_from([0, 0, 0, 1, 3]))
        first, last = (line, data.draw(st.integers(0, 90))), (line + lines, data.draw(st.integers(0, 90)))
        new = data.draw(st.sampled_from(PIECES))
        start, end = sorted(plain_offset(text, *point, encoding.value) for point in (first, last))
        text = text[:start] + new + text[end:]
        current, _edits = current.apply([Change((first, last), new)], encoding, current.version + 1)
        assert current.buffer.text() == text
        assert current.buffer.lines(0, 10**6) == plain_lines(text)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("language", sorted(REAL))
@SOME
@given(data=st.data())
def test_the_token_table_is_the_full_tokenization(language: str, family: str, data: st.DataObject) -> None:
    vocab = vocabs.load(family)
    cache = SpanCache(vocab, vocabs.rule(vocab))
    current = data.draw(starting(language))
    table = TokenTable(vocab, current.buffer, cache)
    for _ in range(data.draw(st.integers(1, 3))):
        following, edits = data.draw(changes(current))
        table.update(current.buffer, following.buffer, edits)
        current, whole = following, following.buffer.text()
        assert table.ids(0, len(whole)) == vocab.tokenize(whole)
        low, high = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
        assert table.ids(low, high) == vocab.tokenize(whole[low:high])


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(REAL))
@SOME
@given(data=st.data())
def test_tree_and_outline_equal_fresh_ones(language: str, data: st.DataObject) -> None:
    grammar = grammar_of(language)
    current = data.draw(starting(language))
    tree = settled(parse(grammar, current.buffer))
    for _ in range(data.draw(st.integers(1, 3))):
        following, edits = data.draw(changes(current))
        moved = edited(tree, edits, following.buffer)
        after = parse(grammar, following.buffer, moved)
        fresh = parse(grammar, following.buffer)
        assert after is not None and fresh is not None
        span = hull(edits, current.buffer, following.buffer)
        outline = update_outline(shifted(outline_of(tree), edits), moved, after, [(span.start, span.new_end)])
        assert outline == outline_of(after)
        assert dump(settled(after)) == dump(fresh)
        current, tree = following, settled(after)
