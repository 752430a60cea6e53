"""Where a prompt stood is known again when the file is opened again, and only for the very same text."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.context.anchor import Window, choose
from lsp_complete.service.kept_anchors import from_bytes, left_at, to_bytes
from lsp_complete.text.document import Document
from tests.index.test_worker import Memory
from tests.service.test_context_join import MARK, Window_, window

ABOVE = "".join(f"value_{n} = {n}\n" + ("" if n % 5 else "\n") for n in range(40))
BELOW = "".join(f"more_{n} = {n}\n" for n in range(20))
WINDOW = Window(lines_above=12, lines_below=5, anchor_lines=4, max_tail_lines=12)


ALONE = {"cross_file": False}


def text_of(view: Window_, uri: str) -> str:
    document = view.service.snapshot(uri)
    assert document is not None
    return document.buffer.slice(0, document.buffer.length)


def beginning(prompt: str) -> str:
    return prompt.partition("<M>")[0]


async def test_after_a_restart_the_same_prompt_stands(tmp_path: Path) -> None:
    disk, moved = Memory(), "one = 1\ntwo = 2\nthree = th"
    async with window(tmp_path, {}, disk=disk, context=ALONE) as view:
        uri = view.open("a.py", ABOVE + MARK + "\n" + BELOW)
        await view.ask(uri)
        view.type(uri, moved)
        before, text = await view.ask(uri), text_of(view, uri)
    at = text.index("\n" + BELOW)
    async with window(tmp_path, {}, disk=disk, context=ALONE) as view:
        uri = view.open("a.py", text[:at] + MARK + text[at:])
        state = view.service.documents.get(uri)
        assert state is not None and state.cursor == at
        view.type(uri, "r")
        assert beginning(await view.ask(uri)) == beginning(before), "nothing but the key is new"
        view.service.closed(uri)
        uri = view.open("a.py", text[:at] + MARK + text[at:])
        assert beginning(await view.ask(uri)) == beginning(before), "the same when only the file was closed"
    async with window(tmp_path, {}, context=ALONE) as view:
        uri = view.open("a.py", text[:at] + MARK + text[at:])
        assert beginning(await view.ask(uri)) != beginning(before), "without the cache it would be another prompt"


async def test_another_text_gets_an_anchor_of_its_own(tmp_path: Path) -> None:
    disk = Memory()
    async with window(tmp_path, {}, disk=disk, context=ALONE) as view:
        await view.ask(view.open("a.py", ABOVE + MARK + "\n" + BELOW))
    async with window(tmp_path, {}, disk=disk, context=ALONE) as view:
        uri = view.open("a.py", ABOVE.replace("value_3", "other_3") + MARK + "\n" + BELOW.replace("more_1 ", "less_1 "))
        state = view.service.documents.get(uri)
        assert state is not None and state.anchor is None
        assert "less_1 " in await view.ask(uri)


async def test_nothing_is_kept_where_prompts_are_not(tmp_path: Path) -> None:
    for values, name in (({"engine": {"disk_cache_mb": 0}}, "a.py"), ({}, ".env")):
        disk = Memory()
        async with window(tmp_path, {}, disk=disk, context=ALONE, **values) as view:
            await view.ask(view.open(name, ABOVE + MARK + "\n" + BELOW))
        assert not [key for key in disk.rows if key.startswith("anchor:")]


async def test_no_text_is_kept(tmp_path: Path) -> None:
    disk = Memory()
    async with window(tmp_path, {}, disk=disk, context=ALONE) as view:
        await view.ask(view.open("a.py", ABOVE + MARK + "\n" + BELOW))
    rows = {key: row for key, row in disk.rows.items() if key.startswith("anchor:")}
    assert len(rows) == 1
    assert all(b"value" not in row and "a.py" not in key for key, row in rows.items())


DOCUMENT = Document.open("file:///a.py", "python", 1, ABOVE + "\n" + BELOW)
ANCHOR = choose(DOCUMENT.buffer, len(ABOVE), WINDOW)


def test_round_trip_and_the_cursor_before_what_editors_insert() -> None:
    assert from_bytes(to_bytes(ANCHOR, DOCUMENT.buffer.length), DOCUMENT) == ANCHOR
    typed = ABOVE + "call(one)\n" + BELOW
    document = Document.open("file:///a.py", "python", 1, typed)
    found = from_bytes(to_bytes(ANCHOR, DOCUMENT.buffer.length), document)
    assert found is not None and found.suffix_start == ANCHOR.suffix_start + len("call(one)")
    assert typed[: left_at(found, document)].endswith("call(one")


@given(st.one_of(st.binary(max_size=60), st.recursive(st.none() | st.integers() | st.text(max_size=40), st.lists, max_leaves=12).map(lambda x: json.dumps(x).encode())))
def test_foreign_entries_are_passed_over(raw: bytes) -> None:
    assert from_bytes(raw, DOCUMENT) is None


@given(st.integers(0, 5), st.integers(-50, 1 << 50))
def test_no_number_of_an_entry_can_lie(index: int, value: int) -> None:
    values = json.loads(to_bytes(ANCHOR, DOCUMENT.buffer.length))
    values[index] = value
    found = from_bytes(json.dumps(values).encode(), DOCUMENT)
    assert found is None or (found.prefix, found.suffix) == (ANCHOR.prefix, ANCHOR.suffix)
