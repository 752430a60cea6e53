"""Which catalogue model suits a machine: by its free memory and its measured (or assumed) speed.

Strategy: one model's measured speed, held against what that model does on two cores, predicts the others': decoding
reads every weight once per token, so its time grows with the file's size; prefill is arithmetic, so its rate
falls with the number of weights.

Rules: pure but for reading and writing the small file that keeps the last measurement beside the models.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lsp_complete.errors import MemoryPlanError
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.memory import KV_BYTES, MemoryPlan, Wanted, least_need, need_of, plan
from lsp_complete.models.paths import models_dir

MAX_DECODE_MS = 60.0
MIN_PREFILL_TPS = 100.0
SPEED_FILE = ".speed.json"


@dataclass(frozen=True, slots=True)
class Speed:
    """prefill_tps: prompt tokens per second. decode_ms: milliseconds per generated token. size: bytes of the model's
    file; parameters: its weights. threads: used for it (0 unknown)."""

    prefill_tps: float
    decode_ms: float
    size: int
    parameters: int
    threads: int = 0

    def __post_init__(self) -> None:
        if min(self.prefill_tps, self.decode_ms) <= 0 or min(self.size, self.parameters) <= 0:
            raise ValueError("speeds and sizes must be positive")


SMALL_REFERENCE = Speed(285.0, 17.0, 491_400_064, 494_032_768, 2)
LARGE_REFERENCE = Speed(147.0, 30.0, 1_117_320_768, 1_543_714_304, 2)
"""Measured on two cores, 4-bit files of 0.5B and 1.5B. Two, because the layers of the 0.5B model are too narrow for
llama.cpp's fastest 4-bit routines: it is slower than its size says. Larger ones scale from the second."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How one model would do here. plan: None if it does not fit the memory. least: bytes it needs free."""

    model: CatalogueModel
    plan: MemoryPlan | None
    least: int
    prefill_tps: float
    decode_ms: float

    @property
    def fast_enough(self) -> bool:
        return self.decode_ms <= MAX_DECODE_MS and self.prefill_tps >= MIN_PREFILL_TPS

    @property
    def usable(self) -> bool:
        return self.plan is not None and self.fast_enough


def reference(parameters: int, size: int) -> Speed:
    """What a model of this many weights and file bytes does on two cores."""
    known = SMALL_REFERENCE if parameters < 1_000_000_000 else LARGE_REFERENCE
    prefill = known.prefill_tps * known.parameters / parameters
    return Speed(prefill, known.decode_ms * size / known.size, size, parameters, 2)


def assumed_speed(cores: int) -> Speed:
    """A guess for a machine with this many physical cores: arithmetic scales nearly with cores, memory less."""
    factor, base = max(cores, 1) / 2, SMALL_REFERENCE
    decode = base.decode_ms / min(factor**0.6, 3.0)
    return Speed(base.prefill_tps * factor**0.9, decode, base.size, base.parameters, cores)


def predict(model: CatalogueModel, speed: Speed) -> tuple[float, float]:
    """(prefill tokens per second, decode milliseconds per token) of a model, from another's speed on this machine."""
    there, here = reference(speed.parameters, speed.size), reference(model.parameters, model.file.size)
    return (
        here.prefill_tps * speed.prefill_tps / there.prefill_tps,
        here.decode_ms * speed.decode_ms / there.decode_ms,
    )


def fit(
    model: CatalogueModel, speed: Speed, free: int, *, gpu_free: int = 0, wanted: Wanted | None = None
) -> Fit:
    """How `model` would do with `free` bytes of memory on a machine of this speed."""
    try:
        chosen: MemoryPlan | None = plan(
            model.name, model.shape, model.file.size, free, wanted, gpu_free=gpu_free
        )
    except MemoryPlanError:
        chosen = None
    return Fit(model, chosen, least_need(model.shape, model.file.size), *predict(model, speed))


def recommend(models: Iterable[CatalogueModel], speed: Speed, free: int, *, gpu_free: int = 0) -> Fit | None:
    """The best model for the machine: the largest main model that fits the memory and is fast enough.

    Only models that this project has run, or of a family it has measured, are recommended; among equals the
    commercial licence, then the smaller file wins. None if nothing fits.
    """
    candidates = [
        fit(model, speed, free, gpu_free=gpu_free)
        for model in models
        if "main" in model.roles
        and model.licence.commercial
        and model.family == load_catalogue().default_model.family
    ]
    usable = [found for found in candidates if found.usable]
    if usable:
        return max(
            usable, key=lambda found: (found.model.parameters, found.model.verified, -found.model.file.size)
        )
    small = [found for found in candidates if found.plan is not None]
    return min(small, key=lambda found: found.model.file.size, default=None)


def smaller_models(model: CatalogueModel) -> tuple[tuple[str, int], ...]:
    """(name, least need) of what to suggest instead of `model` where it does not fit, for `memory.plan`.

    Smaller main models for commercial use: of its own family if there are any, else of the default's.
    """
    return smaller_than(model.file.size, model.family)


def smaller_than(size: int, family: str) -> tuple[tuple[str, int], ...]:
    """The same for a file of `size` bytes; family "" is unknown."""
    catalogue = load_catalogue()
    for kin in (family, catalogue.default_model.family):
        found = tuple(
            (other.short_name, least_need(other.shape, other.file.size))
            for other in catalogue.models
            if other.file.size < size
            and other.family == kin
            and other.licence.commercial
            and "main" in other.roles
        )
        if found:
            return found
    return ()


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One setting of a model: tokens of context, KV type, bytes of KV and in total, and whether that fits."""

    context: int
    kv_type: str
    kv: int
    total: int
    fits: bool


def table(
    model: CatalogueModel, free: int, contexts: Sequence[int] = (2048, 4096, 8192, 16384, 32768)
) -> tuple[MemoryRow, ...]:
    """The memory of a model for each context and KV type, against `free` bytes. Contexts beyond its own are left out."""
    rows = []
    for context in sorted({min(context, model.shape.context) for context in contexts}):
        for kv_type in KV_BYTES:
            need = need_of(model.shape, model.file.size, context, kv_type)
            wanted = Wanted(context, 1, (kv_type,))
            whole = least_fits(model, free, wanted)
            rows.append(MemoryRow(context, kv_type, need.kv, need.total, whole))
    return tuple(rows)


def least_fits(model: CatalogueModel, free: int, wanted: Wanted) -> bool:
    """Whether exactly this setting fits."""
    try:
        chosen = plan(model.name, model.shape, model.file.size, free, wanted)
    except MemoryPlanError:
        return False
    return chosen.context == min(wanted.context, model.shape.context)


def save_speed(speed: Speed, folder: str | os.PathLike[str] | None = None) -> None:
    """Keep a measurement for `load_speed`. Failing to write it is no error."""
    try:
        (models_dir(folder) / SPEED_FILE).write_text(json.dumps(asdict(speed)), "utf-8")
    except OSError:
        return


def load_speed(folder: str | os.PathLike[str] | None = None) -> Speed | None:
    """The last measurement on this machine, or None."""
    try:
        return Speed(**json.loads((Path(models_dir(folder)) / SPEED_FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
