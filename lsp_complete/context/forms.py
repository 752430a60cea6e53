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
MAX_MEMBERS, MAX_FIELDS, MAX_NAMES = 16, 12, 40
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


def class_forms(
    cls: Symbol, members: Sequence[Symbol], wanted: Collection[str] = (), likely: Collection[str] = ()
) -> tuple[str, ...]:
    """A class with its members, from all signatures down to one line. wanted: members that must be seen; likely: names that
    the open file uses, so that of a large class the right ones are written out. Of the rest the names are told."""
    facts = facts_of(cls.language)
    makers = [m for m in members if is_constructor(m, cls)][:2]
    others = [m for m in members if m not in makers and m.name and m.role in ("function", "constant")]
    ranked = sorted(others, key=lambda m: (m.name not in wanted, m.name not in likely, _hidden(m.name), m.first_line))
    fields = [m for m in ranked if m.role == "constant"]
    methods = [m for m in ranked if m.role == "function" and (m.name in wanted or m.name in likely or not _hidden(m.name))]
    named = [m for m in methods if m.name in wanted]
    some = [m for m in methods if m.name in wanted or m.name in likely][:MAX_MEMBERS]
    page = _Class(cls, facts)

    def rest(shown: Sequence[Symbol]) -> list[str]:
        return [m.name for m in ranked if m not in shown]

    full = [*fields[:MAX_FIELDS], *methods[:MAX_MEMBERS]]
    middle = [*fields[: MAX_FIELDS // 2], *some]
    return _unique(
        (
            page.text(full, makers, rest(full), doc=True),
            page.text(middle, makers, rest(middle), doc=False),
            page.text(named[:4], makers[:1], rest(named[:4]), doc=False, attributes=False),
            page.text(named[:4], makers[:1], [], doc=False, attributes=False),
            one_line(cls),
        )
    )


def used_forms(
    cls: Symbol, members: Sequence[Symbol], wanted: Collection[str] = (), likely: Collection[str] = ()
) -> tuple[str, ...]:
    """A class whose objects are used: the members that the open file uses elsewhere with their signatures, of all others the
    names. How one is made counts less."""
    facts = facts_of(cls.language)
    found = [m for m in members if m.name and m.role in ("function", "constant") and not m.name.startswith("__")]
    ranked = sorted(found, key=lambda m: (m.name not in wanted, m.name not in likely, _hidden(m.name), m.first_line))
    makers = [m for m in ranked if is_constructor(m, cls)]
    ranked = [m for m in ranked if m not in makers]
    page = _Class(cls, facts)
    forms = []
    for shown, names in ((MAX_MEMBERS, MAX_NAMES), (6, MAX_NAMES), (3, MAX_NAMES // 2), (0, MAX_NAMES // 2), (0, 8)):
        told = [m.name for m in ranked[shown:]] + [written.rpartition(".")[2] for written, _, _ in cls.attributes]
        forms.append(page.text(ranked[:shown], (), told[:names], doc=shown > 6))
    return _unique((*forms, one_line(cls)))


def module_forms(path: str, symbols: Sequence[Symbol], likely: Collection[str] = ()) -> tuple[str, ...]:
    """A module whose name stands before the cursor's dot: what is defined at its top, the names that the open file uses first."""
    found = [s for s in symbols if not s.container and s.name and s.role in ("class", "function", "constant")]
    ranked = sorted(found, key=lambda s: (s.name not in likely, _hidden(s.name), s.role == "constant", s.first_line))
    facts = facts_of(found[0].language) if found else None
    forms = []
    for count in (MAX_MEMBERS, MAX_MEMBERS // 4):
        shown = ranked[:count]
        lines = [one_line(symbol) for symbol in _in_order(shown)]
        names = [symbol.name for symbol in ranked[count : count + MAX_NAMES]]
        forms.append("".join(lines) + (comment(facts, ", ".join(names)) + "\n" if names else ""))
    return _unique(forms)


def _hidden(name: str) -> bool:
    """Whether a name says that it is not for others."""
    return name.startswith(("_", "#"))


def _in_order(members: Sequence[Symbol]) -> list[Symbol]:
    return sorted(members, key=lambda member: member.first_line)


class _Class:
    """Writes one class at several lengths."""

    def __init__(self, cls: Symbol, facts: LanguageFacts | None) -> None:
        self._cls, self._facts = cls, facts
        self._indent = facts.indent if facts is not None else "    "
        self._braces = facts is not None and facts.elision.startswith("{")

    def text(
        self, members: Sequence[Symbol], makers: Sequence[Symbol], left: Sequence[str], *, doc: bool, attributes: bool = True
    ) -> str:
        """The class with these members, in the order of its lines. left: only named, in a comment."""
        inside = [one_line(m).strip() for m in _in_order(members) if m.role == "constant"]
        for maker in makers:
            inside += self._maker(maker, attributes)
        functions = [m for m in _in_order(members) if m.role == "function"]
        inside += [(one_line(m) if doc else elided(m, self._facts)).strip() for m in functions]
        if not attributes:
            left = [*left, *(written for written, _, _ in self._cls.attributes)]
        names = list(dict.fromkeys(left))[:MAX_NAMES]
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
