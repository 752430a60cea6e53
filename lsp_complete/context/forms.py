"""A symbol as text, from most to least: what the model must know so that it does not make it up.

Strategy: a function is its signature with the first lines, then the signature, then one line with a sentence; a class is its header,
constructor, fields and the signatures of its members, then fewer of them, then one line. Names that are left out still stand in a
comment while there is room: a name costs two tokens, an invented one costs the user's trust.

Rules:
- Signatures are folded into one line and never cut; indentation is that of a fresh file.
- How a language elides a body and writes comments comes from its facts; nothing here names a language.
- Forms get shorter, and equal ones are joined. Pure; bad text gives odd text, never an error.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

from ..syntax.languages import LanguageFacts, all_languages
from .symbol import Symbol

MAX_LINE = 160
HEAD_LINES = 3
SHORT_BODY_LINES = 5
MAX_MEMBERS, MAX_FIELDS = 20, 12
_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "new", "__new__", "init", "__construct"})
_SPACED = re.compile(r"([(\[{])\s+|,?\s+([)\]])")


def folded(signature: str) -> str:
    """A signature in one line."""
    return _SPACED.sub(lambda match: match.group(1) or match.group(2), " ".join(signature.split()))


def facts_of(language: str) -> LanguageFacts | None:
    """Facts of a grammar folder by its name."""
    return all_languages().get(language)


def comment(facts: LanguageFacts | None, text: str) -> str:
    """One comment."""
    if facts is not None and not facts.line_comment and facts.block_comment:
        return f"{facts.block_comment[0]} {text} {facts.block_comment[1]}"
    return f"{facts.line_comment if facts is not None else '#'} {text}"


def cut(text: str) -> str:
    """At most MAX_LINE characters."""
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1].rstrip() + "…"


def elided(symbol: Symbol, facts: LanguageFacts | None) -> str:
    """The folded signature with an elision for its body."""
    text = folded(symbol.signature)
    if symbol.role == "constant" or (not symbol.body and symbol.whole):
        return text
    return f"{text} {facts.elision if facts is not None else '...'}"


def one_line(symbol: Symbol) -> str:
    """Signature and sentence in one line, ended."""
    facts = facts_of(symbol.language)
    text = elided(symbol, facts)
    if symbol.summary and len(text) + len(symbol.summary) + 4 < MAX_LINE:
        text += "  " + comment(facts, symbol.summary)
    return text + "\n"


def _unique(forms: Sequence[str]) -> tuple[str, ...]:
    """Forms in order, each shorter than the one before it."""
    kept: list[str] = []
    for form in forms:
        if form.strip() and (not kept or len(form) < len(kept[-1])):
            kept.append(form)
    return tuple(kept) or (" \n",)


def head(symbol: Symbol) -> str:
    """Signature and first lines of the body; the whole of a short one."""
    facts = facts_of(symbol.language)
    lines = symbol.body.split("\n")
    opener, inside = lines[0].strip(), [line.rstrip() for line in lines[1:]]
    filled = [line for line in inside if line.strip()]
    if symbol.role != "function" or not filled:
        return elided(symbol, facts) + (f" {opener}" if symbol.whole and opener not in ("", "{") else "") + "\n"
    indent = facts.indent if facts is not None else "    "
    first = folded(symbol.signature) + (f" {opener}" if opener else "")
    if symbol.whole and len(filled) <= SHORT_BODY_LINES:
        return f"{first}\n{_placed(filled, indent, closes=opener == '{')}\n"
    rest = "..." if facts is None else (facts.elision.strip("{}() ") or "...")
    return f"{first}\n{_placed(filled[:HEAD_LINES], indent, closes=False)}\n{indent}{rest}\n" + ("}\n" if opener == "{" else "")


def _placed(lines: Sequence[str], indent: str, *, closes: bool) -> str:
    """Body lines at one level of indentation; the closer of a brace language stands at none."""
    text = textwrap.dedent("\n".join(lines[:-1] if closes and len(lines) > 1 else lines))
    made = textwrap.indent(text, indent)
    return f"{made}\n{lines[-1].strip()}" if closes and len(lines) > 1 else made


def function_forms(symbol: Symbol) -> tuple[str, ...]:
    """Signature and first lines, signature and sentence, signature alone."""
    line = one_line(symbol)
    return _unique((head(symbol), line, elided(symbol, facts_of(symbol.language)) + "\n"))


def short_forms(symbol: Symbol) -> tuple[str, ...]:
    """One line with its sentence, one line without."""
    return _unique((one_line(symbol), elided(symbol, facts_of(symbol.language)) + "\n"))


def is_constructor(member: Symbol, cls: Symbol) -> bool:
    """Whether a member makes objects of its class."""
    return member.role == "function" and (member.name in _CONSTRUCTORS or member.name == cls.name)


def class_forms(cls: Symbol, members: Sequence[Symbol], wanted: Collection[str] = ()) -> tuple[str, ...]:
    """A class with its members, from all signatures down to one line. wanted: members that must be seen."""
    facts = facts_of(cls.language)
    makers = [m for m in members if is_constructor(m, cls)][:2]
    fields = [m for m in members if m.role == "constant"]
    others = [m for m in members if m.role == "function" and m not in makers]
    public = [m for m in others if m.name in wanted or not m.name.startswith(("_", "#"))]
    named = [m for m in others if m.name in wanted]
    page = _Class(cls, facts)
    rest = [m for m in public if m not in named]
    return _unique(
        (
            page.text(fields[:MAX_FIELDS], makers, _in_order([*named, *rest[:MAX_MEMBERS]]), rest[MAX_MEMBERS:], doc=True),
            page.text(fields[: MAX_FIELDS // 2], makers, named, [*fields[MAX_FIELDS // 2 :], *rest], doc=False),
            page.text([f for f in fields if f.name in wanted], makers[:1], named[:4], [], doc=False, attributes=False),
            one_line(cls),
        )
    )


def _in_order(members: Sequence[Symbol]) -> list[Symbol]:
    return sorted(members, key=lambda member: member.first_line)


class _Class:
    """Writes one class at several lengths."""

    def __init__(self, cls: Symbol, facts: LanguageFacts | None) -> None:
        self._cls, self._facts = cls, facts
        self._indent = facts.indent if facts is not None else "    "
        self._braces = facts is not None and facts.elision.startswith("{")

    def text(
        self, fields: Sequence[Symbol], makers: Sequence[Symbol], methods: Sequence[Symbol], left: Sequence[Symbol],
        *, doc: bool, attributes: bool = True,
    ) -> str:  # fmt: skip
        """The class with these members. left: only named, in a comment."""
        inside = [one_line(m).strip() for m in fields]
        for maker in makers:
            inside += self._maker(maker, attributes)
        inside += [(one_line(m) if doc else elided(m, self._facts)).strip() for m in methods]
        names = list(dict.fromkeys(m.name for m in left if m.name))[:16]
        if names:
            inside.append(comment(self._facts, ", ".join(names)))
        if not inside:
            return one_line(self._cls)
        header = folded(self._cls.signature) + (" {" if self._braces else "")
        if doc and self._cls.summary:
            header += "  " + comment(self._facts, self._cls.summary)
        lines = [header, *(self._indent + line for line in inside), *(["}"] if self._braces else [])]
        return "".join(f"{line}\n" for line in lines)

    def _maker(self, maker: Symbol, attributes: bool) -> list[str]:
        """The constructor, with what it sets on the object."""
        line = elided(maker, self._facts).strip()
        if not attributes or not self._cls.attributes or self._braces:
            return [line]
        given = [self._indent + _set(*attribute) for attribute in self._cls.attributes[:MAX_FIELDS]]
        return [folded(maker.signature), *given]


def _set(name: str, annotation: str, value: str) -> str:
    """What a method sets on its object, in one line; a value that goes on in the next line is left out."""
    whole = bool(value) and value[-1] not in "([{,\\+-*/|&" and value.count("(") == value.count(")")
    return f"{name}{': ' + annotation if annotation else ''} = {value if whole and len(value) <= 48 else '...'}"
