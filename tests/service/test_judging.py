"""What trees and the index know of a suggestion, and what that does to it."""

from __future__ import annotations

from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.index.extract import extract_text
from lsp_complete.index.index import SymbolIndex
from lsp_complete.measure.edits import Position
from lsp_complete.service.judging import SEARCHED_CHARS, Judging
from lsp_complete.service.surroundings import look_around
from lsp_complete.syntax.worker import SyntaxWorker
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding
from tests.lsp.harness import URI, session
from tests.lsp.test_server import ready

CODE = "import os\n\n\ndef area(width, height):\n    size = \n    return size\n"
AT = CODE.index("size = ") + 7


async def test_a_whole_tree_is_not_to_be_broken() -> None:
    worker = SyntaxWorker()
    whole = Document.open("file:///a.py", "python", 1, "def f(a):\n    return a\n")
    worker.open(whole)
    await worker.wait_idle()
    judging = Judging(worker.state, lambda: None)
    ok = judging.parses_ok(whole, 22)
    assert ok is not None and ok(" + 1") is True and ok(" + )") is False
    newer, edits = whole.apply([Change(((1, 12), (1, 12)), " ")], Encoding.UTF32, 2)
    worker.change(newer, edits)
    assert judging.parses_ok(newer, 23) is None  # the tree is behind the text
    assert judging.parses_ok(Document.open("file:///b.py", "python", 1, ""), 0) is None
    await worker.close()


def test_a_name_is_known_from_the_document_or_the_index() -> None:
    index = SymbolIndex()
    found = extract_text("/other.py", "def perimeter(a):\n    return a\n")
    assert found is not None
    index.update("/other.py", found)
    far = "early = 1\n" + "x = 1\n" * 4000 + CODE
    document = Document.open("file:///a.py", "python", 1, far)
    known = Judging(lambda _uri: None, lambda: index).known(document, look_around(document, len(far) - 20))
    assert known("width") and known("early") and known("perimeter") and not known("wdith")
    known = Judging(lambda _uri: None, lambda: None).known(document, look_around(document, len(far) - 20))
    assert not known("perimeter")
    starred = Document.open("file:///a.py", "python", 1, "from os import *\n" + far)
    assert Judging(lambda _uri: None, lambda: None).known(starred, look_around(starred, len(far)))("perimeter")
    long = Document.open("file:///a.py", "python", 1, "x" * (SEARCHED_CHARS + 1))
    assert Judging(lambda _uri: None, lambda: None).known(long, look_around(long, 0))("wdith")


async def test_a_name_that_nobody_knows_holds_nothing_back() -> None:
    for level in ("quiet", "balanced"):
        options = {"settings": {"suggest": {"level": level}}}
        async with session(ScriptedEngine([b"wdith * height"]), options) as (client, server, _):
            client.open(URI, "python", CODE)
            await ready(client, server)
            assert [item.text for item in (await client.inline(URI, Position(4, 11))).items] == ["wdith * height"]
    async with session(ScriptedEngine([b"width * height"])) as (client, server, _):
        client.open(URI, "python", CODE)
        await ready(client, server)
        assert [item.text for item in (await client.inline(URI, Position(4, 11))).items] == ["width * height"]
