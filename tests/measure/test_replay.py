"""Replay: places and what was wanted there, edits as LSP, judging, comparing, the report, the review, the commands."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete import cli
from lsp_complete.measure import import_git, import_vscode, replay_review
from lsp_complete.measure.edits import apply_edits
from lsp_complete.measure.recording import (
    Asked,
    Changed,
    Event,
    Header,
    Opened,
    Recording,
    RecordingError,
    Texts,
    private_folder,
    spliced,
    without_content,
    write,
)
from lsp_complete.measure.replay_compare import compare, divergence
from lsp_complete.measure.replay_points import Point, carried, lsp_edits, points
from lsp_complete.measure.replay_quality import judge
from lsp_complete.measure.replay_report import page
from lsp_complete.measure.replay_run import ReplayOptions, place_of, read_any, run
from lsp_complete.measure.replay_store import POINTS, RUN, load_run
from lsp_complete.text.document import Document
from lsp_complete.text.edits import Change
from lsp_complete.text.positions import Encoding

from .conftest import Options

SAMPLES = Path(__file__).resolve().parent / "recordings"


def typed(text: str, start: str = "", path: str = "a.py") -> Recording:
    """A recording that types text at the end of start."""
    at = len(start)
    events: list[Event] = [Opened(0.0, 0, path, "python", start)]
    events += [Changed(float(i), 0, ((at + i, at + i, char),), 1) for i, char in enumerate(text)]
    return Recording(Header("vscode"), tuple(events))


# -- the server's text at the end ----------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_every_recording_replays_to_its_texts_in_the_servers_own_store(path: Path) -> None:
    """The edits as they go over the wire, applied by the store that the server uses."""
    state, documents = Texts(), dict[int, Document]()
    for event in import_vscode.read(path).events:
        if isinstance(event, Changed):
            edits = lsp_edits(state.text[event.doc], event.edits)
            changes = [
                Change(((e.start.line, e.start.character), (e.end.line, e.end.character)), e.text)
                for e in edits
            ]
            documents[event.doc], _ = documents[event.doc].apply(changes, Encoding.UTF16, 1)
        state.apply(event)
        if isinstance(event, Opened):
            documents[event.doc] = Document.open(event.path, event.language_id, 1, event.text)
    assert {doc: document.buffer.text() for doc, document in documents.items()} == state.text


TEXT = st.text(st.sampled_from("ab\r\n\u2028😀é"), max_size=12)


@given(TEXT, st.data())
def test_edits_on_the_wire_do_what_the_recording_says(text: str, data: st.DataObject) -> None:
    edits, now = [], text
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(now)))
        edits.append((start, data.draw(st.integers(start, len(now))), data.draw(TEXT)))
        now = spliced(now, edits[-1:])
    assert apply_edits(text, lsp_edits(text, edits)) == now


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "C:\\x\\y.py", "..", "", "a/./b.py", "a\0b", "\ud83d.py", "file:///w/" + "%E6%97%A5" * 40 + ".py"]
)
def test_no_path_of_a_recording_leaves_the_folder_and_each_can_be_made(tmp_path: Path, path: str) -> None:
    place = place_of(tmp_path, path)
    assert place.resolve().is_relative_to(tmp_path.resolve()) and place != tmp_path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("x", encoding="utf-8")
    assert path.endswith(".py") == (place.suffix == ".py")


# -- places ----------------------------------------------------------------------------------------------


def test_what_was_wanted_is_what_stands_there_finally() -> None:
    found = points(typed("x = 12\ny", "# head\n"))
    assert [p.offset for p in found] == list(range(8, 16))
    assert found[0].line == "x = 12" and found[0].rest == " = 12\ny"
    assert found[-1].line == "y" and found[-1].rest == ""
    assert points(typed("x = 12\ny", "# head\n"), 3) == found[:3]


def test_a_place_is_carried_through_later_edits() -> None:
    assert carried(5, [(0, 0, "ab")]) == 7
    assert carried(5, [(5, 5, "ab")]) == 5  # typed there later: comes behind it
    assert carried(5, [(3, 8, "x")]) == 3  # what it stood in is gone
    assert carried(5, [(3, 5, "")]) == 3
    assert carried(5, [(6, 7, "")]) == 5


EDITS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.text("ab", max_size=4)), max_size=4)


@given(st.lists(st.integers(0, 12), max_size=6), EDITS)
def test_places_are_carried_together_as_each_alone(offsets: list[int], edits: list[tuple[int, int, str]]) -> None:
    edits = [(min(start, end), max(start, end), text) for start, end, text in edits]
    assert carried(np.array(offsets, dtype=np.int64), edits).tolist() == [int(carried(np.array(x), edits)) for x in offsets]


def test_a_request_in_a_document_that_was_never_opened_is_told() -> None:
    with pytest.raises(RecordingError, match="before it is opened"):
        points(Recording(Header("server"), (Asked(1.0, 3, 1, 0),)))


def test_pasted_texts_and_several_cursors_are_no_places() -> None:
    text = typed("a").events
    more = (Changed(2.0, 0, ((0, 0, "x" * 99),)), Changed(3.0, 0, ((1, 1, "x"), (0, 0, "x"))))
    assert len(points(Recording(Header("vscode"), (*text, *more)))) == 1


def test_a_commits_requests_are_its_places() -> None:
    recording = import_git.typing([("a.py", "a = 1\n", "a = 1\nbee = 2\n")])
    assert len(points(recording)) == len("bee = 2\n")


# -- judging ---------------------------------------------------------------------------------------------


def at_end(text: str, wanted: str) -> Point:
    line = (text.rsplit("\n", 1)[-1] + wanted).split("\n")[0]
    return Point(0, 0, 0, len(text), "automatic", line, wanted)


def test_the_right_suggestion_is_right() -> None:
    text = "def add(a, b):\n    return "
    found = judge(at_end(text, "a + b\n"), text, "python", (len(text), len(text), "a + b"))
    assert (found.exact, found.similarity, found.kept) == (1.0, 1.0, 1.0)
    assert (found.brackets, found.errors, found.unknown) == (0.0, 0.0, 0.0)


def test_a_bad_suggestion_is_told() -> None:
    text = "def add(a, b):\n    return "
    found = judge(at_end(text, "a + b\n"), text, "python", (len(text), len(text), "a + (nowhere["))
    assert found.exact == 0.0 and 0 < found.similarity < 1 and found.kept is not None and 0 < found.kept < 1
    assert found.brackets == 2.0 and found.errors and found.unknown == 1.0


def test_no_suggestion_is_right_where_nothing_was_wanted() -> None:
    text = "x = 1"
    assert judge(at_end(text, "\ny"), text, "python", None).exact == 1.0
    assert judge(at_end(text, "2\ny"), text, "python", None).exact == 0.0
    assert judge(at_end(text, "2\ny"), text, "python", None).kept is None


def test_a_language_without_grammar_has_no_error_count() -> None:
    assert judge(at_end("x", "y"), "x", "plaintext", (1, 1, "y")).errors is None


# -- comparing -------------------------------------------------------------------------------------------


def rows(
    count: int = 60, wall: float = 100.0, exact: float = 1.0, text: str = "a + b"
) -> list[dict[str, Any]]:
    judged = {
        "exact": exact, "similarity": exact, "kept": exact, "brackets": 0.0, "errors": None, "unknown": 0.0,
        "repeated": 0.0, "safe": 0.0, "names": ["a", "b"] if exact else ["result"],
    }  # fmt: skip
    return [
        {
            "recording": "r", "point": i, "path": "a.py", "language_id": "python", "place": f"0:{i // 3 + 1}",
            "wall_ms": wall + i % 7, "outcome": "shown", "stages": {"total_ms": wall}, "text": text,
            "before": "x = ", "after": "", "wanted": "x = a + b", "judged": dict(judged),
        }
        for i in range(count)
    ]  # fmt: skip


def test_two_identical_runs_are_the_same() -> None:
    result = compare(rows(), rows())
    assert result.same and not result.faster and result.quality_down == () and result.names_apart == 0.0
    assert result.differing == ()


def test_faster_and_as_good() -> None:
    result = compare(rows(), rows(wall=50.0))
    assert (
        result.faster and result.quality_down == () and "latency down, quality not down" in result.summary()
    )
    assert compare(rows(wall=50.0), rows()).wall.verdict == "worse"


def test_a_worse_run_is_told_and_where() -> None:
    result = compare(rows(), rows(wall=50.0, exact=0.0, text="<b>result"))
    assert set(result.quality_down) >= {"exact", "similarity", "kept"} and result.names_apart == 1.0
    assert len(result.differing) == 60
    better = compare(rows(exact=0.0), rows())
    assert {f.name: f.verdict for f in better.quality}["exact"] == "better" and better.quality_down == ()


def test_few_points_prove_nothing_and_overtaken_ones_are_left_out() -> None:
    first, second = rows(24), rows(24, exact=0.0)
    for row in second[10:]:
        row["outcome"] = "superseded"
    result = compare(first, second)
    assert (result.pairs, result.left_out) == (10, 14)
    assert {figure.verdict for figure in result.quality} == {"few"}
    with pytest.raises(ValueError, match="share no point"):
        compare(first, [])


@pytest.mark.parametrize("name", ["path", "place", "wanted"])
def test_recordings_of_the_same_name_are_no_pair(name: str) -> None:
    with pytest.raises(ValueError, match="different recordings"):
        compare(rows(), [{**row, name: "other"} for row in rows()])


def saved(folder: Path, points: list[Any], about: Any = None) -> Path:
    private_folder(folder)
    (folder / RUN).write_text(json.dumps({} if about is None else about), encoding="utf-8")
    (folder / POINTS).write_text("".join(json.dumps(each) + "\n" for each in points), encoding="utf-8")
    return folder


ROW = rows(1)[0]


@pytest.mark.parametrize(
    "odd",
    [
        [], 5, {**ROW, "wall_ms": "12"}, {**ROW, "wall_ms": math.nan}, {**ROW, "wall_ms": True}, {**ROW, "point": "1"}, {**ROW, "stages": [["a", 1]]},
        {**ROW, "stages": {"total_ms": "x"}}, {**ROW, "judged": {"exact": 1.0}}, {**ROW, "judged": {"exact": "1", "names": []}},
        {**ROW, "judged": {"exact": 1.0, "names": [3]}}, {**ROW, "judged": {"exact": 1.0, "names": [], "kept": "x"}}, {**ROW, "judged": []}, {**ROW, "wanted": None},
    ],
)  # fmt: skip
def test_points_that_are_not_what_they_should_be_are_told(tmp_path: Path, odd: Any, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = saved(tmp_path / "good", rows()), saved(tmp_path / "bad", [odd])
    assert cli.main(["replay", "compare", str(good), str(bad)]) == 2
    assert "not the folder of a replay run" in capsys.readouterr().err


@pytest.mark.parametrize("about", [[], 5, {"product": []}, {"recordings": [1]}])
def test_an_odd_head_of_a_run_is_told(tmp_path: Path, about: Any) -> None:
    with pytest.raises(RecordingError, match="not the folder"):
        load_run(saved(tmp_path / "run", rows(), about))


def test_what_nobody_thought_of_is_never_the_status_that_says_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(saved(tmp_path / "run", rows()))
    monkeypatch.setattr("lsp_complete.measure.replay_compare.divergence", lambda *_: dict[str, int]()["none"])
    assert cli.main(["replay", "compare", run, run]) == 2 and "internal error, KeyError" in capsys.readouterr().err


def test_points_of_a_few_lines_prove_nothing() -> None:
    """Lines are drawn as wholes, so the interval of a single one would have no width."""
    first, second = ([{**row, "place": f"0:{row['point'] % 7}"} for row in rows(exact=exact)] for exact in (1.0, 0.0))
    result = compare(first, second)
    assert {figure.verdict for figure in result.quality} == {"few"} and not result.quality_down


def test_a_state_that_cannot_be_written_changes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("lsp_complete.measure.kept.folder", lambda: tmp_path / "file" / "comparisons")
    run = str(saved(tmp_path / "run", rows()))
    assert cli.main(["replay", "compare", run, run, "--require", "quality"]) == 0
    assert "not kept for the dashboard" in capsys.readouterr().err


def test_divergence_is_symmetric_and_bounded() -> None:
    a, b = {"x": 3, "y": 1}, {"x": 1, "z": 1}
    assert divergence(a, b) == pytest.approx(divergence(b, a))
    assert divergence(a, a) == 0.0 and divergence({"x": 1}, {"y": 5}) == 1.0 and divergence({}, a) == 0.0


def test_the_report_stands_alone_and_escapes() -> None:
    first, second = rows(), rows(text="<script>alert(1)</script>")
    about = {"model": "<m>", "settings": {}, "product": {"version": "1"}, "recordings": ["r"]}
    result = compare(first, second)
    html = page(result, {**about, "rows": first}, {**about, "rows": second}, ("before", "after"))
    assert "<script" not in html and "&lt;script&gt;" in html and "<svg" in html and "&lt;m&gt;" in html
    assert "http:" not in html and "https:" not in html and "src=" not in html


# -- review ----------------------------------------------------------------------------------------------


def test_grades_are_kept_and_a_review_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder, said = private_folder(tmp_path / "run"), list[str]()
    answers = iter(["9", "5", "", "q"])
    replay_review.review(folder, rows(), 4, 1, lambda _prompt: next(answers), said.append)
    assert list(replay_review.grades(folder).values()) == [5] and len(said) == 3
    counts = replay_review.review(folder, rows(), 4, 1, lambda _prompt: "2", said.append)
    assert counts["exactly right"] == 1 and counts["of little use"] == 3 and len(said) == 6

    def ended(_prompt: str) -> str:
        raise EOFError

    replay_review.review(folder, rows(), 9, 1, ended, said.append)


def test_a_grade_after_a_line_cut_short_is_kept(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "run")
    (folder / "grades.jsonl").write_text('{"recording": "r", "poi', encoding="utf-8")
    replay_review.review(folder, rows(), 1, 1, lambda _prompt: "4", lambda _text: None)
    assert list(replay_review.grades(folder).values()) == [4]


def test_no_terminal_obeys_a_recording() -> None:
    row = {**rows(1)[0], "text": "\x1b]0;title\x07\x9b2J\u202e\ud83d", "wanted": "\x1b[31m"}
    assert not set(replay_review.show(row)) & {"\x1b", "\x07", "\x9b", "\u202e", "\ud83d"}


# -- a run -----------------------------------------------------------------------------------------------


@pytest.fixture
def recording() -> Recording:
    return typed("total = price * count\n", "price = 2\ncount = 3\n")


def replayed(recording: Recording, options: Options, out: Path, **more: Any) -> dict[str, Any]:
    started = options(["total = price * count"])
    chosen = ReplayOptions(command=started.command, variables=started.variables, **more)
    return run({"typed": recording}, chosen, out)


@pytest.mark.parametrize("rhythm", [False, True])
def test_a_run_through_a_server(
    tmp_path: Path, fake_options: Options, recording: Recording, rhythm: bool
) -> None:
    about = replayed(recording, fake_options, tmp_path / "run", rhythm=rhythm)
    again, found = load_run(tmp_path / "run")
    assert again == about and about["model"] == "fake.gguf" and about["points"] == len(found) == 22
    assert found[0]["text"] == "otal = price * count" and found[0]["judged"]["exact"] == 1.0
    assert found[0]["judged"]["kept"] == 1.0 and found[0]["place"] == "0:3" and found[0]["wall_ms"] > 0
    assert found[20]["outcome"] == "empty" and found[20]["judged"]["exact"] == 1.0
    if os.name == "posix":
        assert {p.stat().st_mode & 0o777 for p in (tmp_path / "run").iterdir()} == {0o600}
    with pytest.raises(RecordingError, match="another folder"):
        run({}, ReplayOptions(), tmp_path / "run")


def test_half_a_surrogate_pair_ends_no_run(tmp_path: Path, fake_options: Options) -> None:
    """VS Code's recordings may hold one, between the two edits that make a character."""
    replayed(typed("total = 1\n", "x = '\ud83d'\n", "\ud83d.py"), fake_options, tmp_path / "run")
    _, found = load_run(tmp_path / "run")
    assert len(found) == 10 and "\ud83d" in found[0]["before"]
    run = str(tmp_path / "run")
    assert cli.main(["replay", "compare", run, run, "--require", "quality", "--html", str(tmp_path / "r.html")]) == 0


