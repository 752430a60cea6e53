"""Lines to complete with an outline and with the whole file: the places, the prompts, the pairing, going on from what is there."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import asdict
from pathlib import Path

import pytest

from lsp_complete.context.anchor import Window
from lsp_complete.context.prompt import FimTokens
from lsp_complete.engine.api import CompletionRequest
from lsp_complete.engine.fake import Answer, ScriptedEngine, completion
from lsp_complete.engine.local import LocalEngine
from lsp_complete.measure import bench_outline_quality as module
from lsp_complete.measure.bench_documents import QUICK, SECTIONS
from lsp_complete.measure.bench_outline_points import BLOCK, Parsed, Point, choose_points, read_file
from lsp_complete.measure.bench_outline_quality import Verdict, ask_all, load_verdicts, prompt_of, report
from lsp_complete.measure.corpus import APART
from lsp_complete.service.planning import LoadedModel
from lsp_complete.syntax.languages import all_languages, load
from tests.engine.fake_backend import FakeBackend
from tests.lsp.harness import ByteTokenizer, prompt_text

MODEL = LoadedModel(ByteTokenizer(), FimTokens((256,), (257,), (258,)), Window(anchor_lines=6), "")


@pytest.fixture(scope="module")
def files() -> list[Parsed]:
    """Real files of this Python."""
    grammar = load(all_languages()["python"])
    assert grammar is not None
    folder = Path(sysconfig.get_paths()["stdlib"])
    made = [read_file(name, grammar, (folder / name).read_text("utf-8")) for name in ("textwrap.py", "shlex.py", "queue.py")]
    return [one for one in made if one is not None]


@pytest.fixture(scope="module")
def points(files: list[Parsed]) -> list[Point]:
    return choose_points(files, 10, 1)


def test_places_are_repeatable_and_spread(files: list[Parsed], points: list[Point]) -> None:
    assert choose_points(files, 10, 1) == points != choose_points(files, 10, 2)
    assert len(points) == 10 and len({point.file for point in points}) == 3
    assert len(choose_points(files, 3, 1)) == 3
    for one, other in zip(points[::BLOCK], points[BLOCK::BLOCK], strict=False):
        assert one.file != other.file or other.line - one.line >= APART


def test_nothing_of_what_is_to_be_written_is_shown(files: list[Parsed], points: list[Point]) -> None:
    texts = {file.name: file.document.buffer.text().split("\n") for file in files}
    for first, second in zip(points[::BLOCK], points[1::BLOCK], strict=True):
        lines = texts[first.file]
        assert second.line == first.line + 1 and first.full.after == second.full.after == "\n".join(lines[first.line + BLOCK :])
        for point in (first, second):
            whole = "\n".join(lines[: point.line + 1])
            assert (point.full.before + point.rest) == whole[: len(point.full.before) + len(point.rest)]
            assert len(point.rest) >= 4 and not point.rest[-1].isspace()
            for around in (point.full, point.slim, point.fleshed):
                assert around.before.rpartition("\n")[2] == lines[point.line][: point.column]
                assert around.before.split("\n")[around.first_line].startswith(lines[first.line][: first.column])


def test_the_outline_is_smaller_and_holds_the_function(files: list[Parsed], points: list[Point]) -> None:
    outlines = {file.name: file.outline for file in files}
    buffers = {file.name: file.document.buffer for file in files}
    for point in points:
        buffer = buffers[point.file]
        around = [n for n in outlines[point.file].at(buffer.offset(point.line, point.column)) if n.role == "function"]
        head = buffer.slice(around[0].span.start, buffer.offset(point.line, point.column))
        assert point.slim.before.endswith(head) and point.fleshed.before.endswith(head)
        sizes = [len(around.before + around.after) for around in (point.slim, point.fleshed, point.full)]
        assert sizes[0] <= sizes[1] < sizes[2] and (sizes[1] <= 0.4 * sizes[2] or sizes[1] == sizes[0])


def test_the_points_of_a_block_share_their_prompt(points: list[Point]) -> None:
    for first, second in zip(points[::BLOCK], points[1::BLOCK], strict=True):
        one, other = prompt_of(first.full, MODEL), prompt_of(second.full, MODEL)
        assert one.prompt[: one.head_length] == other.prompt[: other.head_length]
        shown = prompt_text(one.prompt)
        assert shown.startswith("<P>") and first.full.after in shown and shown.count("<M>") == 1
        assert shown.replace("<P>", "").replace("<M>", "").split("<S>")[0] in first.full.before
        assert (shown + one.forced.decode()).endswith(first.full.before.rpartition("\n")[2])


async def test_answers_are_paired_kept_and_not_asked_again(points: list[Point], tmp_path: Path) -> None:
    def answers(request: CompletionRequest) -> Answer:
        context, _, _file = request.key.partition(":")
        found = next(p for p in points if prompt_of(p.around(context), MODEL).prompt == request.prompt)
        right = context == "full" or found in points[:2]
        return completion((found.rest if right else "nothing\nmore").encode(), len(request.prompt))

    engine = ScriptedEngine(answers)
    said: list[str] = []
    verdicts: list[Verdict] = []
    saved = tmp_path / "answers"

    def keep(verdict: Verdict) -> None:
        with saved.open("a") as out:
            out.write(json.dumps(asdict(verdict)) + "\n")

    await ask_all(engine, MODEL, points, verdicts, keep, said.append)
    assert len(verdicts) == len(engine.requests) == 3 * len(points) and len(said) == 3
    figures = report(verdicts, 1)
    assert figures["points"] == 10 and figures["full"]["exact_match"] == 1.0 and figures["slim"]["exact_match"] == 0.2
    against = figures["slim_against_full"]
    assert against["only_full_exact"] == 8 and against["only_slim_exact"] == 0
    assert figures["slim_minus_full"]["exact_match"]["estimate"] == -0.8 and figures["slim_minus_full"]["worse_beyond_error"]
    assert 0 < against["prompt_tokens_ratio"] <= figures["fleshed_against_full"]["prompt_tokens_ratio"] < 1
    with saved.open("a") as out:
        out.write('{"key": "cut o')
    again = load_verdicts(saved)
    assert again == verdicts
    await ask_all(engine, MODEL, points, again, keep, said.append)
    assert len(engine.requests) == 3 * len(points) and report(again, 1) == figures


def test_the_whole_run_through_an_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real engine over a toy model, so that requests are what an engine takes; what was kept is not asked again."""
    text = (Path(sysconfig.get_paths()["stdlib"]) / "queue.py").read_text("utf-8")
    grammar = load(all_languages()["python"])
    monkeypatch.setattr(module, "LocalEngine", lambda options: LocalEngine(options, lambda _o: FakeBackend(context=40_000)))
    monkeypatch.setattr(module, "load_model", lambda _path, _info: MODEL)
    monkeypatch.setattr(module, "commit", lambda: "this")
    saved = tmp_path / "answers"
    said: list[str] = []
    figures = module.run(tmp_path / "a.gguf", [("queue.py", grammar, text)], said.append, count=2, save=saved)
    assert figures["model"] == "a.gguf" and figures["points"] == 2 and figures["languages"] == ["python"]
    assert 0 < figures["slim"]["prompt_tokens_p50"] < figures["full"]["prompt_tokens_p50"] and len(said) == 2
    second = [one for one in load_verdicts(saved, "this") if not one.first]
    assert len(second) == 3 and all(one.evaluated < one.tokens / 2 for one in second)  # the rest was found in its slot
    monkeypatch.setattr(module, "ask", lambda *_: pytest.fail("asked again"))
    again = module.run(tmp_path / "a.gguf", [("queue.py", grammar, text)], said.append, count=2, save=saved)
    assert again == figures
    assert load_verdicts(saved, "another") == load_verdicts(saved) == []  # of another program, asked anew


def test_no_difference_is_not_worse() -> None:
    same = [
        Verdict(f"f{n}", f"f{n}", "python", context, "x", "x", n % 2 == 0, 1.0, 10, 10, 5.0, True)
        for n in range(6)
        for context in module.CONTEXTS
    ]
    figures = report(same, 1)
    assert not figures["slim_minus_full"]["worse_beyond_error"] and figures["fleshed_against_full"]["prefill_saved_measured"] == 0.0
    assert report([], 1)["points"] == 0


def test_the_model_is_asked_only_when_that_is_named() -> None:
    assert set(SECTIONS) - set(QUICK) == {"outline-quality"}
