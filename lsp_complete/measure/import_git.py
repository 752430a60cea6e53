"""A commit as typing: each file that it changed is opened as it was and becomes, key by key, what it is after it.

Strategy: the two versions are compared by lines; each run of changed lines is narrowed to what really differs, which is
deleted in one edit and then typed. After every character a request is put where an editor would ask.

Rules:
- Only text files that stood before and after the commit are typed; other changed files are left out.
- The rhythm is drawn from a seed: a key about every 92 ms, a longer pause at a line's start (DESIGN, section 1).
- git is asked with fixed words; the commit is resolved first, so that no argument can be an option.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from ..syntax.languages import language_for
from ..text.edits import difference
from .edits import split_lines
from .recording import Asked, Changed, Closed, Event, Header, Moved, Opened, Recording, RecordingError, Splice

KEY_MS = (60.0, 125.0)
LINE_MS = (300.0, 900.0)
JUMP_MS = 1500.0
MAX_FILE = 300_000
SAFE = ("-c", "log.showSignature=false", "-c", "core.fsmonitor=false")
"""What else a repository's own settings could make git run."""


def read(repository: Path, commit: str, *, seed: int = 1, max_keys: int = 2000) -> Recording:
    """The typing of a commit, at most max_keys characters. Raises RecordingError."""
    pairs, created = changes(repository, commit)
    return typing(pairs, seed=seed, max_keys=max_keys, created=created)


def changes(repository: Path, commit: str) -> tuple[list[tuple[str, str, str]], float]:
    """What a commit changed, (path, old text, new text) by path, and when (seconds since 1970). Raises RecordingError."""
    full = _git(
        repository, "rev-parse", "--verify", "--quiet", "--end-of-options", commit + "^{commit}"
    ).strip()
    if not full:
        raise RecordingError(f"{repository}: there is no commit {commit!r}.")
    names = _git(
        repository, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--diff-filter=M", full.decode()
    )
    pairs = []
    for name in sorted(filter(None, names.split(b"\0"))):
        path = name.decode("utf-8", "replace")
        old, new = (_text(repository, f"{full.decode()}{side}:{path}") for side in ("^", ""))
        if old is not None and new is not None and old != new:
            pairs.append((path, old, new))
    return pairs, float(_git(repository, "show", "-s", "--format=%ct", full.decode()) or 0)


def commits(repository: Path, count: int) -> list[str]:
    """The newest commits that are no merges and have a parent, newest first. Raises RecordingError."""
    words = ("rev-list", "--no-merges", "--min-parents=1", f"--max-count={count}", "HEAD")
    return _git(repository, *words).decode().split()


def typing(
    files: list[tuple[str, str, str]], *, seed: int = 1, max_keys: int = 2000, created: float = 0.0
) -> Recording:
    """A recording that types each (path, old text, new text). After max_keys characters the rest comes as one edit."""
    events = tuple(_events(files, random.Random(seed), max_keys))  # noqa: S311 (a rhythm, not a secret)
    return Recording(Header("git", created=created), events)


def _events(files: list[tuple[str, str, str]], rng: random.Random, max_keys: int) -> Iterator[Event]:
    at, asked, keys = 0.0, 0, 0
    for doc, (path, old, new) in enumerate(files):
        facts = language_for("", path, old[:80].partition("\n")[0])
        yield Opened(at, doc, path, facts.ids[0] if facts else "plaintext", old)
        for start, end, text in hunks(old, new):
            at += JUMP_MS
            yield Moved(at, doc, start)
            if end > start:
                yield Changed(at, doc, ((start, end, ""),))
            if keys + len(text) > max_keys:
                yield Changed(at, doc, ((start, start, text),), len(text))
                continue
            for index, char in enumerate(text):
                at += rng.uniform(*(LINE_MS if index and text[index - 1] == "\n" else KEY_MS))
                place = start + index
                yield Changed(at, doc, ((place, place, char),), 1)
                yield Asked(at, doc, asked, place + 1)
                asked += 1
                keys += 1
        yield Closed(at, doc)


def hunks(old: str, new: str) -> Iterator[Splice]:
    """What differs, top to bottom; offsets are those of the text in which everything above is new already."""
    before, after = split_lines(old), split_lines(new)
    moved = 0
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        was, becomes = "".join(before[i:j]), "".join(after[k:m])
        start, end, text = difference(was, becomes)
        base = starts[i] + moved
        moved += len(becomes) - len(was)
        yield base + start, base + end, text


def _text(repository: Path, name: str) -> str | None:
    data = _git(repository, "cat-file", "blob", name)
    if len(data) > MAX_FILE or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _git(repository: Path, *words: str) -> bytes:
    """Output of a git command; b"" if it fails. Raises RecordingError without git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *SAFE, *words], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RecordingError(f"git could not be run ({type(error).__name__}).") from None
    return done.stdout if done.returncode == 0 else b""
