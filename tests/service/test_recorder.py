"""The recorder: what it writes is what happened, in files that stand by themselves; nothing unless asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.config import RecordSettings, Settings
from lsp_complete.engine.api import CompletionRequest
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import ModelError
from lsp_complete.measure.recording import (
    SUFFIX,
    Answered,
    Asked,
    Became,
    Closed,
    Prompted,
    Recording,
    final_texts,
    read,
)
from lsp_complete.measure.stages import StageRecord
from lsp_complete.service.brain import Opened
from lsp_complete.service.core import Service
from lsp_complete.service.recorder import Recorder
from lsp_complete.service.types import Answer, Query, Suggestion
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding

URI = "file:///w/a.py"


def settings(folder: Path, **values: object) -> RecordSettings:
    return RecordSettings(**{"enabled": True, "dir": str(folder / "recordings"), **values})  # type: ignore[arg-type]


def recordings(folder: Path) -> list[Recording]:
    return [read(path) for path in sorted((folder / "recordings").glob("*" + SUFFIX))]


def typed(recorder: Recorder, document: Document, *changes: Change) -> Document:
    new, edits = document.apply(changes, Encoding.UTF16, document.version + 1)
    recorder.changed(document, new, edits)
    return new


def run(work: Callable[[Recorder], None], record: RecordSettings) -> None:
    async def inside() -> None:
        recorder = Recorder(record, iter(range(1_000_000)).__next__)
        work(recorder)
        await recorder.close()

    asyncio.run(inside())


def ask(recorder: Recorder, document: Document, number: int, text: str = "there") -> None:
    recorder.asked(Query(document, document.buffer.length, 0.0), number)
    end = document.buffer.length
    stages = StageRecord(number, outcome="shown", total_ms=7.0)
    recorder.answered(number, Answer((Suggestion(f"id{number}", text, end, end),), stages))


def test_what_happened_is_written(tmp_path: Path) -> None:
    def work(recorder: Recorder) -> None:
        document = Document.open(URI, "python", 1, "one\n")
        recorder.opened(document)
        document = typed(recorder, document, Change(((1, 0), (1, 0)), "é two"))
        document = typed(recorder, document, Change(((0, 0), (0, 1)), "O"), Change(((1, 5), (1, 5)), "!"))
        ask(recorder, document, 4)
        recorder.became("id4", "accepted")
        recorder.became("of another server", "accepted")
        recorder.answered(99, Answer((), StageRecord(99, reason="secret")))
        recorder.closed(URI)
        recorder.closed("file:///never-opened")

    run(work, settings(tmp_path))
    (found,) = recordings(tmp_path)
    assert found.header.source == "server" and final_texts(found) == {URI: "One\né two!"}
    kinds = [type(event) for event in found.events]
    assert kinds[-4:] == [Asked, Answered, Became, Closed] and len(kinds) == 7
    answered = found.events[-3]
    assert isinstance(answered, Answered) and answered.suggestions == ((10, 10, "there"),)
    assert answered.stages["total_ms"] == 7.0


def test_nothing_is_written_unless_asked_for(tmp_path: Path) -> None:
    def work(recorder: Recorder) -> None:
        document = Document.open(URI, "python", 1, "one\n")
        recorder.opened(document)
        ask(recorder, typed(recorder, document, Change(None, "two")), 1)
        recorder.moved(document, 1)
        recorder.closed(URI)

    run(work, settings(tmp_path, enabled=False))
    assert list(tmp_path.iterdir()) == []


def test_without_content_no_text_is_written(tmp_path: Path) -> None:
    def work(recorder: Recorder) -> None:
        document = Document.open(URI, "python", 1, "password = 1\n")
        recorder.opened(document)
        ask(recorder, typed(recorder, document, Change(((1, 0), (1, 0)), "topsecret")), 1, "alsosecret")

    run(work, settings(tmp_path, content=False))
    (path,) = (tmp_path / "recordings").iterdir()
    text = path.read_text(encoding="utf-8")
    assert "password" not in text and "secret" not in text and "a.py" not in text and '"typed":9' in text


@given(st.lists(st.text(st.sampled_from("ab\n😀"), max_size=300_000 // 40), min_size=1, max_size=6))
def test_every_file_stands_by_itself(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """A full file is followed by another that opens the document again; each ends in a text that there was."""
    folder = tmp_path_factory.mktemp("r")
    seen = {"start"}

    async def inside() -> None:
        recorder = Recorder(settings(folder, max_mb=1), iter(range(1_000_000)).__next__)
        document = Document.open(URI, "python", 1, "start")
        recorder.opened(document)
        for text in texts:
            document = typed(recorder, document, Change(None, text * 20))
            seen.add(document.buffer.text())
            recorder._flush()
            document = typed(
                recorder, document, Change(((0, 0), (0, 0)), "x")
            )  # while the file is being written
            seen.add(document.buffer.text())
            if recorder._writing is not None:
                await recorder._writing
            await asyncio.sleep(0)
        await recorder.close()

    asyncio.run(inside())
    found = recordings(folder)
    assert found and all(set(final_texts(each).values()) <= seen for each in found)


def test_a_folder_that_others_reach_ends_the_recording_not_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings").chmod(0o755)

    async def inside() -> None:
        recorder = Recorder(settings(tmp_path), iter(range(1_000_000)).__next__)
        recorder.opened(Document.open(URI, "python", 1, "one\n"))
        recorder._flush()
        assert recorder._writing is not None
        await asyncio.gather(recorder._writing, return_exceptions=True)
        await asyncio.sleep(0)
        assert not recorder.on
        await recorder.close()

    asyncio.run(inside())
    assert "chmod 700" in caplog.text and list((tmp_path / "recordings").iterdir()) == []


def test_no_file_grows_larger_than_can_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("service.recorder", "measure.recording"):
        monkeypatch.setattr(f"lsp_complete.{module}.MAX_BYTES", 2000)

    async def inside() -> None:
        recorder = Recorder(settings(tmp_path), iter(range(1_000_000)).__next__)
        document = Document.open(URI, "python", 1, "one\n")
        recorder.opened(document)
        for _ in range(40):
            document = typed(recorder, document, Change(((0, 0), (0, 0)), "a"))
            recorder._flush()
            assert recorder._writing is not None
            await recorder._writing
            await asyncio.sleep(0)
        await recorder.close()

    asyncio.run(inside())
    found = recordings(tmp_path)
    assert len(found) > 2 and all(final_texts(each) for each in found)


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_recording_that_was_removed_is_followed_by_a_whole_one(tmp_path: Path, gone: str) -> None:
    """Another server's limit, or the user, may remove the file that is being written."""

    async def inside() -> None:
        recorder = Recorder(settings(tmp_path), iter(range(1_000_000)).__next__)
        document = Document.open(URI, "python", 1, "one\n")
        recorder.opened(document)

        async def written() -> None:
            recorder._flush()
            assert recorder._writing is not None
            await recorder._writing
            await asyncio.sleep(0)

        await written()
        (path,) = (tmp_path / "recordings").iterdir()
        path.unlink()
        if gone == "folder":
            path.parent.rmdir()
        document = typed(recorder, document, Change(((0, 0), (0, 0)), "a"))
        await written()
        assert recorder.on
        typed(recorder, document, Change(((0, 0), (0, 0)), "b"))
        await recorder.close()

    asyncio.run(inside())
    (found,) = recordings(tmp_path)
    assert final_texts(found) == {URI: "baone\n"}


