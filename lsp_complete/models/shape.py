"""The numbers of a model that decide its memory need: layers, KV heads, head size, widths, context.

Known for catalogue entries before any download, and read from the GGUF header for a file of the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_complete.errors import ModelError
from lsp_complete.models.gguf import GgufHeader


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Counts, not bytes. `context` is what the model was trained for.

    kv_heads is smaller than heads with grouped-query attention; only KV heads cost cache.
    recurrent: the model has recurrent layers; sliding_window: tokens of its local attention, 0 for none. Either
    means that a sequence's tail cannot be dropped freely.
    """

    layers: int
    heads: int
    kv_heads: int
    head_size: int
    embedding: int
    feed_forward: int
    vocabulary: int
    context: int
    recurrent: bool = False
    sliding_window: int = 0

    def __post_init__(self) -> None:
        for name in (
            "layers",
            "heads",
            "kv_heads",
            "head_size",
            "embedding",
            "feed_forward",
            "vocabulary",
            "context",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        if self.kv_heads > self.heads:
            raise ValueError("more KV heads than heads")


def shape_of(header: GgufHeader) -> ModelShape:
    """The shape that a GGUF file declares. Raises ModelError where a number is missing or absurd."""
    arch = header.architecture
    heads = _largest(header, f"{arch}.attention.head_count")
    embedding = _largest(header, f"{arch}.embedding_length")
    layers = _largest(header, f"{arch}.block_count")
    if not (heads and embedding and layers):
        raise ModelError(
            f"{header.path}: the file does not say its layers, heads and width (architecture {arch or 'unknown'!r}). It is no language model that this program can run."
        )
    recurrent = any(key.startswith((f"{arch}.ssm.", f"{arch}.wkv.")) for key in header.metadata)
    try:
        return ModelShape(
            layers=layers,
            heads=heads,
            kv_heads=_largest(header, f"{arch}.attention.head_count_kv") or heads,
            head_size=_largest(header, f"{arch}.attention.key_length") or embedding // heads,
            embedding=embedding,
            feed_forward=_largest(header, f"{arch}.feed_forward_length") or 4 * embedding,
            vocabulary=len(header.tokens) or _largest(header, f"{arch}.vocab_size") or 32_000,
            context=_largest(header, f"{arch}.context_length") or 2048,
            recurrent=recurrent,
            sliding_window=_largest(header, f"{arch}.attention.sliding_window") or 0,
        )
    except ValueError as error:
        raise ModelError(
            f"{header.path}: the file's numbers make no sense: {error}. Fetch it again."
        ) from error


def _largest(header: GgufHeader, key: str) -> int | None:
    """An integer, or the largest of a per-layer array: memory is planned for the widest layer."""
    value = header.metadata.get(key)
    if isinstance(value, tuple):
        numbers = [item for item in value if isinstance(item, int) and not isinstance(item, bool)]
        return max(numbers, default=None)
    return header.integer(key)
