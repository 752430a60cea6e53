"""What a typist would have saved under a level, computed from recorded answers. Pure.

Strategy: for each line the recording holds what the model said at the keys where it had to be asked. The product's own choosing,
filters and suggestion store are run over that, key by key, under any level, so one recording serves all levels, all
floors and all versions of the filters.

Rules:
- An answer that the typing still agrees with stands for the answer at the later key: what is left of it, with the
  log-probabilities of the tokens that are left.
- A suggestion on screen is accepted as soon as its first line is right: acceptance makes the line exactly the target, or right
  up to the closer that the editor put there. It counts as shown once, however long it is typed through.
- Keys are the line's characters; Enter, indentation and what the editor does by itself are no keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..config.settings import SuggestSettings
from ..engine.api import Candidate
from ..service.completing import scored
from ..service.held import left_over
from ..suggest.choose import Choice, Policy, choose
from ..suggest.confidence import Level, Scored, level_of
from ..suggest.filters.worth import not_worth
from ..suggest.language import facts_for
from ..suggest.lines import IndentStyle
from ..suggest.pipeline import PolishContext
from ..suggest.store import Entry, SuggestionStore
from .applying import ghost, line_exact, right_to_closer
from .client import Item
from .edits import body, split_lines
from .typist import Key

UNFINISHED = ("unsure", "time", "none")
"""Stops after which the rest of an answer says nothing about later keys."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the model said at one key, and how it was asked. stop: "none" if it was not asked (`outcome` says why)."""

    candidate: Candidate
    outcome: str = "shown"
    reason: str = ""
    mode: str = "line"
    base_indent: int = 0
    frozen_suffix: str | None = None
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One retyped line. above, below: the document's text around it (windows; `above` ends with a line end, `below` begins
    with one or is empty). keys: as typed without any acceptance. answers: by index of the key."""

    file: str
    number: int
    language: str
    target: str
    above: str
    below: str
    keys: tuple[Key, ...]
    answers: Mapping[int, Told]
    indent: IndentStyle = field(default_factory=IndentStyle)
    newline: str = "\n"
    from_empty: bool = False

    @property
    def characters(self) -> int:
        """What there is to type: the line without indentation and trailing blanks."""
        return len(self.target.strip())


@dataclass(frozen=True, slots=True)
class Rule:
    """What is shown: the cuts of `level`, and no first line whose sum or mean is below the floors (None: no floor)."""

    level: Level
    sum: float | None
    mean: float | None

    @classmethod
    def named(cls, name: str) -> Rule:
        """The rule of "eager", "balanced" or "quiet"."""
        level = level_of(name)
        return cls(replace(level, sum=None, mean=None), level.sum, level.mean)

    def shows(self, choice: Choice) -> bool:
        """The choice has a text and is sure enough."""
        sure = self.sum is None or choice.sum >= self.sum
        return bool(choice.text) and sure and (self.mean is None or choice.mean >= self.mean)


@dataclass(frozen=True, slots=True)
class Played:
    """One line typed under one rule. shown, right: suggestions; keys: characters typed by hand."""

    characters: int
    keys: int
    accepts: int
    shown: int
    right: int


def agrees(told: Told, typed: str) -> bool:
    """What is left of the answer after `typed` is the answer there, with something on its first line."""
    text = told.candidate.text.decode("utf-8", "ignore")
    if told.candidate.stop in UNFINISHED or not text.startswith(typed):
        return False
    return bool(text[len(typed) :].partition("\n")[0].strip())


def known_at(keys: tuple[Key, ...], answers: Mapping[int, Told], index: int) -> tuple[Told, str] | None:
    """The answer that holds at a key, and what was typed since it was given; None if the model must be asked."""
    if index in answers:
        return answers[index], ""
    left = keys[index].left
    for earlier in sorted((i for i in answers if i < index), reverse=True):
        begun = keys[earlier].left
        if left.startswith(begun) and agrees(answers[earlier], left[len(begun) :]):
            return answers[earlier], left[len(begun) :]
    return None


class LinePlayer:
    """Plays one recorded line under any number of rules. What does not depend on floors is worked out once."""

    def __init__(self, line: RecordedLine, settings: SuggestSettings | None = None) -> None:
        self.line, self._settings = line, settings or SuggestSettings()
        self._choices: dict[tuple[int, Level], Choice | None] = {}

    def place(self, index: int, told: Told) -> PolishContext:
        """The place of a key as the filters see it."""
        line, key, suggest = self.line, self.line.keys[index], self._settings
        return PolishContext(
            line.language,
            line.above + key.left,
            key.right + line.below,
            newline=line.newline,
            indent=line.indent,
            mode=told.mode,
            base_indent=told.base_indent,
            min_chars=suggest.min_chars,
            in_strings=suggest.in_strings,
            in_comments=suggest.in_comments,
            frozen_suffix=told.frozen_suffix,
        )

    def candidate(self, index: int) -> tuple[Scored, str, Told] | None:
        """The answer at a key as choosing wants it, its stop, and how it was asked for."""
        known = known_at(self.line.keys, self.line.answers, index)
        if known is None or known[0].candidate.stop == "none":
            return None
        (text,), (stop,) = scored([left_over(known[0].candidate, known[1])])
        return text, stop, known[0]

    def choice(self, index: int, level: Level) -> Choice | None:
        """What would be offered at a key if nothing were held back for being unsure; None if the model said nothing."""
        if (index, level) not in self._choices:
            found, made = self.candidate(index), None
            if found is not None:
                text, stop, told = found
                made = choose([text], [stop], self.place(index, told), Policy(level=level))[0]
            self._choices[index, level] = made
        return self._choices[index, level]

    def right(self, index: int, text: str) -> int | None:
        """-1 if accepting `text` at a key completes the line; the index of the key after which the line would look as it then
        does, if it is right up to the editor's closer; None if its first line is wrong."""
        key, target = self.line.keys[index], self.line.target
        item = Item(text, key.cursor, key.cursor)
        if line_exact(key, target, item):
            return -1
        if not right_to_closer(key, target, item):
            return None
        left = key.left + body(split_lines(ghost(key.left + key.right, key.cursor, item))[0])
        keys = self.line.keys
        same = (i for i in range(index + 1, len(keys)) if keys[i].left == left and keys[i].right == key.right)
        return next(same, None)

    def play(self, rule: Rule) -> Played:
        """Type the line under a rule."""
        line, store = self.line, SuggestionStore(lambda: 0.0)
        index = keys = accepts = shown = right = on_screen = 0
        by_hand = True
        while 0 <= index < len(line.keys):
            key = line.keys[index]
            keys += by_hand and key.kind == "char"
            by_hand = True
            text, number = self._screen(index, rule, store) if key.asks else ("", 0)
            shown += bool(text) and number != on_screen
            on_screen = number if text else 0
            after = self.right(index, text) if text else None
            if after is None:
                index += 1
                continue
            right, accepts, on_screen, index, by_hand = right + 1, accepts + 1, 0, after, False
        return Played(line.characters, keys, accepts, shown, right)

    def _screen(self, index: int, rule: Rule, store: SuggestionStore) -> tuple[str, int]:
        """The text on screen after a key, and its number in the store."""
        line, key = self.line, self.line.keys[index]
        before, after = line.above + key.left, key.right + line.below
        hit = store.lookup(line.file, before, after)
        if hit is not None and (hit.judged or not not_worth(hit.text, self._settings.min_chars, key.left)):
            return hit.text, hit.entry
        choice = self.choice(index, rule.level)
        if choice is None or not choice.may_hold_later or (choice.text and not rule.shows(choice)):
            return "", 0
        found = self.candidate(index)
        assert found is not None
        entry = Entry(
            line.file, before, after, choice.text, choice.full, facts_for(line.language), found[2].frozen_suffix,
            line.newline, line.indent.tab_width,
        )  # fmt: skip
        number = store.add(entry, bool(choice.text))
        return choice.text, number
