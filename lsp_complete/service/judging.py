"""What syntax trees and the index know of a suggestion: does it break a tree that was whole, do its names exist.

Rules:
- Thread: the event loop, behind the model's answer; about a millisecond. Where the answer would cost more it is "not known": the
  tree is behind the text, or the document is long.
- A name counts as known if it stands anywhere in the document or is defined anywhere in the index.
- A name that nobody knows lowers the rank among candidates and holds nothing back: of what was held back for it (Python, by the file's own
  names), a quarter would have been right, which is more than of the rest (`bench keystrokes --filters`, `unknown_names_hold`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..index.index import SymbolIndex
from ..suggest.filters.base import ParsesOk
from ..suggest.names import Known
from ..syntax.facts_at import ERRORS_AROUND, parses_ok
from ..syntax.trees import error_spans
from ..syntax.worker import SyntaxState
from ..text.buffer import TextBuffer
from ..text.document import Document
from .surroundings import Surroundings

PARSED_CHARS = 200_000
"""A longer document is not parsed with the suggestion in it."""
SEARCHED_CHARS = 2_000_000
"""A longer document is not searched for names; those not near the cursor count as known."""
ALL_NAMES = "import *"
"""Who imports everything may use any name."""
_WORD = re.compile(r"[^\W\d]\w*")


class Judging:
    """See the module's rules. syntax: what is known of a document's text by URI. index: None while there is none."""

    def __init__(self, syntax: Callable[[str], SyntaxState | None], index: Callable[[], SymbolIndex | None]) -> None:
        self._syntax, self._index = syntax, index

    def parses_ok(self, document: Document, offset: int) -> ParsesOk | None:
        """For a suggestion at `offset`: whether the document with it is still whole; None if it is not, or nobody knows. While a
        line is being typed its tree is mostly broken, and errors move about: then a tree says nothing about a suggestion."""
        if document.buffer.length > PARSED_CHARS:
            return None
        state = self._syntax(document.uri)
        if state is None or not state.exact or state.tree is None or state.tree.buffer is not document.buffer:
            return None
        tree = state.tree
        if error_spans(tree, max(0, offset - ERRORS_AROUND), min(offset + ERRORS_AROUND, document.buffer.length)):
            return None
        return lambda text: parses_ok(tree, document.buffer, offset, text)

    def known(self, document: Document, around: Surroundings) -> Known:
        """Whether a name exists for a suggestion here."""

        @lru_cache(maxsize=1)
        def near() -> frozenset[str]:
            return frozenset(_WORD.findall(around.before)) | frozenset(_WORD.findall(around.after))

        def known(name: str) -> bool:
            return name in near() or self._elsewhere(document.buffer, name)

        return known

    def _elsewhere(self, buffer: TextBuffer, name: str) -> bool:
        if buffer.length > SEARCHED_CHARS:
            return True
        if any(name in chunk.text or ALL_NAMES in chunk.text for chunk in buffer.chunks_between(0, buffer.length)):
            return True
        index = self._index()
        return index is not None and bool(index.lookup(name, 1))
