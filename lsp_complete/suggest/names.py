"""Identifiers of a suggestion: which of them nobody knows, and whether they are a flat model's safe habits.

Strategy: identifiers are read from the text outside strings and comments. A name is known if the language,
the caller (`known`: scopes, imports, index, the document) or the suggestion itself says so. Unknown names are a reason to
trim at the last known point, to rank lower, or to hold back.

Rules:
- Only a name that would have to exist is judged: not a name being defined, not a key or keyword argument, and a
  member (after a dot) only if the caller asks for it.
- A language without a row in `data/names.json` is not judged at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from lsp_complete.suggest.language import LanguageFacts, base_language
from lsp_complete.suggest.scan import State, code_only

Known = Callable[[str], bool]
_NAME = re.compile(r"[^\W\d]\w*")
_DEFINES = re.compile(
    r"\b(?:def|class|fn|func|fun|function|let|var|val|const|mut|struct|enum|interface|trait|type|for|as|import|catch|local"
    r"|using|namespace|except\s+\w+\s+as)\s*$"
)
_ASSIGNED = re.compile(r"\s*(?::=|(?::\s*[\w\[\], .|<>?]+)?=(?![=>]))")
_LISTS = re.compile(
    r"\b(?:def|fn|func|fun|function)\b[^()\n]*\(([^()\n]*)|\blambda\b([^:\n]*):|\(([^()\n]*)\)\s*(?:=>|->)|(\w+)\s*=>"
    r"|\|([^|\n]*)\||\bfor\b[ \t(]*(?:(?:const|let|var|auto)\s+)?(\w[\w, ()]*?)[ \t]+(?:in|of|:)\s|^[ \t]*(\w+(?:[ ,]+\w+)*)[ ,\t]*:?=(?!=)",
    re.MULTILINE,
)
"""Places that bring several names into being: parameters, closures, loop variables, multiple assignment. Comments and strings are blanks
here, hundreds of them perhaps, so no two neighbouring parts may both take blanks."""
_IMPORTS = re.compile(r"\s*(?:import|from|use|using|package|module|mod|export\s*[{*]|#\s*include|require|extern)\b|\s*\}\s*from\b")
"""Lines that bring names in from elsewhere: nobody can know them yet."""
_DECLARES = re.compile(r"\b(?:def|fn|func|fun|function|lambda|constructor|class|interface|struct|enum|trait|record)\b[^()\[\]{}\n]*$")
_TYPE_FIRST = frozenset({"java", "c", "cpp", "csharp"})
_TYPED = re.compile(r"(?:^|[;{(,\n]|\b(?:const|final|static|unsigned)\s)\s*([A-Za-z_][\w:]*)(?:<[^;{}\n]*>)?(?:\[\])?[\s*&]+$")
_NO_TYPES = frozenset({"return", "throw", "new", "else", "case", "goto", "delete", "await", "yield", "and", "or", "not"})


@dataclass(frozen=True, slots=True)
class Name:
    """One identifier. start, end: code-point offsets. member: it stands after a dot (or `->`, `::`)."""

    text: str
    start: int
    end: int
    member: bool


@lru_cache(maxsize=1)
def _data() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    raw = json.loads(resources.files(__package__).joinpath("data/names.json").read_text("utf-8"))
    rows = {k: frozenset(v["keywords"].split()) | frozenset(v["builtins"].split()) for k, v in raw["languages"].items()}
    return frozenset(raw["safe"].split()), rows


def language_words(language_id: str) -> frozenset[str]:
    """Keywords and built-in names of a language; empty if the language has no row."""
    return _data()[1].get(base_language(language_id), frozenset())


def safe_names() -> frozenset[str]:
    """Names that weakened models fall back to."""
    return _data()[0]


def names_in(text: str, facts: LanguageFacts, state: State | None = None) -> tuple[Name, ...]:
    """Identifiers outside strings and comments, in order. state: what is open where the text begins."""
    code = code_only(text, facts, state)
    out = []
    for found in _NAME.finditer(code):
        head = code[: found.start()].rstrip(" ")
        member = head.endswith((".", "->", "::")) and not head.endswith("..")
        prefix = found.group() in ("f", "r", "b", "rb", "fr") and text[found.end() : found.end() + 1] in ('"', "'")
        if not prefix and not (found.start() and code[found.start() - 1].isdigit()):
            out.append(Name(found.group(), found.start(), found.end(), member))
    return tuple(out)


def defined_in(text: str, facts: LanguageFacts, state: State | None = None) -> frozenset[str]:
    """Names that the text itself brings into being: definitions, assignments, parameters, loop variables."""
    code = code_only(text, facts, state)
    out: set[str] = set()
    for name in names_in(text, facts, state):
        head, tail = code[max(0, name.start - 80) : name.start], code[name.end : name.end + 80]
        typed = _TYPED.search(head) if facts.language_id in _TYPE_FIRST else None
        if _DEFINES.search(head) or _ASSIGNED.match(tail) or (typed and typed.group(1) not in _NO_TYPES):
            out.add(name.text)
    for found in _LISTS.finditer(code):
        for group in found.groups():
            out.update(_NAME.findall(group or ""))
    return frozenset(out)


def declares(head: str) -> bool:
    """A bracket behind this line's text begins a list of new names: parameters, type parameters, members."""
    return _DECLARES.search(head) is not None


