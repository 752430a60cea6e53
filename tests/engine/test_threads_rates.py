"""Thread choice and measured rates."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple

import pytest

from lsp_complete.engine.rates import Rates
from lsp_complete.engine.threads import (
    CpuSample,
    ThreadGovernor,
    choose_threads,
    read_cpu,
    taken_by_others,
    usable_cores,
)


def test_threads_follow_the_cores_that_others_leave() -> None:
    assert [choose_threads(2, 0, taken) for taken in (0.0, 0.3, 0.6, 1.0, 1.9, 5.0)] == [2, 2, 1, 1, 1, 1]
    assert [choose_threads(8, 0, taken) for taken in (0.2, 1.0, 3.9)] == [8, 7, 4]
    assert choose_threads(4, 4, 3.0) == 4  # hyper-threads beyond the limit take the load


def test_the_governor_reacts_and_recovers() -> None:
    samples = [CpuSample(0.0, 0.0, 0.0)]
    governor = ThreadGovernor(2, 2, lambda: samples[-1])

    def run(seconds: float, others: float, own: float) -> int:
        last = samples[-1]
        used = seconds * (others + own)
        samples.append(CpuSample(last.at + seconds, last.busy + used, last.own + seconds * own))
        governor.update(samples[-1].at)
        return governor.threads

    assert run(0.5, 0.0, 2.0) == 2
    assert run(0.1, 1.0, 1.0) == 2  # too soon to look
    assert run(0.5, 1.0, 1.0) == 1
    assert run(0.5, 1.0, 1.0) == 1
    for _ in range(4):
        last = run(0.5, 0.05, 1.0)
    assert last == 2


def test_reading_the_system_gives_sums_that_grow() -> None:
    a, b = read_cpu(), read_cpu()
    assert b.at >= a.at and b.busy >= a.busy and taken_by_others(a, a) == 0.0


def test_processes_that_give_way_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    row = namedtuple("row", ("user", "nice", "system", "idle", "iowait"))
    monkeypatch.setattr("psutil.cpu_times", lambda percpu: [row(10.0, 5.0, 1.0, 100.0, 2.0)] * (max(usable_cores()) + 1))
    cores = len(usable_cores())
    assert read_cpu().busy == 16.0 * cores and read_cpu(niced=False).busy == 11.0 * cores


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_giving_way_is_the_lowest_priority_in_each_way() -> None:
    """In a process of its own: there is no way back."""
    code = (
        "import os, threading; from pathlib import Path; from lsp_complete.engine.giveway import give_way; give_way(); told = []\n"
        "t = threading.Thread(target=lambda: told.append((os.nice(0), os.sched_getscheduler(0) == os.SCHED_IDLE))); t.start(); t.join()\n"
        "print(os.nice(0), told, Path('/proc/self/oom_score_adj').read_text().strip())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "19 [(19, True)] 900"


def test_rates_decide_about_restoring() -> None:
    rates = Rates()
    assert rates.prefill_tps == 0.0
    rates.step(100, 1, 400.0)
    rates.step(1, 1, 17.0)
    assert rates.prefill_tps == 250.0 and rates.decode_ms == 17.0
    rates.step(200, 1, 8000.0)
    assert rates.prefill_token_ms == 4.0 + 0.2 * 36.0
    assert rates.worth_restoring(100, 1 << 20, disk=True)
    rates.restored(1 << 20, 100_000.0, disk=True)
    assert not rates.worth_restoring(100, 1 << 20, disk=True)
    assert rates.worth_restoring(100, 1 << 20, disk=False)
