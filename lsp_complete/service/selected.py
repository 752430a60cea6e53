"""The document as one request means it: the snapshot of its message, with the popup's selected item in place.

Strategy: nearly always that is the open document itself. Where it is not (a change arrived behind the request in the
same packet, or the editor's popup has an item selected), a copy is made that shares the token cache.
"""

from __future__ import annotations

from dataclasses import replace

from ..text.document import Document
from .documents import OpenDocument
from .types import Query


def as_meant(state: OpenDocument, query: Query) -> tuple[OpenDocument, Query]:
    """State and cursor as the request means them. The copy has no token table yet; what it needs is in the shared
    cache. Its anchor is checked against its text like any other, so a stale one costs a new anchor at most."""
    if query.document is not state.document:
        state = replace(state, document=query.document, table=None, generation=None)
    if not query.selected or not 0 <= query.selected_start <= query.offset:
        return state, query
    document = query.document
    buffer = document.buffer.replace(query.selected_start, query.offset, query.selected)
    changed = Document(document.uri, document.language_id, document.version, buffer, document.newline)
    trial = replace(state, document=changed, table=None, generation=None)
    if trial.anchor is not None:
        delta = len(query.selected) - (query.offset - query.selected_start)
        trial.anchor = replace(trial.anchor, suffix_start=trial.anchor.suffix_start + delta)
    return trial, replace(query, document=changed, offset=query.selected_start + len(query.selected))
