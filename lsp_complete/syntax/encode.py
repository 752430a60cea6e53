"""How text is handed to the parser: one code point is always exactly two bytes.

Strategy: tree-sitter counts bytes, the program counts code points, and converting between them for every node and edit would
cost a table per file. So the parser gets UTF-16 in which each code point takes one unit: what lies beyond the
first plane is replaced by a stand-in of the same class (a letter by a letter, anything else by a symbol). Then `byte = 2 ×
offset`, always. Text is never read back from the tree, so the stand-ins are seen by no one.

Rules:
- A lone `\\r` is a line end here but not for the parser: it is handed over as `\\n`, so rows and lines agree.
- NUL would end the text for some grammars: it is handed over as U+FFFD.
- What a code point is encoded to depends on itself and, for `\\r`, on the next one only. An edit right behind a `\\r`
  therefore begins at that `\\r` (`trees.py` sees to it).
"""

from __future__ import annotations

import re
import unicodedata

from lsp_complete.text.buffer import TextBuffer

BYTES = 2
_LETTER, _SYMBOL = "\u4e00", "\u2600"
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_LONE_RETURN = re.compile(r"\r(?!\n)")


def _stand_in(match: re.Match[str]) -> str:
    return _LETTER if unicodedata.category(match.group()) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl") else _SYMBOL


def encode(text: str, following: str = "") -> bytes:
    """`text` for the parser, two bytes for each code point. `following`: the character after it, "" at the end."""
    if "\r" in text:
        text = _LONE_RETURN.sub("\n", text + following)[: len(text)]
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    raw = text.encode("utf-16-le", "surrogatepass")
    if len(raw) != BYTES * len(text):
        raw = _BEYOND.sub(_stand_in, text).encode("utf-16-le", "surrogatepass")
    return raw


def read(buffer: TextBuffer, offset: int, size: int) -> bytes:
    """Up to `size` code points of a buffer from `offset`, encoded. O(size + log chunks)."""
    text = buffer.slice(offset, offset + size + 1)
    return encode(text[:size], text[size:])
