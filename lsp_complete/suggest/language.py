"""What the suggestion rules need to know of a language, as plain values.

Strategy: a small table (`data/languages.json`) gives comments, quotes and block marks. The integrator may
pass facts of its own (from `grammars/`); an unknown language gets facts that suit most languages with braces.

Rules: facts describe text, never trees. Adding a language means adding a row of data, no code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class LanguageFacts:
    """Lexical facts of one language.

    line_comments: strings that start a comment up to the line end. block_comment: () or (start, end).
    openers: a line that ends with one of these opens a block (words count as words).
    block_heads: words that open a block when they begin a line and the block ends with one of `end_words`.
    quotes: one-line string marks. long_quotes: marks of strings that may span lines (a back-quote
    may hold `${…}`). raw_quotes: those of both in which a backslash and `${` mean themselves. char_quote: `'` holds one character (so `'a` may be a lifetime, not a string).
    indent_blocks: blocks end by indentation alone. prose: running text is normal in such files.
    """

    language_id: str = ""
    line_comments: tuple[str, ...] = ("//", "#")
    block_comment: tuple[str, ...] = ("/*", "*/")
    openers: tuple[str, ...] = ("{", ":")
    block_heads: tuple[str, ...] = ()
    end_words: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ('"',)
    long_quotes: tuple[str, ...] = ()
    raw_quotes: tuple[str, ...] = ()
    char_quote: bool = True
    indent_blocks: bool = False
    prose: bool = False

    def __post_init__(self) -> None:
        if len(self.block_comment) not in (0, 2):
            raise ValueError("block_comment must be empty or a pair")


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, str], dict[str, LanguageFacts]]:
    raw = json.loads(resources.files(__package__).joinpath("data/languages.json").read_text("utf-8"))
    rows: dict[str, LanguageFacts] = {}
    for name, row in raw["languages"].items():
        rows[name] = LanguageFacts(
            language_id=name,
            line_comments=tuple(row.get("line_comments", ())),
            block_comment=tuple(row.get("block_comment", ())),
            openers=tuple(row.get("openers", ())),
            block_heads=tuple(row.get("block_heads", ())),
            end_words=tuple(row.get("end_words", ())),
            quotes=tuple(row.get("quotes", ('"', "'"))),
            long_quotes=tuple(row.get("long_quotes", ())),
            raw_quotes=tuple(row.get("raw_quotes", ())),
            char_quote=bool(row.get("char_quote", False)),
            indent_blocks=bool(row.get("indent_blocks", False)),
            prose=bool(row.get("prose", False)),
        )
    return dict(raw["aliases"]), rows


def base_language(language_id: str) -> str:
    """The table's name for an editor's language id (`typescriptreact` → `typescript`)."""
    aliases, _ = _table()
    lowered = language_id.lower()
    return aliases.get(lowered, lowered)


def facts_for(language_id: str) -> LanguageFacts:
    """Facts for an LSP language id. Any id is accepted; an unknown one gets the general facts. Any thread."""
    _, rows = _table()
    name = base_language(language_id)
    return rows.get(name) or LanguageFacts(language_id=name)
