"""The token table equals tokenizing the slice, in every family, after any edits; and it does little."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.engine.vocab import Vocab
from lsp_complete.text import runs
from lsp_complete.text.boundaries import rule_for
from lsp_complete.text.buffer import TextBuffer
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.families import Kind
from lsp_complete.text.positions import Encoding
from lsp_complete.text.runs import MAX_RUN, parts, tokenize
from lsp_complete.text.tokens import SpanCache, TokenTable, shared_cache
from tests.text import vocabs
from tests.text.plain import PIECES, hostile
from tests.text.samples import SAMPLES

SOURCE = [
    *PIECES,
    "//",
    "/*",
    "->",
    "12",
    "1234567",
    "'s",
    "'LL",
    "\u00a0",
    "\x85",
    "\x1c",
    "\ufeff",
    "\u200b",
    "ſ",
    "İ",
    "\u0903",
    "\u2581",
]
SOURCE += [
    "<tool_call>",
    "<|im_start|>",
    "<unk>",
    "</s>",
    "    ",
    "\t\t",
    "#",
    "$",
    "_",
    "ไทย",
    "½",
    "٣",
    "/",
    ")",
    ");",
    "foo",
]
mixed = st.lists(st.sampled_from(SOURCE), max_size=40).map("".join)
relaxed = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=vocabs.FAMILIES)
def vocab(request: pytest.FixtureRequest) -> Vocab:
    """Each family's vocabulary in turn."""
    return vocabs.load(request.param)


@pytest.fixture
def cache(vocab: Vocab) -> SpanCache:
    """A cache with the family's rule, and cuts at every place that allows one."""
    return SpanCache(vocab, vocabs.rule(vocab))


def cut_up(cache: SpanCache, text: str) -> list[int]:
    """Tokens of `text` from all its certain cuts, however close."""
    edges = [0, *(cut for cut in cache.rule.cuts(text, least=1) if 0 < cut < len(text)), len(text)]
    return [token for a, b in pairwise(edges) for token in cache.tokenizer.tokenize(text[a:b])]


@relaxed
@given(text=mixed | hostile)
def test_every_certain_cut_is_certain(cache: SpanCache, text: str) -> None:
    assert cut_up(cache, text) == cache.tokenizer.tokenize(text)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_cuts_of_real_files(cache: SpanCache, name: str) -> None:
    assert cut_up(cache, SAMPLES[name]) == cache.tokenizer.tokenize(SAMPLES[name])


@settings(relaxed, max_examples=10)
@given(data=st.data())
def test_table_equals_full_tokenization_after_edits(cache: SpanCache, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(sorted(SAMPLES)).map(SAMPLES.__getitem__) | mixed)
    document = Document.open("file:///a", "x", 1, text)
    table = TokenTable(cache.tokenizer, document.buffer, cache)
    for version in range(2, data.draw(st.integers(2, 5))):
        start = data.draw(st.integers(0, document.buffer.length))
        end = start + data.draw(st.sampled_from([0, 0, 1, 2, 40, 700]))
        span = (document.buffer.position(start), document.buffer.position(end))
        old = document
        document, edits = old.apply([Change(span, data.draw(mixed))], Encoding.UTF32, version)
        table.update(old.buffer, document.buffer, edits)
        whole = document.buffer.text()
        assert table.ids(0, len(whole)) == cache.tokenizer.tokenize(whole)
        a, b = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
        assert table.ids(a, b) == cache.tokenizer.tokenize(whole[a:b])
        assert table.count(a, b) == len(cache.tokenizer.tokenize(whole[a:b]))
        assert table.ids(0, 300, old.buffer) == cache.tokenizer.tokenize(old.buffer.slice(0, 300))


def test_families_of_the_catalogue_have_a_rule() -> None:
    wanted = {
        "qwen2": Kind.AFTER,
        "starcoder": Kind.BEFORE,
        "refact": Kind.BEFORE,
        "deepseek-coder": Kind.EVERY,
    }
    wanted |= {
        "llama-bpe": Kind.AFTER,
        "llama-spm": Kind.PAIR,
        "command-r": Kind.BEFORE,
        "falcon": Kind.BEFORE,
    }
    wanted |= {
        "qwen35": Kind.AFTER,
        "gemma-4": Kind.PAIR,
        "tekken@llama-bpe": Kind.AFTER,
        "mellum@llama-bpe": Kind.BEFORE,
    }
    assert {name: vocabs.rule(vocabs.load(name)).kind for name in wanted} == wanted


