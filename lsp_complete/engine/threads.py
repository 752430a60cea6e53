"""How many threads llama.cpp gets: by what the cores do now.

Strategy: llama.cpp's threads wait for each other after every operation by spinning, so one thread on a core that another
process uses makes all of them slow (here: 2 threads on 2 cores with one taken were up to 30 times slower than 1). So
the number follows the cores that others leave free, sampled from the system's own accounting a few times a second.

Rules: pure decisions over samples; reading the counters is one injected function. Never below 1 or above the limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

_EVERY_S = 0.3
_TAKEN = 0.45
_SMOOTH = 0.6


@dataclass(frozen=True, slots=True)
class CpuSample:
    """At `at` seconds: CPU seconds used so far by everybody on our cores, and by this process."""

    at: float
    busy: float
    own: float


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def default_threads() -> int:
    """Physical cores that this process may use (hyper-threads do not help matrix products)."""
    import psutil

    usable = len(usable_cores())
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))


def read_cpu(niced: bool = True) -> CpuSample:
    """The system's counters now. niced: also the time of processes of low priority, which leave a core as soon as it is wanted."""
    import psutil

    times = psutil.cpu_times(percpu=True)
    cores = [c for c in usable_cores() if c < len(times)]
    idle = ("idle", "iowait") if niced else ("idle", "iowait", "nice")
    busy = sum(
        sum(v for k, v in times[c]._asdict().items() if k not in (*idle, "guest", "guest_nice"))
        for c in cores
    )
    return CpuSample(time.monotonic(), busy, time.process_time())


def taken_by_others(before: CpuSample, after: CpuSample) -> float:
    """Cores that other processes used between two samples."""
    wall = after.at - before.at
    if wall <= 0:
        return 0.0
    return max(0.0, (after.busy - before.busy) - (after.own - before.own)) / wall


def choose_threads(limit: int, spare_cores: int, taken: float) -> int:
    """Threads for `taken` cores in use by others. spare_cores: usable cores beyond `limit` (hyper-threads)."""
    lost = max(0.0, taken - spare_cores)
    return max(1, min(limit, limit - int(lost + 1.0 - _TAKEN)))


class ThreadGovernor:
    """Follows the load. Engine thread, asked before each step."""

    def __init__(self, limit: int, cores: int, read: Callable[[], CpuSample] = read_cpu) -> None:
        self._limit = limit
        self._spare = max(0, cores - limit)
        self._read = read
        self._last = read()
        self._taken = 0.0
        self.threads = limit

    def update(self, now: float) -> bool:
        """Sample if it is time; True if the number of threads changed. now: seconds on the sampler's clock."""
        if now - self._last.at < _EVERY_S:
            return False
        sample = self._read()
        taken = taken_by_others(self._last, sample)
        self._last = sample
        self._taken += _SMOOTH * (taken - self._taken)
        threads = choose_threads(self._limit, self._spare, self._taken)
        changed = threads != self.threads
        self.threads = threads
        return changed