def test_a_document_that_is_secret_for_a_while_is_recorded_afresh(tmp_path: Path) -> None:
    async def inside() -> None:
        service = Service(Settings(record=settings(tmp_path)), _no_engine, lambda *_: None, lambda *_, **__: None)
        service.open(Document.open(URI, "python", 1, "one\n"))
        secret = False
        service.context.secret = lambda _uri: secret  # type: ignore[method-assign]
        for text in ("a", "the password", "c"):
            secret = " " in text
            assert service.change(URI, [Change(None, text)], Encoding.UTF16, 2)
        await service.close()

    asyncio.run(inside())
    (found,) = recordings(tmp_path)
    assert final_texts(found) == {URI: "c"}
    assert "password" not in "".join(p.read_text() for p in (tmp_path / "recordings").iterdir())


async def _no_engine(_settings: Settings, _on_state: Callable[[str, str], None]) -> Opened:
    raise ModelError("no model")


def test_prompts_are_told_as_what_is_new(tmp_path: Path) -> None:
    async def opener(_settings: Settings, _on_state: Callable[[str, str], None]) -> Opened:
        return Opened(ScriptedEngine(), lambda _info: None)  # type: ignore[arg-type, return-value]

    async def inside(record: RecordSettings) -> object:
        recorder = Recorder(record, iter(range(1_000_000)).__next__)
        engine = (await recorder.watching(opener)(Settings(), lambda *_: None)).engine
        document = Document.open(URI, "python", 1, "one\n")
        cell = Document.open("notebook-cell:/a.ipynb#W0s", "python", 1, "one\n")
        for number, prompt in enumerate([(1, 2, 3), (1, 2, 3, 4), (9,), (9, 8)]):
            asked = document if number < 3 else cell
            recorder.asked(Query(asked, 0, 0.0), number)
            await engine.complete(CompletionRequest(prompt, key=asked.uri + ("#small" if number < 3 else "")))
            await engine.complete(CompletionRequest((7,), key=URI, max_tokens=0))  # made ready, not asked
        assert isinstance(await engine.stats(), dict)
        await recorder.close()
        return type(engine)

    assert asyncio.run(inside(settings(tmp_path, enabled=False))) is ScriptedEngine
    asyncio.run(inside(settings(tmp_path)))
    prompts = [event for event in recordings(tmp_path)[0].events if isinstance(event, Prompted)]
    assert [(p.request, p.shared, p.ids) for p in prompts] == [(0, 0, (1, 2, 3)), (1, 3, (4,)), (2, 0, (9,)), (3, 1, (8,))]
