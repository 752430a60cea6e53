"""Context in the service: what reaches the engine, what never does, and what stays the same from key to key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.config import Settings
from lsp_complete.context.anchor import Window
from lsp_complete.context.header import HeaderFormat
from lsp_complete.context.prompt import FimTokens
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.service import Query, Service
from lsp_complete.service.brain import Opened
from lsp_complete.service.planning import LoadedModel
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.index.test_walk import put
from tests.index.test_worker import Memory
from tests.lsp.harness import ByteTokenizer, prompt_text

SECRET = "VERY_SECRET_TOKEN_1234"
MARK = "‸"
CLIENT = 'class Client:\n    """Talks."""\n\n    def __init__(self, host: str) -> None:\n        self.host = host\n\n    def fetch(self, path: str) -> bytes:\n        return b""\n'


class Tokens(ByteTokenizer):
    """A byte per token, and the separators of repositories and files."""

    SPECIAL = {**ByteTokenizer.SPECIAL, "<R>": 259, "<F>": 260}


MODEL = LoadedModel(
    Tokens(),
    FimTokens((256,), (257,), (258,)),
    Window(lines_above=12, lines_below=5, anchor_lines=4, max_tail_lines=12),
    "",
    "fake",
    100_000,
    layout=HeaderFormat(((259,), "{name}\n"), ((260,), "{path}\n", "{text}\n"), ((260,), "{path}\n")),
    context_tokens=3_000,
)


def spelled(prompt: tuple[int, ...]) -> str:
    marks = {259: "<R>", 260: "<F>"}
    return "".join(marks[t] if t in marks else prompt_text((t,)) if t > 127 else chr(t) for t in prompt)


class Window_:
    """An editor's window on a workspace, with a scripted engine behind."""

    def __init__(self, service: Service, engine: ScriptedEngine, cache: Memory, root: Path) -> None:
        self.service, self.engine, self.cache, self.root = service, engine, cache, root
        self.cursors: dict[str, int] = {}

    def open(self, name: str, text: str) -> str:
        uri = (self.root / name).as_uri()
        offset = text.find(MARK)
        text = text.replace(MARK, "")
        language = "python" if name.endswith(".py") else "plaintext"
        self.service.open(Document.open(uri, language, 1, text))
        self.cursors[uri] = max(offset, 0)
        return uri

    def type(self, uri: str, text: str, at: tuple[int, int] | None = None) -> None:
        document = self.service.snapshot(uri)
        assert document is not None
        point = at or document.buffer.position(self.cursors[uri])
        self.service.change(uri, [Change((point, point), text)], Encoding.UTF32, document.version + 1)
        start = document.buffer.offset(*point)
        if start <= self.cursors[uri]:
            self.cursors[uri] += len(text)

    async def ask(self, uri: str) -> str:
        """The prompt that a request makes, spelled; "" if none was made."""
        await self.settled()
        before = len(self.engine.requests)
        document = self.service.snapshot(uri)
        assert document is not None
        answer = await self.service.answer(Query(document, self.cursors[uri], 0.0, "explicit"))
        self.stages = answer.stages
        return spelled(self.engine.requests[-1].prompt) if len(self.engine.requests) > before else ""

    async def settled(self) -> None:
        await self.service.context.syntax.wait_idle()
        worker = self.service.context.worker
        if worker is not None:
            worker.pause(False)
            await asyncio.to_thread(worker.wait_idle, 30)


@asynccontextmanager
async def window(root: Path, files: dict[str, str], **values: Any) -> AsyncIterator[Window_]:
    put(root, files)
    engine, cache = ScriptedEngine([b"x"]), Memory()
    disk = values.pop("disk", None)

    async def opener(_settings: Settings, _state: Any) -> Opened:
        return Opened(engine, lambda _info: MODEL)

    settings = Settings.model_validate(
        {
            "prefetch": "off",
            "first_deadline_ms": 0,
            "context": {"cross_file": True, **values.pop("context", {})},
            "suggest": {"typed_through": False},
            **values,
        }
    )
    service = Service(settings, opener, lambda _l, _m: None, lambda _k, _m, busy=False: None, index_cache=lambda: disk or cache)
    service.set_roots([root])
    service.configure(settings)
    ready = asyncio.Event()
    service.brain.start(settings, ready.set)
    await ready.wait()
    view = Window_(service, engine, cache, root)
    await view.settled()
    try:
        yield view
    finally:
        assert service.context.problems == 0
        await service.close()


