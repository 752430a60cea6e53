"""Chooses the prompt format for a GGUF file from its header.

Strategy: the vocabulary decides which families are possible, the file's names decide among those. A family that
nobody listed still works if the file names its fill-in-the-middle tokens.
"""

from __future__ import annotations

import re
from dataclasses import replace

from lsp_complete.models.formats import DetectRule, FimFormat, format_table, plain_format
from lsp_complete.models.gguf import GgufHeader

_FIM_KEYS = {
    "prefix": ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
    "suffix": ("tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
    "middle": ("tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
    "pad": ("tokenizer.ggml.fim_pad_token_id",),
    "repo": ("tokenizer.ggml.fim_rep_token_id",),
    "file_sep": ("tokenizer.ggml.fim_sep_token_id",),
}


def detect_format(header: GgufHeader) -> FimFormat:
    """The format for a GGUF file of the user's own.

    Families whose required tokens the vocabulary lacks are out; among the others name, architecture and
    pre-tokenizer decide. An unknown family with FIM tokens in its metadata gets a generic format from those; one without
    any gets the plain format. Whether a BOS token stands first is the file's own say where it has one. Any thread.
    """
    vocabulary = frozenset(token for token in header.tokens if isinstance(token, str))
    ranked = [
        (_score(fmt, rule, header, vocabulary), -row, fmt)
        for row, (fmt, rule) in enumerate(format_table())
        if vocabulary.issuperset(fmt.required)
    ]
    score, _, best = max(ranked, default=(0, 0, None), key=lambda item: item[:2])
    fmt = best if best is not None and score > 0 else _generic(header) or plain_format()
    bos = header.metadata.get("tokenizer.ggml.add_bos_token")
    return replace(fmt, bos=bos) if isinstance(bos, bool) else fmt


def _score(fmt: FimFormat, rule: DetectRule, header: GgufHeader, vocabulary: frozenset[str]) -> int:
    name = (
        " ".join(header.text(key) for key in ("general.name", "general.basename", "general.finetune"))
        + " "
        + header.path.name
    )
    score = 8 if any(re.search(pattern, name, re.IGNORECASE) for pattern in rule.names) else 0
    score += 4 if header.architecture in rule.architectures else 0
    score += 2 if header.text("tokenizer.ggml.pre") in rule.pre else 0
    optional = [token for token in (fmt.repo, fmt.file_sep) if token]
    return score + (2 if optional else 0) * (1 if vocabulary.issuperset(optional) else -2)


def _generic(header: GgufHeader) -> FimFormat | None:
    """A psm format from the token ids in the file's metadata, or None if the three needed are not there."""
    spelled = {name: _spelling(header, keys) for name, keys in _FIM_KEYS.items()}
    if not (spelled["prefix"] and spelled["suffix"] and spelled["middle"]):
        return None
    separator, repo = spelled["file_sep"], spelled["repo"]
    return FimFormat(
        family="generic",
        title="Fill-in-the-middle tokens as the file names them",
        order="psm",
        stop=tuple(token for token in spelled.values() if token),
        repo_layout=("@repo", "{name}\n") if repo else (),
        file_layout=(*(("@file_sep",) if separator else ()), "{path}\n", "{text}\n"),
        current_layout=("@file_sep", "{path}\n") if separator else (),
        pre=header.text("tokenizer.ggml.pre"),
        prefix=spelled["prefix"],
        suffix=spelled["suffix"],
        middle=spelled["middle"],
        pad=spelled["pad"],
        repo=repo,
        file_sep=separator,
        budgets=plain_format().budgets,
    )


def _spelling(header: GgufHeader, keys: tuple[str, ...]) -> str:
    for key in keys:
        token = header.integer(key)
        if token is not None and 0 <= token < len(header.tokens):
            return str(header.tokens[token])
    return ""
