"""A model's vocabulary: tokenizing, token bytes, special tokens, and the sorted piece table for constraints.

Strategy: a vocabulary-only load (about 0.2 s, no weights) serves the editor's server; the engine wraps the vocabulary
of its loaded model in the same class. Pieces are fetched once, so that looking one up is a list access.

Rules:
- User text is tokenized with special tokens not parsed and without BOS or space prefix.
- One thread at a time per object. Load only files that `gguf_check` accepts (the loader calls it).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from functools import cached_property

import llama_cpp.llama_cpp as lc
import numpy as np

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.gguf_check import check_gguf
from lsp_complete.engine.native import ERRORS
from lsp_complete.errors import ModelError

_UNUSED_ATTR = 1 << 1
_CONTROL_ATTR = 1 << 3


@lc.llama_log_callback  # type: ignore[untyped-decorator]
def _native_log(level: int, text: bytes, _data: object) -> None:
    with contextlib.suppress(Exception):  # an exception must never cross into C
        ERRORS.add(level, text)


def init_native() -> None:
    """Initialise llama.cpp and take over its log. May be called again."""
    lc.llama_log_set(_native_log, ctypes.c_void_p(0))
    lc.llama_backend_init()


class Vocab:
    """`text.tokenizer.Tokenizer` and `backend.PieceTable` over one llama.cpp vocabulary.

    owner: keeps whatever owns the native vocabulary alive.
    """

    def __init__(self, handle: int, pre: str, owner: object) -> None:
        self._handle = handle
        self._pre = pre
        self._owner = owner
        self._size = int(lc.llama_vocab_n_tokens(handle))
        self._pieces = _all_pieces(handle, self._size)
        self._eog = frozenset(t for t in range(self._size) if lc.llama_vocab_is_eog(handle, t))
        self._buffer = (lc.llama_token * 4096)()

    @property
    def pre(self) -> str:
        """The pre-tokenizer's name from the file, "" if it names none."""
        return self._pre

    @property
    def size(self) -> int:
        """Number of entries."""
        return self._size

    @property
    def eog(self) -> frozenset[int]:
        """Tokens that end generation."""
        return self._eog

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text. Lone surrogates become replacement characters."""
        data = text.encode("utf-8", "replace")
        return self._tokenize(data, parse_special=False)

    def _tokenize(self, data: bytes, parse_special: bool) -> list[int]:
        if not data:
            return []
        count = lc.llama_tokenize(
            self._handle, data, len(data), self._buffer, len(self._buffer), False, parse_special
        )
        if count < 0:
            self._buffer = (lc.llama_token * max(-count, 2 * len(self._buffer)))()
            count = lc.llama_tokenize(
                self._handle, data, len(data), self._buffer, len(self._buffer), False, parse_special
            )
        return self._buffer[: max(count, 0)]

    def piece(self, token: int) -> bytes:
        """Bytes of one token as generated; b"" for special tokens and ids out of range."""
        return self._pieces[token] if 0 <= token < self._size else b""

    def is_eog(self, token: int) -> bool:
        """Whether this token ends generation."""
        return token in self._eog

    def special(self, text: str) -> int | None:
        """Id of the special token spelled exactly `text`, or None."""
        ids = self._tokenize(text.encode("utf-8", "replace"), parse_special=True)
        if len(ids) != 1 or self._pieces[ids[0]]:
            return None
        return ids[0]

    @cached_property
    def _sorted(self) -> tuple[list[bytes], Ints]:
        order = sorted((p, t) for t, p in enumerate(self._pieces) if p)
        return [p for p, _ in order], np.array([t for _, t in order], dtype=np.int32)

    @property
    def pieces(self) -> Sequence[bytes]:
        """All non-empty pieces in byte order."""
        return self._sorted[0]

    @property
    def ids(self) -> Ints:
        """The token of each entry of `pieces`."""
        return self._sorted[1]


def _all_pieces(handle: int, size: int) -> list[bytes]:
    """Every token's bytes; b"" for control and unused tokens, so that they never show as text."""
    to_piece, get_attr = lc.llama_token_to_piece, lc.llama_vocab_get_attr
    buffer = ctypes.create_string_buffer(512)
    raw = memoryview(buffer)
    out: list[bytes] = []
    for token in range(size):
        n = to_piece(handle, token, buffer, 512, 0, False)
        if n <= 0 or get_attr(handle, token) & (_UNUSED_ATTR | _CONTROL_ATTR):
            out.append(b"")
        else:
            out.append(raw[:n].tobytes())
    return out


class _VocabModel:
    """Owner of a vocabulary-only model."""

    def __init__(self, path: str) -> None:
        init_native()
        params = lc.llama_model_default_params()
        params.vocab_only = True
        # Some families put a space before every text; spans of a text are tokenized one by one, so none must have it
        # (the value of a new override is zero, that is false).
        overrides = (lc.llama_model_kv_override * 2)()
        overrides[0].tag = lc.LLAMA_KV_OVERRIDE_TYPE_BOOL
        overrides[0].key = b"tokenizer.ggml.add_space_prefix"
        params.kv_overrides = ctypes.cast(overrides, ctypes.POINTER(lc.llama_model_kv_override))
        self.model = lc.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise ModelError(
                f"llama.cpp cannot read the vocabulary of {path}: {ERRORS.take() or 'no reason given'}"
            )

    def __del__(self) -> None:
        model, self.model = getattr(self, "model", None), None
        if model:
            lc.llama_model_free(model)


def load_vocab(path: str) -> Vocab:
    """Vocabulary-only load. Raises ModelError if the file is missing, damaged or unknown to llama.cpp."""
    check_gguf(path)
    owner = _VocabModel(path)
    return Vocab(lc.llama_model_get_vocab(owner.model), meta(owner.model, "tokenizer.ggml.pre"), owner)


def meta(model: int, key: str) -> str:
    """One metadata value of a model as text, "" if absent."""
    buffer = ctypes.create_string_buffer(1024)
    n = lc.llama_model_meta_val_str(model, key.encode(), buffer, 1024)
    return buffer.value.decode("utf-8", "replace") if n >= 0 else ""
