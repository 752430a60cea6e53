"""The healing point: by example, and the property that makes it safe in every family with known splitting."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.text.families import family
from lsp_complete.text.pretokens import LOOK_BACK, last_pretoken_start, split
from tests.text import vocabs
from tests.text.plain import hostile
from tests.text.samples import SAMPLES
from tests.text.test_tokens import mixed

SPLITTING = [
    "qwen2",
    "qwen35",
    "starcoder",
    "refact",
    "deepseek-coder",
    "llama-bpe",
    "command-r",
    "falcon",
    "gpt-2",
]
SPLITTING += [
    f"{name}@llama-bpe" for name in ("tekken", "gpt-4o", "deepseek-v3", "mellum", "smollm", "stablelm2")
]
samples = st.builds(
    lambda name, end: SAMPLES[name][:end], st.sampled_from(sorted(SAMPLES)), st.integers(0, 2000)
)


@pytest.mark.parametrize("name", SPLITTING)
@settings(deadline=None, max_examples=60)
@given(text=mixed | hostile | samples)
def test_what_is_left_keeps_its_tokens(name: str, text: str) -> None:
    """The ids of the text before the cut begin the ids of the whole, and the cut is the last splitting point or near."""
    vocab = vocabs.load(name)
    start = last_pretoken_start(text, vocab.pre)
    assert start >= 0 or len(text) > LOOK_BACK
    if start < 0:
        return
    ids = vocab.tokenize(text[:start])
    assert vocab.tokenize(text)[: len(ids)] == ids
    pieces = split(text, vocab.pre)
    assert "".join(pieces) == text
    assert len(text) - start in {0, len("".join(pieces[-1:])), len("".join(pieces[-2:]))}


@pytest.mark.parametrize("name", SPLITTING)
@settings(deadline=None, max_examples=40)
@given(text=mixed | hostile)
def test_pretokens_tokenize_to_the_whole(name: str, text: str) -> None:
    vocab = vocabs.load(name)
    assert [token for piece in split(text, vocab.pre) for token in vocab.tokenize(piece)] == vocab.tokenize(
        text
    )


@pytest.mark.parametrize(
    ("pre", "text", "dropped"),
    [
        ("qwen2", "x.en", ".en"),
        ("qwen2", "return fo", " fo"),
        ("qwen2", "if x:\n    ", "    "),
        ("qwen2", "foo(", "("),
        ("qwen2", "a = 1234", "4"),
        ("llama-bpe", "a = 1234", "4"),
        ("llama-bpe", "a = 12", "12"),
        ("qwen2", "don't", "'t"),
        ("qwen2", "};\n\n", "};\n\n"),
        ("qwen2", "\t\tif", "\tif"),
        ("starcoder", "def f\n\n\nBar", "\nBar"),
        ("starcoder", "x.en", "en"),
        ("starcoder", "if x:\n    ", "\n    "),
        ("deepseek-coder", "a\n    fo", " fo"),
        ("tekken", ";\n// no", " no"),
        ("tekken", "parseJson", "Json"),
        ("deepseek-v3", "x.en", ".en"),
        ("falcon", "x->en", "en"),
        ("qwen2", "", ""),
    ],
)
def test_examples(pre: str, text: str, dropped: str) -> None:
    start = last_pretoken_start(text, pre)
    assert text[start:] == dropped
    assert (
        text[last_pretoken_start("return " * 300 + text, pre) - 2100 :] == dropped
        if text[:1].isalpha()
        else True
    )


@pytest.mark.parametrize("pre", ["", "default", "no such family", "mpt", "gemma4"])
def test_an_unknown_splitting_says_so(pre: str) -> None:
    assert not family(pre).patterns
    assert last_pretoken_start("some text", pre) == -1


def test_long_texts_are_not_read_whole() -> None:
    assert last_pretoken_start("x" * 2_000_000, "qwen2") == -1
    assert last_pretoken_start("word " * 400_000 + "en", "qwen2") == 1_999_999
    assert last_pretoken_start("y " + "x" * 300, "qwen2") == -1
