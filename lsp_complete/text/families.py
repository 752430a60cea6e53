"""What is known of each pre-tokenizer: its splitting, where a text may be cut, what llama.cpp does with long runs.

Strategy: one table by the name a model file gives (`tokenizer.ggml.pre`), derived from llama.cpp's splitting code, not from the
models' own files: the ids must be those llama.cpp makes. `boundaries`, `pretokens` and `runs` read it.

Rules:
- Patterns apply one after the other, each inside what the one before left, matched or not.
- A name that is not here is unknown: no cuts, no pre-tokens, long runs guarded. That is slower, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Where a text may be cut for certain; see `boundaries`."""

    AFTER = "after"
    BEFORE = "before"
    PAIR = "pair"
    EVERY = "every"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Family:
    """patterns: the splitting, () if unknown or none. not_before: characters that an AFTER cut must not stand before.
    recursive: llama.cpp splits by std::regex with unbounded repetition, so long runs would exhaust the stack."""

    kind: Kind = Kind.NONE
    patterns: tuple[str, ...] = ()
    not_before: str = ""
    recursive: bool = True


_W = r"\p{White_Space}"
_NOT_WLN = rf"[^{_W}\p{{L}}\p{{N}}]"
_CONTRACTION = r"'[sStTmMdD]|'[rR][eE]|'[vV][eE]|'[lL][lL]"
_BLANK = rf"{_W}*[\r\n]+|{_W}+(?!\P{{White_Space}})|{_W}+"
_LATIN = r"[!-/:-@\[-`{-~][A-Za-z]+"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?(?:(?=\p{L})[^a-z])*(?:(?=\p{L})[^A-Z])+TAIL"
    r"|[^\r\n\p{L}\p{N}]?(?:(?=\p{L})[^a-z])+(?:(?=\p{L})[^A-Z])*TAIL"
)

_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?{_NOT_WLN}+|{_W}+(?!\P{{White_Space}})|{_W}+"
_DIGITS_GPT2 = (r"\p{N}", _GPT2)
_FALCON = (r"[\p{P}$+<=>^~|`]+", _GPT2, r"[0-9]{3}")


def _qwen(letters: str = r"\p{L}", digits: str = r"\p{N}", first: str = f"{_CONTRACTION}|") -> str:
    """The splitting that Qwen, Llama 3 and their relatives share, differing in digits and letters."""
    other = rf" ?[^{_W}\p{{N}}{letters}]+[\r\n]*"
    return rf"{first}[^\r\n\p{{L}}\p{{N}}]?[{letters}]+|{digits}|{other}|{_BLANK}"


def _cased(digits: str, tail: str = "") -> str:
    """The splitting of Tekken and GPT-4o, which parts words at a change of case."""
    return rf"{_CASED.replace('TAIL', tail)}|{digits}| ?{_NOT_WLN}+[\r\n/]*|{_BLANK}"


_QWEN2 = Family(Kind.AFTER, (_qwen(),), recursive=False)
_LLAMA3 = Family(Kind.AFTER, (_qwen(digits=r"\p{N}{1,3}"),), recursive=False)
_QWEN35 = Family(Kind.AFTER, (_qwen(r"\p{L}\p{M}"),), recursive=False)
_GPT_2 = Family(Kind.BEFORE, (_GPT2,), recursive=False)
_STARCODER = Family(Kind.BEFORE, _DIGITS_GPT2, recursive=False)
_DEEPSEEK3 = Family(
    Kind.AFTER,
    (
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        rf"{_LATIN}|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANK}",
    ),
)
_DEEPSEEK_CODER = Family(
    Kind.EVERY, (r"[\r\n]", rf"{_W}?\p{{L}}+", rf"{_W}?\p{{P}}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")
)
_GPT4O = Family(Kind.AFTER, (_cased(r"\p{N}{1,3}", f"(?:{_CONTRACTION})?"),), "/")
_PAIR = Family(Kind.PAIR, recursive=False)

_NAMES: tuple[tuple[str, Family], ...] = (
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", _QWEN2),
    ("qwen35", _QWEN35),
    ("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", _LLAMA3),
    ("dbrx smaug-bpe chatglm-bpe glm4 glm5", _LLAMA3),
    (
        "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0",
        _GPT_2,
    ),
    ("mellum modern-bert jais trillion granite-docling exaone4", _GPT_2),
    (
        "mpt olmo",
        Family(Kind.BEFORE, recursive=False),
    ),  # runs of blanks are user-defined tokens: no plain splitting
    ("starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", _STARCODER),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", _DEEPSEEK3),
    ("deepseek-coder", _DEEPSEEK_CODER),
    ("deepseek-llm", Family(Kind.EVERY)),
    ("falcon", Family(Kind.BEFORE, _FALCON)),
    ("tekken", Family(Kind.AFTER, (_cased(r"\p{N}"),), "/")),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", _GPT4O),
    ("youtu exaone-moe tiny_aya cohere2moe", Family(Kind.AFTER, not_before="/")),
    ("seed-coder bailingmoe bailingmoe2 llada-moe minicpm5 jais-2 ufakzeka", Family(Kind.AFTER)),
    ("laguna", Family(Kind.AFTER, recursive=False)),
    ("gemma4 sarvam-moe", _PAIR),
)
_BY_NAME = {name: family for names, family in _NAMES for name in names.split()} | {
    "": Family(Kind.PAIR),  # SentencePiece, or a file without the key: llama.cpp's default splitting
    "default": Family(Kind.PAIR),
}


def family(pre: str) -> Family:
    """What is known of the pre-tokenizer named `pre`."""
    return _BY_NAME.get(pre, Family())
