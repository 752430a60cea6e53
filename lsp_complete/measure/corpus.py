"""Real source files to type into: pinned packages of the Python registry, read as zip archives.

Strategy: universal wheels only. pip fetches a wheel without running a line of it (a source distribution would run
its build), a newcomer has pip but perhaps no npm, and wheels carry C++ headers and JavaScript as well as Python. Half
of the projects were first released in 2026, so no model of 2024 has seen them.

Rules:
- Every archive is checked against the sha256 written here, each time it is unpacked.
- Nothing is installed or imported; names that would leave the folder are refused.
- The choice of lines depends on the seed and the file's name only, not on which other files are asked for.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import platformdirs

from ..errors import DownloadError
from .edits import body, split_lines

LINE_MIN, LINE_MAX = 20, 70
APART = 30
"""Lines between two places of one file, at least: a move that far counts as a jump."""
FILE_MIN_LINES = 200
_MAX_MEMBER = 2_000_000


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned universal wheel. since: year of the project's first release."""

    name: str
    version: str
    wheel: str
    sha256: str
    since: int


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file inside a package, and the language id that an editor gives it."""

    package: str
    path: str
    language_id: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file at hand. name: what reports call it; root: the folder an editor would open."""

    name: str
    path: Path
    root: Path
    language_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """A line (zero-based) of a source to retype."""

    source: Source
    line: int


def _pure(name: str, version: str, sha256: str, since: int) -> Package:
    return Package(name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", sha256, since)


PACKAGES = {
    package.name: package
    for package in (
        _pure("httpcore", "1.0.9", "2d400746a40668fc9dec9810239072b40b4484b640a8c38fd654a024c7a1bf55", 2019),
        _pure("coverage", "7.10.7", "f7941f6f2fe6dd6807a1208737b8a0cbcf1cc6d7b07d24998ad2d63590868260", 2009),
        _pure("nanobind", "2.9.2", "c37957ffd5eac7eda349cff3622ecd32e5ee1244ecc912c99b5bc8188bafd16e", 2022),
        _pure("pybind11", "3.0.1", "aa8f0aa6e0a94d3b64adfc38f560f33f15e589be2175e103c0a33c6bce55ee89", 2015),
        _pure(
            "pydantic-handlebars",
            "0.2.1",
            "c713427d6498cf4b66814447d54753a2748f8a8d3a9f00c194192ddb3df61e52",
            2026,
        ),
        _pure(
            "anyplotlib", "0.11.0", "7fd9584276e517bccc500ec0b7c99642728e21d2eddc860474001bd691e4ee21", 2026
        ),
        _pure("geoviews", "1.15.1", "f369eb94907476e9233abe77bdd6b92340872a20845df7da0341f9a4a13309c8", 2016),
        _pure(
            "python-for-android",
            "2026.5.9",
            "79a58606a78ed3cec1aba110876a414d4aa988f082385d68393e208d009e1e94",
            2012,
        ),
        _pure("cusvna", "1.0.3", "39b0edf170b3842706486cbc1048c4df3ff6ad9bd7ee6f595fd3e1b1b2d5df15", 2026),
    )
}

FILES = (
    CorpusFile("httpcore", "httpcore/_async/http11.py", "python"),
    CorpusFile("coverage", "coverage/htmlfiles/coverage_html.js", "javascript"),
    CorpusFile("nanobind", "nanobind/src/nb_enum.cpp", "cpp"),
    CorpusFile("pydantic-handlebars", "pydantic_handlebars/_compiler.py", "python"),
    CorpusFile("anyplotlib", "anyplotlib/sphinx_anywidget/static/anywidget_bridge.js", "javascript"),
    CorpusFile("cusvna", "cusvna/include/cusvna/af1.cuh", "cpp"),
    CorpusFile("coverage", "coverage/results.py", "python"),
    CorpusFile("pybind11", "pybind11/include/pybind11/embed.h", "cpp"),
    CorpusFile("anyplotlib", "anyplotlib/plot2d/_transform.py", "python"),
    CorpusFile("nanobind", "nanobind/src/nb_func.cpp", "cpp"),
    CorpusFile("httpcore", "httpcore/_async/connection_pool.py", "python"),
    CorpusFile("pydantic-handlebars", "pydantic_handlebars/_schema.py", "python"),
)

_JAVA = "pythonforandroid/bootstraps/common/build/src/main/java/org/kivy/android/"

KEYSTROKE_FILES = (
    CorpusFile("pydantic-handlebars", "pydantic_handlebars/_compiler.py", "python"),
    CorpusFile("httpcore", "httpcore/_async/connection_pool.py", "python"),
    CorpusFile("geoviews", "geoviews/models/poly_edit.ts", "typescript"),
    CorpusFile("geoviews", "geoviews/models/poly_draw.ts", "typescript"),
    CorpusFile("anyplotlib", "anyplotlib/sphinx_anywidget/static/anywidget_bridge.js", "javascript"),
    CorpusFile("coverage", "coverage/htmlfiles/coverage_html.js", "javascript"),
    CorpusFile("cusvna", "cusvna/include/cusvna/af1.cuh", "cpp"),
    CorpusFile("nanobind", "nanobind/src/nb_enum.cpp", "cpp"),
    CorpusFile("python-for-android", _JAVA + "PythonUtil.java", "java"),
    CorpusFile("python-for-android", _JAVA + "PythonService.java", "java"),
)
"""Two files each of five languages, for measuring the keys that suggestions save."""

COMMENT_STARTS = ("#", "//", "/*", "*", "--", '"""', "'''")
_LANGUAGE_OF = {
    ".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".tsx": "typescriptreact",
    ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".hpp": "cpp",
    ".cuh": "cpp", ".cs": "csharp", ".rb": "ruby", ".php": "php", ".kt": "kotlin", ".swift": "swift",
}  # fmt: skip


def cache_folder() -> Path:
    """Where archives and unpacked files are kept."""
    return Path(platformdirs.user_cache_dir("lsp-complete")) / "corpus"


def language_of(path: Path) -> str:
    """Language id by file name; "plaintext" where unknown."""
    return _LANGUAGE_OF.get(path.suffix.lower(), "plaintext")


def digest(path: Path) -> str:
    """sha256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def obtain(package: Package, cache: Path, say: Callable[[str], None]) -> Path:
    """The package's files, unpacked under cache; fetched by pip if they are not there. Raises DownloadError."""
    folder = cache / f"{package.name}-{package.version}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / package.wheel
    if not archive.is_file() or digest(archive) != package.sha256:
        say(f"fetching {package.name} {package.version} (test corpus)")
        _pip_download(package, cache)
    if digest(archive) != package.sha256:
        archive.unlink()
        raise DownloadError(
            f"{package.wheel} does not match its digest. It was deleted; run the command again."
        )
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        unpacked = Path(scratch) / "files"
        unpack(archive, unpacked)
        unpacked.rename(folder)
    return folder


def _pip_download(package: Package, cache: Path) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--platform=any", "--quiet", "--disable-pip-version-check"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        *options,
        "-d",
        str(cache),
        f"{package.name}=={package.version}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        raise DownloadError(
            f"pip took over 300 s to fetch {package.wheel}. Check the network and try again."
        ) from None
    if done.returncode or not (cache / package.wheel).is_file():
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DownloadError(
            f"pip could not fetch {package.wheel}: {reason}. Check the network, or give files of your own with --files."
        )


