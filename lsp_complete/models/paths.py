"""Where model files live, and how a stored file is known to be good.

Strategy: one private folder per user. A file that was checked against its digest gets a small stamp beside it
(`.NAME.json`: digest, size, modification time); while size and time still agree, the digest is not computed again.

Rules:
- The folder is created with mode 0700; nothing in it is a name from outside the catalogue.
- A file without a valid stamp is not trusted until it was hashed. Stamps are a cache: without one all still works.
- A half-fetched file is called `NAME.part` and is never looked at by `stored_path`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from lsp_complete.errors import ModelError

ENV_FOLDER = "LSP_COMPLETE_MODEL_DIR"
CHUNK = 1 << 20

Progress = Callable[[int, int, str], None]
"""(bytes done, bytes in total, what is going on). Called on the thread that works, some times a second."""


def silent(done: int, total: int, text: str) -> None:
    """A progress callback that shows nothing."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was known when the file was last checked. Times in nanoseconds, size in bytes."""

    sha256: str
    size: int
    mtime_ns: int
    source: str


def models_dir(setting: str | os.PathLike[str] | None = None) -> Path:
    """The models folder: the setting's, else the environment's, else the user's cache folder. Not created here."""
    chosen = (os.fspath(setting) if setting else "") or os.environ.get(ENV_FOLDER, "")
    if chosen:
        return Path(os.path.expanduser(chosen)).absolute()  # `Path.expanduser` raises for a user that there is not
    return Path(platformdirs.user_cache_dir("lsp-complete", appauthor=False)) / "models"


def ensure_folder(folder: Path) -> Path:
    """Create the folder (mode 0700) if it is missing. Raises ModelError if it cannot be made or used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"The models folder {folder} cannot be made: {error.strerror or error}. "
            f"Mend that, or name another folder in the environment variable {ENV_FOLDER}."
        ) from error
    return folder


def stamp_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.json")


def scratch_folders(path: Path) -> list[Path]:
    """Folders beside a model file in which its registry parts are unpacked. Only a killed download leaves one behind."""
    before = f".{path.name}."
    try:
        return sorted(item for item in path.parent.iterdir() if item.name.startswith(before) and item.is_dir() and not item.is_symlink())
    except OSError:
        return []


def part_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def read_stamp(path: Path) -> Stamp | None:
    """The stamp of a file if it still describes the file, else None."""
    try:
        data = json.loads(stamp_path(path).read_text("utf-8"))
        stamp = Stamp(str(data["sha256"]), int(data["size"]), int(data["mtime_ns"]), str(data["source"]))
        info = path.stat()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stamp if (info.st_size, info.st_mtime_ns) == (stamp.size, stamp.mtime_ns) else None


def write_stamp(path: Path, sha256: str, source: str) -> None:
    """Note that `path` has this digest now. A folder that cannot be written to is no error: it is a cache."""
    try:
        info = path.stat()
        text = json.dumps(asdict(Stamp(sha256, info.st_size, info.st_mtime_ns, source)))
        temporary = stamp_path(path).with_suffix(".tmp")
        temporary.write_text(text, "utf-8")
        os.replace(temporary, stamp_path(path))
    except OSError:
        return


def sha256_of(path: Path, progress: Progress = silent, text: str = "checking") -> str:
    """SHA-256 of a file's content, 64 hexadecimal digits. Raises ModelError if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            total, done = os.fstat(file.fileno()).st_size, 0
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                done += len(chunk)
                progress(done, total, text)
    except OSError as error:
        raise ModelError(
            f"{path}: cannot be read: {error.strerror or error}. Check its permissions."
        ) from error
    return digest.hexdigest()
