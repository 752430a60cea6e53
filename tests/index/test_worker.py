"""The background worker: cold, warm, changes, open documents, helpers, privacy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_complete.index.index import SymbolIndex
from lsp_complete.index.walk import Guard, Rules
from lsp_complete.index.worker import IndexWorker
from tests.index.test_walk import put

SECRET = "VERY_SECRET_TOKEN_1234"


class Memory:
    """A cache in memory that can be looked through."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def get_bytes(self, key: str) -> bytes | None:
        return self.rows.get(key)

    def put_bytes(self, key: str, value: bytes) -> None:
        self.rows[key] = value


class Bench:
    """A workspace, and workers on it that share a cache."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root, Memory()
        self.workers: list[IndexWorker] = []
        self.told: list[tuple[int, int]] = []

    def start(self, rules: Rules | None = None, helpers: int = 0) -> IndexWorker:
        worker = IndexWorker(
            SymbolIndex(),
            Guard([self.root], rules, self.root / "none"),
            self.cache,
            lambda done, total: self.told.append((done, total)),
            helpers=helpers,
        )
        self.workers.append(worker)
        worker.scan()
        assert worker.wait_idle(60)
        return worker

    def old(self) -> None:
        """Let all files look as if written long ago, so that their times can be trusted."""
        for path in self.root.rglob("*"):
            if path.is_file():
                os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for worker in made.workers:
        worker.close()
        assert worker.problems == 0


def names(worker: IndexWorker) -> list[str]:
    return [os.path.basename(path) for path in worker.index.paths()]


def test_cold_then_warm_reads_nothing(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n", "b.py": "def g(): f()\n", "c.py": "# @generated\n"})
    bench.old()
    cold = bench.start()
    assert names(cold) == ["a.py", "b.py"] and cold.stats().read == 3
    warm = bench.start()
    assert names(warm) == ["a.py", "b.py"] and (warm.stats().read, warm.stats().cached) == (0, 3)
    assert [hit.definition.name for hit in warm.index.users("f")] == ["g"]
    assert bench.told[-1] == (3, 3)


def test_only_what_changed_is_read_again(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})
    bench.old()
    bench.start()
    put(bench.root, {"a.py": "def other(): pass\n"})
    again = bench.start()
    assert again.stats().read == 1
    assert again.index.lookup("f") == [] and len(again.index.lookup("other")) == 1


def test_a_damaged_cache_is_an_empty_one(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n"})
    bench.old()
    bench.start()
    for key in bench.cache.rows:
        bench.cache.rows[key] = b"nonsense"
    worker = bench.start()
    assert worker.stats().read == 1 and len(worker.index.lookup("f")) == 1


def test_helpers_give_what_the_thread_gives(bench: Bench) -> None:
    put(bench.root, {f"m{n}.py": f"class C{n}:\n    def f(self): g{n}()\n" for n in range(40)})
    alone = bench.start()
    bench.cache.rows.clear()
    helped = bench.start(helpers=2)
    assert helped.index.paths() == alone.index.paths() and helped.stats().read == 40
    for n in (0, 39):
        assert helped.index.users(f"g{n}") == alone.index.users(f"g{n}")
    helped.index.check_integrity()


def test_changes_creations_and_deletions(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n", "sub/x.py": "def x(): pass\n", "sub/y.py": "def y(): pass\n"})
    worker = bench.start()
    put(bench.root, {"new.py": "def n(): pass\n"})
    worker.changed([str(bench.root / "new.py")])
    (bench.root / "a.py").unlink()
    worker.changed([str(bench.root / "a.py")])
    for name in ("x.py", "y.py"):
        (bench.root / "sub" / name).unlink()
    worker.changed([str(bench.root / "sub")])
    assert worker.wait_idle(10)
    assert names(worker) == ["new.py"]


def test_open_text_wins_until_closed(bench: Bench) -> None:
    put(bench.root, {"a.py": "def on_disk(): pass\n"})
    worker = bench.start()
    path = str(bench.root / "a.py")
    worker.opened(path, "def in_editor(): pass\n")
    worker.changed([path])
    worker.scan()
    assert worker.wait_idle(10)
    assert len(worker.index.lookup("in_editor")) == 1 and worker.index.lookup("on_disk") == []
    worker.closed(path)
    assert worker.wait_idle(10)
    assert len(worker.index.lookup("on_disk")) == 1


def test_paused_reads_nothing_until_resumed(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n"})
    worker = bench.start()
    worker.pause(True)
    worker.opened(str(bench.root / "a.py"), "def g(): pass\n")
    assert not worker.wait_idle(0)
    assert worker.index.lookup("g") == []
    worker.pause(False)
    assert worker.wait_idle(10) and len(worker.index.lookup("g")) == 1


def test_secret_and_ignored_text_never_reaches_index_or_cache(bench: Bench) -> None:
    put(
        bench.root,
        {
            ".gitignore": "private/\n",
            "a.py": "def f(): pass\n",
            ".env.py": f"KEY = '{SECRET}'\n",
            "private/b.py": f"def {SECRET}(): pass\n",
            "vault/c.py": f"def {SECRET}(): pass\n",
            "id_rsa": SECRET,
        },
    )
    worker = bench.start(Rules(secrets=("vault/",)))
    worker.opened(str(bench.root / "private" / "b.py"), f"def {SECRET}(): pass\n")
    worker.opened(str(bench.root / ".env.py"), f"def {SECRET}(): pass\n")
    worker.changed([str(bench.root / name) for name in ("private/b.py", ".env.py", "vault/c.py", "id_rsa")])
    assert worker.wait_idle(10)
    assert names(worker) == ["a.py"] and worker.index.lookup(SECRET) == []
    assert all(SECRET.encode() not in row for row in bench.cache.rows.values())


def test_a_file_that_becomes_ignored_is_forgotten(bench: Bench) -> None:
    put(bench.root, {"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})
    worker = bench.start()
    put(bench.root, {".gitignore": "b.py\n"})
    worker.changed([str(bench.root / ".gitignore")])
    assert worker.wait_idle(10) and names(worker) == ["a.py"]


def test_a_scan_that_fails_still_says_that_it_has_ended(tmp_path: Path) -> None:
    put(tmp_path, {"a.py": "def f(): pass\n"})

    class Full(Memory):
        def put_bytes(self, key: str, value: bytes) -> None:
            raise OSError("no space")

    told: list[tuple[int, int]] = []
    worker = IndexWorker(
        SymbolIndex(), Guard([tmp_path], None, tmp_path / "none"), Full(), lambda *now: told.append(now), helpers=0
    )
    worker.scan()
    assert worker.wait_idle(60)
    worker.close()
    assert worker.problems == 1 and told[-1] == (1, 1)
