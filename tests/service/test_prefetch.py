"""The next suggestion before it is asked for: where it is found, what stops it, and that it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.config import Settings
from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming, Priority
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import PromptCold
from lsp_complete.service import Answer, Query
from lsp_complete.service.power import LOOK_EVERY_S, Thrift
from lsp_complete.service.prefetch import LIMIT_S, START_S
from tests.lsp.harness import prompt_text

from .test_context_join import MARK, Window_, window

HEAD = "def total(values):\n    result = 0\n    for value in values:\n"
TEXT = HEAD + f"        result += {MARK}\n    return result\n"
FIRST, SECOND, THIRD = "value * 2", "\n        count += 1", "\n        seen.add(value)"


class Clock:
    """Time that passes only when told; a sleep lasts until then."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, future))
        await future

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        for at, future in self._sleepers:
            if at <= self.now and not future.done():
                future.set_result(None)
        for _ in range(20):
            await asyncio.sleep(0)


async def never(_seconds: float) -> None:
    """No pause is long enough: what `idle` does has tests of its own."""
    await asyncio.get_running_loop().create_future()


def script(request: CompletionRequest) -> bytes | Completion:
    """What stands behind the text that the model has seen last."""
    text = prompt_text(request.prompt) + request.forced.decode()
    if not request.max_tokens:
        return Completion((), EngineTiming())
    if text.rstrip().endswith("add(value)"):
        return Completion((Candidate(b""),), EngineTiming())
    for seen, answer in (("count += 1", THIRD), ("value * 2", SECOND), ("result += ", FIRST)):
        if text.endswith(seen):
            return Completion((Candidate(answer.encode()),), EngineTiming(prompt=len(request.prompt)))
    return Completion((Candidate(b"other()"),), EngineTiming())


class Desk:
    """An editor with a clock of its own."""

    def __init__(self, view: Window_, clock: Clock, uri: str) -> None:
        self.view, self.clock, self.uri = view, clock, uri

    @property
    def asked(self) -> list[CompletionRequest]:
        return [r for r in self.view.engine.requests if r.max_tokens]

    async def ask(self, menu: bool = False) -> Answer:
        document = self.view.service.snapshot(self.uri)
        assert document is not None
        answer = await self.view.service.answer(Query(document, self.view.cursors[self.uri], self.clock.now, menu=menu))
        for _ in range(5):
            await asyncio.sleep(0)
        return answer

    def type(self, text: str) -> None:
        self.view.type(self.uri, text)


@asynccontextmanager
async def desk(root: Path, level: str = "light", hold: bool = False, **values: Any) -> AsyncIterator[Desk]:
    settings = {"prefetch": level, "suggest": {"level": "eager"}, "context": {"cross_file": False}, **values}
    async with window(root, {}, **settings) as view:
        clock = Clock()
        view.service.brain.engine = view.engine = ScriptedEngine(script)
        view.service._prefetch._sleep, view.service._prefetch._clock = clock.sleep, clock
        view.service._idle._sleep, view.service._idle._clock = never, clock
        uri = view.open("a.py", TEXT)
        await view.settled()
        await view.engine.wait_for(lambda: all(call.outcome == "done" for call in view.engine.calls))
        view.engine.hold = hold
        yield Desk(view, clock, uri)


def shown(answer: Answer) -> tuple[str, str]:
    return (answer.suggestions[0].text if answer.suggestions else ""), answer.stages.source


