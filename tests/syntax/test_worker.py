"""The parse thread: newest wins, the last good structure meanwhile. No sleeps: the tests hold the parser back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from lsp_complete.syntax import jobs as module
from lsp_complete.syntax import worker as worker_module
from lsp_complete.syntax.nodes import Outline
from lsp_complete.syntax.outline import outline_of, shifted
from lsp_complete.syntax.trees import SyntaxTree, parse
from lsp_complete.syntax.worker import TOO_LONG, SyntaxWorker
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change, Edit
from lsp_complete.text.positions import Encoding
from tests.syntax.helpers import SAMPLES, document, dump, tree_of


def typed(before: Document, line: int, column: int, text: str) -> tuple[Document, tuple[Edit, ...]]:
    change = Change(((line, column), (line, column)), text)
    return before.apply([change], Encoding.UTF32, before.version + 1)


@dataclass
class Gate:
    """Stands before the parser: holds it, counts it, or makes it fail."""

    open: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)
    texts: list[str] = field(default_factory=list)
    afresh: list[bool] = field(default_factory=list)
    fail: Exception | None = None
    give_up: bool = False

    def parse(
        self, grammar: object, buffer: object, previous: SyntaxTree | None, should_stop: Callable[[], bool]
    ) -> SyntaxTree | None:
        self.texts.append(buffer.text())  # type: ignore[attr-defined]
        self.afresh.append(previous is None)
        self.entered.set()
        assert self.open.wait(30)
        if self.fail is not None:
            raise self.fail
        if should_stop() or self.give_up:
            return None
        return parse(grammar, buffer, previous, should_stop)  # type: ignore[arg-type]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    gate.open.set()
    monkeypatch.setattr(module, "parse", gate.parse)
    yield gate
    gate.open.set()


async def test_a_document_is_parsed_and_followed(gate: Gate) -> None:
    ready: list[str] = []
    worker = SyntaxWorker(ready.append)
    current = document(SAMPLES["python"])
    worker.open(current)
    assert worker.state(current.uri) is not None and not worker.state(current.uri).exact  # type: ignore[union-attr]
    await worker.wait_idle()
    for text in ("a", "b", "c = 1\n"):
        current, edits = typed(current, 8, 0, text)
        worker.change(current, edits)
        await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.exact and state.tree is not None and state.outline is not None
    fresh = parse(state.tree.grammar, current.buffer)
    assert fresh is not None and dump(state.tree) == dump(fresh)
    assert state.outline == outline_of(fresh)
    assert ready == [current.uri] * 4 and gate.afresh == [True, False, False, False]
    await worker.close()


async def test_meanwhile_the_last_good_outline_moves(gate: Gate) -> None:
    worker = SyntaxWorker()
    current = document(SAMPLES["python"])
    worker.open(current)
    await worker.wait_idle()
    gate.open.clear()
    current, edits = typed(current, 8, 0, "x = 1\ny = 2\n")
    worker.change(current, edits)
    state = worker.state(current.uri)
    assert state is not None and not state.exact and state.outline is not None and state.tree is not None
    for node in state.outline.nodes:
        if node.name:
            assert current.buffer.slice(node.span.name_start, node.span.name_start + 3) == node.name[:3] or (
                node.role == "import"
            )
    assert state.tree.buffer is current.buffer and not state.tree.exact
    gate.open.set()
    await worker.close()


async def test_a_key_moves_no_outline_that_nobody_asks_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = SyntaxWorker()
    current = document(SAMPLES["python"])
    worker.open(current)
    await worker.wait_idle()
    gate.open.clear()
    moved: list[int] = []

    def counting(outline: Outline, edits: Sequence[Edit]) -> Outline:
        moved.append(len(edits))
        return shifted(outline, edits)

    monkeypatch.setattr(worker_module, "shifted", counting)
    held = worker.state(current.uri)
    for _ in range(3):
        current, edits = typed(current, 8, 0, "x\n")
        worker.change(current, edits)
        state = worker.state(current.uri)
        assert state is not None and state.moved is not None and moved == []
    assert state is not None and held is not None and held.outline is not None
    before = held.outline.length
    assert state.outline is state.outline and moved == [3]
    assert state.outline.length == before + 6 == current.buffer.length  # type: ignore[union-attr]  # it is there
    gate.open.set()
    await worker.close()


async def test_the_newest_wins_and_an_overtaken_parse_stops(gate: Gate) -> None:
    worker = SyntaxWorker()
    current = document(SAMPLES["python"])
    worker.open(current)
    await worker.wait_idle()
    gate.open.clear()
    gate.entered.clear()
    versions = []
    for letter in "abcd":
        current, edits = typed(current, 8, 0, letter)
        worker.change(current, edits)
        versions.append(current.buffer.text())
        if letter == "a":
            assert gate.entered.wait(30)
    gate.open.set()
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.exact and state.tree is not None
    assert gate.texts[1:] == [versions[0], versions[3]]
    assert dump(state.tree) == dump(parse(state.tree.grammar, current.buffer))  # type: ignore[arg-type]
    await worker.close()


async def test_the_first_parse_is_not_starved_by_typing(gate: Gate) -> None:
    worker = SyntaxWorker()
    current = document(SAMPLES["go"], "go")
    gate.open.clear()
    worker.open(current)
    assert gate.entered.wait(30)
    current, edits = typed(current, 0, 0, "// x\n")
    worker.change(current, edits)
    gate.open.set()
    await worker.wait_idle()
    assert gate.afresh == [True, False]
    state = worker.state(current.uri)
    assert state is not None and state.exact
    await worker.close()


async def test_a_broken_text_keeps_its_structure_and_settles(gate: Gate) -> None:
    text = SAMPLES["java"] * 3
    worker = SyntaxWorker(settle_seconds=3600)
    current = document(text, "java")
    worker.open(current)
    await worker.wait_idle()
    before = worker.state(current.uri)
    line = text[: text.index("sum += pricer")].count("\n")
    current, edits = typed(current, line, 0, 'foo("a", {')
    worker.change(current, edits)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert (
        state is not None and before is not None and state.outline is not None and before.outline is not None
    )
    assert state.tree is not None and not state.tree.settled
    names = {node.qualified for node in before.outline.nodes if node.name}
    assert names <= {node.qualified for node in state.outline.nodes}
    worker.settle(current.uri)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.tree is not None and state.tree.settled and gate.afresh[-1]
    assert dump(state.tree) == dump(parse(state.tree.grammar, current.buffer))  # type: ignore[arg-type]
    await worker.close()


async def test_a_failing_parser_is_survived(gate: Gate) -> None:
    worker = SyntaxWorker()
    current = document(SAMPLES["python"])
    gate.fail = RuntimeError("boom")
    worker.open(current)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert (
        worker.problems == 1 and state is not None and state.tree is None and "RuntimeError" in state.reason
    )
    gate.fail = None
    current, edits = typed(current, 0, 0, "\n")
    worker.change(current, edits)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.exact and state.reason == ""
    await worker.close()


async def test_a_parse_that_takes_too_long_is_not_repeated_at_every_key(gate: Gate) -> None:
    worker = SyntaxWorker(pause_seconds=3600)
    current = document(SAMPLES["python"])
    worker.open(current)
    await worker.wait_idle()
    gate.give_up = True
    for _ in range(3):
        current, edits = typed(current, 8, 0, "q")
        worker.change(current, edits)
        await worker.wait_idle()
    state = worker.state(current.uri)
    assert len(gate.texts) == 2 and state is not None and state.reason == TOO_LONG
    assert state.tree is not None and state.outline is not None and not state.exact
    gate.give_up = False
    worker.resume(current.uri)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.exact and state.reason == ""
    await worker.close()


@pytest.mark.parametrize(
    ("language", "text", "reason"),
    [
        ("python", "\0\0\0", "binary content"),
        ("klingon", "x", "unknown language"),
        ("python", "x" * 1_000_001, "larger"),
    ],
)
async def test_what_has_no_tree_says_why(language: str, text: str, reason: str) -> None:
    worker = SyntaxWorker()
    current = Document.open("file:///a", language, 1, text)
    worker.open(current)
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.tree is None and reason in state.reason
    current, edits = typed(current, 0, 0, "y")
    worker.change(current, edits)
    await worker.wait_idle()
    await worker.close()


@pytest.mark.parametrize(
    "text", ["x = 1\n" * 8_400_000, "x = 1; " * 300_000, "\0\x01\x02ELF" * 100_000], ids=["50 MB", "2 MB line", "binary"]
)
async def test_what_is_too_large_or_binary_is_neither_read_nor_parsed(
    gate: Gate, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stated limits hold before any work: no parser runs, nothing of the text is copied but its head."""
    worker = SyntaxWorker()
    current = Document.open("file:///a.py", "python", 1, text)
    copied: list[int] = []
    real = type(current.buffer).slice

    def counting(buffer: object, start: int, end: int) -> str:
        found = real(buffer, start, end)  # type: ignore[arg-type]
        copied.append(len(found))
        return found

    monkeypatch.setattr(type(current.buffer), "slice", counting)
    worker.open(current)
    await worker.wait_idle()
    for _ in range(3):
        current, edits = current.apply([Change(((0, 1), (0, 1)), "y")], Encoding.UTF16, 2)
        copied.clear()
        worker.change(current, edits)
        state = worker.state(current.uri)
        assert state is not None and state.tree is None and state.outline is None and state.reason
        await worker.wait_idle()
        assert sum(copied) <= 2 * 8_192
    assert gate.texts == [] and worker.problems == 0
    await worker.close()


