"""The machine: cores, memory that may be used, instruction sets, GPUs that are there.

Rules: read-only and quick. A container's limits count, not the host's figures.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
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
    memory = psutil.virtual_memory()
    limit = _cgroup_room(CGROUP)
    free = memory.available if limit is None else min(memory.available, limit)
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    cores = max(1, min(usable, psutil.cpu_count(logical=False) or usable))
    name, flags = parse_cpuinfo(_read(Path("/proc/cpuinfo")))
    gpus, gpu_free = parse_nvidia_smi(_nvidia_smi())
    if sys.platform == "darwin" and platform.machine() == "arm64":
        gpus, gpu_free = ("Apple GPU (Metal)",), free
    return Machine(
        platform.platform(),
        name or platform.processor() or platform.machine(),
        cores,
        free,
        memory.total,
        psutil.getloadavg()[0] / usable,
        flags,
        gpus,
        gpu_free,
    )


def free_memory() -> int:
    """Bytes of main memory that this process and its children may still take."""
    limit = _cgroup_room(CGROUP)
    available = int(psutil.virtual_memory().available)
    return available if limit is None else min(available, limit)


def _cgroup_room(root: Path) -> int | None:
    """Bytes left under this container's memory limit; None if there is none."""
    try:
        most = int((root / "memory.max").read_text())
        return max(0, most - int((root / "memory.current").read_text()))
    except (OSError, ValueError):
        return None


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


def parse_nvidia_smi(text: str) -> tuple[tuple[str, ...], int]:
    """(names, most free bytes) of lines `name, free MiB`."""
    names, free = [], 0
    for line in text.splitlines():
        name, _, room = line.rpartition(",")
        if name and room.strip().isdigit():
            names.append(name.strip())
            free = max(free, int(room) << 20)
    return tuple(names), free


def _nvidia_smi() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, "--query-gpu=name,memory.free", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