FILLER = "".join(f"def filler_{n}(a, b):\n    return a + {n}\n\n\n" for n in range(12))
MAIN = f"from client import Client\n\n\ndef check_user(name: str, roles: list[str]) -> bool:\n    return name in roles\n\n\n{FILLER}def run(c: Client):\n    if check_user(c.{MARK}\n"


async def test_the_prompt_holds_other_files_and_pruned_callees_in_their_places(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT, "main.py": MAIN.replace(MARK, "")}) as view:
        prompt = await view.ask(view.open("main.py", MAIN))
        head, _, rest = prompt.partition("<P>")
        assert head.startswith(f"<R>{tmp_path.name}\n<F>client.py\nclass Client:") and head.endswith("<F>main.py\n")
        assert "def fetch(self, path: str) -> bytes" in head and "# host\n" in head
        opening = rest.partition("...\n")[0]
        assert opening.startswith("from client import Client\ndef check_user(name: str, roles: list[str]) -> bool:")
        assert rest.count("filler_") < 8


async def test_an_edit_at_the_top_shows_in_the_next_prompt_at_its_place(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        uri = view.open("main.py", MAIN)
        before = await view.ask(uri)
        assert "region" not in before
        view.type(uri, ", region: str", at=(3, len("def check_user(name: str, roles: list[str]")))
        after = await view.ask(uri)
        opening = after.partition("<P>")[2].partition("...\n")[0]
        assert "def check_user(name: str, roles: list[str], region: str) -> bool:" in opening
        assert view.stages.reuse_break == "context_changed"


async def test_a_changed_signature_in_another_open_file_shows_too(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        other = view.open("client.py", CLIENT)
        view.type(other, ", retries: int", at=(6, len("    def fetch(self, path: str")))
        await view.settled()
        prompt = await view.ask(view.open("main.py", MAIN))
        assert "def fetch(self, path: str, retries: int)" in prompt


async def test_keys_leave_everything_before_the_tail_as_it_is(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        uri = view.open("main.py", MAIN)
        head = (await view.ask(uri)).partition("<M>")[0]
        for char in "fetch('x'), other_name, more":
            view.type(uri, char)
            assert (await view.ask(uri)).partition("<M>")[0] == head
            assert view.stages.reuse_break == ""


async def test_switching_files_and_back_gives_the_same_frame(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        one, two = view.open("main.py", MAIN), view.open("b.py", f"from client import Client\n\nc = Client({MARK}\n")
        first = (await view.ask(one)).partition("<P>")[0]
        assert "<F>client.py" in await view.ask(two)
        view.service.documents.get(one).anchor = None  # type: ignore[union-attr]  # as after a jump
        assert (await view.ask(one)).partition("<P>")[0] == first


async def test_turned_off_there_is_nothing_but_the_window(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}, context={"cross_file": False}) as view:
        prompt = await view.ask(view.open("main.py", MAIN))
        assert prompt.startswith("<P>") and view.service.context.worker is None
        assert view.cache.rows == {}


async def test_the_budget_is_kept(tmp_path: Path) -> None:
    for budget in (600, 1_200, 2_400):
        async with window(tmp_path, {"client.py": CLIENT}, context={"budget_tokens": budget}) as view:
            prompt = await view.ask(view.open("main.py", MAIN))
            assert len(prompt) <= budget + 40 and "<F>client.py" in prompt


async def test_project_rules_stand_first(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}, rules="no emojis in names") as view:
        assert "<F>project rules\nno emojis in names\n" in await view.ask(view.open("main.py", MAIN))


async def test_unknown_languages_and_broken_code_do_no_harm(tmp_path: Path) -> None:
    async with window(tmp_path, {"client.py": CLIENT}) as view:
        assert await view.ask(view.open("notes.xyz", f"some text {MARK} here\n"))
        assert await view.ask(view.open("broken.py", f"def f(((:\n  class ]]\n{MARK}\n\x00\x01"))


# -- privacy ------------------------------------------------------------------------------------------------


async def test_a_secret_file_is_never_completed_or_remembered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with window(tmp_path, {"main.py": ""}) as view:
        uri = view.open(".env", f"KEY={SECRET}\nOTHER={MARK}\n")
        assert await view.ask(uri) == ""
        assert (view.stages.outcome, view.stages.reason) == ("disabled", "secret")
        view.service.moved(uri, 3)
        view.type(uri, SECRET)
        assert await view.ask(uri) == ""
        main = view.open("main.py", f"import os\n\nkey = os.environ[{MARK}\n")
        assert SECRET not in await view.ask(main)
        assert all(SECRET not in spelled(request.prompt) for request in view.engine.requests)
        assert all(SECRET.encode() not in row for row in view.cache.rows.values())
    assert SECRET not in caplog.text


async def test_ignored_text_stays_out_of_other_files_prompts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hidden = f"def {SECRET}(a):\n    return 1\n"
    files = {".gitignore": "private/\n", "private/hidden.py": hidden, "vault.py": hidden, "main.py": ""}
    async with window(tmp_path, files, index={"exclude": ("vault.py",)}) as view:
        for name in ("private/hidden.py", "vault.py"):
            other = view.open(name, hidden)
            view.type(other, f"# {SECRET}\n", at=(0, 0))
            view.service.saved(other)
            await view.settled()
        main = view.open("main.py", f"from private.hidden import {SECRET[:4]}\nfrom vault import x\n\nvalue = {SECRET[:4]}{MARK}\n")
        assert SECRET not in await view.ask(main)
        view.service.closed((view.root / "vault.py").as_uri())
        view.service.watched([(view.root / "private/hidden.py").as_uri(), (view.root / ".env").as_uri()])
        await view.settled()
        assert SECRET not in await view.ask(main)
        assert all(SECRET.encode() not in row for row in view.cache.rows.values())
        assert view.service.context.index.lookup(SECRET) == []
    assert SECRET not in caplog.text


async def test_a_file_that_becomes_secret_by_settings_is_forgotten(tmp_path: Path) -> None:
    async with window(tmp_path, {"main.py": "", "keys/a.py": f"def {SECRET}(): pass\n"}) as view:
        assert len(view.service.context.index.lookup(SECRET)) == 1
        view.open("keys/a.py", f"def {SECRET}(): pass\n")
        strict = view.service.settings.model_copy(update={"index": view.service.settings.index.model_copy(update={"secrets": ("keys/",)})})
        view.service.configure(strict)
        await view.settled()
        assert view.service.context.index.lookup(SECRET) == []
        main = view.open("main.py", f"from keys.a import *\n\n{SECRET[:3]}{MARK}\n")
        assert SECRET not in await view.ask(main)


async def test_what_was_typed_since_is_fetched_once_the_typing_pauses(tmp_path: Path) -> None:
    """The set changes at anchor moves or at idle: a class first named behind the anchor comes in at the pause, not at a key."""
    async with window(tmp_path, {"client.py": CLIENT}, prefetch="light") as view:
        text = f"import client\n\n\ndef f():\n    value = 1\n    {MARK}\n"
        uri = view.open("main.py", text)
        pause: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        view.service._idle._sleep = lambda _s: asyncio.shield(pause)
        head = (await view.ask(uri)).partition("<M>")[0]
        assert "def fetch" not in head
        for char in "c = client.Client('x'); c.":
            view.type(uri, char)
            assert (await view.ask(uri)).partition("<M>")[0] == head
        state = view.service.documents.get(uri)
        assert state is not None and view.service.context.wanting(state, view.cursors[uri], MODEL)
        await view.ask(uri)
        task = view.service._idle._task
        assert task is not None
        pause.set_result(None)
        await task
        assert "def fetch(self, path: str) -> bytes" in (await view.ask(uri)).partition("<M>")[0]
        assert not view.service.context.wanting(state, view.cursors[uri], MODEL)
