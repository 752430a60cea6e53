"""The plain text model that the incremental one is compared with, and strategies for hostile text."""

from __future__ import annotations

import re

from hypothesis import strategies as st

PIECES = [
    "\n",
    "\r",
    "\r\n",
    "\n\n\n",
    "a",
    "  ",
    "\t",
    "\f",
    "\u2028",
    "\u0085",
    "\x0b",
    "é",
    "e\u0301",
    "😀",
    "👩\u200d💻",
    "漢字",
]
PIECES += [
    "x = 1\n",
    "    return x\r\n",
    "}\n",
    "/*",
    "*/",
    '"',
    "'''",
    "# ",
    "<|fim_middle|>",
    "\u3000",
    "\x00",
    "word " * 9,
]
hostile = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def plain_lines(text: str) -> list[str]:
    """Lines with endings; always a last one."""
    found = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)", text)
    return [*found, text[sum(map(len, found)) :]]


def plain_offset(text: str, line: int, character: int, encoding: str) -> int:
    """The offset of an LSP position, counted character by character."""
    lines = plain_lines(text)
    if line >= len(lines):
        return len(text)
    start = sum(map(len, lines[:line]))
    used = 0
    for column, char in enumerate(lines[line].rstrip("\r\n")):
        used += {"utf-8": len(char.encode()), "utf-16": len(char.encode("utf-16-le")) // 2, "utf-32": 1}[
            encoding
        ]
        if used > character:
            return start + column
    return start + len(lines[line].rstrip("\r\n"))
