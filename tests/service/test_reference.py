"""The reference model with scripted engines: when it is asked, what stops it, where its texts count, and that without one nothing is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from lsp_complete.config import Settings
from lsp_complete.engine.api import CompletionRequest, Priority
from lsp_complete.engine.fake import FAKE_INFO, ScriptedEngine
from lsp_complete.errors import LspCompleteError, MemoryPlanError, ModelError
from lsp_complete.service import Answer, Query, Service
from lsp_complete.service.brain import MEMORY_RETRY_S, Opened
from lsp_complete.service.reference import AGAIN_S, HABITS_S, PER_FILE, REST_S, TRIES, apart
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.lsp.harness import MODEL, prompt_text

from .test_prefetch import Clock

URI = "file:///project/a.py"
ABOVE = "width = 1\nrate = 2\n\n\ndef price(amount):\n"
LINE = "    cost = "
BELOW = "\n    return cost\n"
FLAT, GOOD, FINE = b"result + temp", b"rate * width", b"amount * rate"


def typed_on(request: CompletionRequest) -> str:
    """What stands behind the `=` of the cursor's line."""
    return (prompt_text(request.prompt) + request.forced.decode()).rpartition("cost =")[2].removeprefix(" ")


def says(text: bytes) -> Callable[[CompletionRequest], bytes]:
    """A model that means this text: what is left of it if the typing agrees, else all of it."""

    def script(request: CompletionRequest) -> bytes:
        typed = typed_on(request).encode()
        return text.removeprefix(typed) if typed and text.startswith(typed) else b"" if typed else text

    return script


class Desk:
    """One window with both engines and a clock that the test moves."""

    def __init__(self, service: Service, main: ScriptedEngine, better: ScriptedEngine) -> None:
        self.service, self.main, self.better, self.clock = service, main, better, Clock()
        self.messages: list[tuple[str, str]] = []
        self.opened = 0
        self.cursor = 0

    def open(self, uri: str = URI, above: str = ABOVE, line: str = LINE) -> None:
        self.service.open(Document.open(uri, "python", 1, above + line + BELOW))
        self.cursor = len(above + line)

    def change(self, start: int, end: int, text: str, uri: str = URI) -> None:
        document = self.service.snapshot(uri)
        assert document is not None
        spot = document.buffer.position(start), document.buffer.position(end)
        self.service.change(uri, [Change(spot, text)], Encoding.UTF32, document.version + 1)

    def type(self, text: str, uri: str = URI) -> None:
        self.change(self.cursor, self.cursor, text, uri)
        self.cursor += len(text)

    async def ask(self, uri: str = URI, **values: Any) -> str:
        document = self.service.snapshot(uri)
        assert document is not None
        answer: Answer = await self.service.answer(Query(document, self.cursor, self.clock.now, **values))
        return answer.suggestions[0].text if answer.suggestions else ""

    async def rest(self, seconds: float = REST_S) -> None:
        await self.settle()
        await self.clock.advance(seconds)
        await self.settle()

    async def settle(self) -> None:
        """Let everything run that can run without time passing."""
        reference = self.service.reference
        for _ in range(30):
            await asyncio.sleep(0)
        if reference.brain._task is not None:
            await asyncio.wait([reference.brain._task])  # it reads the vocabulary in a thread
        for _ in range(30):
            await asyncio.sleep(0)

    @property
    def figures(self) -> dict[str, Any]:
        return self.service.reference.figures()


@asynccontextmanager
async def desk(
    main: bytes = FLAT, better: bytes = GOOD, model: str = "larger", error: LspCompleteError | None = None, **values: Any
) -> AsyncIterator[Desk]:
    engines = ScriptedEngine(says(main)), ScriptedEngine(says(better), info_error=error)
    settings = Settings.model_validate(
        {"reference_model": model, "prefetch": "off", "first_deadline_ms": 0, "suggest": {"level": "eager", **values}}
    )

    async def opener(_settings: Settings, _state: Any) -> Opened:
        return Opened(engines[0], lambda _info: MODEL)

    async def other(settings: Settings, _state: Any) -> Opened:
        assert settings.model == FAKE_INFO.path, "the model that is in use, not the setting's auto"
        at.opened += 1
        return Opened(engines[1], lambda _info: MODEL)

    service = Service(
        settings, opener, lambda *m: at.messages.append(m), lambda _k, _m, busy=False: None, reference=other
    )
    at = Desk(service, *engines)
    service.reference._sleep = at.clock.sleep
    service.reference._clock = service.reference.brain._clock = at.clock
    service.thrift._look = lambda: False
    service.reference._begin_anew()
    service._idle.answered = lambda *_a: None  # type: ignore[method-assign]
    ready = asyncio.Event()
    service.brain.start(settings, ready.set)
    await ready.wait()
    try:
        yield at
    finally:
        service.reference._store.check_integrity()
        await service.close()


