"""Where a document's prompt stood, kept over closing the file and over restarts, so that the prompt saved by the engine fits again.

Strategy: a fresh anchor depends on the cursor's line; one line further down its prompt begins elsewhere, and nothing of what the engine has
on disk can be reused. So the anchor in force is kept: offsets and a digest of the texts it freezes, no text. It counts again
if the opened document holds the same texts at those offsets (the suffix counted from the document's end, so typing before it
changes nothing). `why_moved` judges it as any other.

Rules:
- Entries are untrusted: whatever does not describe this very text is passed over.
- Small prompts and the standard layout are not kept; nothing is kept where the engine keeps no prompts on disk.
- Event loop. Writing takes some tenths of a millisecond, behind an answer, once per anchor.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import xxhash

from ..context.anchor import MAX_BETWEEN_CHARS, MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS, MAX_TAIL_CHARS, Anchor
from ..index.manifest import Cache
from ..text.document import Document
from .documents import OpenDocument

_FORMAT = 1
_AUTO_INSERTED = " \t\r\n)]}>\"'`;,"


def _key(uri: str) -> str:
    return f"anchor:{_FORMAT}:{xxhash.xxh3_128_hexdigest(uri.encode('utf-8', 'surrogatepass'))}"


def _digest(prefix: str, suffix: str) -> str:
    whole = f"{len(prefix)} {prefix}{suffix}"
    return xxhash.xxh3_128_hexdigest(whole.encode("utf-8", "surrogatepass"))


def to_bytes(anchor: Anchor, length: int) -> bytes:
    """An anchor as it is kept. length: of the document, code points."""
    places = [anchor.window_start, anchor.anchor, length - anchor.suffix_start, len(anchor.suffix)]
    return json.dumps([*places, int(anchor.at_cursor), _digest(anchor.prefix, anchor.suffix)]).encode()


def from_bytes(raw: bytes, document: Document) -> Anchor | None:
    """The kept anchor if it describes this document's text, else None."""
    try:
        *places, digest = json.loads(raw)
        window_start, start, from_end, suffix_length, at_cursor = places
    except (ValueError, TypeError, RecursionError):
        return None
    if not all(type(x) is int and 0 <= x < 1 << 40 for x in places) or not isinstance(digest, str):
        return None
    buffer = document.buffer
    suffix_start = buffer.length - from_end
    if not window_start <= start <= suffix_start <= suffix_start + suffix_length <= buffer.length:
        return None
    if start - window_start > MAX_PREFIX_CHARS or suffix_length > MAX_SUFFIX_CHARS or suffix_start - start > MAX_TAIL_CHARS:
        return None
    prefix, suffix = buffer.slice(window_start, start), buffer.slice(suffix_start, suffix_start + suffix_length)
    if _digest(prefix, suffix) != digest:
        return None
    return Anchor(window_start, start, suffix_start, prefix, suffix, bool(at_cursor))


def left_at(anchor: Anchor, document: Document) -> int:
    """Where the cursor stood, as far as the text tells: behind what was typed, before what editors insert by themselves."""
    end = anchor.suffix_start
    last = document.buffer.slice(max(anchor.anchor, end - MAX_BETWEEN_CHARS), end)
    return end if anchor.at_cursor else end - (len(last) - len(last.rstrip(_AUTO_INSERTED)))


class KeptAnchors:
    """See the module's rules. cache: made when it is first needed."""

    def __init__(self, cache: Callable[[], Cache]) -> None:
        self._cache = cache
        self._last: dict[str, bytes] = {}

    def recall(self, state: OpenDocument) -> None:
        """Give a document that was just opened the anchor it had, and the cursor's place."""
        uri, document = state.document.uri, state.document
        raw = self._cache().get_bytes(_key(uri))
        anchor = from_bytes(raw, document) if raw is not None else None
        if raw is None or anchor is None:
            return
        self._last[uri] = raw
        state.anchor, state.cursor = anchor, left_at(anchor, document)

    def keep(self, state: OpenDocument) -> None:
        """Keep the anchor in force if it is another one than was kept."""
        anchor, uri = state.anchor, state.document.uri
        if anchor is None or anchor.small or anchor.standard or anchor.suffix_start > state.document.buffer.length:
            return
        raw = to_bytes(anchor, state.document.buffer.length)
        if self._last.get(uri) != raw:
            self._last[uri] = raw
            self._cache().put_bytes(_key(uri), raw)

    def closed(self, state: OpenDocument) -> None:
        """The document is closed: keep its anchor."""
        self.keep(state)
        self._last.pop(state.document.uri, None)
