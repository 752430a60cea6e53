"""The checks: from what was found to findings. Pure, so each can be tried with values.

Rule: what is wrong comes with the exact thing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lsp_complete.doctor.findings import Finding
from lsp_complete.doctor.machine import Machine
from lsp_complete.doctor.probe import Probe
from lsp_complete.models.fit import MAX_DECODE_MS, MIN_PREFILL_TPS, Fit
from lsp_complete.models.installed import Installed
from lsp_complete.models.memory import least_need, megabytes

REBUILD = (
    "pip install --force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"
)
BUSY_LOAD = 0.7


def check_versions(versions: Mapping[str, str]) -> list[Finding]:
    """Python and the libraries that everything stands on."""
    missing = [name for name, version in versions.items() if version == "missing"]
    found = [
        Finding("fail", name, "is not installed", f"Install the program again; or: pip install {name}")
        for name in missing
    ]
    there = ", ".join(
        f"{name} {version}" for name, version in versions.items() if name not in missing and name != "system"
    )
    return [Finding("ok", "versions", there), *found]


def check_native(probe: Probe, machine: Machine) -> list[Finding]:
    """llama.cpp: whether it loads, and whether it uses what the machine has."""
    if not probe.version:
        reason = probe.error or "no reason given"
        illegal = "SIGILL" in reason
        remedy = (
            f"It was built for another CPU. Build it here: {REBUILD}"
            if illegal
            else f"Build it again: {REBUILD}"
        )
        return [Finding("fail", "llama.cpp", f"cannot be loaded: {reason}", remedy)]
    features = ", ".join(probe.features) or "no special instruction sets"
    found = [
        Finding("ok", "llama.cpp", f"{probe.version}, {' and '.join(probe.backends) or 'CPU'}: {features}")
    ]
    if not probe.repacked:
        found.append(
            Finding(
                "warn",
                "llama.cpp",
                "the matrix instructions (AMX) of this build fault on this processor; the engine goes on without them, slower",
                f"Its compiler was at fault. Build with GCC 13 or newer: CXX=g++-13 {REBUILD}\n"
                "With an older one, from a clone of this project: "
                f'CXXFLAGS="-include $PWD/scripts/amx-fix.h" {REBUILD}',
            )
        )
    unused = [
        flag
        for flag in machine.flags
        if flag in ("AVX2", "FMA", "AVX512", "AVX512_VNNI") and flag not in probe.features
    ]
    if unused:
        found.append(
            Finding(
                "warn",
                "llama.cpp",
                f"does not use {', '.join(unused)}, which this CPU has; it is slower than it could be",
                f'Build it here: CMAKE_ARGS="-DGGML_NATIVE=ON" {REBUILD}',
            )
        )
    if machine.gpus and not probe.gpu:
        kind = "GGML_METAL" if "Apple" in machine.gpus[0] else "GGML_CUDA"
        found.append(
            Finding(
                "note",
                "GPU",
                f"{machine.gpus[0]} is here, but this build cannot use it",
                f'Build it with the GPU: CMAKE_ARGS="-D{kind}=on" {REBUILD}',
            )
        )
    elif probe.gpu:
        found.append(
            Finding(
                "ok",
                "GPU",
                "this build can put layers on a GPU" + (f": {machine.gpus[0]}" if machine.gpus else ""),
            )
        )
    return found


def check_machine(machine: Machine) -> list[Finding]:
    """Cores, memory, and whether other programs keep it busy."""
    text = f"{machine.cpu}, {machine.cores} cores, {megabytes(machine.free)} of {megabytes(machine.total)} memory free"
    found = [Finding("ok", "machine", text)]
    if is_busy(machine):
        found.append(
            Finding(
                "note",
                "machine",
                f"other programs keep it busy (load {machine.load:.1f} per core); speeds measured now are too low",
                "Measure again when they have ended.",
            )
        )
    return found


def is_busy(machine: Machine) -> bool:
    """Other programs take so much of the cores that a measured speed says little."""
    return machine.load > BUSY_LOAD


def check_models(installed: Sequence[Installed], chosen: str, problem: str, default: str) -> list[Finding]:
    """What is here, and the model that the settings choose. chosen: its path or "". problem: why there is none."""
    found = [
        Finding(
            "warn",
            "model",
            f"{item.path} is damaged",
            f"Fetch it again: lsp-complete models pull {item.model.short_name}"
            if item.model
            else "Copy it again, or delete it.",
        )
        for item in installed
        if item.state == "damaged"
    ]
    if chosen:
        return [Finding("ok", "model", chosen), *found]
    remedy = f"lsp-complete models pull {default}"
    text = (problem or "none is here").partition(f" Fetch one: {remedy}")[0]  # the remedy says it
    return [Finding("fail", "model", text, remedy), *found]


def check_speed(probe: Probe, chosen: str, busy: bool) -> list[Finding]:
    """The measured speed, or why nothing was measured. busy: other programs made it slower."""
    if probe.speed is None:
        if not probe.error or not probe.version:
            return []
        text = f"the model {chosen} could not be run: {probe.error}"
        return [
            Finding(
                "fail",
                "speed",
                text,
                "Check the file with `lsp-complete models verify`, or choose another model.",
            )
        ]
    speed = probe.speed
    text = f"prefill {speed.prefill_tps:.0f} tokens/s, {speed.decode_ms:.0f} ms per token, {speed.threads} threads"
    if speed.decode_ms <= MAX_DECODE_MS and speed.prefill_tps >= MIN_PREFILL_TPS:
        return [Finding("ok", "speed", text)]
    if busy:
        return [
            Finding(
                "note", "speed", text + ": slow, but the machine is busy", "Measure again when it is idle."
            )
        ]
    remedy = "Use a smaller model, close other programs, or build llama.cpp for this machine."
    return [Finding("warn", "speed", text + ": too slow to answer between two keys", remedy)]


def check_fit(
    best: Fit | None, in_use: str, installed: Sequence[str], basis: str, free: int, least: Fit
) -> list[Finding]:
    """The catalogue model that suits the machine. in_use: name of the model in use, or "". installed: names of
    those that are here. basis: what the speed was taken from. least: the model that needs the least memory."""
    if best is None:
        text = f"none fits {megabytes(free)} of free memory; the smallest needs {megabytes(least.least)}"
        return [Finding("warn", "best model", text, "Close other programs.")]
    name = best.model.short_name
    text = f"{name} by {basis} and memory: about {best.prefill_tps:.0f} tokens/s, {best.decode_ms:.0f} ms per token"
    if best.plan is not None:
        text += f"; context {best.plan.context:,}, {best.plan.slots} slots, KV {best.plan.kv_type}"
        text += f", {megabytes(best.plan.need.total)}" + (
            f" ({best.plan.reduced})" if best.plan.reduced else ""
        )
    if best.model.name == in_use:
        return [Finding("ok", "best model", text + " (in use)")]
    if best.model.name in installed:
        return [
            Finding(
                "note",
                "best model",
                text,
                f'It is here: set model = "{name}" (or "auto") in your own settings file.',
            )
        ]
    return [Finding("note", "best model", text, f"lsp-complete models pull {name}")]


def check_reference(name: str, problem: str, least: int, left: int) -> list[Finding]:
    """The reference model. name: as set, "" for none. problem: why its file cannot be used. least: bytes that it needs at least, 0 if
    nobody knows; left: bytes that are free beside the model's weights."""
    if not name:
        return []
    if problem:
        return [Finding("warn", "reference model", problem, "Set reference_model to a model that is here, or leave it empty.")]
    if least > left:
        text = f"{name} needs {megabytes(least)} of free memory beside the model, {megabytes(max(0, left))} are left; suggestions come without it"
        return [Finding("warn", "reference model", text, "Close other programs, or choose a smaller one (`lsp-complete models list`).")]
    return [Finding("ok", "reference model", f"{name}, asked while you rest; a server that runs tells in `lsp-complete stats`")]


def check_config(problems: Sequence[str], user_file: str, there: bool = True) -> list[Finding]:
    """Messages of the settings. there: whether the user's own file exists."""
    if not problems:
        where = f"your own file is {user_file}" if there else f"none of your own; they would stand in {user_file}"
        return [Finding("ok", "settings", f"no problems; {where}")]
    return [
        Finding("warn", "settings", problem, "Mend that source; `lsp-complete config` shows what holds.")
        for problem in problems
    ]


def check_memory_fit(name: str, fitted: Fit, free: int) -> list[Finding]:
    """Whether the model in use fits the memory that is free now."""
    if fitted.plan is not None:
        return []
    need = megabytes(least_need(fitted.model.shape, fitted.model.file.size))
    return [
        Finding(
            "warn",
            "memory",
            f"{name} needs {need} of free memory, {megabytes(free)} are free",
            "Close other programs, or choose a smaller model (`lsp-complete doctor --memory`).",
        )
    ]
