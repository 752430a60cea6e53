"""Recordings from histories, and the quantization gate over them: the sample, the repositories, the verdicts, the commands."""

from __future__ import annotations

import json
import math
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete import cli
from lsp_complete.measure import history, replay_gate
from lsp_complete.measure import replay_sampled as sampled
from lsp_complete.measure.corpus import Package
from lsp_complete.measure.recording import Asked, Recording, RecordingError, Texts, final_texts, read
from lsp_complete.measure.replay_compare import compare
from lsp_complete.measure.replay_gate import CHECKS, SETTINGS, Side, judge, options_of, word_of
from lsp_complete.measure.replay_points import Point, points
from lsp_complete.measure.replay_quality import Judged, type_names
from lsp_complete.measure.replay_run import ReplayOptions, surprise, wanted_line
from lsp_complete.measure.replay_store import PART, load_run
from lsp_complete.suggest.language import facts_for

from .conftest import Options
from .test_replay import rows

OLD = "import os\n\n\ndef first(value):\n    return value\n"
NEW = OLD + "\n\ndef second(value):\n    # a comment that is left out\n    total = first(value) * 2\n    return total + len(os.sep)\n"


@pytest.fixture(autouse=True)
def several_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts here are short: three places in each line make points enough."""
    monkeypatch.setattr(sampled, "PLACES", 3)


# -- the sample ------------------------------------------------------------------------------------------


def test_lines_of_a_change_are_asked_about_inside() -> None:
    (run,) = sampled.runs([("a.py", OLD, NEW)])
    assert len(run.lines) == 3  # the comment is no line to type
    made = sampled.recording([("a.py", OLD, NEW)], [run], random.Random(1))
    assert final_texts(made) == {"a.py": NEW}
    found = points(made)
    assert len(found) == 9 and {p.line.strip() for p in found} == {
        "def second(value):", "total = first(value) * 2", "return total + len(os.sep)",
    }  # fmt: skip
    assert all(p.rest.startswith(p.line[-1:]) or p.line.endswith(p.rest.split("\n")[0]) for p in found)
    assert made == sampled.recording([("a.py", OLD, NEW)], [run], random.Random(1))


def test_nothing_of_the_next_line_stands_right_of_the_cursor() -> None:
    pairs = [("a.py", OLD + "last = 1\n", NEW + "last = 1\n")]
    state = Texts()
    for event in sampled.recording(pairs, sampled.runs(pairs), random.Random(1)).events:
        state.apply(event)
        if isinstance(event, Asked):
            assert state.text[0][event.offset :].startswith("\n")


def test_prose_is_no_line_to_type() -> None:
    text = 'def first(value):\n    """What it does.\n\n    value: a sentence in a string.\n    """\n    return compute(value)  # a longer comment than the code\n'
    (run,) = sampled.runs([("a.py", "", text + "last = first(1) + 2\n")])
    assert [text[start:end] for start, end in run.lines][:1] == ["def first(value):"]
    assert len(run.lines) == 2  # and the last one


def test_what_is_not_chosen_still_happens() -> None:
    pairs = [("a.py", OLD, NEW), ("b.txt", "one\n", "two\n"), ("c.py", OLD, OLD.replace("value", "amount") + NEW)]
    found = sampled.runs(pairs)
    assert {run.file for run in found} == {0, 2}
    made = sampled.recording(pairs, [run for run in found if run.file == 2][:1], random.Random(1))
    assert final_texts(made) == {"c.py": pairs[2][2]}


LINES = st.lists(st.sampled_from(["alpha = beta(gamma)\n", "x\n", "if alpha == beta:\r\n", "\n", "é = delta + epsilon\n"]), max_size=9)


@settings(deadline=None)  # judged by what it gives, not by how long it takes
@given(LINES.map("".join), LINES.map("".join), st.integers(0, 99))
def test_a_sampled_recording_ends_in_the_new_text(old: str, new: str, seed: int) -> None:
    pairs = [("a.py", old, new)]
    found = sampled.runs(pairs)
    made = sampled.recording(pairs, found, random.Random(seed))
    assert final_texts(made) == ({"a.py": new} if found else {})
    for point in points(made):
        assert point.rest.strip() and sampled.LINE_MIN <= len(point.line.strip()) <= sampled.LINE_MAX


def test_projects_take_turns() -> None:
    many = [sampled.Run(0, n, ((0, 20),) * 3) for n in range(40)]
    chosen = sampled.choose({"a": many, "b": many, "c": many[:1]}, 90, random.Random(1))
    assert [len(found) for found in chosen.values()] == [5, 4, 1]


def test_more_lines_rather_than_more_places_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    new = OLD + "".join(f"\n\ndef number_{n}(value):\n    return first(value) * {n}\n" for n in range(12))
    pairs = [("a.py", OLD, new)]
    found = points(sampled.recording(pairs, sampled.runs(pairs), random.Random(1)))
    assert len(found) == sampled.LINES == len({point.line for point in found})


# -- histories -------------------------------------------------------------------------------------------


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two releases of one project, unpacked."""
    package = [Package("thing", version, "", "", 2026) for version in ("1.0", "2.0")]
    for each, text in zip(package, (OLD, NEW), strict=True):
        folder = tmp_path / "cache" / f"thing-{each.version}" / "thing"
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(text, encoding="utf-8")
        (folder / ".gitignore").write_text("*.py\n", encoding="utf-8")
    monkeypatch.setattr(history, "HISTORIES", {"thing": tuple(package)})
    monkeypatch.setattr("lsp_complete.measure.corpus.cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def head(repo: Path) -> str:
    done = subprocess.run(["git", "--git-dir", str(repo), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_releases_become_a_history_always_the_same(releases: Path) -> None:
    said: list[str] = []
    repo = history.repository("thing", releases / "cache", said.append)
    first = head(repo)
    assert history.repository("thing", releases / "cache", said.append) == repo
    repo.rename(releases / "other")
    assert head(history.repository("thing", releases / "cache", said.append)) == first


def test_a_corpus_by_the_command(releases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replay", "corpus", "--points", "9", "--out"]
    assert cli.main([*words, str(releases / "one")]) == 0
    assert "9 points in 1 recordings" in capsys.readouterr().out
    assert cli.main([*words, str(releases / "two"), str(releases / "cache" / "thing-1.0-2.0.git")]) == 0
    made = read(releases / "one" / "thing.lspc.jsonl")
    assert sum(isinstance(event, Asked) for event in made.events) == 9
    assert final_texts(made) == {"thing/a.py": NEW}
    assert [p.name for p in (releases / "two").iterdir()] == ["thing-1.0-2.0.lspc.jsonl"]
    assert (releases / "one").stat().st_mode & 0o777 == 0o700


def test_a_history_without_anything_to_type_is_refused(tmp_path: Path) -> None:
    history.git(tmp_path / "r", "init", "--quiet", "--bare", str(tmp_path / "r"))
    with pytest.raises(RecordingError, match="can be typed"):
        history.make([("r", tmp_path / "r")], 9, 1, tmp_path / "out")
    with pytest.raises(RecordingError, match="git frobnicate failed"):
        history.git(tmp_path / "r", "frobnicate")


# -- the verdict -----------------------------------------------------------------------------------------


def test_every_figure_belongs_to_one_check() -> None:
    checked = [name for names in CHECKS.values() for name in names]
    assert sorted(checked) == sorted(set(checked)) == sorted(f.name for f in compare(rows(), rows()).quality)
    assert set(checked) | {"names"} == set(Judged.__dataclass_fields__)


def test_same_worse_better_and_mixed() -> None:
    assert judge(compare(rows(), rows())).word == "same"
    worse = judge(compare(rows(), rows(exact=0.0)))
    assert worse.word == "worse" and worse.checks["text"] == "worse" and worse.checks["brackets"] == "same"
    assert judge(compare(rows(exact=0.0), rows())).word == "better"
    assert word_of({"better", "worse", "same"}) == "mixed" and word_of({"few"}) == "few"
    assert word_of({"few", "same"}) == "same"
    safe = [dict(row, judged={**row["judged"], "safe": 1.0}) for row in rows()]
    told = judge(compare(rows(), safe))
    assert told.word == "worse" and told.checks["naming"] == "worse" and told.as_dict()["verdict"] == "worse"


def surprised(by: float, seed: int = 1) -> list[dict[str, Any]]:
    """Points of equal texts whose surprise varies far more from place to place than between the runs."""
    rng = random.Random(seed)
    noise = random.Random(f"{seed}:{by}")
    found = []
    for row in rows():
        bits = rng.expovariate(1.0) + by + noise.uniform(-0.05, 0.05) * bool(by)
        found.append({**row, "judged": {**row["judged"], "surprise": bits}})
    return found


def test_models_are_told_apart_where_their_texts_are_the_same() -> None:
    told = judge(compare(surprised(0.0), surprised(0.02)))
    assert told.word == "worse" and told.checks["text"] == "worse" and not told.comparison.differing
    assert [f.name for f in told.comparison.quality if f.verdict == "worse"] == ["surprise"]
    assert judge(compare(surprised(0.0), surprised(0.0))).word == "same"
    assert judge(compare(surprised(0.02), surprised(0.0))).word == "better"
    without = judge(compare(rows(), surprised(0.0)))  # a run from before, or in rhythm: it is left out
    assert without.word == "same" and {f.name: f.verdict for f in without.comparison.quality}["surprise"] == "few"


def test_only_the_rest_of_a_line_that_is_not_there_yet_is_asked_about() -> None:
    point = Point(0, 0, 0, 4, "automatic", "x = 12", "12\r\ny = 3\n")
    assert wanted_line(point, "x = \r\ny = 3\n") == "12\r\n"
    assert wanted_line(point, "x = ") == "12\r\n"
    assert wanted_line(point, "x = )\ny = 3\n") == ""
    assert wanted_line(replace(point, rest=""), "x = ") == ""
    assert surprise({"logprob": -math.log(2) * 6, "bytes": 3, "tokens": 1}) == pytest.approx(2.0)
    assert surprise(None) is None


def test_types_are_capitalized_or_built_in() -> None:
    found = type_names("x: dict[str, Path] = Thing(LIMIT, value).Other", facts_for("python"))
    assert found == {"dict", "str", "Path", "Thing", "Other"}


def test_a_side_names_its_model_and_cache() -> None:
    base = ReplayOptions(SETTINGS, variables={"X": "1"})
    made = options_of(Side("m.gguf", "q4_0"), base)
    assert made.model == "m.gguf" and made.variables == {"X": "1", "LSP_COMPLETE_ENGINE_KV_TYPE": "q4_0"}
    assert options_of(Side(), base).variables == {"X": "1"}


# -- the gate --------------------------------------------------------------------------------------------


@pytest.fixture
def gate(fake_options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are cribs here: the file name "good" knows the lines, any other name does not."""
    crib = [line for line in NEW.split("\n") if line.strip()]

    def options(side: Side, base: ReplayOptions) -> ReplayOptions:
        started = fake_options(crib if side.model == "good" else [])
        return ReplayOptions(base.settings, limit=base.limit, command=started.command, variables=started.variables)

    monkeypatch.setattr(replay_gate, "options_of", options)


def recordings() -> dict[str, Recording]:
    pairs = [("a.py", OLD, NEW)]
    return {str(n): sampled.recording(pairs, sampled.runs(pairs), random.Random(n)) for n in range(3)}


def test_a_worse_model_is_told_and_the_control_is_the_same(gate: None, tmp_path: Path) -> None:
    said: list[str] = []
    good, bad = Side("good"), Side("bad")
    verdicts = replay_gate.run(recordings(), good, bad, ReplayOptions(SETTINGS), tmp_path / "o", control=True, seed=1, say=said.append)
    assert verdicts["control"].word == "same" and not verdicts["control"].comparison.differing
    assert verdicts["second"].word == "worse" and verdicts["second"].checks["text"] == "worse"
    assert len(said) == 9 and "27 points so far" in said[-1]
    kept = {name: load_run(tmp_path / "o" / name) for name in ("first", "second", "control")}
    assert [row["text"] for row in kept["first"][1]] == [row["text"] for row in kept["control"][1]]
    assert {about["points"] for about, _ in kept.values()} == {27}
    bits = {name: {row["judged"]["surprise"] for row in kept[name][1]} for name in kept}
    assert bits["first"] == bits["control"] and min(bits["second"]) > max(bits["first"]) > 0
    with pytest.raises(RecordingError, match="another folder"):
        replay_gate.run({}, good, bad, ReplayOptions(), tmp_path / "o", control=False, seed=1, say=said.append)


class Stopped(Exception):
    """Somebody ends the run."""


def test_a_gate_that_was_stopped_goes_on(gate: None, tmp_path: Path) -> None:
    def stopping(text: str) -> None:
        said.append(text)
        if len(said) == 4:
            raise Stopped

    said: list[str] = []
    good, bad, base = Side("good"), Side("bad"), ReplayOptions(SETTINGS)
    with pytest.raises(Stopped):
        replay_gate.run(recordings(), good, bad, base, tmp_path / "o", control=True, seed=1, say=stopping)
    begun = {name: (tmp_path / "o" / name / PART) for name in ("first", "second", "control")}
    lines = {name: path.read_text(encoding="utf-8").splitlines() if path.exists() else [] for name, path in begun.items()}
    assert sorted(map(len, lines.values())) == [1, 1, 2]
    begun["second"].write_text(begun["second"].read_text(encoding="utf-8") + '{"tag": "cut', encoding="utf-8")  # killed while writing
    with pytest.raises(RecordingError, match="beginning of another run"):
        replay_gate.run(recordings(), good, bad, ReplayOptions(), tmp_path / "o", control=True, seed=1, say=print)
    verdicts = replay_gate.run(recordings(), good, bad, base, tmp_path / "o", control=True, seed=1, say=said.append)
    assert len(said) == 4 + 9 and not any(path.exists() for path in begun.values())
    for name, kept_lines in lines.items():  # what was there was not asked again
        rows_now = load_run(tmp_path / "o" / name)[1]
        assert len(rows_now) == 27
        for line in kept_lines:
            assert all(row in rows_now for row in json.loads(line)["rows"])
    whole = replay_gate.run(recordings(), good, bad, base, tmp_path / "p", control=True, seed=1, say=print)
    assert verdicts["second"].comparison.quality == whole["second"].comparison.quality and verdicts["second"].word == "worse"


def test_the_gate_as_a_command(
    gate: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], releases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["replay", "corpus", "--points", "9", "--out", str(tmp_path / "c")]) == 0
    words = ["replay", "gate", str(tmp_path / "c"), "--model", "good", "--out"]
    capsys.readouterr()
    assert cli.main([*words, str(tmp_path / "few"), "--against", "bad"]) == 2  # 9 points prove nothing
    assert "too few points" in capsys.readouterr().err
    monkeypatch.setattr(sampled, "PLACES", 10)
    monkeypatch.setattr("lsp_complete.measure.replay_compare.FEWEST_LINES", 1)  # these histories are small
    assert cli.main(["replay", "corpus", "--points", "30", "--out", str(tmp_path / "c")]) == 0
    capsys.readouterr()
    assert cli.main([*words, str(tmp_path / "same"), "--json", "--control"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["second"]["verdict"] == told["control"]["verdict"] == "same" and told["second"]["pairs"] == 30
    html = tmp_path / "r.html"
    assert cli.main([*words, str(tmp_path / "worse"), "--against", "bad", "--html", str(html)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "second: worse" in out and "texts differ at 30 of 30 points" in out and "<svg" in html.read_text(encoding="utf-8")
    assert cli.main([*words, str(tmp_path / "same")]) == 2
