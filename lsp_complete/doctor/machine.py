"""The machine: cores, memory that may be used, instruction sets, GPUs that are there.

Rules: read-only and quick. A container's limits count, not the host's figures.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from lsp_complete.models.free import free_memory, gpus

_FLAG_NAMES = {
    "avx": "AVX",
    "avx2": "AVX2",
    "fma": "FMA",
    "f16c": "F16C",
    "avx512f": "AVX512",
    "avx512_vnni": "AVX512_VNNI",
    "avx_vnni": "AVX_VNNI",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """cores: physical ones that this process may use. free, total: bytes of main memory. load: waiting processes per core.

    flags: instruction sets of the CPU, in llama.cpp's spelling (empty where the system does not tell).
    gpus: GPUs that a tool on this machine names. gpu_free: bytes free on the roomiest one (0 unknown).
    """

    system: str
    cpu: str
    cores: int
    free: int
    total: int
    load: float
    flags: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    gpu_free: int = 0


def look() -> Machine:
    """The machine as it is now. About 0.1 s, with a GPU tool up to some seconds."""
    free, total = free_memory(), psutil.virtual_memory().total
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    cores = max(1, min(usable, psutil.cpu_count(logical=False) or usable))
    name, flags = parse_cpuinfo(_read(Path("/proc/cpuinfo")))
    names, gpu_free = gpus()
    return Machine(
        platform.platform(),
        name or platform.processor() or platform.machine(),
        cores,
        free,
        total,
        psutil.getloadavg()[0] / usable,
        flags,
        names,
        gpu_free,
    )


def parse_cpuinfo(text: str) -> tuple[str, tuple[str, ...]]:
    """(model name, instruction sets that matter) of Linux's /proc/cpuinfo."""
    name, flags = "", set()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and not name:
            name = value.strip()
        elif key.strip() in ("flags", "Features"):
            flags |= set(value.split())
    return name, tuple(ours for theirs, ours in _FLAG_NAMES.items() if theirs in flags)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
