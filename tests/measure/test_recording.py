"""Recordings: reading and writing, imports that end in exactly the known texts, retention, private files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.measure import import_git, import_vscode
from lsp_complete.measure.recording import (
    SUFFIX,
    Answered,
    Asked,
    Became,
    Changed,
    Closed,
    Event,
    Header,
    Moved,
    Opened,
    Prompted,
    Recording,
    RecordingError,
    final_texts,
    line_of,
    private_folder,
    prune,
    read,
    spliced,
    without_content,
    write,
)

SAMPLES = Path(__file__).resolve().parent / "recordings"
DIGESTS: dict[str, list[list[object]]] = json.loads((SAMPLES / "digests.txt").read_text(encoding="utf-8"))

EVENTS: tuple[Event, ...] = (
    Opened(0.0, 0, "secret/a.py", "python", "x = é\n"),
    Changed(1.0, 0, ((4, 5, "12"), (6, 6, "3")), 3),
    Moved(1.0, 0, 7),
    Asked(1.5, 0, 1, 7),
    Prompted(1.6, 1, (1, 2, 3), text="x = 123"),
    Answered(2.0, 1, ((7, 7, " + 1"),), {"total_ms": 0.5, "outcome": "shown"}),
    Became(3.0, 1, "accepted"),
    Closed(4.0, 0),
)


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_every_recording_ends_in_exactly_the_known_texts(name: str) -> None:
    texts = final_texts(import_vscode.read(SAMPLES / name))
    seen = [
        [path, len(text), hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]]
        for path, text in texts.items()
    ]
    assert sorted(map(tuple, seen)) == sorted(map(tuple, DIGESTS[name]))


def test_no_recording_is_left_out() -> None:
    assert {path.name for path in SAMPLES.glob("*.json")} == set(DIGESTS)


def test_times_never_go_back() -> None:
    for path in SAMPLES.glob("*.json"):
        times = [event.at_ms for event in import_vscode.read(path).events]
        assert times == sorted(times) and (not times or times[0] >= 0), path.name


def test_units_outside_of_the_basic_plane_and_edits_of_one_state() -> None:
    text = "a\U0001f600b\n"
    edits = import_vscode.splices(text, [(5, 5, "end"), (1, 3, "-"), (3, 3, "+")])  # 5: behind the line end
    assert spliced(text, edits) == "a-+b\nend"


def test_stored_content_comes_back() -> None:
    log = [
        {"kind": "documentEncountered", "id": 1, "relativePath": "a.py", "time": 5},
        {"kind": "setContent", "id": 1, "content": "one", "time": 5},
        {"kind": "storeContent", "id": 1, "contentId": "k", "time": 6},
        {"kind": "changed", "id": 1, "edit": [[0, 3, "two"]], "time": 7},
        {"kind": "restoreContent", "id": 1, "contentId": "k", "time": 8},
        {"kind": "event", "time": 9, "data": {}},
    ]
    recording = import_vscode.from_log(log)
    assert final_texts(recording) == {"a.py": "one"} and len(recording.events) == 3


FIRST = '{"kind": "documentEncountered", "id": 1, "relativePath": "a.py"}, '


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"log": [{"kind": "setContent", "id": 1}]}', '{"log": 3}', '{"log": ' + "[" * 200_000, '{"log": [{"kind": "x", "time": 1' + "0" * 400 + "}]}",
        f'{{"log": [{FIRST}{{"kind": "setContent", "id": 1, "content": 5}}]}}',
        f'{{"log": [{FIRST}{{"kind": "setContent", "id": 1, "content": ""}}, {{"kind": "selectionChanged", "id": 1, "selection": [[]]}}]}}',
    ],
)  # fmt: skip
def test_what_is_no_recording_of_vscode_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError):
        import_vscode.read(path)


# -- our own format --------------------------------------------------------------------------------------


def test_written_and_read_again(tmp_path: Path) -> None:
    recording = Recording(Header("server", created=1.0), EVENTS)
    path = tmp_path / ("r" + SUFFIX)
    write(path, recording)
    assert read(path) == recording
    assert final_texts(recording) == {"secret/a.py": "x = 123\n"}
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600


def test_a_last_line_cut_short_is_left_out_and_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text(line_of(Header("server")) + line_of(EVENTS[0]) + '{"kind":"mov', encoding="utf-8")
    assert read(path).events == EVENTS[:1]
    path.write_text(line_of(Header("server")) + '{"kind":"moved"}\n', encoding="utf-8")
    with pytest.raises(RecordingError, match="line 2"):
        read(path)
    path.write_text('{"kind":"header"}\n', encoding="utf-8")
    with pytest.raises(RecordingError, match="first line"):
        read(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"closed","at_ms":"1","doc":0}', '{"kind":"closed","at_ms":NaN,"doc":0}', '{"kind":"closed","at_ms":Infinity,"doc":0}',
        '{"kind":"closed","at_ms":true,"doc":0}', '{"kind":"closed","at_ms":1,"doc":-1}', '{"kind":"asked","at_ms":1,"doc":0,"request":0,"offset":-5}',
        '{"kind":"answered","at_ms":1,"request":0,"suggestions":[],"stages":5}', '{"kind":"changed","at_ms":1,"doc":0,"edits":[[Infinity,1,""]]}',
        '{"kind":[],"at_ms":1}', "[" * 200_000, "7", '"moved"',
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r"
    path.write_text(line_of(Header("server")) + line + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="line 2"):
        read(path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 200_000, b'{"kind":"header","format":"lsp-complete-recording@1","source":5}'])
def test_what_begins_otherwise_is_no_recording(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r").write_bytes(data)
    with pytest.raises(RecordingError, match="not a recording"):
        read(tmp_path / "r")


def test_without_content_no_text_and_no_name_is_left() -> None:
    lines = "".join(line_of(without_content(event)) for event in EVENTS)
    assert "a.py" not in lines and "secret" not in lines and "+ 1" not in lines and "123" not in lines
    assert '"typed":3' in lines and '"total_ms":0.5' in lines


def test_old_recordings_go_and_then_the_oldest(tmp_path: Path) -> None:
    for age in range(6):
        path = tmp_path / f"{age}{SUFFIX}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1e9 - age * 86400, 1e9 - age * 86400))
    (tmp_path / "other.txt").write_bytes(b"x" * 1000)
    assert prune(tmp_path, 10_000, days=3.5, now=1e9) == 2
    assert prune(tmp_path, 250, days=30, now=1e9, keep=tmp_path / f"3{SUFFIX}") == 1
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([f"{age}{SUFFIX}" for age in (0, 1, 3)] + ["other.txt"])


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_a_folder_that_others_reach_is_refused(tmp_path: Path) -> None:
    assert private_folder(tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(RecordingError, match="chmod 700"):
        private_folder(tmp_path / "open")


def test_an_edit_outside_of_the_text_is_an_error() -> None:
    with pytest.raises(RecordingError, match="text of 3"):
        spliced("abc", [(2, 9, "")])


# -- git ---------------------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from(["a\n", "b\n", "cc\r\n", "\n", "é😀\n"]), max_size=12).map("".join)


@given(LINES, LINES, st.integers(0, 40))
def test_typing_a_change_ends_in_the_new_text(old: str, new: str, keys: int) -> None:
    recording = import_git.typing([("a.py", old, new)], max_keys=keys)
    assert final_texts(recording) == {"a.py": new}
    assert sum(isinstance(event, Asked) for event in recording.events) <= keys


def test_a_commit_is_typed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "a.py").write_text("one = 1\nthree = 3\n")
    (tmp_path / "binary.dat").write_bytes(b"\0\1")
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    (tmp_path / "binary.dat").write_bytes(b"\0\2")
    (tmp_path / "new.py").write_text("x")
    git("add", ".")
    git("commit", "-qm", "two")
    (tmp_path / ".git" / "hostile").write_text("#!/bin/sh\ntouch run\n")
    (tmp_path / ".git" / "hostile").chmod(0o755)
    for name, value in (("log.showSignature", "true"), ("gpg.program", ".git/hostile"), ("core.fsmonitor", ".git/hostile")):
        git("config", name, value)
    recording = import_git.read(tmp_path, "HEAD")
    assert not (tmp_path / "run").exists()
    assert final_texts(recording) == {"a.py": "one = 1\ntwo = 2\nthree = 3\n"}
    assert recording == import_git.read(tmp_path, "HEAD") and recording.header.created > 0
    with pytest.raises(RecordingError, match="no commit"):
        import_git.read(tmp_path, "--output=x")
