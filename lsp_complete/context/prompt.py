"""From an anchor to token ids: `[header] PRE prefix SUF suffix MID tail`, healed at the cursor.

Strategy: the head (everything through MID) is built once per anchor; a key only appends the tail, cut back to
the start of its last pre-token. What was cut is `forced`: the output must begin with those bytes.

Rules:
- Token ids of text come from the token table (`ids(a, b)`), never from parsing special tokens.
- Two plans of the same anchor and header have the same head, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..text.buffer import TextBuffer
from .anchor import Anchor

IdsOf = Callable[[int, int], list[int]]
"""Token ids of the document's text between two offsets, tokenized as a text of its own."""

CutOf = Callable[[str], int]
"""Offset in a text where its last pre-token starts, or −1 where the family's pre-tokenizer is unknown."""


@dataclass(frozen=True, slots=True)
class FimTokens:
    """The format of a model family as token ids.

    begin: what every prompt begins with (BOS, if the family wants one). order: "psm" writes
    `PRE prefix SUF suffix MID tail`, "spm" `SUF suffix PRE prefix MID tail` (middle may be empty), "prefix" only
    `prefix tail`, for models without fill-in-the-middle.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    middle: tuple[int, ...] = ()
    begin: tuple[int, ...] = ()
    order: str = "psm"

    def __post_init__(self) -> None:
        if self.order not in ("psm", "spm", "prefix"):
            raise ValueError(f"unknown order {self.order!r}")
        if self.order == "psm" and not (self.prefix and self.suffix and self.middle):
            raise ValueError("order psm needs prefix, suffix and middle tokens")

    def lay_out(self, prefix: list[int], suffix: list[int], header: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The parts in the family's order, through the middle token."""
        if self.order == "psm":
            return (*self.begin, *header, *self.prefix, *prefix, *self.suffix, *suffix, *self.middle)
        if self.order == "spm":
            return (*self.begin, *header, *self.suffix, *suffix, *self.prefix, *prefix, *self.middle)
        return (*self.begin, *header, *prefix)


@dataclass(frozen=True, slots=True)
class Head:
    """The part of a prompt that does not change between anchor moves."""

    anchor_key: tuple[str, str, bool]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """What to send for one cursor. prompt: token ids up to the healed cut; forced: bytes that must come first.

    tail: the text after the middle token up to the cursor (or the prefix's own end in the standard layout).
    """

    prompt: tuple[int, ...]
    forced: bytes
    tail: str
    head_length: int


def build_head(
    fim: FimTokens,
    anchor: Anchor,
    ids_of: IdsOf,
    tokenize: Callable[[str], list[int]],
    header: tuple[int, ...],
    opening: tuple[int, ...] = (),
) -> Head:
    """Ids through MID. The prefix comes from the token table, behind `opening` (text of the file that the window does
    not show); the frozen suffix is tokenized once."""
    prefix = [*opening, *(ids_of(anchor.window_start, anchor.anchor) if anchor.prefix else ())]
    suffix = tokenize(anchor.suffix) if anchor.suffix else []
    return Head((anchor.prefix, anchor.suffix, anchor.standard), fim.lay_out(prefix, suffix, header))


def plan_anchored(
    head: Head, anchor: Anchor, buffer: TextBuffer, cursor: int, ids_of: IdsOf, cut_of: CutOf, piece: Callable[[int], bytes]
) -> PromptPlan:
    """Append the healed tail to the head. Tokenizes nothing but the tail."""
    tail = buffer.slice(anchor.anchor, cursor)
    ids, forced = heal(tail, anchor.anchor, ids_of, cut_of, piece)
    return PromptPlan((*head.ids, *ids), forced, tail, len(head.ids))


def plan_standard(
    fim: FimTokens,
    anchor: Anchor,
    cursor: int,
    ids_of: IdsOf,
    tokenize: Callable[[str], list[int]],
    cut_of: CutOf,
    piece: Callable[[int], bytes],
    header: tuple[int, ...] = (),
) -> PromptPlan:
    """The usual prefix-suffix-middle layout, healed. Evaluates the whole suffix at every key."""
    prefix, forced = heal(anchor.prefix, anchor.window_start, ids_of, cut_of, piece)
    suffix = tokenize(anchor.suffix) if anchor.suffix else []
    ids = fim.lay_out(prefix, suffix, header)
    return PromptPlan(ids, forced, anchor.prefix, len(ids))


def heal(
    text: str, start: int, ids_of: IdsOf, cut_of: CutOf, piece: Callable[[int], bytes]
) -> tuple[list[int], bytes]:
    """Token ids of `text` (at `start` in the document) cut back to its last pre-token, and the bytes cut off.

    Without a known pre-tokenizer one token is cut. The bytes of ids + forced always equal the text's bytes.
    """
    if not text:
        return [], b""
    cut = cut_of(text)
    if cut >= 0:
        ids = ids_of(start, start + cut) if cut else []
        return ids, text[cut:].encode("utf-8", "surrogatepass")
    ids = ids_of(start, start + len(text))
    return (ids[:-1], piece(ids[-1])) if ids else ([], text.encode("utf-8", "surrogatepass"))
