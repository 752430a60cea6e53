"""The checks of `doctor`, with values instead of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.doctor import checks
from lsp_complete.doctor.findings import Finding, exit_status, render
from lsp_complete.doctor.machine import Machine, parse_cpuinfo
from lsp_complete.doctor.probe import Probe, read_answer
from lsp_complete.engine.llama_info import parse_system_info
from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.models.fit import Fit, Speed, assumed_speed, fit, recommend
from lsp_complete.models.free import parse_nvidia_smi
from lsp_complete.models.installed import Installed

GB = 10**9
MACHINE = Machine("Linux", "Some CPU", 2, 8 * GB, 16 * GB, 0.1, ("AVX", "AVX2", "FMA"))
PROBE = Probe(
    "", "0.3.36", ("CPU",), ("AVX", "AVX2", "FMA"), False, Speed(285, 17, 491_400_064, 494_032_768, 2)
)
CATALOGUE = load_catalogue()
DEFAULT = CATALOGUE.default_model


def levels(found: list[Finding]) -> list[str]:
    return [item.level for item in found]


def test_a_finding_that_is_wrong_needs_a_remedy() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding("fail", "x", "broken")
    with pytest.raises(ValueError, match="level"):
        Finding("bad", "x", "broken")


def test_rendering_and_exit_status() -> None:
    found = [Finding("ok", "a", "fine"), Finding("fail", "b", "broken", "mend it")]
    assert render(found) == "ok    a: fine\nFAIL  b: broken\n      → mend it"
    assert exit_status(found) == 1 and exit_status(found[:1]) == 0


def test_missing_libraries_are_named() -> None:
    found = checks.check_versions({"lsp-complete": "0.1", "python": "3.11", "numpy": "missing"})
    assert (
        levels(found) == ["ok", "fail"]
        and "numpy" in found[1].topic
        and "pip install numpy" in found[1].remedy
    )


def test_a_library_for_another_cpu_is_told_from_its_signal() -> None:
    found = checks.check_native(read_answer("", "", -4), MACHINE)
    assert levels(found) == ["fail"] and "another CPU" in found[0].remedy
    found = checks.check_native(
        read_answer("", "Traceback\nModuleNotFoundError: No module named 'llama_cpp'\n", 1), MACHINE
    )
    assert "No module named" in found[0].text and "Build it again" in found[0].remedy


def test_unused_instruction_sets_and_gpus_are_told() -> None:
    assert levels(checks.check_native(PROBE, MACHINE)) == ["ok"]
    plain = checks.check_native(replace(PROBE, features=("SSE3",)), MACHINE)
    assert levels(plain) == ["ok", "warn"] and "AVX2" in plain[1].text and "GGML_NATIVE" in plain[1].remedy
    gpu = checks.check_native(PROBE, replace(MACHINE, gpus=("NVIDIA X",)))
    assert levels(gpu) == ["ok", "note"] and "GGML_CUDA" in gpu[1].remedy
    apple = checks.check_native(PROBE, replace(MACHINE, gpus=("Apple GPU (Metal)",)))
    assert "GGML_METAL" in apple[1].remedy
    used = checks.check_native(replace(PROBE, gpu=True), replace(MACHINE, gpus=("NVIDIA X",)))
    assert levels(used) == ["ok", "ok"]


def test_a_busy_machine_is_said() -> None:
    assert levels(checks.check_machine(MACHINE)) == ["ok"]
    assert levels(checks.check_machine(replace(MACHINE, load=2.0))) == ["ok", "note"]


def test_no_model_is_a_failure_with_the_command() -> None:
    problem = f"No model is here yet. Fetch one: lsp-complete models pull {DEFAULT.short_name}"
    found = checks.check_models((), "", problem, DEFAULT.short_name)
    assert found[0].text == "No model is here yet."  # the command is said once, as the remedy
    assert levels(found) == ["fail"] and found[0].remedy == "lsp-complete models pull qwen2.5-coder-0.5b"
    damaged = Installed(Path("/m/x.gguf"), DEFAULT, 5, "damaged")
    found = checks.check_models((damaged,), "/m/y.gguf", "", DEFAULT.short_name)
    assert levels(found) == ["ok", "warn"] and "models pull" in found[1].remedy


def test_speed() -> None:
    assert levels(checks.check_speed(PROBE, "m", False)) == ["ok"]
    slow = replace(PROBE, speed=Speed(20, 200, 1, 1))
    assert levels(checks.check_speed(slow, "m", False)) == ["warn"]
    assert levels(checks.check_speed(slow, "m", True)) == ["note"]
    failed = replace(PROBE, speed=None, error="ModelError: truncated")
    assert levels(checks.check_speed(failed, "m", False)) == ["fail"]
    assert checks.check_speed(replace(PROBE, speed=None), "m", False) == []
    assert checks.check_speed(Probe("cannot be loaded"), "m", False) == []


def best_of(free: int) -> Fit | None:
    return recommend(CATALOGUE.models, assumed_speed(2), free)


def test_the_best_model_and_what_to_do_for_it() -> None:
    least = fit(DEFAULT, assumed_speed(2), GB)
    best = best_of(8 * GB)
    assert best is not None
    name = best.model.name
    assert checks.check_fit(best, name, [name], "measured speed", 8 * GB, least)[0].level == "ok"
    assert "model = " in checks.check_fit(best, "", [name], "measured speed", 8 * GB, least)[0].remedy
    assert "models pull" in checks.check_fit(best, "", [], "measured speed", 8 * GB, least)[0].remedy
    none = checks.check_fit(best_of(GB // 4), "", [], "measured speed", GB // 4, least)
    assert levels(none) == ["warn"] and "250 MB" in none[0].text


def test_a_model_that_no_longer_fits_is_told() -> None:
    assert checks.check_memory_fit("m", fit(DEFAULT, assumed_speed(2), 8 * GB), 8 * GB) == []
    assert levels(checks.check_memory_fit("m", fit(DEFAULT, assumed_speed(2), GB // 2), GB // 2)) == ["warn"]


def test_settings_problems_are_passed_on() -> None:
    assert levels(checks.check_config([], "file")) == ["ok"]
    assert "none of your own" in checks.check_config([], "file", there=False)[0].text
    assert [item.text for item in checks.check_config(["a", "b"], "file")] == ["a", "b"]


def test_llama_cpp_system_line() -> None:
    text = "CUDA : ARCHS = 890 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX512 = 0 | REPACK = 1 | "
    assert parse_system_info(text) == (("CUDA", "CPU"), ("ARCHS", "USE_GRAPHS", "SSE3", "REPACK"))
    assert parse_system_info("") == ((), ())


def test_cpuinfo_and_nvidia_smi() -> None:
    text = "model name\t: Some CPU\nflags\t\t: fpu avx avx2 avx512f\n\nmodel name\t: Some CPU\n"
    assert parse_cpuinfo(text) == ("Some CPU", ("AVX", "AVX2", "AVX512"))
    assert parse_nvidia_smi("NVIDIA H, 1024\nNVIDIA K, 4096\nerror\n") == (
        ("NVIDIA H", "NVIDIA K"),
        4096 << 20,
    )
    assert parse_nvidia_smi("") == ((), 0)


def test_what_the_child_printed_is_read_and_noise_is_not() -> None:
    output = 'noise\n{"version": "1", "backends": ["CPU"], "features": ["AVX"], "gpu": true}\n[1]\n{"speed": {"prefill_tps": 1, "decode_ms": 2, "size": 3, "parameters": 4}}\n'
    assert read_answer(output, "", 0) == Probe("", "1", ("CPU",), ("AVX",), True, Speed(1, 2, 3, 4))
    assert read_answer('{"error": "X: y"}', "trace", 1).error == "X: y"
    assert read_answer('{"version": "1"}', "", -11).error == "the process was ended by SIGSEGV"


def test_matrix_instructions_that_fault_are_told_with_a_remedy() -> None:
    found = [f for f in checks.check_native(replace(PROBE, repacked=False), MACHINE) if "AMX" in f.text]
    assert [f.level for f in found] == ["warn"] and "amx-fix.h" in found[0].remedy
    assert not [f for f in checks.check_native(PROBE, MACHINE) if "AMX" in f.text]
    assert not read_answer('{"version": "1", "repacked": false}\n', "", 0).repacked


def test_the_reference_model_must_be_here_and_fit_beside_the_model() -> None:
    assert checks.check_reference("", "", 0, 0) == []
    assert levels(checks.check_reference("larger", "", 2 * GB, 3 * GB)) == ["ok"]
    (short,) = checks.check_reference("larger", "", 3 * GB, 2 * GB)
    assert short.level == "warn" and "3.0 GB" in short.text and "2.0 GB are left" in short.text
    (missing,) = checks.check_reference("larger", "It is not here.", 0, 0)
    assert missing.level == "warn" and missing.text == "It is not here." and missing.remedy
