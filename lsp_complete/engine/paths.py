"""Where the engine's socket, lock and log lie, and the proof that nobody else can reach them.

Strategy: the first directory of a short list that is ours alone (no symbolic link, our user id, mode 0700)
and short enough for a socket path. Names come from a digest of everything that makes two engines different,
so two servers that want the same engine meet, and others cannot.

Rules:
- A directory that exists with another owner or a wider mode is refused, never mended: someone may hold it open.
- A socket path is shorter than 108 bytes (104 on macOS) with its terminating zero.
- Names hold no user text, only digests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from lsp_complete import __version__
from lsp_complete.engine.protocol import PROTOCOL
from lsp_complete.errors import EngineUnavailable

APP = "lsp-complete"
WINDOWS = sys.platform == "win32"
MAX_SOCKET_PATH = (104 if sys.platform == "darwin" else 108) - 1
_LONGEST_NAME = len("/e-0123456789abcdef.sock")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The files of one engine. `tcp`: loopback TCP with a secret in the address file, instead of a socket file."""

    directory: Path
    name: str
    tcp: bool = WINDOWS

    @property
    def socket(self) -> Path:
        """The Unix socket."""
        return self.directory / f"{self.name}.sock"

    @property
    def address(self) -> Path:
        """Port and secret (TCP only)."""
        return self.directory / f"{self.name}.addr"

    @property
    def lock(self) -> Path:
        """Held by the running engine; holds its process id as text."""
        return self.directory / f"{self.name}.lock"

    def listening_file(self) -> Path:
        """The file whose presence says that an engine listens."""
        return self.address if self.tcp else self.socket


def check_private(path: Path) -> None:
    """Raises EngineUnavailable unless `path` is a real directory of ours with mode 0700."""
    try:
        info = os.lstat(path)
    except OSError as error:
        raise EngineUnavailable(f"{path}: {error.strerror}; the engine needs a private directory") from None
    if stat.S_ISLNK(info.st_mode):
        raise EngineUnavailable(f"{path} is a symbolic link; remove it so that a private directory can be made")
    if not stat.S_ISDIR(info.st_mode):
        raise EngineUnavailable(f"{path} is not a directory; remove it")
    if WINDOWS:  # the profile's access list is private; modes say nothing there
        return
    if info.st_uid != os.getuid():
        raise EngineUnavailable(f"{path} belongs to another user; it cannot be used for the engine's socket")
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise EngineUnavailable(f"{path} can be reached by other users; run: chmod 700 {path}")


def make_private(path: Path) -> Path:
    """Create `path` (parents with ordinary modes, itself 0700) if missing and check it. Raises EngineUnavailable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise EngineUnavailable(f"{path} cannot be made ({error.strerror})") from None
    check_private(path)
    return path


def runtime_candidates() -> list[Path]:
    """Directories to try, best first: the session's own, the temporary one, the user's cache."""
    found: list[Path] = []
    if WINDOWS:
        return [Path(platformdirs.user_cache_dir(APP, appauthor=False)) / "run"]
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and Path(session).is_absolute() and Path(session).is_dir():
        found.append(Path(session) / APP)
    with contextlib.suppress(OSError):  # on a full disk there is no usable temporary directory
        found.append(Path(tempfile.gettempdir()) / f"{APP}-{os.getuid()}")
    found.append(Path(platformdirs.user_cache_dir(APP)) / "run")
    return found


def fits(directory: Path) -> bool:
    """Whether a socket in this directory has a path that the system accepts."""
    return len(os.fsencode(directory)) + _LONGEST_NAME <= MAX_SOCKET_PATH


def runtime_directory(candidates: Iterable[Path] | None = None, *, tcp: bool = WINDOWS) -> Path:
    """The first usable directory, made if needed. Raises EngineUnavailable with the reason of each refusal."""
    reasons: list[str] = []
    for path in runtime_candidates() if candidates is None else candidates:
        if not tcp and not fits(path):
            reasons.append(f"{path}: too long for a socket path")
            continue
        try:
            return make_private(path)
        except EngineUnavailable as error:
            reasons.append(str(error))
    raise EngineUnavailable("no private directory for the engine's socket: " + "; ".join(reasons))


def private_directories() -> list[Path]:
    """All directories in which an engine of this user may be: which one is used depends on the environment of who started it."""
    found: list[Path] = []
    for path in runtime_candidates():
        with contextlib.suppress(EngineUnavailable):
            check_private(path)
            found.append(path)
    return found


def file_stamp(model: str) -> tuple[int, int, int]:
    """Size, modification time (ns) and inode of the model file; zeros if it cannot be read.

    A replaced file is another engine: the old one keeps what it mapped, new clients start a new one.
    """
    try:
        info = os.stat(model)
    except (OSError, ValueError):
        return (0, 0, 0)
    return (info.st_size, info.st_mtime_ns, info.st_ino)


def endpoint_name(model: str, options: Mapping[str, object], salt: int = 0) -> str:
    """`e-` and 16 hex digits, from model path and stamp, settings, product and protocol version, and user.

    salt: set above 0 to part from an engine that turned out to be of another version under the same name.
    """
    uid = 0 if WINDOWS else os.getuid()
    path = os.path.realpath(model)
    recipe = json.dumps(
        [__version__, PROTOCOL, uid, path, file_stamp(path), sorted(options.items()), salt], default=str
    )
    return "e-" + hashlib.sha256(recipe.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def endpoint_names(directory: Path) -> list[str]:
    """Names of engines that left a lock, a socket or an address file in `directory`, sorted."""
    try:
        entries = list(directory.iterdir())
    except OSError:
        return []
    return sorted({e.stem for e in entries if e.name.startswith("e-") and e.suffix in (".sock", ".addr", ".lock")})


def log_directory() -> Path:
    """Where engine logs lie, per user. Not created here."""
    return Path(platformdirs.user_log_dir(APP, appauthor=False))
