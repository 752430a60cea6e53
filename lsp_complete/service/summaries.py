"""One sentence for functions of other files that have no documentation, written by the model while nobody types.

Strategy: the model fills in the comment line above a function, which every code model can; the sentence is kept by a hash of the function's
text and the model's name, so it is written once. A prompt never waits for one: until it is there, the signature stands alone.

Rules:
- Asked for only with `prefetch = "full"`, at background priority, one at a time, in the pauses that `idle` gives; a key stops it.
- Only functions that a prompt had in its least wanted tier are ever summarized, at most MAX_WAITING wait.
- A sentence is one line of plain words, or it is nothing. Both are remembered.
- Thread: the event loop.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import xxhash

from ..engine.api import Candidate, CompletionRequest, Engine, Priority, StopRules
from ..errors import LspCompleteError
from ..index.manifest import Cache, NoCache
from ..index.symbols import Definition
from ..syntax.languages import all_languages
from ..syntax.prose import first_sentence
from .planning import LoadedModel

logger = logging.getLogger(__name__)

MAX_WAITING = 64
MAX_KNOWN = 4_000
MAX_TOKENS = 32
MIN_WORDS, MAX_CHARS = 3, 120
TRIES = 3
KEY = "summaries"
"""Of the slot."""


@dataclass(frozen=True, slots=True)
class Task:
    """A sentence to be written. key: it is kept under; prompt: to be evaluated first."""

    key: str
    prompt: tuple[int, ...]


def text_of(found: Definition) -> str:
    """What is summarized: signature and body as far as the index has it."""
    return f"{found.signature}{found.body}"


def sentence_of(raw: str) -> str:
    """The model's words as a sentence, or "" if they are none."""
    sentence = first_sentence(raw.strip().lstrip("#/*- "))
    if len(sentence) > MAX_CHARS or len(sentence.split()) < MIN_WORDS or "```" in sentence:
        return ""
    return sentence if sentence[-1] in ".!?" else f"{sentence}."


class Summaries:
    """See the module's rules."""

    def __init__(self) -> None:
        self.cache: Cache = NoCache()
        self._known: dict[str, str] = {}
        self._waiting: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._tries: dict[str, int] = {}
        self._model = ""

    def sentence(self, language: str, found: Definition) -> str:
        """What is known of a function; "" if nothing is (then it may be found out later). Microseconds."""
        if found.doc or found.role != "function" or not found.body:
            return ""
        key = self._key(language, found)
        if key not in self._known:
            return ""
        return self._known[key]

    def want(self, language: str, found: Definition) -> None:
        """A prompt showed this function in its least wanted tier: a sentence would help the next time."""
        key = self._key(language, found)
        if found.doc or found.role != "function" or not found.body or key in self._known or key in self._waiting:
            return
        self._waiting[key] = language, text_of(found)
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)

    def _key(self, language: str, found: Definition) -> str:
        digest = xxhash.xxh3_128_hexdigest(text_of(found).encode("utf-8", "surrogatepass"))
        return f"summary:1:{self._model}:{language}:{digest}"

    def next(self, model: LoadedModel) -> Task | None:
        """What to write now; None if nothing waits. What the cache has is taken from there."""
        if self._model != model.name:  # what waits was keyed for another model
            self._model, self._waiting = model.name, OrderedDict()
        while self._waiting and model.fim.suffix:
            key, (language, text) = _first(self._waiting)
            stored = self.cache.get_bytes(key)
            if stored is None:
                return Task(key, _prompt(model, language, text))
            self._remember(key, stored.decode("utf-8", "replace"))
        return None

    async def write(self, engine: Engine, task: Task, limit_ms: float = 60_000) -> bool:
        """Ask for the sentence, with the prompt evaluated already. False if the engine cannot now, or time was too short; after
        TRIES times that is an answer too: none. Cancelling stops the engine's work."""
        request = CompletionRequest(
            task.prompt, key=KEY, max_tokens=MAX_TOKENS, priority=Priority.BACKGROUND, stop=StopRules("line"), time_limit_ms=limit_ms
        )
        try:
            answer = await engine.complete(request)
        except LspCompleteError as error:
            logger.info("no summary was written: %s", type(error).__name__)
            return False
        found = answer.candidates[0] if answer.candidates else Candidate(b"")
        if found.stop == "time":
            self._tries[task.key] = tries = self._tries.get(task.key, 0) + 1
            if tries < TRIES:
                return False
        sentence = "" if found.stop == "time" else sentence_of(found.text.decode("utf-8", "replace"))
        self.cache.put_bytes(task.key, sentence.encode())
        self._remember(task.key, sentence)
        return True

    def _remember(self, key: str, sentence: str) -> None:
        self._waiting.pop(key, None)
        self._tries.pop(key, None)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = sentence


def _prompt(model: LoadedModel, language: str, text: str) -> tuple[int, ...]:
    """The comment line above a function, for the model to fill in."""
    facts = all_languages().get(language)
    mark = facts.line_comment if facts is not None and facts.line_comment else "//"
    tokenize: Callable[[str], list[int]] = model.spans.ids
    return model.fim.lay_out(tokenize(f"{mark} "), tokenize(f"\n{text}\n"))


def _first(waiting: OrderedDict[str, tuple[str, str]]) -> tuple[str, tuple[str, str]]:
    return next(iter(waiting.items()))
