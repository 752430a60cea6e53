"""What was held back as unsure answers while the typing agrees with it, and what settles it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming
from lsp_complete.service import Query
from lsp_complete.service.held import MAX_AGE_S, Held
from lsp_complete.service.prefetch import START_S
from tests.lsp.harness import prompt_text

from .test_prefetch import FIRST, Desk, desk, shown

BEFORE, AFTER = "def f(a):\n    x = ", "\n"


def candidate(*tokens: tuple[str, float], stop: str = "line") -> Candidate:
    ends: list[int] = []
    for text, _ in tokens:
        ends.append((ends[-1] if ends else 0) + len(text.encode()))
    joined = "".join(text for text, _ in tokens).encode()
    return Candidate(joined, tuple(range(len(tokens))), tuple(p for _, p in tokens), (1.0,) * len(tokens), tuple(ends), stop)


SAID = candidate(("self", -0.05), (".", -0.02), ("conn", -1.2), ("ection", -0.1), ("(é", -0.4), (")", -0.01))
HELD = Held(BEFORE, AFTER, SAID, "line", 4, None)


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("", "self.connection(é)"),
        ("s", "elf.connection(é)"),
        ("self.", "connection(é)"),
        ("self.c", None),  # inside a token that was a guess: healing may settle it
        ("self.conn", "ection(é)"),
        ("self.connect", "ion(é)"),
        ("self.connection(", None),
        ("self.connection(é", ")"),
        ("self.connection(é)", None),  # nothing is left
        ("x", None),
    ],
)
def test_what_is_left_of_it(typed: str, left: str | None) -> None:
    found = HELD.left(BEFORE + typed, AFTER)
    assert (found.text.decode() if found is not None else None) == left
    assert HELD.left(BEFORE + typed, ")" + AFTER) is None and HELD.left("else\n" + typed, AFTER) is None


def test_what_is_typed_is_no_longer_uncertain() -> None:
    found = HELD.left(BEFORE + "self.conn", AFTER)
    assert found is not None and found.logprobs == (-0.1, -0.4, -0.01) and found.offsets == (6, 9, 10)
    assert HELD.left(BEFORE, AFTER, MAX_AGE_S) is not None and HELD.left(BEFORE, AFTER, MAX_AGE_S + 1) is None
    bare = Held(BEFORE, AFTER, Candidate(b"abc"), "line", 0, None).left(BEFORE + "a", AFTER)
    assert bare is not None and bare.text == b"bc"


@asynccontextmanager
async def held(root: Path, answer: Candidate, **values: Any) -> AsyncIterator[Desk]:
    """A window at level "balanced" whose model says this at the first key and something sure afterwards."""
    async with desk(root, "off", **{"suggest": {"level": "balanced"}, **values}) as at:

        def script(request: CompletionRequest) -> Completion:
            first = len(at.asked) == 1
            return Completion((answer if first else candidate(("sure()", -0.01)),), EngineTiming(prompt=len(request.prompt)))

        at.view.engine._script = script
        yield at


async def test_keys_that_agree_need_no_model_until_it_is_settled(tmp_path: Path) -> None:
    async with held(tmp_path, SAID) as at:
        answer = await at.ask()
        assert shown(answer) == ("", "model") and answer.stages.reason == "unsure"
        for char in "self.":
            at.type(char)
            answer = await at.ask()
            assert shown(answer) == ("", "typed_through") and (answer.stages.outcome, answer.stages.reason) == ("held_back", "unsure")
        assert len(at.asked) == 1
        at.type("conn")
        assert shown(await at.ask()) == ("ection(é)", "typed_through"), "what was uncertain is typed"
        at.type("e")
        assert shown(await at.ask()) == ("ction(é)", "typed_through")
        assert len(at.asked) == 1
        at.view.service.store.check_integrity()


async def test_another_key_asks(tmp_path: Path) -> None:
    async with held(tmp_path, SAID) as at:
        await at.ask()
        at.type("sx")
        assert shown(await at.ask()) == ("sure()", "model")
        state = at.view.service.documents.get(at.uri)
        assert state is not None and state.held is None


async def test_inside_a_guess_the_model_is_asked(tmp_path: Path) -> None:
    async with held(tmp_path, SAID) as at:
        await at.ask()
        at.type("self.c")
        assert shown(await at.ask()) == ("sure()", "model")


async def test_what_was_given_up_ends_too_early_to_be_shown(tmp_path: Path) -> None:
    given_up = candidate(("self", -0.05), (" ", -0.8), ("= ", -0.8), stop="unsure")
    async with held(tmp_path, given_up) as at:
        await at.ask()
        at.type("self")
        assert shown(await at.ask()) == ("", "typed_through"), "as unsure as before"
        at.type(" ")
        assert shown(await at.ask()) == ("sure()", "model")


@pytest.mark.parametrize("values", [{"suggest": {"level": "balanced", "typed_through": False}}, {"explicit": True}])
async def test_who_asks_or_wants_it_anew_gets_the_model(tmp_path: Path, values: dict[str, Any]) -> None:
    explicit = values.pop("explicit", False)
    async with held(tmp_path, SAID, **values) as at:
        await at.ask()
        at.type("s")
        document = at.view.service.snapshot(at.uri)
        assert document is not None
        query = Query(document, at.view.cursors[at.uri], at.clock.now, "explicit" if explicit else "automatic")
        answer = await at.view.service.answer(query)
        assert shown(answer)[0] == "sure()" and len(at.asked) == 2


async def test_a_better_prompt_forgets_it(tmp_path: Path) -> None:
    async with held(tmp_path, SAID) as at:
        await at.ask()
        state = at.view.service.documents.get(at.uri)
        assert state is not None and state.held is not None
        state.take_over(state, state.anchor)
        at.type("s")
        assert shown(await at.ask()) == ("sure()", "model")


async def test_what_was_held_back_ahead_stands_for_the_keys_at_that_place(tmp_path: Path) -> None:
    async with desk(tmp_path, suggest={"level": "balanced"}) as at:

        def script(request: CompletionRequest) -> Completion:
            text = prompt_text(request.prompt) + request.forced.decode()
            said = SAID if text.endswith("value * 2\n        ") else candidate((FIRST, -0.01)) if text.endswith("result += ") else candidate(("else", -9.0))
            return Completion((said,), EngineTiming(prompt=len(request.prompt)))

        at.view.engine._script = script
        assert shown(await at.ask()) == (FIRST, "model")
        await at.clock.advance(START_S)
        assert len(at.asked) == 3
        at.type(FIRST + "\n        ")
        assert shown(await at.ask()) == ("", "prefetched")
        at.type("self.")
        assert shown(await at.ask()) == ("", "typed_through")
        at.type("conn")
        assert shown(await at.ask()) == ("ection(é)", "typed_through")
        assert len(at.asked) == 3
