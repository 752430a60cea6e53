"""What is done in the pause behind an answer: in which order, in slices, and that it ends within the second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsp_complete.config import Settings
from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming, Priority
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.service import Query
from lsp_complete.service.idle import BEGIN_S, END_S
from lsp_complete.service.slices import LARGEST, SMALLEST, Slices
from lsp_complete.service.summaries import KEY
from tests.index.test_walk import put

from .test_context_join import CLIENT, MARK, MODEL, Window_, spelled, window
from .test_prefetch import Clock

RATE = 0.5
"""Tokens per millisecond of the engine that is pretended."""
USER = f"from client import Client\n\n\ndef get(host):\n    client = Client(host)\n    return {MARK}\n"
OTHER = f"def one():\n    return 1\n\n\ndef two():\n    return {MARK}\n"


class Slow(ScriptedEngine):
    """Prompt tokens that it has not seen take time on the test's clock."""

    def __init__(self, clock: Clock, rate: float = RATE) -> None:
        super().__init__(self.answer)
        self.clock, self.rate = clock, rate
        self.held: dict[str, tuple[int, ...]] = {}

    def answer(self, request: CompletionRequest) -> Completion:
        held = self.held.get(request.key, ())
        same = next((n for n, (a, b) in enumerate(zip(held, request.prompt, strict=False)) if a != b), min(len(held), len(request.prompt)))
        new = len(request.prompt) - same
        ms = new / self.rate
        if request.priority is Priority.BACKGROUND:
            self.clock.now += ms / 1000
        self.held[request.key] = request.prompt
        text = (Candidate(b"Talks to the host"),) if request.max_tokens else ()
        return Completion(text, EngineTiming(prompt=len(request.prompt), reused=same, evaluated=new, prefill_ms=ms))


class Desk:
    """An editor with a clock of its own."""

    def __init__(self, view: Window_, clock: Clock, engine: Slow) -> None:
        self.view, self.clock, self.engine = view, clock, engine

    @property
    def background(self) -> list[CompletionRequest]:
        return [r for r in self.engine.requests if r.priority is Priority.BACKGROUND]

    async def ask(self, uri: str) -> None:
        document = self.view.service.snapshot(uri)
        assert document is not None
        await self.view.service.answer(Query(document, self.view.cursors[uri], self.clock.now, "explicit"))
        self.engine.calls.clear()
        for _ in range(5):
            await asyncio.sleep(0)

    async def rest(self, seconds: float) -> None:
        """Let time pass, and with it all that has been begun."""
        await self.clock.advance(seconds)
        task = self.view.service._idle._task
        if task is not None:
            await asyncio.wait({task})


@asynccontextmanager
async def desk(root: Path, files: dict[str, str], rate: float = RATE, **values: Any) -> AsyncIterator[Desk]:
    settings = {"prefetch": "full", "context": {"cross_file": False}, **values}
    async with window(root, files, **settings) as view:
        clock = Clock()
        view.service.brain.engine = view.engine = engine = Slow(clock, rate)
        idle = view.service._idle
        idle._sleep, idle._clock = clock.sleep, clock
        idle._evaluator.tokens_per_ms = rate
        yield Desk(view, clock, engine)


async def opened(at: Desk, name: str, text: str) -> str:
    uri = at.view.open(name, text)
    await at.view.settled()
    state = at.view.service.documents.get(uri)
    assert state is not None
    state.cursor = at.view.cursors[uri]
    await asyncio.gather(*at.view.service._ahead._tasks.values(), return_exceptions=True)
    return uri


async def test_open_documents_first_then_definitions_in_imported_files(tmp_path: Path) -> None:
    async with desk(tmp_path, {"client.py": CLIENT, "user.py": USER.replace(MARK, "")}, rate=50.0) as at:
        other = await opened(at, "other.py", OTHER)
        uri = await opened(at, "user.py", USER)
        at.view.service.documents.get(other).anchor = None  # type: ignore[union-attr]
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert [Path(r.key).name for r in at.background] == ["other.py", "client.py"]
        assert all(not r.max_tokens for r in at.background)
        assert spelled(at.background[0].prompt).endswith("def two():\n    return")
        assert spelled(at.background[1].prompt).endswith("<M>class"), "where the name of the class stands"
        assert at.view.service.documents.get(other).anchor is not None, "the document keeps what was made ready"  # type: ignore[union-attr]
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert at.background == [], "what is ready is not made again"
        at.view.type(other, "x")
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert [Path(r.key).name for r in at.background] == ["other.py"]


