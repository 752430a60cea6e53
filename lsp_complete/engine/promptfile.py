"""The file format of one saved prompt, and the directory that holds such files.

Strategy: a fixed header, a small JSON part, the token ids and llama.cpp's saved state, closed by a keyed digest (BLAKE2b with
a per-user key) over everything before it. The head alone says which prompt a file holds; only the digest says it is genuine.

Rules: never trust a length from a file. Functions return None for what is not theirs; OSError is the caller's
except where a function says otherwise. Directory 0700, files 0600, written under another name first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import secrets
import stat
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lsp_complete.engine.backend import Ints

MAGIC = b"LSPCKV1\n"
_HEAD = struct.Struct("<8sIIQ")  # magic, bytes of JSON, number of tokens, bytes of state
DIGEST = 32
KEY_BYTES = 32
_MAX_JSON = 4096
_MAX_TOKENS = 1 << 20
SUFFIX = ".kv"


@dataclass(frozen=True, slots=True, eq=False)
class DiskEntry:
    """One saved prompt on disk. size: bytes of its state. key: digest of the document's name."""

    path: Path
    tokens: Ints
    size: int
    key: str


def build(fingerprint: str, tokens: Ints, state: bytes | bytearray, owner: str, key: bytes) -> bytes:
    """A whole file's bytes."""
    meta = json.dumps({"fingerprint": fingerprint, "key": owner}).encode()
    body = b"".join((_HEAD.pack(MAGIC, len(meta), len(tokens), len(state)), meta, tokens.tobytes(), state))
    return body + digest(body, key)


def digest(body: bytes | memoryview, key: bytes) -> bytes:
    """The keyed digest that closes a file."""
    return hashlib.blake2b(body, key=key, digest_size=DIGEST).digest()


def verify(data: bytes, key: bytes) -> bool:
    """Whether the file was written by this user's engine and is unchanged."""
    if len(data) < _HEAD.size + DIGEST:
        return False
    view = memoryview(data)
    return hmac.compare_digest(digest(view[:-DIGEST], key), data[-DIGEST:])


def parse_head(data: bytes, fingerprint: str, total: int | None = None) -> tuple[Ints, int, str] | None:
    """(tokens, bytes of state, key digest) from a file's beginning, or None if it is not one of this engine's."""
    if len(data) < _HEAD.size:
        return None
    magic, n_meta, n_tokens, n_state = _HEAD.unpack_from(data)
    if magic != MAGIC or n_meta > _MAX_JSON or not 0 < n_tokens <= _MAX_TOKENS:
        return None
    start = _HEAD.size + n_meta
    size = len(data) if total is None else total
    if start + 4 * n_tokens + n_state + DIGEST != size or len(data) < start + 4 * n_tokens:
        return None
    try:
        meta = json.loads(data[_HEAD.size : start])
    except (ValueError, RecursionError):
        return None
    if not isinstance(meta, dict) or meta.get("fingerprint") != fingerprint:
        return None
    return (
        np.frombuffer(data, dtype=np.int32, count=n_tokens, offset=start).copy(),
        n_state,
        str(meta.get("key", "")),
    )


def read_head(path: Path, fingerprint: str) -> DiskEntry | None:
    """An entry from a file's head, not verified yet; None if it is unusable (a link or a pipe is, too)."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            total = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return None
            _, n_meta, n_tokens, _ = _HEAD.unpack(head)
            head += file.read(min(n_meta, _MAX_JSON) + 4 * min(n_tokens, _MAX_TOKENS))
    except OSError:
        return None
    found = parse_head(head, fingerprint, total)
    return None if found is None else DiskEntry(path, found[0], found[1], found[2])


def open_plain(path: Path) -> int:
    """A descriptor that reads the regular file at `path` itself: no link is followed, no pipe waited for. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    return fd


def user_key(directory: Path) -> bytes:
    """The per-user secret beside the entries, made on first use. Raises OSError.

    One that others could read or that is not ours vouches for nothing: another takes its place, and what it vouched for is foreign.
    Of two engines that make it at once the first one's counts for both.
    """
    path = directory / "key"
    found = _kept_key(path)
    if found:
        return found
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        if os.path.lexists(path):
            os.replace(temporary, path)
        else:
            _name_first(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    key = _kept_key(path)
    if not key:
        raise OSError(errno.EACCES, "its key cannot be kept private")
    return key


def _kept_key(path: Path) -> bytes:
    """The key at `path` if it is whole and nobody else's business, else b""."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            info = os.fstat(file.fileno())
            key = file.read(KEY_BYTES + 1)
    except OSError:
        return b""
    private = os.name == "nt" or (info.st_uid == os.getuid() and not info.st_mode & 0o077)
    return key if private and len(key) == KEY_BYTES else b""


def _name_first(temporary: str, path: Path) -> None:
    """Give a file its name unless another got it meanwhile. Raises OSError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        os.replace(temporary, path)


def write_private(path: Path, data: bytes) -> None:
    """Write a file (mode 0600) under another name first, so that no half file ever has this one. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def enforce(directory: Path, limit: int, days: float, now: float) -> list[Path]:
    """Remove entries that are too old, that alone are over `limit` bytes, and of the others the least recently used ones over it; returns
    what went."""
    files: list[tuple[float, int, Path]] = []
    for path in [*directory.glob(f"*{SUFFIX}"), *directory.glob(".new-*")]:
        with contextlib.suppress(OSError):
            info = path.lstat()
            files.append((info.st_mtime, info.st_size, path))
    gone: list[Path] = []
    total = sum(size for _, size, _ in files)
    for modified, size, path in sorted(files, key=lambda file: (file[1] <= limit, file)):
        half = path.name.startswith(".new-") and now - modified > 600
        if half or total > limit or now - modified > days * 86_400:
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
            gone.append(path)
    return gone


def purge(directory: str) -> tuple[int, int]:
    """Remove every saved prompt and the key: (files, bytes) that went. For the command line."""
    count = freed = 0
    root = Path(directory)
    for path in [*root.glob(f"*{SUFFIX}"), *root.glob(".new-*"), root / "key"]:
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            count, freed = count + 1, freed + size
    return count, freed