async def test_background_jobs_wait_for_documents(gate: Gate) -> None:
    worker = SyntaxWorker()
    order: list[str] = []
    gate.open.clear()
    worker.open(document(SAMPLES["python"]))
    jobs = [
        worker.background(lambda: order.append("later"), 2),
        worker.background(lambda: order.append("first"), 1),
    ]
    other = document(SAMPLES["go"], "go")
    worker.open(other)
    gate.open.set()
    await worker.wait_idle()
    assert order == ["first", "later"] and len(gate.texts) == 2
    assert [job.done() for job in jobs] == [True, True]

    def fails() -> int:
        raise ValueError

    assert await worker.background(fails) is None
    assert await worker.background(lambda: 3) == 3
    await worker.close()


async def test_a_listener_that_fails_holds_up_no_parse(gate: Gate) -> None:
    def fails(_uri: str) -> None:
        raise KeyError

    worker = SyntaxWorker(fails)
    one, other = document(SAMPLES["python"]), document(SAMPLES["go"], "go")
    worker.open(one)
    worker.open(other)
    await worker.wait_idle()
    assert worker.problems == 2
    for state in (worker.state(one.uri), worker.state(other.uri)):
        assert state is not None and state.exact
    await worker.close()


async def test_a_closed_document_is_forgotten(gate: Gate) -> None:
    ready: list[str] = []
    worker = SyntaxWorker(ready.append)
    current = document(SAMPLES["python"])
    gate.open.clear()
    worker.open(current)
    worker.close_document(current.uri)
    gate.open.set()
    await worker.wait_idle()
    assert worker.state(current.uri) is None and ready == []
    await worker.close()


