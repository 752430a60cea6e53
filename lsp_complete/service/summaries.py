"""One sentence for functions of other files that have no documentation, written by the model while nobody types.

Strategy: the model fills in the comment line above a function, which every code model can; the sentence is kept by a hash of the function's
text and the model's name, so it is written once. A prompt never waits for one: until it is there, the signature stands alone.

Rules:
- Asked for only with `prefetch = "full"`, at background priority, one at a time, after IDLE_S without a key; a key stops it.
- Only functions that a prompt had in its least wanted tier are ever summarized, at most MAX_WAITING wait.
- A sentence is one line of plain words, or it is nothing. Both are remembered.
- Thread: the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

import xxhash

from ..engine.api import CompletionRequest, Engine, Priority, StopRules
from ..errors import LspCompleteError
from ..index.manifest import Cache, NoCache
from ..index.symbols import Definition
from ..syntax.languages import all_languages
from ..syntax.prose import first_sentence
from .planning import LoadedModel

logger = logging.getLogger(__name__)

IDLE_S = 5.0
MAX_WAITING = 64
MAX_KNOWN = 4_000
MAX_TOKENS = 32
MIN_WORDS, MAX_CHARS = 3, 120

Task = tuple[str, str]
"""(language, text of the function)."""


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
        self._waiting: OrderedDict[str, Task] = OrderedDict()
        self._work: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
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

    def idle(self, engine: Engine | None, model: LoadedModel | None) -> None:
        """Nobody is waiting for anything: begin once it has stayed so for IDLE_S."""
        self.stop()
        if engine is None or model is None or not model.fim.suffix or not self._waiting:
            return
        if self._model != model.name:  # what waits was keyed for another model
            self._model, self._waiting = model.name, OrderedDict()
            return
        self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._begin, engine, model)

    def stop(self) -> None:
        """A key was pressed, or the end has come."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _begin(self, engine: Engine, model: LoadedModel) -> None:
        self._timer = None
        self._work = asyncio.ensure_future(self.work(engine, model))

    async def work(self, engine: Engine, model: LoadedModel) -> None:
        """Write sentences until none waits. Cancelling stops the engine's work."""
        while self._waiting:
            key, (language, text) = next(iter(self._waiting.items()))
            stored = self.cache.get_bytes(key)
            if stored is None:
                raw = await self._ask(engine, model, language, text)
                if raw is None:
                    return
                stored = sentence_of(raw).encode()
                self.cache.put_bytes(key, stored)
            self._remember(key, stored.decode("utf-8", "replace"))

    def _remember(self, key: str, sentence: str) -> None:
        self._waiting.pop(key, None)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = sentence

    async def _ask(self, engine: Engine, model: LoadedModel, language: str, text: str) -> str | None:
        """The comment line above the function as the model fills it in; None if the engine cannot now."""
        facts = all_languages().get(language)
        mark = facts.line_comment if facts is not None and facts.line_comment else "//"
        tokenize: Callable[[str], list[int]] = model.spans.ids
        prompt = model.fim.lay_out(tokenize(f"{mark} "), tokenize(f"\n{text}\n"))
        request = CompletionRequest(
            prompt, key="summaries", max_tokens=MAX_TOKENS, priority=Priority.BACKGROUND, stop=StopRules("line"), time_limit_ms=60_000
        )
        try:
            answer = await engine.complete(request)
        except LspCompleteError as error:
            logger.info("no summary was written: %s", type(error).__name__)
            return None
        return answer.candidates[0].text.decode("utf-8", "replace") if answer.candidates else ""
