"""What every benchmark's result is wrapped in, so that two results can be compared: version, machine, settings, seed.

Rules: nothing that names a person, a host or a folder; values that survive JSON.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from .. import __version__

FORMAT = 1


def commit() -> str:
    """Short git commit of the running source tree, with "+" if it has changes; "" where it is no clone."""
    tree = Path(__file__).resolve().parents[2]
    if not (tree / ".git").exists():
        return ""
    try:
        head = subprocess.run(
            ["git", "-C", str(tree), "describe", "--always", "--dirty=+", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip()


def cpu_model() -> str:
    """The processor's name, as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system."""
    return {
        "cpu": cpu_model(),
        "cores": cores(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def envelope(
    bench: str,
    result: Mapping[str, Any],
    *,
    model: str,
    settings: Mapping[str, Any],
    seed: int,
    repetitions: int = 1,
) -> dict[str, Any]:
    """The result with its circumstances. model: a name, or a file's name without its folder."""
    return {
        "format": FORMAT,
        "bench": bench,
        "product": {"name": "lsp-complete", "version": __version__, "commit": commit()},
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "model": Path(model).name,
        "settings": dict(settings),
        "seed": seed,
        "repetitions": repetitions,
        **result,
    }