def held_back(gate: Gate) -> None:
    gate.open.clear()
    gate.entered.clear()


async def test_a_recalled_outline_is_there_before_the_parse_and_follows_edits(gate: Gate) -> None:
    ready = asyncio.Event()
    worker = SyntaxWorker(lambda _uri: ready.set())
    current = document(SAMPLES["python"])
    known = outline_of(tree_of("python", SAMPLES["python"]))
    held_back(gate)
    worker.open(current, lambda: known)
    await ready.wait()
    state = worker.state(current.uri)
    assert state is not None and state.outline == known and state.tree is None and not state.exact
    current, edits = typed(current, 0, 0, "x = 1\n")
    worker.change(current, edits)
    state = worker.state(current.uri)
    assert state is not None and state.outline == shifted(known, edits)
    gate.open.set()
    await worker.wait_idle()
    state = worker.state(current.uri)
    assert state is not None and state.exact and state.outline == outline_of(tree_of("python", current.buffer.text()))
    await worker.close()


async def test_edits_before_the_recall_move_what_it_gives(gate: Gate) -> None:
    ready = asyncio.Event()
    worker = SyntaxWorker(lambda _uri: ready.set())
    current = document(SAMPLES["python"])
    known = outline_of(tree_of("python", SAMPLES["python"]))
    held_back(gate)
    worker.open(current, lambda: known)
    moved, edits = typed(current, 0, 0, "# a\n")
    worker.change(moved, edits)  # the loop has not run: the answer of the thread comes behind this
    await ready.wait()
    state = worker.state(current.uri)
    assert state is not None and state.outline == shifted(known, edits)
    gate.open.set()
    await worker.close()


async def test_a_recall_that_fails_or_is_of_another_language_changes_nothing(gate: Gate) -> None:
    def fails() -> Outline | None:
        raise OSError

    go = outline_of(tree_of("go", SAMPLES["go"]))
    for recall, problems in ((fails, 1), (lambda: go, 0), (lambda: None, 0)):
        worker = SyntaxWorker()
        current = document(SAMPLES["python"])
        worker.open(current, recall)
        await worker.wait_idle()
        state = worker.state(current.uri)
        assert state is not None and state.exact and state.outline == outline_of(tree_of("python", SAMPLES["python"]))
        assert worker.problems == problems
        await worker.close()


async def test_a_document_closed_before_its_recall_stays_forgotten(gate: Gate) -> None:
    ready: list[str] = []
    worker = SyntaxWorker(ready.append)
    current = document(SAMPLES["python"])
    worker.open(current, lambda: outline_of(tree_of("python", SAMPLES["python"])))
    worker.close_document(current.uri)
    await worker.wait_idle()
    assert worker.state(current.uri) is None and ready == []
    await worker.close()
