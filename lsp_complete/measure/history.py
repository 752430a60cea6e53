"""A corpus of recordings from git histories: `lsp-complete replay corpus`, to judge models, settings and changes by.

Strategy: the pinned projects are a few releases each, from the Python registry, checked against their digests; each project's releases become
the commits of a git repository, always the same one. Half of them were first released in 2026, so no model of 2024 has seen them. A repository of one's own
does as well: its newest commits are taken. What the commits changed is typed and asked about at a sample of places (`replay_sampled`).

Rules:
- The same seed, count and repositories give the same recordings, byte for byte.
- Nothing of a package is installed or run. git runs with no configuration but its own words.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import replay_sampled as sampled
from .corpus import PACKAGES, Package, obtain
from .import_git import changes, commits
from .recording import SUFFIX, RecordingError, private_folder, write

COMMITS = 40
"""Of a repository that are looked at."""


def _wheel(name: str, version: str, sha256: str, since: int) -> Package:
    return Package(name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", sha256, since)


HISTORIES: dict[str, tuple[Package, ...]] = {
    "httpcore": (
        _wheel("httpcore", "1.0.0", "cdbe42a0ea87dcaf9b5c751e868aff233799e947aff8b9c9eff8a2c11219ddb7", 2019),
        PACKAGES["httpcore"],
    ),
    "anyplotlib": (
        _wheel("anyplotlib", "0.7.0", "7bc33b1266c38857cc8630c2d711286845e9b2acacaf0390558c0239889ae186", 2026),
        PACKAGES["anyplotlib"],
    ),
    "coverage": (
        _wheel("coverage", "7.9.0", "79ea9a26b27c963cdf541e1eb9ac05311b012bc367d0e31816f1833b06c81c02", 2009),
        PACKAGES["coverage"],
    ),
    "pydantic-handlebars": (
        _wheel("pydantic-handlebars", "0.1.0", "8a436fe8bc607295eb04bec58bd6e2c9498c9e069c557ff0b505e3d568c783bc", 2026),
        PACKAGES["pydantic-handlebars"],
    ),
    "starlette": (
        _wheel("starlette", "0.40.0", "c494a22fae73805376ea6bf88439783ecfba9aac88a43911b48c653437e784c4", 2018),
        _wheel("starlette", "0.47.3", "89c0778ca62a76b826101e7c709e70680a1699ca7da6b44d38eb0a7e61fe4b51", 2018),
    ),
}
"""Releases of each project, oldest first."""


def repository(name: str, cache: Path, say: Callable[[str], None]) -> Path:
    """The git repository of a pinned project, made under cache if it is not there. Raises DownloadError, RecordingError."""
    releases = HISTORIES[name]
    folder = cache / f"{name}-{'-'.join(package.version for package in releases)}.git"
    if (folder / "HEAD").is_file():
        return folder
    trees = [obtain(package, cache, say) for package in releases]
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = Path(scratch) / "repository"
        git(made, "init", "--quiet", "--bare", str(made))
        for day, (package, tree) in enumerate(zip(releases, trees, strict=True)):
            work, index = Path(scratch) / package.version, Path(scratch) / f"index-{day}"
            shutil.copytree(tree, work, ignore=shutil.ignore_patterns("*.dist-info"))
            inside = {"GIT_WORK_TREE": str(work), "GIT_INDEX_FILE": str(index)}
            git(made, "add", "--all", "--force", ".", more=inside, where=work)
            stamp = f"{1_700_000_000 + day * 86_400} +0000"
            dates = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
            git(made, "commit", "--quiet", "--allow-empty", "-m", package.version, more={**inside, **dates}, where=work)
        made.rename(folder)
    return folder


def git(repo: Path, *words: str, more: dict[str, str] | None = None, where: Path | None = None) -> None:
    """Run git on a repository, without anyone's configuration. Raises RecordingError."""
    who = {f"GIT_{role}_{what}": "corpus" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    plain = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_DIR": str(repo)}
    settings = ["-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", "-c", "core.excludesFile=", "-c", "init.defaultBranch=main"]
    try:
        done = subprocess.run(
            ["git", *settings, *words], env={**os.environ, **who, **plain, **(more or {})}, cwd=where,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise RecordingError(f"git could not be run ({type(error).__name__}).") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RecordingError(f"git {words[0]} failed: {reason}")


def make(
    repositories: Sequence[tuple[str, Path]], count: int, seed: int, out: Path
) -> dict[str, int]:
    """Write one recording per repository into the folder `out`; how many points each has. Raises RecordingError, OSError."""
    pairs = {name: _changed(path) for name, path in repositories}
    rng = random.Random(seed)  # noqa: S311 (a sample)
    chosen = sampled.choose({name: sampled.runs(found) for name, found in pairs.items()}, count, rng)
    if not any(chosen.values()):
        raise RecordingError("Nothing in these histories can be typed: no changed text file in a known language.")
    private_folder(out)
    points = {}
    for name, found in chosen.items():
        if found:
            recording = sampled.recording(pairs[name], found, random.Random(f"{seed}:{name}"))  # noqa: S311
            write(out / f"{name}{SUFFIX}", recording)
            points[name] = sum(event.kind == "asked" for event in recording.events)
    return points


def _changed(path: Path) -> list[sampled.Pair]:
    """What the newest commits changed, as one list: a file that several changed is in it several times."""
    found: list[sampled.Pair] = []
    for commit in commits(path, COMMITS):
        found += changes(path, commit)[0]
    return found
