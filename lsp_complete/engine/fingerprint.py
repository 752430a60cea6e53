"""Which model, exactly: fingerprints that decide whether saved KV may be used again.

Strategy: a file's fingerprint is a hash over its size, modification time, head, tail and evenly spread blocks (a few
MB read, some milliseconds); replacing or damaging a model file changes it. An engine's fingerprint adds llama.cpp's
version, the KV types and whatever else changes what saved state means.

Rules: cheap enough to be checked before every restore from disk; never the only proof of origin (saved files also carry
a keyed digest).
"""

from __future__ import annotations

import os

import xxhash

_EDGE = 1 << 20
_BLOCK = 1 << 16
_BLOCKS = 64


def file_fingerprint(path: str) -> str:
    """Hex fingerprint of a file's content by samples. Raises OSError."""
    digest = xxhash.xxh3_128()
    with open(path, "rb") as file:
        stat = os.fstat(file.fileno())
        digest.update(f"{stat.st_size}:{stat.st_mtime_ns}".encode())
        digest.update(file.read(_EDGE))
        step = stat.st_size // (_BLOCKS + 1)
        for i in range(1, _BLOCKS + 1):
            file.seek(i * step)
            digest.update(file.read(_BLOCK))
        file.seek(max(0, stat.st_size - _EDGE))
        digest.update(file.read(_EDGE))
    return digest.hexdigest()


def engine_fingerprint(file_digest: str, *parts: str) -> str:
    """Hex fingerprint of one way of running one file."""
    return xxhash.xxh3_128("\0".join((file_digest, *parts)).encode()).hexdigest()
