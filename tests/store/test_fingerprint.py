"""Values by file fingerprint: when they are good, and when they are made anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lsp_complete.store.disk import DiskCache
from lsp_complete.store.fingerprint import RACY_NS, FingerprintCache, Recipe
from lsp_complete.store.outlines import outline_cache

OLD_NS = 1_600_000_000 * 10**9


@dataclass
class Maker:
    """A recipe that counts: the value is the text, upper case."""

    version: str = "1"
    made: list[str] = field(default_factory=list)

    def recipe(self) -> Recipe[str]:
        def make(path: str, text: str) -> str | None:
            self.made.append(text)
            return None if "nothing" in text else text.upper()

        def load(value: object) -> str | None:
            return value if isinstance(value, str) else None

        return Recipe("test", lambda _path: self.version, make, lambda value: value, load, len)


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    write(path, "one")
    return path


def write(path: Path, text: str, mtime_ns: int = OLD_NS) -> None:
    path.write_text(text)
    os.utime(path, ns=(mtime_ns, mtime_ns))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[DiskCache]:
    cache = DiskCache(tmp_path / "cache")
    yield cache
    cache.close()


def test_an_unchanged_file_is_made_once(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    assert [cache.get(str(file)) for _ in range(3)] == ["ONE"] * 3
    assert FingerprintCache(maker.recipe(), disk).get(str(file)) == "ONE"  # after a restart
    assert maker.made == ["one"]
    entry = cache.entry(str(file))
    assert entry is not None and entry.fingerprint.mtime_ns == OLD_NS and entry.fingerprint.size == 3


def test_a_changed_file_is_made_again(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    cache.get(str(file))
    write(file, "two", OLD_NS + 5)
    assert cache.get(str(file)) == "TWO"
    write(file, "three", OLD_NS + 5)
    assert cache.get(str(file)) == "THREE"


def test_a_touched_file_costs_a_read_and_no_work(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    cache.get(str(file))
    write(file, "one", OLD_NS + 10**12)
    assert cache.get(str(file)) == "ONE" and maker.made == ["one"]
    entry = FingerprintCache(maker.recipe(), disk).entry(str(file))
    assert entry is not None and entry.fingerprint.mtime_ns == OLD_NS + 10**12


def test_a_change_within_the_clocks_tick_is_seen(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk, clock_ns=lambda: OLD_NS + RACY_NS // 2)
    cache.get(str(file))
    write(file, "two", OLD_NS)  # same size, same time
    assert cache.get(str(file)) == "TWO"


def test_another_version_is_a_miss(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    cache.get(str(file))
    maker.version = "2"
    assert cache.get(str(file)) == "ONE" and len(maker.made) == 2


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "x",
        [1, 2, 3],
        {"a": 1},
        [1, "1", "PATH", "t", 3, "d", 0, "v"],
        [1, "1", "PATH", 1, 3, "d", 0, 7],
    ],
)
def test_a_foreign_entry_is_a_miss(maker: Maker, file: Path, disk: DiskCache, row: object) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    path = str(file)
    if isinstance(row, list):
        row = [path if value == "PATH" else value for value in row]
    disk.put_json(cache._key(path, "1"), row)
    assert cache.get(path) == "ONE"


def test_an_entry_of_another_path_is_a_miss(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    other = file.with_name("b.py")
    write(other, "two")
    cache.get(str(other))
    disk.put_json(cache._key(str(file), "1"), disk.get_json(cache._key(str(other), "1")))
    assert FingerprintCache(maker.recipe(), disk).get(str(file)) == "ONE"


def test_what_is_not_read(maker: Maker, file: Path, tmp_path: Path) -> None:
    cache = FingerprintCache(maker.recipe(), None, max_bytes=2)
    assert cache.get(str(file)) is None
    assert cache.get(str(tmp_path)) is None
    assert cache.get(str(tmp_path / "missing")) is None
    assert cache.get("a\0b") is None
    assert maker.made == []


def test_no_value_and_forgetting(maker: Maker, file: Path, disk: DiskCache) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    cache.get(str(file))
    assert cache.peek(str(file)) == "ONE"
    cache.forget(str(file))
    assert cache.peek(str(file)) is None
    cache.get(str(file))
    assert len(maker.made) == 2
    file.unlink()
    assert cache.get(str(file)) is None and cache.peek(str(file)) is None
    write(file, "nothing")
    assert cache.get(str(file)) is None


def test_a_text_at_hand_is_recalled_without_reading_its_file(maker: Maker, disk: DiskCache, tmp_path: Path) -> None:
    path = str(tmp_path / "never written.py")
    FingerprintCache(maker.recipe(), disk).keep(path, b"one", "ONE")
    cache = FingerprintCache(maker.recipe(), disk)  # after a restart
    assert cache.recall(path, b"one") == cache.recall(path, b"one") == "ONE"
    assert cache.recall(path, b"two") is None and cache.recall(path + "x", b"one") is None
    maker.version = "2"
    assert cache.recall(path, b"one") is None and maker.made == []


def test_what_was_kept_of_a_text_serves_its_file_only_if_the_content_agrees(
    maker: Maker, file: Path, disk: DiskCache
) -> None:
    cache = FingerprintCache(maker.recipe(), disk)
    cache.keep(str(file), b"two", "TWO")
    assert cache.get(str(file)) == "ONE" and maker.made == ["one"]
    cache.keep(str(file), b"one", "KEPT")
    assert cache.get(str(file)) == "KEPT" and maker.made == ["one"]
    assert cache.recall(str(file), b"one") == "KEPT"


def test_outlines_of_files(tmp_path: Path, disk: DiskCache) -> None:
    source = tmp_path / "a.py"
    write(source, '\ufeffdef f(a):\n    """Does f."""\n    return g(a)\n')
    cache = outline_cache(disk)
    made = cache.get(str(source))
    assert made is not None and [(node.name, node.doc, node.calls) for node in made.nodes] == [
        ("f", "Does f.", ("g",))
    ]
    again = outline_cache(disk)
    assert again.get(str(source)) == made and again.made == 0
    write(tmp_path / "a.bin", "x")
    assert cache.get(str(tmp_path / "a.bin")) is None
    assert cache.stats().bytes > 0
