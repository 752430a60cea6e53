"""Which models are on this machine, and whether a file may be used.

Rules:
- A damaged file, or one that is not the catalogue's, is never returned by `resolve`.
- A message about a missing model holds the exact command that gets it. Nothing here touches the network.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lsp_complete.errors import ModelError
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.gguf import require_whole
from lsp_complete.models.paths import (
    Progress,
    models_dir,
    part_path,
    read_stamp,
    scratch_folders,
    sha256_of,
    silent,
    stamp_path,
    write_stamp,
)

Folder: TypeAlias = "str | os.PathLike[str] | None"
"""The models folder, where it is not the user's own (`paths.models_dir`)."""


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


def stored_path(model: CatalogueModel, folder: Folder = None) -> Path:
    """Where the model's file lies, or would lie."""
    return models_dir(folder) / model.file.name


def is_good(model: CatalogueModel, path: Path, progress: Progress = silent) -> bool:
    """The file is there and is the model. Hashes it once (about 1 s per GB), after that its stamp answers."""
    if not path.is_file():
        return False
    stamp = read_stamp(path)
    if stamp is not None and model.file.sha256 in (None, stamp.sha256):
        return True
    if model.file.size_exact and path.stat().st_size != model.file.size:
        return False
    return check_digest(model, path, progress)


def check_digest(model: CatalogueModel, path: Path, progress: Progress) -> bool:
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


def verify(name: str | CatalogueModel, progress: Progress = silent, folder: Folder = None) -> bool:
    """Compute the digest of a stored model anew. Raises ModelError if it is not here."""
    model = find_model(name)
    path = stored_path(model, folder)
    if not path.is_file():
        raise ModelError(
            f"{model.short_name} is not here. Fetch it: lsp-complete models pull {model.short_name}"
        )
    if model.file.size_exact and path.stat().st_size != model.file.size:
        return False
    return check_digest(model, path, progress)


def remove(name: str | CatalogueModel, folder: Folder = None) -> int:
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
        for folder_left in scratch_folders(path):
            freed += sum(item.stat().st_size for item in folder_left.rglob("*") if item.is_file())
            shutil.rmtree(folder_left)
    except OSError as error:
        raise ModelError(f"{path} cannot be deleted: {error.strerror or error}.") from error
    if not freed:
        raise ModelError(f"{model.short_name} is not here, so there is nothing to remove.")
    return freed


def list_installed(folder: Folder = None) -> tuple[Installed, ...]:
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


def resolve(name_or_path: str, folder: Folder = None) -> Path:
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


def _own_file(text: str, folder: Folder) -> Path:
    if "\0" in text:
        raise ModelError(f"No file can be called {text!r}. Set `model` to a catalogue name or to the path of a GGUF file.")
    path = Path(os.path.expanduser(text))  # `Path.expanduser` raises for a user that there is not
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
