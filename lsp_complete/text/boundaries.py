"""Where a text may be cut so that its tokens are the tokens of the pieces, for certain.

Strategy: a pre-tokenizer family says at which line ends no pre-token can span and no look-ahead can see across. Each rule
was derived from llama.cpp's splitting code and looks at the characters beside the cut only:

- AFTER: at a line's start, if the line shows something behind blanks and tabs. For the families whose newline rule
  swallows all blanks up to the last line end (Qwen, Llama 3, …). Some let punctuation take `/` too: not before one.
- BEFORE: before a line's ending, if a visible character stands there. For the GPT-2 kind, where any run of white space
  is its own pre-token but for its last character, and nothing else holds line ends (StarCoder, Granite, Command R, …).
- PAIR: as BEFORE, and no piece of the vocabulary spans that pair of bytes. For vocabularies without a
  pre-tokenizer (SentencePiece, Gemma); it holds for llama.cpp's default splitting as well.
- EVERY: at every line's start (DeepSeek-Coder isolates line ends first).
- NONE: nothing is known; the text is one span.

Rules:
- User-defined tokens match before everything else, with special tokens unparsed too. Pieces that span a cut of the rule
  are tried out once per vocabulary; near one that really does, there is no cut.
- Some of them swallow the white space behind them (Phi-3's): no cut right behind one, and where a cut may stand further behind, none at all.
- A rule is trusted only after a probe text has given equal tokens cut and whole. Otherwise it is NONE: slower, never wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsp_complete.text.buffer import line_starts
from lsp_complete.text.families import Kind, family
from lsp_complete.text.tokenizer import Tokenizer

MIN_SPAN = 128
"""Cuts are at least this many characters apart, where the text allows it: smaller spans cost more calls than they save."""

_INDENT = re.compile(r"[ \t]*")
_PROBE = (
    "def f(a, b):\n    # it's a test!!\n\n\n        return a  +b[1234]\n   \n\t\t  x\r\n\r\n}\n  ;\n// y\n/* z */;\n/\n"
    "日本語 é😀\n\u3000w = \"'s\"  \n 12\n12\n-->\n  <tag>\n'll\n'\n\n\nif (x) {\n}\n\n  \n \n.end\n"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One vocabulary's certain cuts.

    not_before: characters that must not follow an AFTER cut. free: bytes b for which no piece holds b and a line end
    (PAIR only). spanning: pieces of the vocabulary that cross a cut of the rule and are matched as a whole.
    """

    kind: Kind
    not_before: str = ""
    free: frozenset[int] = frozenset()
    spanning: tuple[str, ...] = ()

    def cuts(self, text: str, starts: Sequence[int] | None = None, least: int = MIN_SPAN) -> tuple[int, ...]:
        """Offsets of certain cuts in `text`, at least `least` apart. `text` is whole lines (or the end of the
        text), standing at a line's start; `starts` are its line starts if known. Offset 0 is one if `text` may be cut
        from a line end before it."""
        if self.kind is Kind.NONE:
            return ()
        starts = line_starts(text) if starts is None else starts
        found: list[int] = []
        at = 0
        while at < len(starts):
            cut = self._cut(text, starts, at)
            if cut is not None and not self._is_spanned(text, cut):
                found.append(cut)
                at = max(bisect_left(starts, cut + least, lo=at), at + 1)
            else:
                at += 1
        return tuple(found)

    def _cut(self, text: str, starts: Sequence[int], at: int) -> int | None:
        """The cut that line `at` gives: at its start, or before its ending; None if it gives none."""
        start = starts[at]
        if self.kind is Kind.EVERY:
            return start
        if self.kind is Kind.AFTER:
            blank = _INDENT.match(text, start)
            shown = blank.end() if blank else start
            sure = shown < len(text) and _visible(text[shown]) and text[start] not in self.not_before
            return start if sure else None
        end = starts[at + 1] if at + 1 < len(starts) else len(text)
        cut = end - 2 if text.endswith("\r\n", start, end) else end - 1
        if text[end - 1] not in "\r\n" or cut <= start or not _visible(text[cut - 1]):
            return None
        return (
            cut
            if self.kind is Kind.BEFORE or text[cut - 1].encode("utf-8", "replace")[-1] in self.free
            else None
        )

    def _is_spanned(self, text: str, cut: int) -> bool:
        """Whether a spanning piece may lie across `cut`, as far as `text` shows (at its edges: assume so)."""
        for piece in self.spanning:
            reach = len(piece) - 1
            if cut < reach or cut + reach > len(text) or piece in text[cut - reach : cut + reach]:
                return True
        return False


def _visible(char: str) -> bool:
    """Whether `char` is surely no white space to any splitter: SentencePiece writes a blank as U+2581, and takes one for a blank."""
    return char.isprintable() and not char.isspace() and char != "\u2581"


def rule_for(tokenizer: Tokenizer) -> Rule:
    """The certain cuts of a vocabulary. Looks at every piece once (tens of milliseconds): keep the result."""
    known = family(tokenizer.pre)
    kind, not_before = known.kind, known.not_before
    if kind is Kind.NONE:
        return Rule(kind)
    known_pieces = [piece for piece in map(tokenizer.piece, range(tokenizer.size)) if len(piece) > 1]
    pieces = [piece for piece in known_pieces if b"\n" in piece or b"\r" in piece]
    taken = {piece[i - 1] for piece in pieces for i in range(1, len(piece)) if piece[i] in b"\r\n"}
    rule = Rule(kind, not_before, frozenset(range(256)) - taken)
    spanning = [
        text for text in map(_decode, pieces) if len(text) > 1 and _crosses(rule, text, tokenizer.tokenize)
    ]
    swallowing = _swallowing(tokenizer, known_pieces)
    if swallowing and kind not in (Kind.BEFORE, Kind.PAIR):
        return Rule(Kind.NONE)
    spanning += (text + end for text in swallowing for end in "\r\n")
    rule = Rule(kind, not_before, rule.free, tuple(spanning))
    whole = tokenizer.tokenize(_PROBE)
    return rule if _tokens_cut(rule, _PROBE, tokenizer.tokenize) == whole else Rule(Kind.NONE)


def _decode(piece: bytes) -> str:
    """A piece as text; "" if it is not whole characters, for then the text holds it only inside a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return ""


def _swallowing(tokenizer: Tokenizer, pieces: Sequence[bytes]) -> list[str]:
    """Tokens behind which white space vanishes. Only what looks like a tag is tried."""
    tags = (_decode(piece) for piece in pieces if piece.startswith((b"<", b"[")) and piece.endswith((b">", b"]")))
    return [text for text in tags if text and _bytes(tokenizer, f"a{text}\na") != f"a{text}\na".encode()]


def _bytes(tokenizer: Tokenizer, text: str) -> bytes:
    return b"".join(map(tokenizer.piece, tokenizer.tokenize(text)))


def _crosses(rule: Rule, piece: str, tokenize: Callable[[str], list[int]]) -> bool:
    """Whether the piece, between letters, is a token across a cut of the rule."""
    text = f"\na{piece}a\n"
    inside = [cut for cut in rule.cuts(text, least=1) if 2 < cut < 2 + len(piece)]
    return any(tokenize(text[:cut]) + tokenize(text[cut:]) != tokenize(text) for cut in inside)


def _tokens_cut(rule: Rule, text: str, tokenize: Callable[[str], list[int]]) -> list[int]:
    """Tokens of `text` made from its pieces."""
    edges = [0, *rule.cuts(text, least=1), len(text)]
    return [token for i in range(1, len(edges)) for token in tokenize(text[edges[i - 1] : edges[i]])]
