"""Sentences for undocumented functions: written behind everything else, kept, never waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming, Priority
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import EngineUnavailable
from lsp_complete.index.extract import extract_text
from lsp_complete.index.symbols import Definition
from lsp_complete.service.summaries import MAX_WAITING, TRIES, Summaries, sentence_of
from tests.index.test_worker import Memory
from tests.service.test_context_join import MARK, MODEL, spelled, window


def definition(text: str = "def add(a, b):\n    return a + b\n") -> Definition:
    found = extract_text("x.py", text)
    assert found is not None
    return found.definition(0)


def known(answers: list[bytes]) -> tuple[Summaries, ScriptedEngine]:
    summaries = Summaries()
    summaries.cache, summaries._model = Memory(), MODEL.name
    return summaries, ScriptedEngine(answers)


async def work(summaries: Summaries, engine: ScriptedEngine) -> None:
    """As a pause without end would do it."""
    while (task := summaries.next(MODEL)) is not None:
        if not await summaries.write(engine, task):
            return


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("Add two numbers", "Add two numbers."),
        (" Adds two numbers. And more words here.", "Adds two numbers."),
        ("# Add the two numbers.", "Add the two numbers."),
        ("add", ""),
        ("", ""),
        ("x " * 200, ""),
        ("```python and more of it", ""),
    ],
)
def test_only_a_sentence_is_kept(raw: str, sentence: str) -> None:
    assert sentence_of(raw) == sentence


async def test_written_once_and_kept_for_the_next_start() -> None:
    summaries, engine = known([b"Add two numbers"])
    assert summaries.sentence("python", definition()) == ""
    summaries.want("python", definition())
    await work(summaries, engine)
    assert summaries.sentence("python", definition()) == "Add two numbers."
    request: CompletionRequest = engine.requests[0]
    assert request.priority is Priority.BACKGROUND and request.stop.mode == "line"
    assert spelled(request.prompt) == "<P># <S>\ndef add(a, b):\n    return a + b\n<M>"
    again, other = known([b"never asked for"])
    again.cache = summaries.cache
    again.want("python", definition())
    await work(again, other)
    assert other.requests == [] and again.sentence("python", definition()) == "Add two numbers."


async def test_a_changed_function_is_another_one() -> None:
    summaries, engine = known([b"Add two numbers"])
    summaries.want("python", definition())
    await work(summaries, engine)
    assert summaries.sentence("python", definition("def add(a, b):\n    return a - b\n")) == ""


async def test_documented_functions_and_others_are_left_alone() -> None:
    summaries, engine = known([b"x"])
    summaries.want("python", definition('def f():\n    """Says it."""\n    return 1\n'))
    summaries.want("python", definition("class A:\n    x = 1\n"))
    await work(summaries, engine)
    assert engine.requests == []


async def test_what_waits_is_bounded_and_an_engine_that_is_gone_ends_it() -> None:
    summaries, _ = known([])
    for number in range(MAX_WAITING + 20):
        summaries.want("python", definition(f"def f{number}():\n    return {number}\n"))
    assert len(summaries._waiting) == MAX_WAITING
    await work(summaries, ScriptedEngine([EngineUnavailable("gone")]))
    assert len(summaries._waiting) == MAX_WAITING


async def test_a_sentence_that_time_is_too_short_for_is_given_up_after_some_tries() -> None:
    summaries, _ = known([])
    late = ScriptedEngine([Completion((Candidate(b"Add two num", stop="time"),), EngineTiming())])
    summaries.want("python", definition())
    for _ in range(TRIES - 1):
        task = summaries.next(MODEL)
        assert task is not None and not await summaries.write(late, task, 250.0)
    assert late.requests[0].time_limit_ms == 250.0
    task = summaries.next(MODEL)
    assert task is not None and await summaries.write(late, task, 250.0)
    assert summaries.next(MODEL) is None and summaries.sentence("python", definition()) == ""


async def test_another_model_has_sentences_of_its_own() -> None:
    summaries, engine = known([b"Add two numbers"])
    summaries._model = "older"
    summaries.want("python", definition())
    assert summaries.next(MODEL) is None and engine.requests == []


async def test_the_next_frame_shows_it(tmp_path: Path) -> None:
    files = {"helpers.py": "def alpha(a):\n    return a\n\n\ndef beta(b):\n    return b * 2 + 1 + 3\n"}
    async with window(tmp_path, files, prefetch="full") as view:
        text = f"from helpers import alpha, beta\n\nall_of_them = [alpha, beta, {MARK}]\n"
        first = await view.ask(view.open("a.py", text))
        assert "def beta(b): ...\n" in first
        summaries = view.service.context.summaries
        summaries._model = MODEL.name
        for found in view.service.context.index.file(str(tmp_path / "helpers.py")).definitions():  # type: ignore[union-attr]
            summaries.want("python", found)
        await work(summaries, ScriptedEngine([b"Gives it back as it is", b"Doubles a number"]))
        assert "# Doubles a number." in await view.ask(view.open("b.py", text))
