"""Fill-in-the-middle formats as data: typed view of `formats.json`. `detect.py` chooses one for a file.

Strategy: a family's format says how special tokens are spelled and in which order the parts of a prompt stand.
Whoever builds prompts turns spellings into ids with `Tokenizer.special`; text parts are tokenized as plain text.

Rules:
- A layout is a sequence of parts. "@repo" and "@file_sep" stand for those special tokens, everything else is
  text with `{name}` (repository), `{path}` and `{text}` filled in by `fill`.
- Order "psm": context, PRE, prefix, SUF, suffix, MID, tail. Order "spm": context, SUF, suffix, PRE, prefix, MID,
  tail; with an empty `middle` the tail follows the prefix directly. Order "prefix": context, prefix, tail.
- In every order the tail stands last, so typing only appends to it.
- A spelling that a vocabulary lacks is left out if it is optional (`stop`, `pad`, `repo`, `file_sep`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lsp_complete.errors import ModelError

_ORDERS = ("psm", "spm", "prefix")
_PARTS = {"@repo": "repo", "@file_sep": "file_sep"}


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a file a model of up to `max_parameters` weights (None: any) is given by default.

    lines_above, lines_below: lines of the open file around the cursor. context_tokens: tokens for other files.
    """

    max_parameters: int | None
    lines_above: int
    lines_below: int
    context_tokens: int

    def __post_init__(self) -> None:
        if min(self.lines_above, self.lines_below, self.context_tokens) < 0:
            raise ValueError("a budget must not be negative")


@dataclass(frozen=True, slots=True)
class FimFormat:
    """One family's prompt format. Spellings are special tokens; "" where the family has none.

    order: "psm" | "spm" | "prefix" (see the module). stop: spellings that end generation besides the
    vocabulary's own end-of-generation tokens. bos: the prompt begins with the vocabulary's BOS token.
    repo_layout, file_layout, current_layout: what stands before the window once, per other file, and for the
    open file's own heading. prefix_head: text at the start of the prefix section itself (`{path}`). context_at: "head"
    puts the context before everything, "prefix" at the start of the prefix section (Codestral has no tokens for it).
    anchor_lines: whole lines between anchor and cursor when an anchor is set; anchor_limit: the anchor moves
    when there are more. pre: the pre-tokenizer's name in GGUF files. measured: this project has
    measured the format; otherwise it follows the model's published description.
    budgets: smallest first, the last one without a limit.
    """

    family: str
    title: str
    order: str
    prefix: str
    suffix: str
    middle: str
    pad: str = ""
    repo: str = ""
    file_sep: str = ""
    stop: tuple[str, ...] = ()
    bos: bool = False
    repo_layout: tuple[str, ...] = ()
    file_layout: tuple[str, ...] = ()
    current_layout: tuple[str, ...] = ()
    prefix_head: str = ""
    context_at: str = "head"
    anchor_lines: int = 6
    anchor_limit: int = 20
    pre: str = ""
    measured: bool = False
    budgets: tuple[Budget, ...] = ()

    def __post_init__(self) -> None:
        if self.order not in _ORDERS or self.context_at not in ("head", "prefix"):
            raise ValueError(f"order {self.order!r}, context_at {self.context_at!r}")
        if self.order != "prefix" and not (self.prefix and self.suffix):
            raise ValueError("prefix and suffix tokens are needed")
        if self.order == "psm" and not self.middle:
            raise ValueError("order psm needs a middle token")
        if not 0 < self.anchor_lines <= self.anchor_limit:
            raise ValueError("anchor_lines must be between 1 and anchor_limit")
        if not self.budgets or self.budgets[-1].max_parameters is not None:
            raise ValueError("the last budget must be without a limit")
        for part in (*self.repo_layout, *self.file_layout, *self.current_layout):
            if part.startswith("@") and not self.special(part):
                raise ValueError(f"the layout uses {part}, which the family lacks")

    @property
    def required(self) -> tuple[str, ...]:
        """Spellings without which this format cannot be used."""
        return tuple(token for token in (self.prefix, self.suffix, self.middle) if token)

    def special(self, part: str) -> str:
        """The special token that a layout part stands for; "" for a text part."""
        name = _PARTS.get(part)
        return {"repo": self.repo, "file_sep": self.file_sep}[name] if name else ""

    def budget_for(self, parameters: int) -> Budget:
        """The default budget of a model with this many weights. 0 (unknown) counts as large."""
        for budget in self.budgets:
            if budget.max_parameters is None or 0 < parameters <= budget.max_parameters:
                return budget
        return self.budgets[-1]