async def test_after_acceptance_the_next_suggestion_is_there(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        assert shown(await at.ask()) == (FIRST, "model")
        assert len(at.asked) == 1
        await at.clock.advance(START_S)
        assert [r.priority for r in at.asked] == [Priority.INTERACTIVE, Priority.PREFETCH]
        assert at.asked[1].prompt[: len(at.asked[0].prompt)] == at.asked[0].prompt, "the standing prompt grows"
        assert 0 < at.asked[1].time_limit_ms <= 1000 * LIMIT_S and at.asked[1].evaluate_limit
        at.type(FIRST)
        assert shown(await at.ask()) == (SECOND, "prefetched")
        assert len(at.asked) == 2
        await at.clock.advance(START_S)
        assert len(at.asked) == 3, "and the one after that"


async def test_typing_through_and_enter_lead_to_the_same_place(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.ask()
        await at.clock.advance(START_S)
        sources = []
        for char in FIRST + "\n        c":
            at.type(char)
            text, source = shown(await at.ask())
            sources.append(source)
            await at.clock.advance(0.05)
        assert text == "ount += 1"
        assert sources[: len(FIRST)] == ["typed_through"] * (len(FIRST) - 1) + ["prefetched"]
        assert set(sources[len(FIRST) :]) == {"typed_through"}
        assert len(at.asked) <= 3, "the work under way was left alone, and nothing was asked twice"


async def test_who_types_on_at_once_costs_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.ask()
        await at.clock.advance(START_S / 2)
        at.type("x")
        await at.clock.advance(LIMIT_S)
        assert len(at.asked) == 1


async def test_another_key_stops_it_at_once_and_leaves_no_trace(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.ask()
        at.view.engine.hold = True
        await at.clock.advance(START_S)
        call = at.view.engine.calls[-1]
        assert call.request.priority is Priority.PREFETCH and call.outcome == "running"
        at.type("o")
        await at.view.engine.wait_for(lambda: call.outcome == "cancelled")
        assert not at.view.service._prefetch._predictions
        at.view.engine.hold = False
        entries = len(at.view.service.store)
        await at.ask()
        await at.clock.advance(START_S)
        at.type("q")
        assert not [k for k in at.view.service.store._kept.values() if k.entry.origin == "prefetch"]
        assert len(at.view.service.store) <= entries + 1
        at.view.service.store.check_integrity()


async def test_a_bracket_with_the_editors_closer_is_on_the_way_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        document = at.view.service.snapshot(at.uri)
        assert document is not None
        at.type("f")
        await at.ask()  # "other()"
        await at.clock.advance(START_S)
        assert len(at.asked) == 2
        at.type("other")
        at.type("()")  # the cursor stands between them
        assert at.uri in at.view.service._prefetch._predictions
        at.type("[]")
        assert at.uri not in at.view.service._prefetch._predictions


async def test_a_request_at_the_place_takes_the_work_over(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.ask()
        at.view.engine.hold = True
        await at.clock.advance(START_S)
        call = at.view.engine.calls[-1]
        at.type(FIRST)
        waiting = asyncio.ensure_future(at.ask())
        await at.clock.advance(0.01)
        assert call.outcome == "running" and at.view.engine.calls[-1] is call
        at.view.engine.release()
        assert shown(await waiting) == (SECOND, "joined")


async def test_full_goes_on_as_far_as_time_allows_and_then_all_is_quiet(tmp_path: Path) -> None:
    async with desk(tmp_path, "full") as at:
        await at.ask()
        await at.clock.advance(START_S)
        assert len(at.asked) == 5, "two more suggestions, then nothing, behind Enter neither"
        at.type(FIRST)
        assert shown(await at.ask())[1] == "prefetched"
        at.type(SECOND)
        assert shown(await at.ask()) == (THIRD, "prefetched")
        before = len(at.view.engine.requests)
        await at.clock.advance(3600)
        assert len(at.view.engine.requests) == before


def silent(request: CompletionRequest) -> bytes | Completion:
    """Nothing at the end of the line, something on the next one."""
    text = prompt_text(request.prompt) + request.forced.decode()
    if request.max_tokens and text.endswith("value * 2"):
        return Completion((Candidate(b""),), EngineTiming())
    return b"count += 1" if text.endswith("value * 2\n        ") else script(request)


def beyond(request: CompletionRequest) -> bytes | Completion:
    """At the end of the line, where that is allowed, the next line, less indented than Enter would make it."""
    text = prompt_text(request.prompt) + request.forced.decode()
    if request.max_tokens and text.endswith("value * 2"):
        return Completion((Candidate(b"\n    else_too()" if request.stop.max_lines > 1 else b""),), EngineTiming())
    return b"count += 1" if text.endswith("value * 2\n        ") else script(request)


async def test_the_next_line_is_offered_at_the_end_of_the_accepted_one_whatever_its_indentation(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.view.engine._script = beyond
        await at.ask()
        await at.clock.advance(START_S)
        assert len(at.asked) == 2 and (at.asked[1].stop.mode, at.asked[1].stop.max_lines) == ("line", 3)
        at.type(FIRST)
        assert shown(await at.ask()) == ("\n    else_too()", "prefetched")
        assert len(at.asked) == 2


async def test_who_presses_enter_first_is_asked_for_there(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.view.engine._script = beyond
        await at.ask()
        await at.clock.advance(START_S)
        at.type(FIRST)
        await at.ask()
        at.type("\n        ")
        assert shown(await at.ask()) == ("count += 1", "model"), "Enter indents deeper than the line that was foreseen"


async def test_a_request_takes_the_next_line_over_while_it_is_made_but_a_menu_does_not(tmp_path: Path) -> None:
    for menu in (False, True):
        root = tmp_path / str(menu)
        root.mkdir()
        async with desk(root) as at:
            at.view.engine._script = beyond
            await at.ask()
            at.view.engine.hold = True
            await at.clock.advance(START_S)
            call = at.view.engine.calls[-1]
            at.type(FIRST)
            waiting = asyncio.ensure_future(at.ask(menu))
            await at.clock.advance(0.01)
            assert (at.view.engine.calls[-1] is call) is not menu
            at.view.engine.hold = False
            at.view.engine.release()
            assert shown(await waiting) == (("", "model") if menu else ("\n    else_too()", "joined"))


async def test_where_nothing_is_said_enter_is_tried_and_no_one_asks_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.view.engine._script = silent
        await at.ask()
        await at.clock.advance(START_S)
        assert len(at.asked) == 3
        at.type(FIRST)
        answer = await at.ask()
        assert shown(answer) == ("", "prefetched") and (answer.stages.outcome, answer.stages.reason) == ("empty", "foreseen")
        at.type("\n        ")
        assert shown(await at.ask()) == ("count += 1", "prefetched")
        assert len(at.asked) == 3


async def test_where_one_line_only_is_wanted_it_waits_for_enter(tmp_path: Path) -> None:
    async with desk(tmp_path, suggest={"level": "eager", "multiline": "never"}) as at:
        at.view.engine._script = beyond
        await at.ask()
        await at.clock.advance(START_S)
        assert [r.stop.max_lines for r in at.asked] == [1, 1, 1]
        at.type(FIRST)
        answer = await at.ask()
        assert shown(answer) == ("", "prefetched") and (answer.stages.outcome, answer.stages.reason) == ("empty", "foreseen")
        at.type("\n        ")
        assert shown(await at.ask())[0] == "count += 1"
        assert len(at.asked) == 3


async def test_a_menu_is_shown_no_text_that_begins_with_a_line_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.view.engine._script = beyond
        await at.ask()
        await at.clock.advance(START_S)
        at.type(FIRST)
        assert shown(await at.ask(menu=True))[0] == ""


async def test_nothing_is_not_believed_where_time_was_too_short(tmp_path: Path) -> None:
    def late(request: CompletionRequest) -> bytes | Completion:
        if request.priority is Priority.PREFETCH:
            return Completion((Candidate(b"", stop="time"),), EngineTiming())
        return script(request)

    async with desk(tmp_path) as at:
        at.view.engine._script = late
        await at.ask()
        await at.clock.advance(START_S)
        assert len(at.asked) == 2
        at.type(FIRST)
        assert shown(await at.ask()) == (SECOND, "model")


async def test_everything_ends_within_a_second_of_the_answer(tmp_path: Path) -> None:
    """By what the engine is asked for: no request may outlive the second, and none begins after it."""
    async with desk(tmp_path, "full") as at:
        await at.ask()
        at.view.engine.hold = True
        answered = at.clock.now
        await at.clock.advance(START_S)
        for n in range(3):  # each takes its time
            assert at.clock.now + at.asked[-1].time_limit_ms / 1000 <= answered + LIMIT_S + 1e-9 <= answered + 1.0
            at.clock.now += 0.3
            at.view.engine.release()
            await at.clock.advance(0)
            assert len(at.asked) == (3 + n if n < 2 else 4)
        assert all(call.outcome == "done" for call in at.view.engine.calls)


async def test_a_cold_prompt_is_not_evaluated_for_it(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.ask()

        def cold(request: CompletionRequest) -> Completion:
            assert request.evaluate_limit
            raise PromptCold("cold")

        at.view.engine._script = cold
        await at.clock.advance(START_S)
        assert at.asked[-1].priority is Priority.PREFETCH
        at.view.engine._script = script
        at.type(FIRST)
        assert shown(await at.ask()) == (SECOND, "model")


@pytest.mark.parametrize("values", [{"level": "off"}, {"suggest": {"level": "eager", "typed_through": False}}])
async def test_settings_turn_it_off(tmp_path: Path, values: dict[str, Any]) -> None:
    async with desk(tmp_path, **values) as at:
        await at.ask()
        await at.clock.advance(LIMIT_S)
        assert len(at.asked) == 1


async def test_on_battery_there_is_one_step_less(tmp_path: Path) -> None:
    clock, battery = Clock(), [True]
    thrift = Thrift(clock, lambda: battery[0])
    full = Settings(prefetch="full")
    assert [thrift.settings(Settings(prefetch=p)).prefetch for p in ("off", "light", "full")] == ["off", "off", "light"]
    assert thrift.settings(full) is thrift.settings(full)
    battery[0] = False
    assert thrift.settings(full).prefetch == "light", "looked at now and then only"
    clock.now += LOOK_EVERY_S
    assert thrift.settings(full) is full
    async with desk(tmp_path) as at:
        at.view.service.thrift = Thrift(clock, lambda: True)
        await at.ask()
        await at.clock.advance(LIMIT_S)
        assert len(at.asked) == 1