async def test_without_a_reference_model_nothing_of_it_is_there() -> None:
    async with desk(model="") as at:
        at.open()
        assert await at.ask() == FLAT.decode()
        await at.rest(100)
        assert at.opened == 0 and at.better.calls == [] and at.service.reference._task is None
        assert "reference" not in await at.service.stats() and at.service.figures().reference == {}


async def test_where_the_user_rests_it_is_asked_once_in_the_background() -> None:
    async with desk(main=FINE) as at:
        at.open()
        assert await at.ask() == FINE.decode()
        await at.rest(REST_S - 0.1)
        assert at.opened == 0 and at.better.calls == []
        await at.rest(0.1)
        (request,) = at.better.requests
        assert request.priority is Priority.BACKGROUND and prompt_text(request.prompt).endswith("<M>" + ABOVE + LINE.rstrip())
        assert at.figures["kept"] == 1 and at.figures["held"] == 1 and at.figures["ready"]
        assert await at.ask(trigger="explicit") == FINE.decode(), "nothing is wrong with this one"
        await at.rest()
        assert len(at.better.calls) == 1, "what holds here is known"


async def test_what_it_said_takes_the_place_of_habits_where_the_text_agrees() -> None:
    async with desk(typed_through=False) as at:
        at.open()
        assert await at.ask() == FLAT.decode()
        await at.rest(HABITS_S)
        assert len(at.better.calls) == 1, "asked sooner where the suggestion consists of habits"
        assert await at.ask() == GOOD.decode()
        assert at.figures["offered"] == 1
        at.change(0, 0, "import os\n")
        at.cursor += len("import os\n")
        assert await at.ask() == GOOD.decode(), "the text near the place is the same"
        at.change(at.cursor - len(LINE) - 3, at.cursor - len(LINE) - 3, "s")
        at.cursor += 1
        assert await at.ask() == FLAT.decode(), "def price(amount) has become another function"


async def test_it_holds_while_the_typing_agrees_and_after_closing_the_file() -> None:
    async with desk(main=b"result + data + temp") as at:
        at.open()
        await at.ask()
        await at.rest(HABITS_S)
        at.main._script = lambda _request: b"result + temp"
        at.type("rate")
        assert await at.ask() == " * width"
        at.type(" + ")
        assert await at.ask() == FLAT.decode()
        at.service.closed(URI)
        at.open()
        at.type("ra")
        assert await at.ask() == "te * width"


async def test_it_is_no_improvement_if_it_has_the_same_habits() -> None:
    async with desk(better=b"temp + data", typed_through=False) as at:
        at.open()
        await at.ask()
        await at.rest(HABITS_S)
        assert at.figures["kept"] == 1 and await at.ask() == FLAT.decode() and at.figures["offered"] == 0


async def test_every_key_move_and_request_ends_its_work() -> None:
    async with desk() as at:
        at.open()
        await at.ask()
        await at.rest(HABITS_S)
        at.better.hold = True
        for disturb in ("key", "move", "request"):
            at.change(at.cursor - len(LINE), at.cursor - len(LINE), "    x = 1\n")
            at.cursor += len("    x = 1\n")
            await at.ask()
            await at.rest(REST_S)
            assert at.better.calls[-1].outcome == "running"
            if disturb == "key":
                at.type(" ")
            elif disturb == "move":
                at.service.moved(URI, 3)
            else:
                await at.ask(trigger="explicit")
            await at.settle()
            assert at.better.calls[-1].outcome == "cancelled"
        assert at.figures["stopped"] == 3
        at.service.moved(URI, at.cursor)
        await at.rest(HABITS_S / 2)
        at.type("a")
        await at.rest(100)
        assert len(at.better.calls) == 4, "no answer, no rest"


