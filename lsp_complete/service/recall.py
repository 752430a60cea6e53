"""Outlines of files that were open before: known again before they are parsed.

Strategy: the outline of a document whose text is the file's is kept by path and content (`store.fingerprint`); when a document with just
that text is opened again, after a restart too, its outline is there in a millisecond or two, while parser and queries are still being
loaded.

Rules:
- Only documents that may be indexed (inside the workspace, not ignored, not secret), and only whole texts, are kept or recalled.
- A language that the editor names otherwise than the file's name says (C++ in a `.h`) is not kept: the cache goes by the name.
- `recall` and `keep` run on the syntax thread; the rest on the event loop. Nothing raises.
"""

from __future__ import annotations

from ..store.disk import DiskCache
from ..store.fingerprint import FingerprintCache
from ..store.outlines import outline_cache
from ..syntax.languages import language_for
from ..syntax.nodes import Outline
from ..text.buffer import TextBuffer

MEMORY_BYTES = 16 << 20


class OutlineMemory:
    """See the module's rules. Without a disk it lasts as long as the server."""

    def __init__(self) -> None:
        self._cache: FingerprintCache[Outline] = outline_cache(None, MEMORY_BYTES)

    def use(self, cache: object) -> None:
        """Keep outlines in this cache too, if it is one on disk."""
        if isinstance(cache, DiskCache):
            self._cache = outline_cache(cache, MEMORY_BYTES)

    def recall(self, path: str, buffer: TextBuffer) -> Outline | None:
        """The outline of this text under this path, or None."""
        return self._cache.recall(path, _content(buffer))

    def keep(self, path: str, buffer: TextBuffer, outline: Outline) -> None:
        """Keep the outline of a text that has no errors."""
        facts = language_for("", path)
        if facts is not None and facts.key == outline.language and not outline.broken and not outline.kept:
            self._cache.keep(path, _content(buffer), outline)


def _content(buffer: TextBuffer) -> bytes:
    return buffer.text().encode("utf-8", "surrogatepass")
