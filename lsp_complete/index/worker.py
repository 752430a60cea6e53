"""Keeping the index up to date in the background.

Strategy: one thread ("index") takes work from a queue: a scan of the workspace, single files that changed. A scan loads what the
cache knows, and has the rest read: a few files by the thread itself, many by helper processes, one per core, each fed by a
thread that only waits. What is likely to be needed is read first (`waiting.py`): what open documents import, then the files edited
last. While the user types everything stops after the file at hand.

Rules:
- Nothing is read that `Guard` does not pass; it is asked again for every single change.
- Text of open documents wins over the disk until they are closed.
- No timer: a slow rescan happens when something changed and the last scan is RESCAN_SECONDS old. Idle means idle.
- `progress(done, total)` is called from the index thread, a few times a second at most, and once with done = total at the end of a
  scan, also of one that failed or was stopped.
- Nothing raises out of a thread; `problems` counts what went wrong. `close` ends all threads and helpers.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread

from lsp_complete.index.extract import Extracted, Helper, extract_file, extract_text
from lsp_complete.index.index import SymbolIndex
from lsp_complete.index.manifest import (
    Cache,
    Known,
    NoCache,
    load_manifest,
    load_symbols,
    store_manifest,
    store_symbols,
)
from lsp_complete.index.waiting import Waiting
from lsp_complete.index.walk import FileEntry, Guard, walk

HELPERS_FROM = 24
"""Files to read from which helper processes are worth their start."""
MAX_HELPERS = 4
RESCAN_SECONDS = 600.0
PROGRESS_SECONDS = 0.2
SAVE_EVERY = 2_000
MAX_WANTED = 500
"""Names of files that are remembered as likely to be needed."""
IGNORE_FILES = frozenset({".gitignore", "exclude"})

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """read: files parsed since the start; cached: loaded without parsing. scan_seconds: of the last whole scan."""

    read: int
    cached: int
    scans: int
    scan_seconds: float
    problems: int


class Gate:
    """Open unless paused. `wait` blocks while it is shut; `shut` twice needs no two openings."""

    def __init__(self) -> None:
        self._open = Event()
        self._open.set()

    def pause(self, paused: bool) -> None:
        """Shut or open. Any thread."""
        if paused:
            self._open.clear()
        else:
            self._open.set()

    def wait(self) -> None:
        """Wait until it is open."""
        self._open.wait()


class IndexWorker:
    """See the module's rules. guard decides what is read; cache keeps results between runs."""

    def __init__(
        self,
        index: SymbolIndex,
        guard: Guard,
        cache: Cache | None = None,
        progress: Progress = lambda _done, _total: None,
        *,
        helpers: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index, self.guard = index, guard
        self._cache: Cache = cache or NoCache()
        self._progress, self._clock = progress, clock
        self._helpers = min(os.cpu_count() or 1, MAX_HELPERS) if helpers is None else helpers
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._gate, self._stop = Gate(), Event()
        self._lock, self._idle = Lock(), Condition()
        self._pending = 0
        self._open: dict[str, str] = {}
        self._known: dict[str, Known] = {}
        self._wanted: list[str] = []
        self._waiting: Waiting | None = None
        self._read = self._cached = self._scans = self.problems = 0
        self._scanned_at, self._scan_seconds = -RESCAN_SECONDS, 0.0
        self._thread = Thread(target=self._run, name="index", daemon=True)
        self._thread.start()

    # -- what callers ask for, from any thread ------------------------------------------------------

    def scan(self) -> None:
        """Bring the whole workspace up to date."""
        self._put(self._scan)

    def changed(self, paths: Iterable[str]) -> None:
        """Files were written, created or deleted."""
        wanted = list(paths)
        if any(os.path.basename(path) in IGNORE_FILES for path in wanted):
            self.guard.forget()
            self.scan()
            return
        self._put(lambda: self._refresh(wanted))

    def opened(self, path: str, text: str) -> None:
        """An open document's text as it is now; it stands for the file until `closed`."""
        with self._lock:
            self._open[path] = text
        self._put(lambda: self._from_text(path))

    def closed(self, path: str) -> None:
        """The document was closed: the disk counts again."""
        with self._lock:
            self._open.pop(path, None)
        self.changed([path])

    def hurry(self, stems: Iterable[str]) -> None:
        """Files of these names (without folder and ending) are likely to be needed: a scan reads them first, also one that has
        begun. The names asked for last are remembered."""
        asked = list(stems)
        with self._lock:
            self._wanted = list(dict.fromkeys((*self._wanted, *asked)))[-MAX_WANTED:]
            waiting = self._waiting
        if waiting is not None:
            waiting.hurry(asked)

    def pause(self, paused: bool) -> None:
        """While paused nothing new is read."""
        self._gate.pause(paused)

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until all that was asked for is done. For tests, benchmarks and warming."""
        with self._idle:
            return self._idle.wait_for(lambda: self._pending == 0, timeout)

    def close(self) -> None:
        """Stop after the file at hand, and wait for the thread."""
        self._stop.set()
        self._gate.pause(False)
        self._queue.put(None)
        self._thread.join(10)

    def stats(self) -> WorkerStats:
        """Counters."""
        return WorkerStats(self._read, self._cached, self._scans, self._scan_seconds, self.problems)

    # -- the thread -------------------------------------------------------------------------------------

    def _put(self, job: Callable[[], None]) -> None:
        with self._idle:
            self._pending += 1
        self._queue.put(job)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None and not self._stop.is_set():
            try:
                job()
            except Exception:  # a failing job must not end the index
                self.problems += 1
            with self._idle:
                self._pending -= 1
                self._idle.notify_all()

    def _scan(self) -> None:
        started = self._clock()
        if not self._known:
            for root in self.guard.roots:
                found = load_manifest(self._cache, str(root))
                self._known.update({os.path.join(str(root), below): known for below, known in found.items()})
        entries = list(walk(self.guard))
        now_ns = time.time_ns()
        with self._lock:
            open_now = set(self._open)
        self.index.keep_only([*(entry.path for entry in entries), *open_now])
        paths = {entry.path for entry in entries}
        self._known = {path: known for path, known in self._known.items() if path in paths}
        meter = _Meter(self._progress, len(entries), self._clock)
        try:
            unread = [entry for entry in entries if entry.path not in open_now and not self._from_cache(entry, meter)]
            self._read_all(unread, now_ns, meter)
            self._save()
            self._scanned_at, self._scan_seconds = self._clock(), self._clock() - started
            self._scans += 1
        finally:
            meter.finish()

    def _from_cache(self, entry: FileEntry, meter: _Meter) -> bool:
        """Load a file's symbols if its content is known. False: it must be read."""
        known = self._known.get(entry.path)
        if self._stop.is_set() or known is None or not known.still(entry):
            return self._stop.is_set()
        if self._indexed_as(entry.path, known):
            meter.step()
            return True
        found = load_symbols(self._cache, entry.path, known.digest)
        if found is None:
            return False
        if not isinstance(found, bytes):
            self.index.update(entry.path, found)
        self._cached += 1
        meter.step()
        return True

    def _indexed_as(self, path: str, known: Known) -> bool:
        return self._scans > 0 and self.index.file(path) is not None and self._known.get(path) == known

    def _read_all(self, entries: list[FileEntry], now_ns: int, meter: _Meter) -> None:
        count = min(self._helpers, len(entries) // (HELPERS_FROM // 2)) if len(entries) >= HELPERS_FROM else 0
        waiting = Waiting(entries)
        with self._lock:
            waiting.hurry(self._wanted)
            self._waiting = waiting
        threads = [Thread(target=self._feed, args=(waiting, now_ns, meter), name=f"index-{n}") for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._drain(waiting, now_ns, meter)  # all of it if there are no helpers, else what they left behind
        with self._lock:
            self._waiting = None

    def _feed(self, waiting: Waiting, now_ns: int, meter: _Meter) -> None:
        """Have one helper read files until none is left. A helper that ends is not replaced."""
        try:
            helper = Helper(self.guard.rules.max_bytes)
        except OSError:
            self.problems += 1
            return
        try:
            while not self._stop.is_set():
                self._gate.wait()
                entry = waiting.take()
                if entry is None:
                    return
                self._take(entry, helper.extract(entry.path), now_ns)
                meter.step()
        except OSError:
            self.problems += 1
        finally:
            helper.close()

    def _drain(self, waiting: Waiting, now_ns: int, meter: _Meter) -> None:
        while not self._stop.is_set():
            self._gate.wait()
            entry = None if self._stop.is_set() else waiting.take()
            if entry is None:
                return
            self._take(entry, extract_file(entry.path, self.guard.rules.max_bytes), now_ns)
            meter.step()

    def _take(self, entry: FileEntry, found: Extracted | None, now_ns: int) -> None:
        """Into the index, the cache and the manifest, unless the document was opened meanwhile."""
        with self._lock:
            open_now = entry.path in self._open
            self._read += 1
        if open_now:
            return
        if found is None or found.symbols is None:
            self.index.remove(entry.path)
        else:
            self.index.update(entry.path, found.symbols)
        if found is not None:
            digest = found.digest.hex()
            store_symbols(self._cache, entry.path, digest, found.symbols)
            with self._lock:
                self._known[entry.path] = Known(entry.mtime_ns, entry.size, digest, now_ns)

    def _save(self) -> None:
        for root in self.guard.roots:
            head = os.path.join(str(root), "")
            with self._lock:
                known = {path[len(head) :]: value for path, value in self._known.items() if path.startswith(head)}
            store_manifest(self._cache, str(root), known)

    def _refresh(self, paths: list[str]) -> None:
        """Single files, and a scan if the last one is long ago."""
        if self._clock() - self._scanned_at > RESCAN_SECONDS and self._scans:
            self._scan()
            return
        for path in paths:
            self._gate.wait()
            with self._lock:
                open_now = path in self._open
            if self._stop.is_set() or open_now:
                continue
            entry = self.guard.indexable(path)
            if entry is None:
                self._forget(path)
            else:
                self._take(entry, extract_file(path, self.guard.rules.max_bytes), time.time_ns())

    def _forget(self, path: str) -> None:
        """A file that is gone, or a folder with all that was in it."""
        below = os.path.join(path, "")
        for gone in [path, *(known for known in self.index.paths() if known.startswith(below))]:
            self.index.remove(gone)
            with self._lock:
                self._known.pop(gone, None)

    def _from_text(self, path: str) -> None:
        with self._lock:
            text = self._open.get(path)
        if text is None or self.guard.indexable(path) is None:
            return
        self._gate.wait()
        symbols = extract_text(path, text)
        if symbols is not None:
            self.index.update(path, symbols)


class _Meter:
    """Progress of one scan, told at most every PROGRESS_SECONDS."""

    def __init__(self, progress: Progress, total: int, clock: Callable[[], float]) -> None:
        self._progress, self._total, self._clock = progress, total, clock
        self._done, self._told, self._lock = 0, clock(), Lock()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            now = self._clock()
            if now - self._told < PROGRESS_SECONDS:
                return
            self._told, done = now, self._done
        self._progress(min(done, self._total), self._total)

    def finish(self) -> None:
        self._progress(self._total, self._total)