def fill(
    fmt: FimFormat, layout: tuple[str, ...], *, name: str = "", path: str = "", text: str = ""
) -> tuple[tuple[bool, str], ...]:
    """A layout with its values: (is a special token, spelling or text) in order. Empty texts are left out.

    Values are put in literally: braces in a user's text mean nothing.
    """
    values = {"{name}": name, "{path}": path, "{text}": text}
    parts: list[tuple[bool, str]] = []
    for part in layout:
        if token := fmt.special(part):
            parts.append((True, token))
            continue
        filled = re.sub(r"\{(?:name|path|text)\}", lambda match: values[match.group()], part)
        if filled:
            parts.append((False, filled))
    return tuple(parts)


def missing_tokens(fmt: FimFormat, special: Callable[[str], int | None]) -> tuple[str, ...]:
    """Required spellings that the vocabulary does not have. `special` as in `Tokenizer.special`."""
    return tuple(token for token in fmt.required if special(token) is None)


@dataclass(frozen=True, slots=True)
class DetectRule:
    """What speaks for a family in a GGUF header. names: regular expressions, searched without case."""

    architectures: frozenset[str]
    pre: frozenset[str]
    names: tuple[str, ...]


@cache
def format_table() -> tuple[tuple[FimFormat, DetectRule], ...]:
    """All families with their rules of detection, in the order of the file. Read once; any thread."""
    text = resources.files("lsp_complete.models").joinpath("formats.json").read_text("utf-8")
    return parse_formats(json.loads(text))


def parse_formats(data: Mapping[str, Any]) -> tuple[tuple[FimFormat, DetectRule], ...]:
    """Build and check the table. Raises ModelError that names the family at fault."""
    if data.get("version") != 1:
        raise ModelError(
            f"The format table has version {data.get('version')!r}, this program reads 1. Reinstall it."
        )
    budgets = tuple(Budget(**entry) for entry in data["budgets"].values())
    rows = []
    for entry in data["families"]:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        detect = fields.pop("detect")
        try:
            fmt = FimFormat(**fields, budgets=budgets)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"The format of family {entry.get('family', '?')!r} is wrong: {error}. Reinstall the program."
            ) from error
        rows.append(
            (
                fmt,
                DetectRule(
                    frozenset(detect["architectures"]), frozenset(detect["pre"]), tuple(detect["names"])
                ),
            )
        )
    return tuple(rows)


def formats() -> tuple[FimFormat, ...]:
    """All known families. Any thread."""
    return tuple(fmt for fmt, _ in format_table())


def format_of(family: str) -> FimFormat:
    """The format of a family named in the catalogue. Raises ModelError for an unknown one."""
    for fmt in (*formats(), plain_format()):
        if fmt.family == family:
            return fmt
    known = ", ".join(fmt.family for fmt in formats())
    raise ModelError(f"No prompt format is known for the family {family!r}. Known: {known}.")


def plain_format() -> FimFormat:
    """For models without fill-in-the-middle tokens: the text before the cursor only."""
    return FimFormat(
        family="plain",
        title="No fill-in-the-middle tokens",
        order="prefix",
        prefix="",
        suffix="",
        middle="",
        bos=True,
        file_layout=("{path}\n", "{text}\n\n"),
        current_layout=("{path}\n",),
        budgets=format_table()[0][0].budgets,
    )
