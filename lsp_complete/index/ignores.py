"""What git would ignore under a workspace folder, and what the settings leave out.

Strategy: one object per workspace folder reads each `.gitignore` once, when its folder is first met, and remembers per folder
whether it is left out; a path is judged from the top downwards, as git does, so nothing inside an ignored folder
comes back.

Rules:
- Sources, the later the stronger: the user's global excludes, `.git/info/exclude`, `.gitignore` files from the repository's
  top down to the file's folder. Patterns of the settings come on top and can only leave out more.
- A workspace folder that is itself ignored by a repository above it (an installed package that someone opened) is judged by its
  own files only: the user has named it.
- Version control, caches and installed packages of other languages (`node_modules`, virtual environments) are always left out.
- An unreadable or malformed file of patterns is an empty one. Nothing raises. Own lock is not needed: one thread at a time, the
  caller's; `Guard` in `walk.py` holds one per thread's use.
"""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache
from pathlib import Path

from pathspec import GitIgnoreSpec

SKIPPED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", ".bzr", "node_modules", "bower_components", "__pycache__", ".venv", ".tox", ".nox",
        ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache", ".gradle", ".terraform", ".next", ".nuxt",
        ".idea", ".vs", ".eggs",
    }
)  # fmt: skip
_MAX_PATTERNS_BYTES = 1 << 20


def read_spec(path: Path) -> GitIgnoreSpec | None:
    """The patterns of one file; None if there is none, or none that can be used."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_PATTERNS_BYTES:
            return None
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    return spec_of(tuple(lines))


def spec_of(lines: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Patterns as one matcher; a malformed line is left out."""
    if not lines:
        return None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = [line for line in lines if _good(line)]
        return GitIgnoreSpec.from_lines(good) if good else None


def _good(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def global_excludes() -> Path:
    """The user's global excludes file, as git's configuration names it or git's default place."""
    try:
        done = subprocess.run(
            ["git", "config", "--global", "--path", "--get", "core.excludesFile"],
            capture_output=True, text=True, timeout=5, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode == 0 and done.stdout.strip():
            return Path(done.stdout.strip())
    except (OSError, subprocess.SubprocessError):
        pass
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "git" / "ignore"


def repository_top(root: Path) -> Path:
    """The folder that holds `.git`, at `root` or above it; `root` if there is none."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


class Ignores:
    """The rules for one workspace folder. root: absolute; exclude: patterns relative to it, as in .gitignore.

    Paths are absolute strings with the system's separator: pathlib is too slow for tens of thousands of them.
    """

    def __init__(self, root: Path, exclude: tuple[str, ...] = (), excludes_file: Path | None = None) -> None:
        self.root = str(root)
        top = repository_top(root)
        self._top = str(top)
        self._exclude = spec_of(exclude)
        base = (excludes_file or global_excludes(), top / ".git" / "info" / "exclude")
        self._base = [spec for spec in map(read_spec, base) if spec is not None]
        self._specs: dict[str, GitIgnoreSpec | None] = {}
        self._folders: dict[str, bool] = {self.root: False}
        steps = root.relative_to(top).parts
        if any(self._matched(str(top.joinpath(*steps[: count + 1])), True) for count in range(len(steps))):
            self._top = self.root

    def folder(self, folder: str) -> bool:
        """Whether a folder under the root is left out with all that is in it."""
        known = self._folders.get(folder)
        if known is None:
            known = not _inside(folder, self.root) or self.folder(os.path.dirname(folder)) or self._left_out(folder)
            self._folders[folder] = known
        return known

    def _left_out(self, folder: str) -> bool:
        if os.path.basename(folder) in SKIPPED_FOLDERS or os.path.exists(os.path.join(folder, "pyvenv.cfg")):
            return True
        return self._matched(folder, True)

    def file(self, path: str) -> bool:
        """Whether a file is left out."""
        return self.folder(os.path.dirname(path)) or self._matched(path, False)

    def _matched(self, path: str, is_folder: bool) -> bool:
        mark = "/" if is_folder else ""
        if self._exclude is not None and path != self.root and self._exclude.match_file(_below(path, self.root) + mark):
            return True
        folder = os.path.dirname(path)
        while True:
            spec = self._spec(folder)
            if spec is not None:
                verdict = spec.check_file(_below(path, folder) + mark).include
                if verdict is not None:
                    return verdict
            if len(folder) <= len(self._top):
                break
            folder = os.path.dirname(folder)
        for spec in reversed(self._base):
            verdict = spec.check_file(_below(path, self._top) + mark).include
            if verdict is not None:
                return verdict
        return False

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = read_spec(Path(folder, ".gitignore"))
        return self._specs[folder]

    def forget(self) -> None:
        """Read all pattern files again when next needed (one of them has changed)."""
        self._specs.clear()
        self._folders = {self.root: False}


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _below(path: str, folder: str) -> str:
    """A path relative to a folder above it, with slashes."""
    below = path[len(folder) :].lstrip(os.sep) if _inside(path, folder) else path
    return below.replace(os.sep, "/") if os.sep != "/" else below