async def test_it_waits_until_the_main_engine_has_nothing_to_do_and_gives_up_in_time() -> None:
    async with desk() as at:
        at.open()
        await at.ask()
        at.main.hold = True
        other = asyncio.ensure_future(at.main.complete(CompletionRequest((1, 2))))  # another window's
        await at.rest(HABITS_S)
        assert at.opened == 0
        at.main.release()
        await other
        await at.rest(AGAIN_S)
        assert len(at.better.calls) == 1
        at.main.hold = False
        at.change(0, 0, "import os\n" * 40)
        at.cursor += 400
        at.type("a", URI)
        await at.ask()
        at.main.hold = True
        other = asyncio.ensure_future(at.main.complete(CompletionRequest((1, 2))))
        for _ in range(TRIES + 2):
            await at.rest(REST_S)
        at.main.release()
        await other
        await at.rest(100)
        assert len(at.better.calls) == 1 and at.service.reference._task.done()  # type: ignore[union-attr]


async def test_too_little_memory_is_told_but_not_shown_and_tried_again_later() -> None:
    async with desk(error=MemoryPlanError("larger needs 5.6 GB of free memory, 1.0 GB are free")) as at:
        at.open()
        for _ in range(3):
            assert await at.ask() == FLAT.decode()
            await at.rest()
        assert at.opened == 1 and at.messages == [] and at.service.brain.problem == ""
        assert at.figures["problem"] == "larger needs 5.6 GB of free memory, 1.0 GB are free" and not at.figures["ready"]
        await at.clock.advance(MEMORY_RETRY_S)
        at.better._info_error, at.better.closed = None, False
        await at.ask(trigger="explicit")
        await at.rest()
        assert at.opened == 2 and at.figures["ready"] and at.figures["problem"] == "" and at.figures["kept"] == 1


async def test_a_model_that_is_not_here_leaves_the_server_as_it_is() -> None:
    async with desk(error=ModelError("The model larger is not here.")) as at:
        at.open()
        await at.ask()
        await at.rest()
        assert at.messages == [] and at.figures["problem"] == "The model larger is not here."
        assert await at.ask(trigger="explicit") == FLAT.decode()
        stats = await at.service.stats()
        assert stats["reference"] == at.figures and stats["problem"] == ""


async def test_on_battery_nothing_is_asked() -> None:
    async with desk() as at:
        at.service.thrift._look = lambda: True
        at.open()
        await at.ask()
        await at.rest(100)
        assert at.opened == 0


async def test_another_reference_model_begins_anew() -> None:
    async with desk() as at:
        at.open()
        await at.ask()
        await at.rest()
        assert at.figures["held"] == 1
        at.service.configure(at.service.settings.model_copy(update={"reference_model": ""}))
        assert at.service._restart is not None
        await at.service._restart
        assert at.better.closed and at.figures == {} and len(at.service.reference._store) == 0


async def test_so_many_are_kept_for_each_file_and_no_more() -> None:
    async with desk(typed_through=False) as at:
        for name in ("a", "b"):
            uri = f"file:///project/{name}.py"
            at.open(uri)
            for _ in range(PER_FILE + 3 if name == "a" else 2):
                await at.ask(uri)
                await at.rest()
                at.change(at.cursor - len(LINE), at.cursor - len(LINE), "    y = 1\n", uri)
                at.cursor += len("    y = 1\n")
        assert at.figures["kept"] == PER_FILE + 5 and at.figures["held"] == PER_FILE + 2


async def test_a_line_of_its_own_is_not_answered_with_several() -> None:
    async with desk(typed_through=False) as at:
        at.open()
        await at.ask(menu=True)
        await at.rest()
        (kept,) = at.service.reference._store._kept.values()
        kept.shown = kept.full = "rate * (\n        width)"
        assert await at.ask() == "rate * (\n        width)"
        assert await at.ask(single_line=True) == FLAT.decode()


async def test_the_copy_shares_nothing_that_is_made_of_tokens() -> None:
    async with desk() as at:
        at.open()
        await at.ask()
        state = at.service.documents.get(URI)
        assert state is not None and state.table is not None and state.head is not None
        copy = apart(state)
        assert copy.table is None and copy.head is None and copy.generation is None and copy.anchor is state.anchor
        assert copy.document is state.document
