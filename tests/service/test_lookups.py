"""Look-up text for proposals: what is in it, that it is made once, and that its tokens travel once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsp_complete.engine.api import Candidate, Completion, CompletionRequest, EngineTiming
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.service import Query
from lsp_complete.service.lookups import RESEND
from tests.lsp.harness import prompt_text

from .test_context_join import MARK, Window_, window

FAR = "".join(f"far_above_{n} = compute({n})\n" for n in range(40))
TEXT = FAR + "".join(f"near_{n} = {n}\n" for n in range(20)) + f"here = {MARK}\n" + "\n".join(f"below_{n} = {n}" for n in range(60))


def decoded(count: int) -> ScriptedEngine:
    """An engine that says it decoded so many tokens."""

    def script(request: CompletionRequest) -> Completion:
        shown = (Candidate(b"one_more"),) if request.max_tokens else ()
        return Completion(shown, EngineTiming(prompt=len(request.prompt), decoded=count))

    return ScriptedEngine(script)


async def ask(view: Window_, uri: str) -> CompletionRequest:
    """The request that reaches the engine for an explicit question."""
    before = len(view.engine.requests)
    document = view.service.snapshot(uri)
    assert document is not None
    view.service.store.forget(uri)
    await view.service.answer(Query(document, view.cursors[uri], 0.0))
    await asyncio.sleep(0)
    return view.engine.requests[before]


def text_of(request: CompletionRequest) -> str:
    return prompt_text(request.lookup)


async def test_the_rest_of_the_file_is_looked_up_and_travels_until_it_is_indexed(tmp_path: Path) -> None:
    async with window(tmp_path, {}, context={"cross_file": False}) as view:
        view.service.brain.engine = view.engine = decoded(1)
        uri = view.open("a.py", TEXT)
        await view.settled()
        assert (await ask(view, uri)).lookup == ()  # no key waits for it
        second = await ask(view, uri)
        assert "far_above_3 = compute(3)" in text_of(second) and "below_50 = 50" in text_of(second)
        assert "here" not in text_of(second) and "near_19" not in text_of(second)
        assert prompt_text(second.prompt).count("far_above_3 = ") == 0
        third = await ask(view, uri)  # one token was decoded: the proposer was never asked
        assert (third.lookup, third.lookup_key) == (second.lookup, second.lookup_key)
        view.service.brain.engine = view.engine = decoded(9)
        assert (await ask(view, uri)).lookup == second.lookup, "another engine knows nothing"
        for _ in range(RESEND):
            later = await ask(view, uri)
            assert (later.lookup, later.lookup_key) == ((), second.lookup_key)
        assert (await ask(view, uri)).lookup == second.lookup


async def test_it_is_made_anew_only_beside_another_head_or_after_a_deletion(tmp_path: Path) -> None:
    async with window(tmp_path, {}, context={"cross_file": False}) as view:
        view.service.brain.engine = view.engine = decoded(9)
        uri = view.open("a.py", TEXT)
        await view.settled()
        await ask(view, uri)
        first = (await ask(view, uri)).lookup_key
        state = view.service.documents.get(uri)
        assert state is not None
        made = state.lookup
        view.type(uri, "x")
        await ask(view, uri)
        assert state.lookup is made
        document = state.document
        from lsp_complete.text.edits import Change
        from lsp_complete.text.positions import Encoding

        gone = Change(((2, 0), (3, 0)), "")
        view.service.change(uri, [gone], Encoding.UTF32, document.version + 1)
        view.cursors[uri] -= len("far_above_2 = compute(2)\n")
        await ask(view, uri)
        request = await ask(view, uri)
        assert request.lookup_key != first and text_of(request).endswith("far_above_2 = compute(2)\n<M>")


async def test_other_files_help_unless_they_are_ignored(tmp_path: Path) -> None:
    async with window(tmp_path, {".gitignore": "ignored.py\n"}, context={"cross_file": False}) as view:
        view.service.brain.engine = view.engine = decoded(9)
        view.open("ignored.py", "not_for_others = 1\n")
        view.open("other.py", "shared_helper(value)\n")
        uri = view.open("a.py", TEXT)
        await view.settled()
        await ask(view, uri)
        looked = text_of(await ask(view, uri))
        assert "shared_helper(value)" in looked and "not_for_others" not in looked


async def test_the_setting_turns_it_off(tmp_path: Path) -> None:
    async with window(tmp_path, {}, context={"cross_file": False}, engine={"speculation": False}) as view:
        uri = view.open("a.py", TEXT)
        await view.settled()
        await ask(view, uri)
        request = await ask(view, uri)
        assert (request.lookup, request.lookup_key) == ((), "")