async def test_it_ends_within_the_second_and_the_next_pause_goes_on(tmp_path: Path) -> None:
    text = "".join(f"value_{n} = {n}\n" for n in range(8)) + MARK + "".join(f"more_{n} = {n}\n" for n in range(8))
    async with desk(tmp_path, {}, rate=0.1) as at:
        other = await opened(at, "other.py", text)
        uri = await opened(at, "a.py", OTHER)
        at.view.service.documents.get(other).anchor = None  # type: ignore[union-attr]
        at.engine.held.clear()
        evaluated = []
        for _ in range(5):
            await at.ask(uri)
            answered = at.clock.now
            await at.rest(BEGIN_S)
            assert at.clock.now <= answered + END_S
            for one in at.background:
                assert one.time_limit_ms <= (END_S - BEGIN_S) * 1000 + 1
            evaluated += [len(r.prompt) for r in at.background]
        assert evaluated == sorted(set(evaluated)) and len(evaluated) > 2, "each slice goes on where the last one ended"
        assert all(b - a <= LARGEST + SMALLEST for a, b in zip([0, *evaluated], evaluated, strict=False))
        assert at.view.service.documents.get(other).anchor is not None  # type: ignore[union-attr]


async def test_a_machine_too_slow_for_a_slice_does_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, {}, rate=0.001) as at:
        other = await opened(at, "other.py", OTHER)
        uri = await opened(at, "a.py", OTHER)
        at.view.service.documents.get(other).anchor = None  # type: ignore[union-attr]
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert at.background == []


async def test_a_key_a_move_and_a_setting_stop_it(tmp_path: Path) -> None:
    async with desk(tmp_path, {}) as at:
        other = await opened(at, "other.py", OTHER)
        uri = await opened(at, "a.py", OTHER)
        at.view.service.documents.get(other).anchor = None  # type: ignore[union-attr]
        await at.ask(uri)
        at.view.type(uri, "x")
        await at.clock.advance(END_S)
        await at.ask(uri)
        at.view.service.moved(uri, 3)
        await at.clock.advance(END_S)
        assert [r.key for r in at.background if r.key != uri] == []
        for level in ("off", "light"):
            at.view.service.settings = at.view.service.settings.model_copy(update={"prefetch": level})
            await at.ask(uri)
            await at.rest(END_S)
            assert at.background == [], "light makes only the document's own next prompt ready"
        assert Settings().prefetch == "light"


async def test_secret_files_are_left_alone(tmp_path: Path) -> None:
    files = {"secrets/client.py": CLIENT, ".gitignore": "hidden.py\n", "hidden.py": "def Hidden():\n    pass\n"}
    text = f"from hidden import Hidden\nimport secrets.client\n\nHidden({MARK})\n"
    async with desk(tmp_path, files, rate=50.0) as at:
        env = at.view.open(".env", f"KEY = {MARK}1\n")
        uri = await opened(at, "a.py", text)
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert not [r for r in at.background if r.key == env or r.key.endswith("hidden.py")]


async def test_sentences_for_other_files_come_last_and_within_the_time(tmp_path: Path) -> None:
    put(tmp_path, {"helpers.py": "def beta(b):\n    return b * 2 + 1 + 3\n"})
    async with desk(tmp_path, {}, rate=50.0, context={"cross_file": True}) as at:
        uri = await opened(at, "a.py", f"from helpers import beta\n\nbeta({MARK})\n")
        summaries = at.view.service.context.summaries
        summaries.next(MODEL)
        found = at.view.service.context.index.file(str(tmp_path / "helpers.py"))
        assert found is not None
        summaries.want("python", found.definition(0))
        await at.ask(uri)
        await at.rest(BEGIN_S)
        assert [(r.key, r.max_tokens > 0) for r in at.background if r.key == KEY] == [(KEY, False), (KEY, True)]
        assert at.background[-1].time_limit_ms <= (END_S - BEGIN_S) * 1000
        assert summaries.sentence("python", found.definition(0)) == "Talks to the host."


def test_a_prompt_that_changed_is_gone_on_with_from_where_it_differs() -> None:
    slices = Slices()
    slices.follow(tuple(range(100)))
    slices.done = slices.next_end(50)
    assert slices.done == 50 and slices.left == 50
    slices.follow((*range(30), *range(200, 270)))
    assert slices.done == 30
    assert slices.next_end(60) == 100, "no leftover smaller than a slice may be"
