"""How much memory is free: main memory within a container's limits, and GPU memory where a tool tells.

Rules: read-only and quick. A container's limits count, not the host's figures; pages of files that it may give back count as free.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")


def free_memory(root: Path = CGROUP) -> int:
    """Bytes of main memory that this process and its children may still take."""
    limit = cgroup_room(root)
    available = int(psutil.virtual_memory().available)
    return available if limit is None else min(available, limit)


def cgroup_room(root: Path) -> int | None:
    """Bytes left under this container's memory limit; None if there is none."""
    try:
        most = int((root / "memory.max").read_text())
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return max(0, most - max(0, used - _reclaimable(root)))


def _reclaimable(root: Path) -> int:
    """Bytes of file pages that were not used lately: the kernel drops them before it refuses anything."""
    try:
        for line in (root / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "inactive_file":
                return int(value)
    except (OSError, ValueError):
        pass
    return 0


def gpus() -> tuple[tuple[str, ...], int]:
    """(names of GPUs that a tool on this machine tells, bytes free on the roomiest one; 0 unknown). Up to some seconds."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return ("Apple GPU (Metal)",), free_memory()
    return parse_nvidia_smi(_nvidia_smi())


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
