"""Loads llama.cpp, and runs a model for a few seconds, in a child process.

Strategy: parent and child are this file. The child gets a model path (or none) as JSON on its input and prints one JSON
line: what the build can use, and the measured speed. If it dies, how it died is the result.

Rules: the best chunk and the lower quartile of single tokens count, since other programs only ever make it slower. The
child runs in a folder where nothing of a stranger's can be imported, at the user's own priority.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

from lsp_complete.engine.launch import child_environment
from lsp_complete.models.fit import Speed

CHUNK, CHUNKS, DECODED, MOST_SECONDS = 128, 6, 24, 8.0
TEXT = "def total(items: list[int]) -> int:\n    result = 0\n    for item in items:\n        result += item\n    return result\n\n\n"


@dataclass(frozen=True, slots=True)
class Probe:
    """What the child said. error: why there is no more than this, "" if nothing failed. version, backends, features,
    gpu: as `NativeInfo`. speed: None if no model was run. repacked: False if this build's matrix instructions fault here."""

    error: str = ""
    version: str = ""
    backends: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    gpu: bool = False
    speed: Speed | None = None
    repacked: bool = True


def run_probe(model_path: str = "", *, gpu_layers: int = 0, timeout: float = 180.0) -> Probe:
    """Start the child and wait for it. model_path "" only loads the library. Seconds; never raises for what the child does."""
    request = json.dumps({"model_path": model_path, "gpu_layers": gpu_layers})
    with tempfile.TemporaryDirectory(prefix="lsp-complete-doctor-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "lsp_complete.doctor.probe"],
                input=request,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                cwd=folder,
                env=child_environment(os.environ),
            )
        except subprocess.TimeoutExpired:
            return Probe(f"it took longer than {timeout:.0f} s")
    return read_answer(done.stdout, done.stderr, done.returncode)


def read_answer(output: str, errors: str, code: int) -> Probe:
    """The child's JSON lines (the last one of each kind counts), or how it ended without one."""
    values: dict[str, object] = {}
    for line in output.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            values.update(found)
    speed = values.get("speed")
    return Probe(
        error=str(values.get("error", "")) or (_death(errors, code) if code else ""),
        version=str(values.get("version", "")),
        backends=_words(values.get("backends")),
        features=_words(values.get("features")),
        gpu=values.get("gpu") is True,
        speed=Speed(**speed) if isinstance(speed, dict) else None,
        repacked=values.get("repacked") is not False,
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _death(errors: str, code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"the process was ended by {name}"
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"the process ended with status {code}"


def _child() -> int:
    request = json.loads(sys.stdin.read())
    try:
        from lsp_complete.engine.llama_info import native_info

        print(json.dumps(asdict(native_info())), flush=True)
        if request["model_path"]:
            speed, repacked = _measure(str(request["model_path"]), int(request["gpu_layers"]))
            print(json.dumps({"speed": asdict(speed), "repacked": repacked}), flush=True)
    except Exception as error:  # the parent shows it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return 1
    return 0


def _measure(path: str, gpu_layers: int) -> tuple[Speed, bool]:
    from lsp_complete.engine.backend import Segment, Status
    from lsp_complete.engine.llama import load
    from lsp_complete.engine.options import EngineOptions
    from lsp_complete.engine.threads import default_threads

    backend = load(EngineOptions(path, context=1024, slots=1, gpu_layers=gpu_layers, n_ubatch=CHUNK))
    try:
        tokens = (tuple(backend.vocab.tokenize(TEXT)) * CHUNK * CHUNKS)[: CHUNK * CHUNKS + DECODED]

        def run(start: int, count: int) -> float:
            began = time.perf_counter()
            if backend.decode((Segment(0, start, tokens[start : start + count], 1),)) is not Status.OK:
                raise RuntimeError("llama.cpp failed to evaluate a prompt")
            return time.perf_counter() - began

        spent, best, place = run(0, CHUNK), float("inf"), CHUNK  # the first pass reads the weights from disk
        while place < CHUNK * CHUNKS and (place == CHUNK or spent < MOST_SECONDS):
            took = run(place, CHUNK)
            spent, best, place = spent + took, min(best, took), place + CHUNK
        times = sorted(run(place + step, 1) for step in range(DECODED))
        prefill, decode = CHUNK / best, times[DECODED // 4] * 1e3
        info = backend.info
        return Speed(prefill, decode, info.size_bytes, info.parameters, default_threads()), backend.repacked
    finally:
        backend.close()


if __name__ == "__main__":
    sys.exit(_child())
