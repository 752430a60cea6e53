"""A download in progress: `NAME.part` and a note `NAME.part.json` that says what its bytes are part of.

Strategy: bytes are only appended, and hashed as they are. The note holds a key (source and digest or version): a
later run goes on only where the key is the same, else it starts again. Marks let a source say "good up to here";
what lies after the last mark is cut off when the download is taken up again.

Rules:
- A part never becomes a model by itself: only `finish` renames it, and only with the right size and digest.
- The caller holds the model's lock.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from types import TracebackType

from lsp_complete.errors import DownloadError
from lsp_complete.models.paths import CHUNK, Progress, part_path, silent, write_stamp

DISK_MARGIN = 64 << 20


class PartialFile:
    """One download. Use as a context manager; the part stays on disk unless `discard` or `finish` is called.

    offset: bytes there so far. marks: offsets noted by `mark`, in order (registry: ends of parts).
    """

    def __init__(
        self, target: Path, key: str, size: int, *, to_marks: bool, progress: Progress = silent
    ) -> None:
        self.target, self.key, self.size = target, key, size
        self._path = part_path(target)
        self._note = self._path.with_name(self._path.name + ".json")
        self.marks = self._read_marks()
        keep = self._kept(to_marks)
        self.offset = keep
        self._digest = hashlib.sha256()
        try:
            self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
            self._file.truncate(keep)
            self._hash_existing(keep, progress)
            self._write_note()
        except OSError as error:
            raise _disk_error(error, self._path) from error

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read_marks(self) -> list[int]:
        try:
            note = json.loads(self._note.read_text("utf-8"))
            marks = [int(mark) for mark in note["marks"]]
            return marks if note["key"] == self.key else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _kept(self, to_marks: bool) -> int:
        try:
            there = self._path.stat().st_size
            same = json.loads(self._note.read_text("utf-8"))["key"] == self.key
        except (OSError, ValueError, KeyError, TypeError):
            there, same = 0, False
        self.marks = [mark for mark in self.marks if mark <= there]
        if not same or there > self.size:
            self.marks = []
            return 0
        return (self.marks[-1] if self.marks else 0) if to_marks else there

    def _hash_existing(self, length: int, progress: Progress) -> None:
        self._file.seek(0)
        done = 0
        while done < length and (chunk := self._file.read(min(CHUNK, length - done))):
            self._digest.update(chunk)
            done += len(chunk)
            progress(done, self.size, "taking up an earlier download")
        self.offset = done
        self._file.seek(done)

    def _write_note(self) -> None:
        self._note.write_text(json.dumps({"key": self.key, "marks": self.marks}), "utf-8")

    def append(self, data: bytes) -> None:
        """Add bytes. Raises DownloadError when there are more than the model has, or the disk is full."""
        if self.offset + len(data) > self.size:
            self.discard()
            raise DownloadError(
                f"{self.target.name}: the source sent more than the {self.size:,} bytes that the file has. "
                "It is another file; nothing was kept. Try another source."
            )
        try:
            self._file.write(data)
        except OSError as error:
            raise _disk_error(error, self._path) from error
        self._digest.update(data)
        self.offset += len(data)

    def mark(self) -> None:
        """Everything up to here is good: keep it when the download is taken up again."""
        try:
            self._file.flush()
            self.marks.append(self.offset)
            self._write_note()
        except OSError as error:
            raise _disk_error(error, self._path) from error

    def restart(self) -> None:
        """Throw the bytes away but go on with the same file: the source cannot go on in the middle."""
        self._file.seek(0)
        self._file.truncate(0)
        self._digest = hashlib.sha256()
        self.offset, self.marks = 0, []
        self._write_note()

    def discard(self) -> None:
        """Remove the part and its note."""
        self._file.close()
        for path in (self._path, self._note):
            path.unlink(missing_ok=True)

    def finish(self, sha256: str, source: str) -> Path:
        """Check size and digest, give the file its final name and stamp it.

        Raises DownloadError if it is too short (the part is kept) or its digest is wrong (the part is removed).
        """
        if self.offset != self.size:
            raise DownloadError(
                f"{self.target.name}: the download ended after {self.offset:,} of {self.size:,} bytes. "
                "Run the same command again; it goes on from there."
            )
        found = self._digest.hexdigest()
        if found != sha256:
            self.discard()
            raise DownloadError(
                f"{self.target.name}: the downloaded bytes have the digest {found[:16]}…, not {sha256[:16]}…. "
                "They were damaged on the way or are another file; nothing was kept. Run the command again."
            )
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._path, self.target)
            self._note.unlink(missing_ok=True)
        except OSError as error:
            raise _disk_error(error, self._path) from error
        write_stamp(self.target, sha256, source)
        return self.target


def require_space(folder: Path, needed: int) -> None:
    """Raises DownloadError with the numbers if the disk has less than `needed` bytes and a margin free."""
    free = shutil.disk_usage(folder).free
    if free < needed + DISK_MARGIN:
        raise DownloadError(
            f"Not enough room in {folder}: {needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free. "
            "Free some space, or put the models elsewhere with the environment variable LSP_COMPLETE_MODEL_DIR."
        )


def _disk_error(error: OSError, path: Path) -> DownloadError:
    if error.errno == errno.ENOSPC:
        return DownloadError(
            f"The disk became full while writing {path}. What was fetched is kept; "
            "free some space and run the same command again."
        )
    return DownloadError(
        f"{path} cannot be written: {error.strerror or error}. Check the folder and its permissions."
    )
