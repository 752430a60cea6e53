"""Gathers what the checks need, runs them, prints the result."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lsp_complete.commands.version import versions
from lsp_complete.config import Settings, gather, load, user_file
from lsp_complete.doctor import checks, editors
from lsp_complete.doctor.findings import Finding, exit_status, render
from lsp_complete.doctor.machine import Machine, look
from lsp_complete.doctor.probe import Probe, run_probe
from lsp_complete.engine.paths import runtime_directory
from lsp_complete.errors import LspCompleteError
from lsp_complete.models.auto import choose_installed
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.fit import Fit, Speed, assumed_speed, fit, load_speed, recommend, save_speed
from lsp_complete.models.installed import list_installed, resolve
from lsp_complete.models.memory import least_need


@dataclass(frozen=True, slots=True)
class Chosen:
    """The model that the settings mean. path: "" if there is none, then problem says why. model: if it is of the catalogue."""

    path: str = ""
    problem: str = ""
    model: CatalogueModel | None = None


def run_report(*, measure: bool, as_json: bool) -> int:
    """Run all checks and print them. Takes some seconds if a model is run. Returns the exit status."""
    loaded = load(gather([Path.cwd()]))
    machine = look()
    chosen = choose(loaded.settings, machine)
    probe = run_probe(chosen.path if measure else "")
    found = gather_findings(loaded.settings, list(loaded.problems), machine, chosen, probe)
    here = editors.look()
    program = shutil.which("lsp-complete")
    found += editors.findings(here, program is not None, f"{sys.executable} -m lsp_complete")
    if as_json:
        print(json.dumps(_as_dict(machine, chosen, probe, here, found), indent=2, ensure_ascii=False))
    else:
        print(render(found))
    return exit_status(found)


def choose(settings: Settings, machine: Machine) -> Chosen:
    """What `model` in the settings means on this machine now."""
    folder = settings.model_dir or None
    try:
        if settings.model in ("", "auto"):
            model, path = choose_installed(machine.free, machine.cores, folder=folder)
            return Chosen(str(path), "", model)
        path = resolve(settings.model, folder)
    except LspCompleteError as error:
        return Chosen("", str(error))
    return Chosen(str(path), "", load_catalogue().find(path.name))


def gather_findings(
    settings: Settings, problems: list[str], machine: Machine, chosen: Chosen, probe: Probe
) -> list[Finding]:
    """All findings but the editors', in the order in which they are read."""
    folder = settings.model_dir or None
    busy = checks.is_busy(machine)
    measured = of_catalogue(probe.speed, chosen.model)
    if measured is not None and not busy:
        save_speed(measured, folder)
    speed = load_speed(folder) if busy else measured or load_speed(folder)
    known = speed or assumed_speed(machine.cores)
    gpu = machine.gpu_free if probe.gpu else 0
    models = load_catalogue().models
    best = recommend(models, known, machine.free, gpu_free=gpu)
    fits = [fit(model, known, machine.free, gpu_free=gpu) for model in models]
    least = min(fits, key=lambda item: item.least)
    found = checks.check_versions(versions())
    found += checks.check_machine(machine)
    found += checks.check_native(probe, machine)
    here = list_installed(folder)
    found += checks.check_models(here, chosen.path, chosen.problem, load_catalogue().default_model.short_name)
    found += checks.check_speed(probe, chosen.path, busy)
    if chosen.model is not None:
        found += _memory(chosen.model, fits, machine.free)
    found += _reference(settings, chosen, machine.free)
    in_use, names = chosen.model.name if chosen.model else "", [item.name for item in here]
    basis = "measured speed" if speed else "the number of cores"
    found += checks.check_fit(best, in_use, names, basis, machine.free, least)
    found += checks.check_config(problems, str(user_file()), user_file().is_file())
    return found + check_socket()


def of_catalogue(speed: Speed | None, model: CatalogueModel | None) -> Speed | None:
    """The speed with the catalogue's size and parameter count, so that other entries compare with it.

    (A file may count its embedding table twice.)"""
    return (
        speed
        if speed is None or model is None
        else replace(speed, size=model.file.size, parameters=model.parameters)
    )


def _memory(model: CatalogueModel, fits: list[Fit], free: int) -> list[Finding]:
    fitted = next(item for item in fits if item.model is model)
    return checks.check_memory_fit(model.short_name, fitted, free)


def _reference(settings: Settings, chosen: Chosen, free: int) -> list[Finding]:
    """What became of `reference_model`, as the engine will judge it: it leaves the model's weights in memory."""
    name, problem, least = settings.reference_model, "", 0
    if not name:
        return []
    try:
        path = resolve(name, settings.model_dir or None)
        problem = f"{path.name} is the model itself" if str(path) == chosen.path else ""
        model = load_catalogue().find(path.name)
        name, least = model.short_name if model else path.name, least_need(model.shape, model.file.size) if model else 0
    except LspCompleteError as error:
        problem = str(error)
    weights = Path(chosen.path).stat().st_size if chosen.path else 0
    return checks.check_reference(name, problem, least, free - weights)


def check_socket() -> list[Finding]:
    """Whether a private folder for the engine's socket can be had."""
    try:
        place = runtime_directory()
    except LspCompleteError as error:
        return [Finding("fail", "engine socket", str(error), "Remove or mend that folder, then try again.")]
    return [Finding("ok", "engine socket", str(place))]


def _as_dict(
    machine: Machine, chosen: Chosen, probe: Probe, here: tuple[editors.Found, ...], found: list[Finding]
) -> dict[str, object]:
    return {
        "versions": versions(),
        "machine": asdict(machine),
        "llama_cpp": {key: value for key, value in asdict(probe).items() if key != "speed"},
        "speed": asdict(probe.speed) if probe.speed else None,
        "model": {
            "path": chosen.path or None,
            "problem": chosen.problem,
            "name": chosen.model.name if chosen.model else None,
        },
        "editors": [asdict(editor) for editor in here],
        "findings": [asdict(item) for item in found],
        "ok": exit_status(found) == 0,
    }
