"""Token ids of any slice of a document, tokenizing only what was never seen.

Strategy: certain cuts (`boundaries`) part a text into spans whose ids depend on nothing but the span's own characters.
So ids are cached by the text of the span, and an edit has nothing to shift: the spans it did not touch are still the same
text and are found again, as are those of an undone or a moved passage. Where the cuts of a chunk of lines lie is
remembered per chunk; an edit renews one chunk and leaves the others, which the buffer shares.

Rules:
- `ids(a, b)` equals tokenizing that slice as a text of its own, exactly (the bounds of `runs` aside).
- The cost of an edit is that of its chunk; the cost of `ids` is that of the spans not seen before.
- Memory is bounded: cached spans live in two generations, the older is dropped when the younger is full.
- Belongs to one thread (the event loop), as its tokenizer does. Any snapshot may be asked, not only the newest.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lsp_complete.text.boundaries import Rule, rule_for
from lsp_complete.text.buffer import Chunk, TextBuffer
from lsp_complete.text.edits import Edit, merge
from lsp_complete.text.runs import parts, tokenize
from lsp_complete.text.tokenizer import Tokenizer

MAX_CACHED_CHARS = 8_000_000
"""Characters of span text kept per cache, about 50 MB with their ids."""
MAX_CHUNKS = 8_192
"""Chunks whose cuts are remembered per document."""

_TOGETHER = 32_768
"""Characters of neighbouring new spans that go to the tokenizer in one call."""
_EMPTY = TextBuffer.from_text("")
Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class TokenStats:
    """Spans and tokens served from the cache and tokenized anew since the cache was made."""

    spans_reused: int = 0
    spans_tokenized: int = 0
    tokens_reused: int = 0
    tokens_tokenized: int = 0

    @property
    def reused(self) -> float:
        """Share of tokens that were served from the cache; 1.0 before any were asked for."""
        total = self.tokens_reused + self.tokens_tokenized
        return self.tokens_reused / total if total else 1.0


class SpanCache:
    """Ids by span text, for one tokenizer. May serve several documents' tables."""

    def __init__(
        self, tokenizer: Tokenizer, rule: Rule | None = None, max_chars: int = MAX_CACHED_CHARS
    ) -> None:
        self.tokenizer = tokenizer
        self.rule = rule_for(tokenizer) if rule is None else rule
        self._max_chars = max_chars
        self._young: dict[str, Ids] = {}
        self._old: dict[str, Ids] = {}
        self._young_chars = 0
        self._counts = [0, 0, 0, 0]

    def spans(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of each of `texts`, which stand in this order between certain cuts. Neighbours not seen before are
        tokenized in one call."""
        out: list[Ids | None] = [self._get(text) for text in texts]
        at = 0
        while at < len(out):
            end, chars = at, 0
            while end < len(out) and out[end] is None and chars < _TOGETHER:
                chars += len(texts[end])
                end += 1
            out[at:end] = self._tokenize(texts[at:end])
            at = max(end, at + 1)
        return [ids for ids in out if ids is not None]

    def ids(self, text: str) -> list[int]:
        """Ids of a text that belongs to no document (a chunk of another file), through the same cache."""
        edges = [0, *(cut for cut in self.rule.cuts(text) if 0 < cut < len(text)), len(text)]
        return _flat(self.spans([text[left:right] for left, right in pairwise(edges)]))

    def stats(self) -> TokenStats:
        """Counters since the cache was made."""
        return TokenStats(*self._counts)

    @property
    def cached_chars(self) -> int:
        """Characters of span text held."""
        return self._young_chars + sum(map(len, self._old))

    def _get(self, text: str) -> Ids | None:
        ids = self._young.get(text)
        if ids is None:
            ids = self._old.pop(text, None)
            if ids is None:
                return None
            self._put(text, ids)
        self._counts[0] += 1
        self._counts[2] += len(ids)
        return ids

    def _put(self, text: str, ids: Ids) -> None:
        if self._young_chars + len(text) > self._max_chars // 2:
            self._old, self._young, self._young_chars = self._young, {}, 0
        self._young[text] = ids
        self._young_chars += len(text)

    def _tokenize(self, texts: Sequence[str]) -> list[Ids]:
        found = self._tokenize_together(texts) if len(texts) > 1 else []
        if not found:
            found = [array("i", tokenize(self.tokenizer, text)) for text in texts]
        for text, ids in zip(texts, found, strict=True):
            self._counts[1] += 1
            self._counts[3] += len(ids)
            if len(text) * 4 <= self._max_chars:
                self._put(text, ids)
        return found

    def _tokenize_together(self, texts: Sequence[str]) -> list[Ids]:
        """One call for neighbouring spans, its ids parted by the bytes they stand for; [] if they do not add up (a
        vocabulary with unknown or hidden pieces) or the bounds of `runs` would cut elsewhere than between spans."""
        joined = parts("".join(texts), self.tokenizer.pre)
        if len(joined) != 1:
            return []
        ids = array("i", self.tokenizer.tokenize(joined[0]))
        sizes = accumulate(len(self.tokenizer.piece(token)) for token in ids)
        ends = {size: index for index, size in enumerate(sizes, 1)}
        wanted = accumulate(len(text.encode("utf-8", "replace")) for text in texts)
        edges = [0, *(ends.get(size, -1) for size in wanted)]
        if edges[-1] != len(ids) or any(left >= right for left, right in pairwise(edges)):
            return []
        return [ids[left:right] for left, right in pairwise(edges)]


_shared: list[SpanCache] = []
"""The caches of the tokenizers used last, at most two: an old one while a new model is loaded."""


def shared_cache(tokenizer: Tokenizer) -> SpanCache:
    """The cache that all tables of one tokenizer object share. The first call looks at the whole vocabulary (some 100 ms):
    make it where nobody waits, before the tokenizer is handed to the event loop."""
    for cache in _shared:
        if cache.tokenizer is tokenizer:
            return cache
    made = SpanCache(tokenizer)
    _shared[:] = [made, *_shared[:1]]
    return made


class TokenTable:
    """The token ids of one document, over a cache that is shared between documents."""

    def __init__(
        self, tokenizer: Tokenizer, buffer: TextBuffer = _EMPTY, cache: SpanCache | None = None
    ) -> None:
        self._cache = shared_cache(tokenizer) if cache is None else cache
        self._buffer = buffer
        self._cuts: dict[Chunk, tuple[int, ...]] = {}

    def update(self, old_buffer: TextBuffer, new_buffer: TextBuffer, edits: Sequence[Edit]) -> None:
        """Follow the document to a new snapshot. Only the cuts of the chunks that the edits replaced are forgotten."""
        self._buffer = new_buffer
        change = merge(edits)
        if change is not None:
            for chunk in old_buffer.chunks_between(change.start - 1, change.old_end):
                self._cuts.pop(chunk, None)

    def ids(self, start: int, end: int, buffer: TextBuffer | None = None) -> list[int]:
        """Token ids of start … end (code-point offsets) tokenized as a text of its own.

        buffer: the snapshot to read; the newest one if not given.
        """
        return _flat(self._spans(start, end, buffer))

    def count(self, start: int, end: int, buffer: TextBuffer | None = None) -> int:
        """Number of tokens of the slice."""
        return sum(map(len, self._spans(start, end, buffer)))

    def stats(self) -> TokenStats:
        """Counters of the cache behind this table."""
        return self._cache.stats()

    def _spans(self, start: int, end: int, buffer: TextBuffer | None) -> list[Ids]:
        buffer = self._buffer if buffer is None else buffer
        start, end = max(start, 0), min(end, buffer.length)
        if start >= end:
            return []
        edges = [start, *self._cuts_between(buffer, start, end), end]
        text = buffer.slice(start, end)
        return self._cache.spans([text[left - start : right - start] for left, right in pairwise(edges)])

    def _cuts_between(self, buffer: TextBuffer, start: int, end: int) -> list[int]:
        """Certain cuts strictly between two offsets."""
        found: list[int] = []
        offsets = buffer.offset_index
        for at in range(bisect_right(offsets, start) - 1, bisect_left(offsets, end)):
            base, cuts = offsets[at], self._chunk_cuts(buffer.chunks[at])
            low, high = bisect_right(cuts, start - base), bisect_left(cuts, end - base)
            found += (base + cut for cut in cuts[low:high])
        return found

    def _chunk_cuts(self, chunk: Chunk) -> tuple[int, ...]:
        cuts = self._cuts.get(chunk)
        if cuts is None:
            if len(self._cuts) >= MAX_CHUNKS:
                self._cuts.clear()
            cuts = self._cuts[chunk] = self._cache.rule.cuts(chunk.text, chunk.starts)
        return cuts


def _flat(spans: Sequence[Ids]) -> list[int]:
    out: list[int] = []
    for ids in spans:
        out.extend(ids)
    return out