def unknown_names(
    text: str,
    facts: LanguageFacts,
    known: Known | Collection[str],
    before: str = "",
    state: State | None = None,
    members: bool = False,
) -> tuple[Name, ...]:
    """Names of the text that nobody knows, in order. before: the cursor's line up to the cursor (a name begun
    there is judged as a whole). members: judge names after a dot too. Nothing is judged on a line that imports."""
    words = language_words(facts.language_id)
    if not words:
        return ()
    if _IMPORTS.match(before) or (not before.strip() and _IMPORTS.match(text)):
        return ()
    is_known: Known = known if callable(known) else known.__contains__
    begun = re.search(r"\w*$", before)
    head = begun.group() if begun else ""
    own = defined_in(text, facts, state)
    if state is None or state.in_code:
        own |= defined_in(before + text, facts)
    code = code_only(text, facts, state)
    out = []
    for name in names_in(text, facts, state):
        whole = head + name.text if name.start == 0 else name.text
        context = before[: len(before) - len(head)] if name.start == 0 else ""
        member = name.member or (name.start == 0 and context.rstrip().endswith((".", "->", "::")))
        if (member and not members) or whole in words or whole in own or len(whole) < 2:
            continue
        tail = code[name.end : name.end + 3].lstrip(" ")
        key = (tail[:1] == ":" and tail[1:2] not in (":", "=")) or (tail[:1] == "=" and tail[1:2] != "=")
        if not key and not is_known(whole):
            out.append(name)
    return tuple(out)


def trim_at_unknown(text: str, unknown: Sequence[Name]) -> str:
    """The text before the first unknown name, without the operator, dot or bracket that led to it."""
    if not unknown:
        return text
    head = text[: unknown[0].start]
    return re.sub(r"[\s.,:=+\-*/%<>!&|^~@(\[{]+$", "", head)


def unknown_penalty(text: str, unknown: Sequence[Name], weight: float = 1.0) -> float:
    """A ranking penalty ≤ 0: `weight` times the share of unknown names among the text's names."""
    total = len(_NAME.findall(text))
    return -weight * len(unknown) / total if total else 0.0


def safe_share(text: str, facts: LanguageFacts, state: State | None = None) -> float:
    """Share (0–1) of the text's names that are safe habits (`result`, `temp`, `data1`, …), language words aside."""
    words, safe = language_words(facts.language_id), safe_names()
    mine = [n.text for n in names_in(text, facts, state) if not n.member and n.text not in words]
    habits = [n for n in mine if n.rstrip("0123456789_").lower() in safe]
    return len(habits) / len(mine) if mine else 0.0


def repeated_share(text: str) -> float:
    """Share (0–1) of non-blank lines that repeat an earlier line of the text; for one line, of 3-word groups."""
    parts = [x.strip() for x in text.split("\n") if len(x.strip()) > 3]
    if len(parts) < 2:
        words = re.findall(r"\w+|[^\w\s]", text)
        parts = [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]
    return 1.0 - len(set(parts)) / len(parts) if parts else 0.0
