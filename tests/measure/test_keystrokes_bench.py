"""The keystroke benchmark: figures of hand-made recordings worked out by hand, what is asked, and the recording's file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.config.settings import SuggestSettings
from lsp_complete.engine.api import Candidate
from lsp_complete.measure.bench_keystrokes import KeystrokeOptions, figures, report, run
from lsp_complete.measure.bench_keystrokes_filters import filter_report, to_insert
from lsp_complete.measure.bench_keystrokes_record import (
    first_lines,
    from_json,
    load,
    record,
    stretch_of,
    tasks,
    to_json,
)
from lsp_complete.measure.bench_keystrokes_replay import (
    LinePlayer,
    Played,
    RecordedLine,
    Rule,
    Told,
    known_at,
)
from lsp_complete.measure.corpus import Source
from lsp_complete.measure.session import session
from lsp_complete.measure.typist import script_for
from lsp_complete.service.held import left_over
from lsp_complete.suggest.confidence import Level

from .conftest import Options

ABOVE = "def area(width, height):\n    size = width\n"
TARGET = "    total = width * height"
BELOW = "\n    return total\n"
OPEN = Level(first_token=None, token=-9.0, line=-9.0, sum=None, mean=None, mass=0.0)
EAGER = Rule(OPEN, None, None)


def told(text: str, logprob: float, stop: str = "line") -> Told:
    """An answer of two tokens, the halves of the text."""
    size = len(text.encode())
    return Told(Candidate(text.encode(), (), (logprob / 2, logprob / 2), (1.0, 1.0), (size // 2, size), stop))


def recorded(answers: dict[int, Told], target: str = TARGET, below: str = BELOW) -> RecordedLine:
    """A line typed after ABOVE. Key 0 is Enter, key n the n-th character."""
    text = ABOVE + target + below
    keys = script_for(text, 2, "python").keys
    return RecordedLine("a.py", 2, "python", target, ABOVE, below, keys, answers)


WRONG_THEN_RIGHT = {0: told("size = width * 2", -0.5), 1: told("otal = width + 1", -3.0), 9: told("idth * height", -0.2)}
"""At Enter a wrong suggestion, contradicted by `t`; then one that agrees up to `total = width ` and is contradicted by `*`
(so after `w`, key 9, it still agrees and the recorded answer there is not looked at), unless nothing was on screen."""


def test_eager_shows_all_and_accepts_the_first_that_is_right() -> None:
    played = LinePlayer(recorded({**WRONG_THEN_RIGHT, 15: told(" height", -0.2)})).play(EAGER)
    # "total = width *" is typed by hand (15 keys); shown: the wrong one, the half right one, and " height", accepted.
    assert played == Played(characters=22, keys=15, accepts=1, shown=3, right=1)
    assert figures([played])["keys_saved"] == round(1 - 16 / 22, 4)
    assert figures([played])["precision"] == 0.3333 and figures([played])["shown_per_line"] == 3.0


def test_a_floor_holds_back_the_unsure_and_later_keys_still_count() -> None:
    played = LinePlayer(recorded(WRONG_THEN_RIGHT)).play(Rule(OPEN, -1.0, None))
    # -0.5 shown (wrong); -3.0 held back; what is left of it after half of its text is one token of -1.5: held back too;
    # key 9 has an answer of its own, -0.2: shown, right. Typed: "total = w".
    assert played == Played(characters=22, keys=9, accepts=1, shown=2, right=1)
    strict = LinePlayer(recorded(WRONG_THEN_RIGHT)).play(Rule(OPEN, None, -0.05))
    assert strict == Played(22, 22, 0, 0, 0) and figures([strict])["keys_saved"] == 0.0


def test_typed_through_counts_once_and_agreement_needs_no_second_answer() -> None:
    line = recorded({0: told("total = width + height", -0.2), 15: told(" height", -0.2)})
    played = LinePlayer(line).play(EAGER)
    assert (played.shown, played.right, played.keys) == (2, 1, 15)
    assert known_at(line.keys, line.answers, 14) == (line.answers[0], "total = width ")
    assert known_at(line.keys, line.answers, 16) == (line.answers[15], " ")
    assert known_at(line.keys, {0: line.answers[0]}, 15) is None
    unfinished = {0: told("total = width * hei", -6.5, "unsure")}
    assert known_at(line.keys, unfinished, 3) is None


def test_right_up_to_the_editors_closer_is_right_and_the_rest_is_typed() -> None:
    line = recorded({0: told("total = area(width, height).real", -9.0)}, "    total = area(width, height) + 1")
    played = LinePlayer(line).play(EAGER)
    # Shown at Enter and typed through up to "total = area(": then "width, height" is what stays before the editor's ")".
    # Once ")" is typed over, ".real" is what is left of the same answer: a second showing, wrong.
    assert (played.right, played.shown, played.accepts) == (1, 2, 1)
    assert played.keys == len("total = area(") + len(") + 1")


def test_what_is_left_of_an_answer_has_the_tokens_that_are_left() -> None:
    candidate = Candidate(b"total = width", (1, 2, 3), (-0.1, -0.2, -0.4), (1.0, 0.9, 1.0), (5, 8, 13), "line")
    rest = left_over(candidate, "total =")
    assert (rest.text, rest.logprobs, rest.masses, rest.offsets) == (b" width", (-0.2, -0.4), (0.9, 1.0), (1, 6))
    assert left_over(candidate, "") == replace(candidate, tokens=())


def test_the_report_has_all_levels_the_curve_and_new_files_apart() -> None:
    line = recorded(WRONG_THEN_RIGHT)
    result = report([line, replace(line, from_empty=True, below="")])
    assert result["lines"] == result["lines_from_empty"] == 1
    assert result["balanced"]["shown"] == 2 and result["balanced"]["keys_saved"] == round(1 - 10 / 22, 4)
    assert set(result["from_empty"]) == {"eager", "balanced", "quiet"}
    by_floor = {point["sum_floor"]: point for point in result["curve"]}
    assert by_floor[-1.0]["precision"] == 0.5 and by_floor[None]["shown_per_line"] == 3.0
    assert result["by_language"]["python"]["eager"]["shown_per_line"] == 3.0
    assert json.loads(json.dumps(result)) == result


def test_filters_are_counted_where_they_change_something() -> None:
    doubled = told("total = width * height\n    return total", -0.2)
    found = filter_report([recorded({0: doubled, 21: told("t", -0.1)})])
    assert found["points"] == 1 and found["exact"] == 1.0  # at the last key one character is left: not worth a point
    assert found["filters"]["one_line"] == {"changed": 1.0, "exact": 1.0, "exact_without": 1.0, "won": 0, "lost": 0}
    short = filter_report([recorded({20: told("ht", -0.2)})], settings=SuggestSettings(min_chars=3))
    assert short["filters"]["too_little"]["lost"] == 1 and short["held_back"] == {"too_short": 1}


def test_what_the_editor_s_closer_makes_a_single_character_is_no_point() -> None:
    assert (to_insert("4];", "]"), to_insert("i] = x;", ""), to_insert("both)) + 1", " ))")) == ("4", "i] = x;", "both")


async def test_the_server_is_asked_only_where_no_answer_agrees(fake_options: Options, source: Source) -> None:
    kept: list[RecordedLine] = []
    stretches = [stretch_of(source, 3, 1), first_lines(source, 2)]
    async with session(fake_options(["    result = compute(value, 20, [1, 2])"])) as running:
        await record(running, stretches, {}, kept.append, lambda text: None)
        # Without "candidateNotifications" nothing is told of what the model said, so every key is asked.
        assert all(t.candidate.stop == "none" for line in kept for t in line.answers.values())
    assert [line.number for line in kept] == [*stretches[0].lines, 1, 2]
    assert [line.from_empty for line in kept] == [False] * 3 + [True] * 2
    assert all(line.below == "" for line in kept[3:]) and kept[4].above.endswith(kept[3].target + "\n")
    assert all(line.above + line.target + line.below in source.text for line in kept)
    assert all(set(line.answers) == {i for i, k in enumerate(line.keys) if k.asks} for line in kept)


def test_new_files_grow_line_by_line(source: Source) -> None:
    from lsp_complete.measure.edits import apply_edits

    spaced = Source("b.py", source.path, source.root, "python", "import os\n\n\nx = os.name\n\ny = 1\n")
    now = "import os"
    for number, task in tasks(first_lines(spaced, 5)):
        now = apply_edits(now, task.edits)
        assert now == "\n".join(spaced.text.split("\n")[:number])
        for key in task.script.keys:
            now = apply_edits(now, key.edits)
        assert now == task.text


def test_a_recording_survives_its_file_and_a_cut_off_end(tmp_path: Path) -> None:
    line = recorded(WRONG_THEN_RIGHT)
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"model": "m"}) + "\n" + json.dumps(to_json(line)) + '\n{"file": "a')
    head, lines = load(path)
    assert head == {"model": "m"} and len(lines) == 1
    assert lines[0].answers == line.answers and LinePlayer(lines[0]).play(EAGER) == LinePlayer(line).play(EAGER)
    assert from_json(to_json(line)).keys == lines[0].keys
    path.write_text("no json\n")
    with pytest.raises(ValueError, match="no recording"):
        load(path)


def test_a_recording_with_other_settings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsp_complete.measure.bench_keystrokes.load_corpus", lambda say, files: [])
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"bench": "keystrokes", "seed": 2}) + "\n")
    with pytest.raises(ValueError, match="other settings"):
        run(KeystrokeOptions(seed=1), path)
