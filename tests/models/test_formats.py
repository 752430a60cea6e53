"""The format table, its layouts, and detection from GGUF headers."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.errors import ModelError
from lsp_complete.models.detect import detect_format
from lsp_complete.models.formats import fill, format_of, formats, missing_tokens, parse_formats, plain_format
from lsp_complete.models.gguf import GgufHeader, read_header

from . import builders


def header(tmp_path: Path, tokens: tuple[str, ...], **metadata: Any) -> GgufHeader:
    path = tmp_path / "own.gguf"
    path.write_bytes(
        builders.gguf(
            {
                "tokenizer.ggml.tokens": tokens,
                **{key.replace("__", "."): item for key, item in metadata.items()},
            }
        )
    )
    return read_header(path)


def test_budgets_follow_the_model_size() -> None:
    qwen = format_of("qwen2.5-coder")
    small, large, unknown = qwen.budget_for(494_032_768), qwen.budget_for(1_543_714_304), qwen.budget_for(0)
    assert (small.lines_above, small.lines_below) == (40, 15)
    assert (large.lines_above, large.lines_below) == (160, 40)
    assert unknown == large


def test_the_qwen_cross_file_layout() -> None:
    qwen = format_of("qwen2.5-coder")
    parts = (
        *fill(qwen, qwen.repo_layout, name="shop"),
        *fill(qwen, qwen.file_layout, path="a.py", text="x = 1"),
        *fill(qwen, qwen.current_layout, path="b.py"),
    )
    assert (
        "".join(text for _, text in parts) == "<|repo_name|>shop\n<|file_sep|>a.py\nx = 1\n<|file_sep|>b.py\n"
    )
    assert [text for special, text in parts if special] == ["<|repo_name|>", "<|file_sep|>", "<|file_sep|>"]


def test_braces_and_token_spellings_in_values_stay_text() -> None:
    qwen = format_of("qwen2.5-coder")
    parts = fill(qwen, qwen.file_layout, path="{text}", text="{path} @repo <|fim_middle|>")
    assert parts == ((True, "<|file_sep|>"), (False, "{text}\n"), (False, "{path} @repo <|fim_middle|>\n"))


def test_every_format_ends_on_its_own_tokens() -> None:
    for fmt in formats():
        assert set(fmt.required) <= set(fmt.stop), fmt.family
        assert not fmt.file_sep or fmt.file_sep in fmt.stop, fmt.family


def test_missing_tokens_are_named() -> None:
    qwen = format_of("qwen2.5-coder")
    assert missing_tokens(qwen, lambda text: None if "middle" in text else 1) == ("<|fim_middle|>",)
    assert missing_tokens(plain_format(), lambda text: None) == ()


STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>")


@pytest.mark.parametrize(
    ("tokens", "metadata", "family"),
    [
        (
            builders.QWEN_TOKENS,
            {"general__architecture": "qwen2", "tokenizer__ggml__pre": "qwen2"},
            "qwen2.5-coder",
        ),
        (
            builders.QWEN_TOKENS,
            {"general__architecture": "qwen3moe", "tokenizer__ggml__pre": "qwen2"},
            "qwen2.5-coder",
        ),
        (
            (*STARCODER, "<repo_name>", "<file_sep>"),
            {"general__architecture": "starcoder2", "tokenizer__ggml__pre": "starcoder"},
            "starcoder2",
        ),
        (
            (*STARCODER, "<reponame>", "<filename>"),
            {"general__architecture": "llama", "general__name": "Granite 3b Code Base"},
            "granite-code",
        ),
        (
            (*STARCODER, "<reponame>", "<filename>"),
            {
                "general__architecture": "llama",
                "general__name": "Mellum 4b Base",
                "tokenizer__ggml__pre": "default",
            },
            "mellum",
        ),
        (
            (*STARCODER, "<reponame>", "<filename>"),
            {"general__architecture": "refact", "tokenizer__ggml__pre": "refact"},
            "refact",
        ),
        (
            ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"),
            {"general__architecture": "gemma", "tokenizer__ggml__pre": "default"},
            "codegemma",
        ),
        (
            ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
            {"general__architecture": "llama", "tokenizer__ggml__pre": "deepseek-coder"},
            "deepseek-coder",
        ),
        (
            ("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),
            {"general__architecture": "llama", "general__name": "Codestral-22B-v0.1"},
            "codestral",
        ),
        (
            ("▁<PRE>", "▁<SUF>", "▁<MID>"),
            {"general__architecture": "llama", "general__name": "CodeLlama 7B"},
            "codellama",
        ),
        (("a", "b"), {"general__architecture": "llama"}, "plain"),
        (
            ("a", "<P>", "<S>", "<M>"),
            {
                "general__architecture": "new",
                "tokenizer__ggml__fim_pre_token_id": 1,
                "tokenizer__ggml__fim_suf_token_id": 2,
                "tokenizer__ggml__fim_mid_token_id": 3,
            },
            "generic",
        ),
    ],
)
def test_detection(tmp_path: Path, tokens: tuple[str, ...], metadata: dict[str, Any], family: str) -> None:
    assert detect_format(header(tmp_path, tokens, **metadata)).family == family


def test_a_generic_format_takes_the_spellings_of_the_file(tmp_path: Path) -> None:
    fmt = detect_format(
        header(
            tmp_path,
            ("a", "<P>", "<S>", "<M>"),
            tokenizer__ggml__fim_pre_token_id=1,
            tokenizer__ggml__fim_suf_token_id=2,
            tokenizer__ggml__fim_mid_token_id=3,
            tokenizer__ggml__fim_sep_token_id=99,
        )
    )
    assert (fmt.prefix, fmt.suffix, fmt.middle, fmt.file_sep, fmt.order) == ("<P>", "<S>", "<M>", "", "psm")


def test_the_file_decides_about_the_bos_token(tmp_path: Path) -> None:
    names = ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")
    assert detect_format(header(tmp_path, names, general__architecture="llama")).bos
    assert not detect_format(
        header(tmp_path, names, general__architecture="llama", tokenizer__ggml__add_bos_token=False)
    ).bos


def test_an_unknown_family_names_the_known() -> None:
    with pytest.raises(ModelError, match="starcoder2"):
        format_of("none")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"order": "msp"}, "order"),
        ({"middle": ""}, "middle"),
        ({"anchor_lines": 0}, "anchor_lines"),
        ({"repo": ""}, "@repo"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_wrong_row_is_named(change: dict[str, Any], reason: str) -> None:
    data = json.loads(resources.files("lsp_complete.models").joinpath("formats.json").read_text("utf-8"))
    data["families"][0].update(change)
    with pytest.raises(ModelError, match=reason):
        parse_formats(data)
