"""A small editor for tests: auto-closing brackets and quotes, typing over closers, auto-indent, Enter between braces."""

from __future__ import annotations

PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"'}
CLOSERS = set(PAIRS.values())


class Editor:
    """Text before and after the cursor, `\\n` line ends."""

    def __init__(self, before: str, after: str, unit: str = "  ", closing: bool = True) -> None:
        self.before, self.after = before, after
        self.unit, self.closing = unit, closing
        self._own = 0

    def key(self, char: str) -> None:
        """Press one key."""
        if char == "\n":
            self._enter()
        elif self._own and self.after.startswith(char) and char in CLOSERS:
            self.before, self.after = self.before + char, self.after[1:]
            self._own -= 1
        elif self.closing and char in PAIRS and (not self.after or not self.after[0].isalnum()):
            self.before, self.after = self.before + char, PAIRS[char] + self.after
            self._own += 1
        else:
            self.before += char

    def _enter(self) -> None:
        line = self.before.rpartition("\n")[2]
        space = line[: len(line) - len(line.lstrip())]
        deeper = line.rstrip()[-1:] in ("{", "(", "[", ":") and bool(line.strip())
        if deeper and self.after[:1] == PAIRS.get(line.rstrip()[-1:], "-"):
            self.before += "\n" + space + self.unit
            self.after = "\n" + space + self.after
            self._own = 0
        else:
            self.before += "\n" + space + (self.unit if deeper else "")

    def insert(self, text: str) -> None:
        """Accept a suggestion (or a part of it)."""
        self.before += text

    @property
    def text(self) -> str:
        """The document."""
        return self.before + self.after
