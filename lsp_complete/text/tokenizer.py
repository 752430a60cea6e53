"""What text code needs from a vocabulary. Implemented over llama.cpp in `engine/vocab.py`, and by fakes.

Token ids of user text never come from special tokens: a file that contains `<|fim_middle|>` gives the
ids of those characters.
"""

from __future__ import annotations

from typing import Protocol


class Tokenizer(Protocol):
    """Thread: any one thread at a time per object."""

    @property
    def pre(self) -> str:
        """The model's pre-tokenizer name as its file says (`qwen2`, `starcoder`, …); "" if it has none."""
        ...

    @property
    def size(self) -> int:
        """Number of entries in the vocabulary."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text: no special tokens parsed, no BOS or space prefix added."""
        ...

    def piece(self, token: int) -> bytes:
        """Bytes of one token as generated (special tokens give b"")."""
        ...

    def special(self, text: str) -> int | None:
        """Id of the special token spelled exactly `text`, or None. For prompt formats only."""
        ...
