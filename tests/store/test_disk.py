"""The disk cache: what it keeps, and everything it refuses to read."""

from __future__ import annotations

import io
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.store.disk import WEEK_SECONDS, DiskCache

json_values = st.recursive(
    st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> Iterator[DiskCache]:
    made = DiskCache(folder)
    assert made.usable
    yield made
    made.close()


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=40)
@given(value=json_values, data=st.binary(max_size=500))
def test_values_come_back(cache: DiskCache, value: object, data: bytes) -> None:
    cache.put_json("j", value)
    cache.put_bytes("b", data)
    assert cache.get_json("j") == value
    assert cache.get_bytes("b") == data
    assert cache.get_bytes("j") is None or value is None


def test_large_values_lie_in_files_and_survive_a_restart(cache: DiskCache, folder: Path) -> None:
    data = os.urandom(400_000)
    cache.put_bytes("large", data)
    assert list(folder.glob("*/*/*.val"))
    cache.close()
    again = DiskCache(folder)
    assert again.get_bytes("large") == data
    again.delete("large")
    assert not list(folder.glob("*/*/*.val"))
    again.close()


def test_what_json_cannot_hold_is_not_kept(cache: DiskCache) -> None:
    for value in (object(), {1, 2}, float("nan"), b"x"):
        cache.put_json("k", value)
        assert cache.get_json("k") is None


class Bomb:
    """Unpickling it leaves a trace."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (os.environ["BOMB_PATH"],)


def pickled(monkeypatch: pytest.MonkeyPatch, trace: Path) -> bytes:
    import pickle

    monkeypatch.setenv("BOMB_PATH", str(trace))
    stream = io.BytesIO()
    pickle.dump(Bomb(), stream)
    return stream.getvalue()


def tamper(folder: Path, sql: str, *values: object) -> None:
    with sqlite3.connect(folder / "cache.db") as connection:
        connection.execute(sql, values)
    connection.close()


def test_a_pickled_row_is_refused_and_deleted(
    cache: DiskCache, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "exploded"
    cache.put_bytes("k", b"x")
    tamper(folder, "UPDATE Cache SET mode = 4, value = ? WHERE key = 'k'", pickled(monkeypatch, trace))
    assert cache.get_bytes("k") is None and cache.get_json("k") is None
    assert not trace.exists() and cache.refused == 1


def test_a_pickled_file_is_refused(
    cache: DiskCache, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "exploded"
    cache.put_bytes("k", os.urandom(400_000))
    next(folder.glob("*/*/*.val")).write_bytes(pickled(monkeypatch, trace))
    tamper(folder, "UPDATE Cache SET mode = 4 WHERE key = 'k'")
    assert cache.get_bytes("k") is None
    assert not trace.exists()


@pytest.mark.parametrize("mode", [0, 3, 4, 5, 99])
def test_other_modes_are_misses(cache: DiskCache, folder: Path, mode: int) -> None:
    cache.put_bytes("k", b"x")
    tamper(folder, "UPDATE Cache SET mode = ? WHERE key = 'k'", mode)
    assert cache.get_bytes("k") is None


@pytest.mark.parametrize("value", ["text", 5, 1.5, b"", b"X123", None])
def test_foreign_values_are_misses(cache: DiskCache, folder: Path, value: object) -> None:
    cache.put_bytes("k", b"x")
    tamper(folder, "UPDATE Cache SET value = ? WHERE key = 'k'", value)
    assert cache.get_bytes("k") is None


def test_a_row_cannot_name_a_file_outside(cache: DiskCache, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"Bhidden")
    for name in ("../secret", str(secret), "aa/bb/../../../secret"):
        cache.put_bytes("k", b"x")
        tamper(folder, "UPDATE Cache SET mode = 2, filename = ?, value = NULL WHERE key = 'k'", name)
        assert cache.get_bytes("k") is None
        cache.clear()
    assert secret.read_bytes() == b"Bhidden"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_in_place_of_a_value_is_not_followed(cache: DiskCache, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"Bhidden")
    cache.put_bytes("k", os.urandom(400_000))
    value = next(folder.glob("*/*/*.val"))
    value.unlink()
    value.symlink_to(secret)
    assert cache.get_bytes("k") is None
    assert secret.exists()


def test_broken_json_is_a_miss(cache: DiskCache, folder: Path) -> None:
    cache.put_json("k", [1])
    tamper(folder, "UPDATE Cache SET value = ? WHERE key = 'k'", b"J[1,")
    assert cache.get_json("k") is None


@pytest.mark.parametrize("junk", [b"", b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_corrupt_database_is_an_empty_cache(folder: Path, junk: bytes) -> None:
    folder.mkdir()
    (folder / "cache.db").write_bytes(junk)
    cache = DiskCache(folder)
    assert cache.get_bytes("k") is None
    cache.put_bytes("k", b"x")
    assert cache.get_bytes("k") == b"x"
    cache.close()


def test_foreign_settings_in_the_database_are_survived(cache: DiskCache, folder: Path) -> None:
    cache.close()
    tamper(folder, "INSERT INTO Settings VALUES ('disk_evil', 1)")
    again = DiskCache(folder)
    again.put_bytes("k", b"x")
    assert again.get_bytes("k") == b"x"
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_the_folder_is_private(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o755)
    DiskCache(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert not DiskCache(link).usable
    file = tmp_path / "file"
    file.write_text("")
    unusable = DiskCache(file)
    unusable.put_bytes("k", b"x")
    assert unusable.get_bytes("k") is None and not unusable.usable and unusable.size_bytes() == 0
    unusable.close()


def expiry(folder: Path) -> float:
    with sqlite3.connect(folder / "cache.db") as connection:
        ((value,),) = connection.execute("SELECT expire_time - store_time FROM Cache").fetchall()
    connection.close()
    return float(value)


def test_use_renews_the_week(cache: DiskCache, folder: Path) -> None:
    cache.put_bytes("k", b"x")
    assert expiry(folder) == pytest.approx(WEEK_SECONDS, abs=60)
    tamper(folder, "UPDATE Cache SET expire_time = store_time + 3600")
    assert cache.get_bytes("k") == b"x"
    assert expiry(folder) == pytest.approx(WEEK_SECONDS, abs=60)
    tamper(folder, "UPDATE Cache SET expire_time = 1")
    assert cache.get_bytes("k") is None


def test_two_processes_share_it(cache: DiskCache, folder: Path) -> None:
    other = DiskCache(folder)
    cache.put_json("k", {"a": 1})
    assert other.get_json("k") == {"a": 1}
    other.close()
    assert other.get_json("k") is None
