"""The inverted index: from a name to where it is defined and where it is called.

Strategy: a file has a number; for each name there is an array of (file number, definition) pairs packed into one integer. Replacing a file
gives it a new number and leaves the old entries behind; a look-up passes over dead ones, and when they are a third of all,
they are swept out, a few names at a time. So updating costs what the file holds, never what the workspace holds.

Rules:
- One lock around every method, held for microseconds to a few milliseconds; any thread.
- A name called in more than MAX_USES functions says nothing about any of them: further uses are not kept.
- What is returned are values; they stay right for the file as it was indexed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from lsp_complete.index.symbols import Definition, FileSymbols

MAX_USES = 256
MAX_HITS = 32
_BITS = 20
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True)
class Hit:
    """A definition and the file it stands in (absolute path)."""

    path: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What the index holds. bytes: of symbol records and tables, nearly."""

    files: int
    definitions: int
    names: int
    bytes: int


class SymbolIndex:
    """See the module's rules."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        self._files: dict[int, tuple[str, FileSymbols]] = {}
        self._next = 0
        self._defined: dict[str, array[int]] = {}
        self._used: dict[str, array[int]] = {}
        self._by_stem: dict[str, set[str]] = {}
        self._alive = self._dead = 0

    def update(self, path: str, symbols: FileSymbols) -> None:
        """Put a file in, or in the place of what was known of it."""
        names = [symbols.name(index) for index in range(symbols.count)]
        uses = list(symbols.uses())
        with self._lock:
            self._remove(path)
            number = self._next
            self._next += 1
            self._numbers[path] = number
            self._files[number] = (path, symbols)
            self._by_stem.setdefault(stem_of(path), set()).add(path)
            base = number << _BITS
            for index, name in enumerate(names):
                places = self._defined.get(name)
                if places is None:
                    self._defined[name] = array("Q", (base | index,))
                else:
                    places.append(base | index)
            for index, name in uses:
                places = self._used.get(name)
                if places is None:
                    self._used[name] = array("Q", (base | index,))
                elif len(places) < MAX_USES:
                    places.append(base | index)
            self._alive += len(names) + len(uses)
        self._sweep()

    def remove(self, path: str) -> None:
        """Forget a file."""
        with self._lock:
            self._remove(path)
        self._sweep()

    def _remove(self, path: str) -> None:
        number = self._numbers.pop(path, None)
        if number is None:
            return
        _, symbols = self._files.pop(number)
        stem = self._by_stem.get(stem_of(path), set())
        stem.discard(path)
        if not stem:
            self._by_stem.pop(stem_of(path), None)
        gone = symbols.count + sum(1 for _ in symbols.uses())
        self._dead += gone
        self._alive -= gone

    def _sweep(self) -> None:
        """Drop dead entries once they are many; the lock is given away between parts."""
        with self._lock:
            if self._dead < 10_000 or self._dead * 2 < self._alive:
                return
            self._dead = 0
            tables = [(table, list(table)) for table in (self._defined, self._used)]
        for table, names in tables:
            for start in range(0, len(names), 500):
                with self._lock:
                    for name in names[start : start + 500]:
                        self._swept(table, name)

    def _swept(self, table: dict[str, array[int]], name: str) -> None:
        places = table.get(name)
        if places is None:
            return
        kept = array("Q", (place for place in places if place >> _BITS in self._files))
        if kept:
            table[name] = kept
        else:
            del table[name]

    def lookup(self, name: str, limit: int = MAX_HITS) -> list[Hit]:
        """Where a name is defined, at most `limit` places, the files indexed last first."""
        with self._lock:
            return self._hits(self._defined.get(name), limit)

    def users(self, name: str, limit: int = MAX_HITS) -> list[Hit]:
        """Functions that call something of this name."""
        with self._lock:
            return self._hits(self._used.get(name), limit)

    def count(self, name: str) -> int:
        """How often a name is defined (dead entries included: an upper bound). For judging how telling it is."""
        with self._lock:
            return len(self._defined.get(name, ()))

    def _hits(self, places: array[int] | None, limit: int) -> list[Hit]:
        found: list[Hit] = []
        for place in reversed(places) if places is not None else ():
            file = self._files.get(place >> _BITS)
            if file is not None:
                found.append(Hit(file[0], file[1].definition(place & _MASK)))
                if len(found) >= limit:
                    break
        return found

    def members(self, path: str, container: str) -> list[Definition]:
        """Definitions directly inside `container` (its qualified name) of a file, in order."""
        with self._lock:
            number = self._numbers.get(path)
            symbols = self._files[number][1] if number is not None else None
        if symbols is None:
            return []
        return [found for found in symbols.definitions() if found.container == container]

    def file(self, path: str) -> FileSymbols | None:
        """What is known of a file."""
        with self._lock:
            number = self._numbers.get(path)
            return self._files[number][1] if number is not None else None

    def with_stem(self, stem: str) -> list[str]:
        """Paths of files of this name without its ending, or of folders' index files; sorted."""
        with self._lock:
            return sorted(self._by_stem.get(stem, ()))

    def paths(self) -> list[str]:
        """All files, sorted."""
        with self._lock:
            return sorted(self._numbers)

    def keep_only(self, paths: Iterable[str]) -> None:
        """Forget all files but these."""
        wanted = set(paths)
        for path in self.paths():
            if path not in wanted:
                self.remove(path)

    def stats(self) -> IndexStats:
        """Sizes, for status and benchmarks. Walks the tables."""
        with self._lock:
            size = sum(symbols.size_bytes() for _, symbols in self._files.values())
            size += sum(160 + 8 * len(places) for table in (self._defined, self._used) for places in table.values())
            definitions = sum(symbols.count for _, symbols in self._files.values())
            return IndexStats(len(self._files), definitions, len(self._defined), size)

    def check_integrity(self) -> None:
        """The conservation law: every definition of every file is found under its name, and counted once."""
        with self._lock:
            assert set(self._numbers.values()) == set(self._files)
            for number, (path, symbols) in self._files.items():
                assert self._numbers[path] == number and path in self._by_stem[stem_of(path)]
                for index in range(symbols.count):
                    assert (number << _BITS | index) in self._defined[symbols.name(index)]


_INDEX_NAMES = frozenset({"__init__", "index", "mod", "lib", "main"})


def stem_of(path: str) -> str:
    """The module name that a path stands for: the file's name, or its folder's for an index file."""
    parts = path.replace("\\", "/").split("/")
    stem = parts[-1].split(".")[0] or parts[-1]
    return parts[-2] if stem in _INDEX_NAMES and len(parts) > 1 else stem