def test_a_limit_types_the_rest(tmp_path: Path, fake_options: Options, recording: Recording) -> None:
    assert replayed(recording, fake_options, tmp_path / "run", limit=3)["points"] == 3
    started = fake_options(["total = price * count"])
    both = {"one": recording, "two": recording}
    for limit, points_asked in ((0, 44), (23, 23), (22, 22)):
        chosen = ReplayOptions(command=started.command, variables=started.variables, limit=limit)
        assert run(both, chosen, tmp_path / f"both{limit}")["points"] == points_asked


def test_the_commands(
    tmp_path: Path, fake_options: Options, recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SAMPLES / "8-cppIndividual-2-collection-farewell.w.json"
    assert cli.main(["replay", "import", str(source), "--out", str(tmp_path / "r")]) == 0
    assert read_any(tmp_path / "r") == read_any(source)
    for name in ("a", "b"):
        replayed(recording, fake_options, tmp_path / name)
    words = ["replay", "compare", str(tmp_path / "a"), str(tmp_path / "b")]
    capsys.readouterr()
    assert cli.main([*words, "--require", "quality", "--html", str(tmp_path / "r.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 22
    assert "<svg" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert cli.main([*words, "--require", "quality"]) == 0 and "quality not down" in capsys.readouterr().out
    for name, more in (("a", {}), ("b", {"wall_ms": 1e6})):
        path = tmp_path / name / POINTS
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps({**row, "place": f"0:{n}", **more}) + "\n" for n, row in enumerate(lines)), encoding="utf-8")
    assert cli.main(words) == 1 and "latency up" in capsys.readouterr().out
    (tmp_path / "b" / RUN).write_text("{", encoding="utf-8")
    assert cli.main(words) == 2 and "not the folder of a replay run" in capsys.readouterr().err


def test_a_recording_without_content_is_refused(tmp_path: Path, recording: Recording) -> None:
    events: Iterator[Event] = map(without_content, recording.events)
    write(tmp_path / "r", Recording(Header("server", content=False), tuple(events)))
    with pytest.raises(RecordingError, match="without content"):
        read_any(tmp_path / "r")
