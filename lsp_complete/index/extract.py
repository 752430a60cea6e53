"""From a file's bytes to its symbols: in this process, or in helper processes that use the other cores.

Strategy: parsing keeps the interpreter busy, so a whole workspace is read by helper processes of this same program
(`python -m lsp_complete.index.extract`) that take paths on standard input and give symbols on standard output. They run at low
priority, end with their input, and hold no state.

Rules:
- A request is a line with a path in JSON; a reply is a 4-byte length and that many bytes: 16 of content hash, then symbols
  (none for a file not worth indexing).
- A helper that dies costs the file it was reading, and nothing else: the caller goes on without it.
- Which files may be read was decided before; nothing here asks again.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import xxhash

from lsp_complete.index.symbols import FileSymbols, from_bytes, symbols_of
from lsp_complete.index.walk import worth_indexing
from lsp_complete.syntax.languages import language_for, load
from lsp_complete.syntax.outline import outline_of
from lsp_complete.syntax.trees import parse, why_not_parsed
from lsp_complete.text.buffer import TextBuffer

DIGEST = 16
MAX_REPLY = 64 << 20
NICE = 10


@dataclass(frozen=True, slots=True)
class Extracted:
    """A file's content hash (DIGEST bytes) and symbols; None if it is not worth indexing."""

    digest: bytes
    symbols: FileSymbols | None


def digest_of(data: bytes) -> bytes:
    """Hash of a file's content, DIGEST bytes."""
    return xxhash.xxh3_128_digest(data)


def extract_text(path: str, text: str) -> FileSymbols | None:
    """Symbols of a text; None for an unknown language or a text that cannot be parsed."""
    facts = language_for("", path, text[:200].partition("\n")[0])
    buffer = TextBuffer.from_text(text)
    grammar = None if facts is None or why_not_parsed(buffer) else load(facts)
    tree = None if grammar is None else parse(grammar, buffer)
    return None if tree is None else symbols_of(outline_of(tree), buffer)


def extract_bytes(path: str, data: bytes) -> FileSymbols | None:
    """Symbols of a file's bytes; None if it is not worth indexing."""
    return extract_text(path, data.decode("utf-8-sig", "replace")) if worth_indexing(data) else None


def extract_file(path: str, max_bytes: int) -> Extracted | None:
    """Read a file and extract its symbols. None if it cannot be read or has grown too large."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    if len(data) > max_bytes:
        return None
    return Extracted(digest_of(data), extract_bytes(path, data))


class Helper:
    """One helper process. Used by one thread; `close` ends it."""

    def __init__(self, max_bytes: int) -> None:
        package = Path(__file__).resolve().parents[2]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lsp_complete.index.extract", str(max_bytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip

    def extract(self, path: str) -> Extracted | None:
        """As `extract_file`. Raises OSError once the helper is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(path).encode() + b"\n")
        self._process.stdin.flush()
        reply = _read_frame(self._process.stdout)
        if not reply:
            return None
        return Extracted(reply[:DIGEST], from_bytes(reply[DIGEST:]))

    def close(self) -> None:
        """End the process and wait for it."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _read_frame(stream: IO[bytes]) -> bytes:
    head = stream.read(4)
    if len(head) < 4:
        raise OSError("the helper has ended")
    (size,) = struct.unpack("<I", head)
    data = stream.read(size) if size <= MAX_REPLY else b""
    if len(data) != size:
        raise OSError("the helper has ended")
    return data


def main() -> int:
    """The helper's life: one reply per line of input."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICE)
    max_bytes, out = int(sys.argv[1]), sys.stdout.buffer
    for line in sys.stdin.buffer:
        found = None
        with contextlib.suppress(Exception):  # whatever a strange file does, the next one is served
            found = extract_file(json.loads(line), max_bytes)
        reply = b"" if found is None else found.digest + (found.symbols.to_bytes() if found.symbols is not None else b"")
        out.write(struct.pack("<I", len(reply)) + reply)
        out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
