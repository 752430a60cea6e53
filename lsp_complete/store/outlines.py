"""The outline cache: outlines of files by their fingerprint. See `fingerprint.py`."""

from __future__ import annotations

from lsp_complete.store.disk import DiskCache
from lsp_complete.store.fingerprint import FingerprintCache, Recipe
from lsp_complete.syntax.languages import language_for, version_of
from lsp_complete.syntax.nodes import Outline
from lsp_complete.syntax.outline import outline_text
from lsp_complete.syntax.plain import FORMAT, from_plain, to_plain

_NODE_BYTES = 600  # a node with its strings and span, rounded up from sys.getsizeof over real files


def _version(path: str) -> str:
    """Format of outlines and version of the grammar that the file's name leads to; no grammar is loaded for it."""
    facts = language_for("", path)
    return f"{FORMAT}:{version_of(facts) if facts is not None else ''}"


def _make(path: str, text: str) -> Outline | None:
    return outline_text("", path, text)


def _size(outline: Outline) -> int:
    text = sum(len(node.signature) + len(node.doc) for node in outline.nodes)
    return 200 + _NODE_BYTES * len(outline.nodes) + 2 * text


RECIPE: Recipe[Outline] = Recipe("outline", _version, _make, to_plain, from_plain, _size)


def outline_cache(disk: DiskCache | None, memory_bytes: int = 64 * 1024 * 1024) -> FingerprintCache[Outline]:
    """A cache of outlines; `get(path)` gives None for files of unknown languages, too large or binary ones."""
    return FingerprintCache(RECIPE, disk, memory_bytes=memory_bytes)
