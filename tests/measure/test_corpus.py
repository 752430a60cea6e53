"""The corpus: pinned archives, safe unpacking, seeded choice of lines. No network."""

from __future__ import annotations

import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from lsp_complete.errors import DownloadError
from lsp_complete.measure import corpus
from lsp_complete.measure.corpus import (
    APART,
    FILES,
    KEYSTROKE_FILES,
    PACKAGES,
    Package,
    Source,
    choose_places,
    digest,
    eligible_lines,
    load_files,
    obtain,
    unpack,
)


def archive(folder: Path, name: str, members: dict[str, str]) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as bundle:
        for member, text in members.items():
            bundle.writestr(member, text)
    return path


def test_the_list_is_sound() -> None:
    assert {f.package for f in (*FILES, *KEYSTROKE_FILES)} == set(PACKAGES)
    assert len(KEYSTROKE_FILES) == 10 and len({f.language_id for f in KEYSTROKE_FILES}) == 5
    assert len({(f.package, Path(f.path).name) for f in KEYSTROKE_FILES}) == 10
    assert len({f.language_id for f in FILES} - {"python"}) >= 2
    assert sum(p.since >= 2026 for p in PACKAGES.values()) >= 2
    assert len({(f.package, Path(f.path).name) for f in FILES}) == len(FILES)
    assert all(len(p.sha256) == 64 for p in PACKAGES.values())


def test_an_archive_is_checked_and_unpacked_once(tmp_path: Path) -> None:
    wheel = archive(tmp_path, "one-1.0-py3-none-any.whl", {"one/a.py": "x = 1\n"})
    package = Package("one", "1.0", wheel.name, digest(wheel), 2026)
    root = obtain(package, tmp_path, lambda text: pytest.fail("nothing to fetch"))
    assert (root / "one/a.py").read_text() == "x = 1\n"
    wheel.unlink()
    assert obtain(package, tmp_path, lambda text: None) == root


def test_a_wrong_archive_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = archive(tmp_path, "one-1.0-py3-none-any.whl", {"one/a.py": "x = 1\n"})
    package = Package("one", "1.0", wheel.name, "0" * 64, 2026)
    monkeypatch.setattr(corpus, "_pip_download", lambda package, cache: None)
    with pytest.raises(DownloadError, match="digest"):
        obtain(package, tmp_path, lambda text: None)
    assert not wheel.exists() and not (tmp_path / "one-1.0").exists()


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py", "a\\..\\evil.py"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path, "x.whl", {name: "x"})
    with pytest.raises(DownloadError, match="unsafe"):
        unpack(path, tmp_path / "out")


def test_lines_are_chosen_by_length_seed_and_distance(source: Source) -> None:
    lines = eligible_lines(source.text)
    assert all(20 <= len(source.text.splitlines()[n].strip()) <= 70 for n in lines) and 0 not in lines
    places = choose_places([source], 4, 7)
    assert places == choose_places([source], 4, 7) != choose_places([source], 4, 8)
    chosen = sorted(p.line for p in places)
    assert all(b - a >= APART for a, b in pairwise(chosen))
    assert eligible_lines("a\n# a comment of enough characters\n" + "x" * 71 + "\n" + "y" * 20) == [3]


def test_places_are_spread_evenly(source: Source) -> None:
    other = Source("other.py", source.path, source.root, "python", source.text)
    places = choose_places([source, other], 3, 1)
    assert [p.source.name for p in places] == ["sample.py", "sample.py", "other.py"]


def test_own_files_keep_their_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(b"a\r\nb\r\n")
    loaded = load_files([path])[0]
    assert loaded.text == "a\r\nb\r\n" and loaded.language_id == "typescript" and loaded.root == tmp_path
