"""From a layout to token ids: what stands before the window. Pure but for the tokenizer that is passed in.

Strategy: each chunk is tokenized as a text of its own, so its ids are the same wherever it stands and a layout's ids are those of its
parts, one after the other. Special tokens come from the family's format as ids; text never yields any.

Rules:
- No context, no header: a prompt without chunks is the window alone, as it always was.
- The open file's heading comes last, right before its prefix. Chunks of the open file itself open the prefix: they are text of
  that file which the window does not show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .budget import Chosen
from .layout import Placed

_VALUE = re.compile(r"\{(name|path|text)\}")
Ids = tuple[int, ...]
IdsOfText = Callable[[str], Sequence[int]]
Part = Ids | str
"""A part of a heading: special tokens as ids, or text with `{name}`, `{path}`, `{text}`."""


@dataclass(frozen=True, slots=True)
class HeaderFormat:
    """A family's layout of other files. repo: once at the start; file: per file, with `{text}`; current: the open file's heading.

    in_prefix: the family has no place before the window, so everything opens the prefix instead.
    """

    repo: tuple[Part, ...] = ()
    file: tuple[Part, ...] = ("{path}\n", "{text}\n")
    current: tuple[Part, ...] = ()
    in_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the window's prefix. header: before the family's first token; opening: at the start of the prefix.

    layout: the chunks in it. above: which other documents open the prefix (a notebook's earlier cells), with their versions.
    """

    header: Ids = ()
    opening: Ids = ()
    layout: tuple[Placed, ...] = ()
    own: tuple[str, ...] = ()
    above: tuple[tuple[str, int], ...] = ()

    @property
    def tokens(self) -> int:
        """All of its tokens."""
        return len(self.header) + len(self.opening)


EMPTY = Frame()


def _filled(parts: Sequence[Part], ids_of: IdsOfText, **values: str) -> list[int]:
    """Ids of parts with their values put in literally: braces in a value mean nothing."""
    out: list[int] = []
    for part in parts:
        if isinstance(part, str):
            text = _VALUE.sub(lambda match: values.get(match.group(1), ""), part)
            out.extend(ids_of(text) if text else ())
        else:
            out.extend(part)
    return out


def header_ids(fmt: HeaderFormat, layout: Sequence[Placed], repo: str, path: str, ids_of: IdsOfText) -> Ids:
    """Ids of repository, files and the open file's heading. Empty without chunks."""
    if not layout:
        return ()
    out = _filled(fmt.repo, ids_of, name=repo)
    at = 0
    while at < len(layout):
        end = at
        while end < len(layout) and layout[end].path == layout[at].path:
            end += 1
        out += _file_ids(fmt, layout[at:end], ids_of)
        at = end
    return (*out, *_filled(fmt.current, ids_of, path=path))


def _file_ids(fmt: HeaderFormat, group: Sequence[Placed], ids_of: IdsOfText) -> list[int]:
    """One file: its heading, then each chunk tokenized on its own."""
    out: list[int] = []
    for part in fmt.file:
        if isinstance(part, str) and "{text}" in part:
            for one in group:
                out.extend(ids_of(one.text))
        else:
            out += _filled((part,), ids_of, path=group[0].path)
    return out


def opening_text(own: Sequence[Chosen], elision: str) -> tuple[str, ...]:
    """Texts of the open file that the window does not show, in the order of its lines, then an elision."""
    if not own:
        return ()
    ordered = sorted(own, key=lambda one: one.chunk.line)
    return (*(one.text for one in ordered), elision + "\n")


def make_frame(
    fmt: HeaderFormat, layout: Sequence[Placed], own: Sequence[str], repo: str, path: str, ids_of: IdsOfText
) -> Frame:
    """The frame of a layout and of the open file's own chunks."""
    header = header_ids(fmt, layout, repo, path, ids_of)
    opening = tuple(token for text in own for token in ids_of(text))
    if fmt.in_prefix:
        return Frame((), (*header, *opening), tuple(layout), tuple(own))
    return Frame(header, opening, tuple(layout), tuple(own))