def unpack(archive: Path, folder: Path) -> None:
    """Write the archive's text-sized members under folder. Raises DownloadError for a name that leaves it."""
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            name = PurePosixPath(info.filename)
            if name.is_absolute() or ".." in name.parts or "\\" in info.filename:
                raise DownloadError(f"{archive.name} holds an unsafe file name; it is not unpacked.")
            if info.is_dir() or info.file_size > _MAX_MEMBER:
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bundle.read(info))


def load_corpus(say: Callable[[str], None], files: Sequence[CorpusFile] = FILES) -> list[Source]:
    """The pinned files, fetched if need be. Raises DownloadError."""
    sources = []
    for file in files:
        root = obtain(PACKAGES[file.package], cache_folder(), say)
        path = root / file.path
        text = path.read_bytes().decode("utf-8")
        sources.append(Source(f"{file.package}/{path.name}", path, root, file.language_id, text))
    return sources


def load_files(paths: Sequence[Path]) -> list[Source]:
    """Files of the user's own. Raises OSError or UnicodeDecodeError for one that cannot be read as UTF-8."""
    sources = []
    for path in paths:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        full = path.resolve()
        sources.append(Source(path.name, full, full.parent, language_of(path), text))
    return sources


def eligible_lines(text: str) -> list[int]:
    """Lines whose text without indentation has 20–70 characters and is no comment's start."""
    found = []
    for number, line in enumerate(split_lines(text)):
        stripped = body(line).strip()
        if number and LINE_MIN <= len(stripped) <= LINE_MAX and not stripped.startswith(COMMENT_STARTS):
            found.append(number)
    return found


def places_in(source: Source, count: int, seed: int) -> list[Place]:
    """Up to count places in random order, each at least APART lines from every other."""
    rng = random.Random(f"{seed}:{source.name}")  # noqa: S311 (choice of lines)
    lines = eligible_lines(source.text)
    rng.shuffle(lines)
    chosen: list[int] = []
    for line in lines:
        if len(chosen) < count and all(abs(line - other) >= APART for other in chosen):
            chosen.append(line)
    return [Place(source, line) for line in chosen]


def choose_places(sources: Sequence[Source], count: int, seed: int) -> list[Place]:
    """count places spread evenly over the sources, file by file (the first ones take what does not divide)."""
    share, extra = divmod(count, max(1, len(sources)))
    wanted = [share + (index < extra) for index in range(len(sources))]
    return [place for source, n in zip(sources, wanted, strict=True) for place in places_in(source, n, seed)]