def test_reference_texts_of_llama_cpp(vocab: Vocab, cache: SpanCache) -> None:
    for text in vocabs.reference_texts():
        assert cache.ids(text) == vocab.tokenize(text)


def test_the_mark_that_stands_for_a_blank_is_one(vocab: Vocab, cache: SpanCache) -> None:
    """Some vocabularies have a piece of a blank and a line end, which then matches U+2581 and a line end too."""
    for ending in ("\n", "\r", "\r\n", "\n\n"):
        for before in ("a\u2581", "\u2581", "\u2581\u2581", " \u2581", ");\u2581"):
            text = f"x = 1\n{before}{ending}\u2581y\n  \u2581{ending}z" * 9
            assert cut_up(cache, text) == cache.ids(text) == vocab.tokenize(text)


class Letters:
    """A tokenizer of one token per character that counts what it is asked, with two user-defined tokens."""

    def __init__(self, pre: str = "qwen2", extra: tuple[str, ...] = ()) -> None:
        self.pre = pre
        self.extra = extra
        self.size = 256 + len(extra)
        self.asked = 0

    def tokenize(self, text: str) -> list[int]:
        """Bytes, except where an extra token stands."""
        self.asked += len(text)
        ids: list[int] = []
        while text:
            found = next((i for i, piece in enumerate(self.extra) if text.startswith(piece)), None)
            ids += text[0].encode() if found is None else [256 + found]
            text = text[1:] if found is None else text[len(self.extra[found]) :]
        return ids

    def piece(self, token: int) -> bytes:
        """The bytes of one token."""
        return bytes([token]) if token < 256 else self.extra[token - 256].encode()

    def special(self, text: str) -> int | None:
        """None are special."""
        return None


@pytest.mark.parametrize("pre", ["qwen2", "starcoder", "deepseek-coder", "", "tekken"])
def test_no_cut_inside_a_user_defined_token(pre: str) -> None:
    odd = Letters(pre, ("x\ny", "}\n\nfoo", ">\n  <"))
    rule = rule_for(odd)
    rng = random.Random(7)
    for _ in range(500):
        text = "".join(
            rng.choices(["x", "\n", "y", "}", "foo", ">", "  ", "<", "x\ny", "}\n\nfoo", ">\n  <"], k=25)
        )
        edges = [0, *rule.cuts(text, least=1), len(text)]
        pieces = [odd.tokenize(text[a:b]) for a, b in pairwise(edges)]
        assert [token for piece in pieces for token in piece] == odd.tokenize(text)


class Swallowing(Letters):
    """White space behind one of its tokens vanishes, as with Phi-3's added ones."""

    def tokenize(self, text: str) -> list[int]:
        return super().tokenize(re.sub(r"(?<=<end>)\s+", "", text))


@pytest.mark.parametrize("pre", ["qwen2", "deepseek-coder"])
def test_no_cut_further_behind_a_token_that_swallows_blanks(pre: str) -> None:
    assert rule_for(Swallowing(pre, ("<end>",))).kind is Kind.NONE
    assert rule_for(Letters(pre, ("<end>",))).kind is not Kind.NONE


@pytest.mark.parametrize("pre", ["starcoder", ""])
@given(text=st.lists(st.sampled_from(["<end>", "\n", "\r\n", "\r", "  ", "ab", "}", "\t"]), max_size=40).map("".join))
def test_no_cut_right_behind_a_token_that_swallows_blanks(pre: str, text: str) -> None:
    cache = SpanCache(Swallowing(pre, ("<end>",)))
    assert cache.rule.kind in (Kind.BEFORE, Kind.PAIR)
    assert cut_up(cache, text) == cache.ids(text) == cache.tokenizer.tokenize(text)


def test_an_unknown_family_is_one_span() -> None:
    assert rule_for(Letters("no such thing")).cuts("a\nb\n") == ()


def test_a_tokenizer_that_breaks_its_family_is_not_trusted() -> None:
    class Prefixing(Letters):
        def tokenize(self, text: str) -> list[int]:
            return [32, *super().tokenize(text)]

    assert rule_for(Prefixing("qwen2")).kind is Kind.NONE


def test_typing_tokenizes_one_span_per_key() -> None:
    letters = Letters()
    document = Document.open("file:///a", "x", 1, "some line of text = 1\n" * 10_000)
    table = TokenTable(letters, document.buffer)
    table.ids(0, document.buffer.length)
    letters.asked = 0
    for key in range(50):
        old = document
        document, edits = old.apply([Change(((5000, key), (5000, key)), "x")], Encoding.UTF16, key)
        table.update(old.buffer, document.buffer, edits)
        table.ids(0, document.buffer.length)
    assert letters.asked < 50 * 1000


