"""The meaning of `model = "auto"`: the best model that is here already.

Rule: nothing is downloaded for it. Where no catalogue model is here, the message names the command to get one.
"""

from __future__ import annotations

from pathlib import Path

from lsp_complete.errors import ModelError
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.fit import Speed, assumed_speed, fit, load_speed
from lsp_complete.models.installed import Folder, is_good, list_installed


def choose_installed(
    free: int, cores: int, *, speed: Speed | None = None, folder: Folder = None
) -> tuple[CatalogueModel, Path]:
    """The largest installed main model that fits `free` bytes and is fast enough; else the smallest that is here.

    cores: physical ones, used where no speed was measured. Raises ModelError with the command to run if none is here.
    """
    here = [item for item in list_installed(folder) if item.model is not None and item.state != "damaged"]
    known = speed or load_speed(folder) or assumed_speed(cores)
    fits = [
        fit(item.model, known, free) for item in here if item.model is not None and "main" in item.model.roles
    ]
    good = sorted(
        (found for found in fits if found.usable),
        key=lambda found: (found.model.parameters, found.model.file.size),
        reverse=True,
    )
    small = sorted((found for found in fits if not found.usable), key=lambda found: found.model.file.size)
    paths = {item.model.name: item.path for item in here if item.model is not None}
    for found in (*good, *small):
        path = paths[found.model.name]
        if is_good(found.model, path):
            return found.model, path
    name = load_catalogue().default_model.short_name
    raise ModelError(f"No model is here yet. Fetch one: lsp-complete models pull {name}")