def test_memory_is_bounded_and_forgetting_is_harmless() -> None:
    letters = Letters()
    cache = SpanCache(letters, max_chars=20_000)
    texts = ["\n".join(f"line {i} of {j}" for i in range(40)) + "\n" for j in range(300)]
    for text in texts + texts[::-1]:
        assert cache.ids(text) == letters.tokenize(text)
    assert cache.cached_chars <= 20_000


def test_stats_count_what_was_reused() -> None:
    table = TokenTable(Letters(), TextBuffer.from_text("word word word\n" * 200))
    assert table.stats().reused == 1.0
    first = table.ids(0, 3000)
    made = table.stats()
    assert made.tokens_reused + made.tokens_tokenized == len(first) == 3000
    table.ids(0, 3000)
    assert table.stats().tokens_tokenized == made.tokens_tokenized


@pytest.mark.parametrize(
    "family", ["deepseek-coder", "tekken@llama-bpe", "gpt-4o@llama-bpe", "falcon", "llama-spm", "qwen2"]
)
@pytest.mark.parametrize(
    "unit", ["x", "=", " ", "\n", "\r\n", "7", "e\u0301", "a b ", "aB3/", "/\n", "\u3000"]
)
def test_long_runs_end_no_process(family: str, unit: str) -> None:
    """Without the guard the first four families end the process at this length."""
    text = f"a = '{unit * (200_000 // len(unit))}'\n"
    ids = tokenize(vocabs.load(family), text)
    assert b"".join(map(vocabs.load(family).piece, ids)) == text.encode()


@given(mixed, st.integers(1, 3000), st.sampled_from(["x", " ", "=", "\n", "7"]), mixed)
def test_parts_are_the_text_and_hold_no_long_run(before: str, count: int, unit: str, after: str) -> None:
    text = before + unit * count + after
    found = parts(text, "tekken")
    assert "".join(found) == text
    assert all(unit * (MAX_RUN + 1) not in part for part in found)
    assert parts(text, "qwen2") == ([text] if text else [])


SPLITTING = [
    *("qwen2", "qwen35", "starcoder", "refact", "deepseek-coder", "llama-bpe", "command-r", "falcon", "gpt-2"),
    *(f"{name}@llama-bpe" for name in ("tekken", "gpt-4o", "deepseek-v3", "mellum", "smollm")),
]
"""Families whose splitting is known."""
WORDS = ["word", "Two", "x1", "é", "漢字", "=", "(", "):", "12345", " ", "  ", "\t", "'s", "don't", "_a", "a.b", "😀", "e\u0301", "日"]
long_lines = st.builds(
    lambda seed, count, ends: "".join(random.Random(seed).choices(WORDS, [8, *[1] * 8, 9, *[1] * 9], k=count)) + ends,
    st.integers(0, 10**6), st.integers(500, 2500), st.sampled_from(["", "\n", "\r\nx = 1\n"]),
)  # fmt: skip


@pytest.mark.parametrize("name", SPLITTING)
@settings(relaxed, max_examples=6)
@given(line=long_lines, prose=st.integers(0, 600), digits=st.integers(0, 3100), most=st.sampled_from([4_200, runs.MAX_UNCUT]))
def test_a_huge_line_has_the_ids_of_the_whole(name: str, line: str, prose: int, digits: int, most: int) -> None:
    """Longer than the bounds of `runs`, which part it where the splitting does anyway."""
    vocab = vocabs.load(name)
    text = f"{line}{'some words ' * prose}({'7' * digits}){line}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MAX_UNCUT", most)
        assert tokenize(vocab, text) == vocab.tokenize(text)
        cache = SpanCache(vocab, vocabs.rule(vocab))
        document = Document.open("file:///a", "x", 1, text)
        table = TokenTable(vocab, document.buffer, cache)
        middle = (0, len(line) // 2)
        old = document
        document, edits = old.apply([Change((middle, middle), " typed")], Encoding.UTF32, 2)
        table.update(old.buffer, document.buffer, edits)
        assert table.ids(0, document.buffer.length) == vocab.tokenize(document.buffer.text())


def test_tables_of_one_tokenizer_share_their_spans() -> None:
    letters = Letters()
    text = "line of text\n" * 100
    TokenTable(letters, TextBuffer.from_text(text)).ids(0, len(text))
    letters.asked = 0
    assert TokenTable(letters, TextBuffer.from_text(text)).ids(0, len(text)) == Letters().tokenize(text)
    assert letters.asked == 0
    assert shared_cache(letters) is shared_cache(letters) is not shared_cache(Letters())
