"""What `bench typing --save` keeps of a closed run, so that it can be stopped and gone on with: one JSON object a line.

Strategy: the samples of a place are written when all variants are through with it. A run that goes on begins with the first file of
which a place is missing, from that file's first place: the next place of a file is a jump only behind its first one.

Rules: lines belong to a tag (variants, seed, places); those of another run and half lines are passed over and stay until the first
place of this run is written. The file is private (0600), its text is that of the measured files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from .closed import KeySample, Variant
from .corpus import Place
from .envelope import commit


def tag_of(variants: Sequence[Variant], places: Sequence[Place], seed: int) -> str:
    """Names what the samples of a run depend on, the program's version and commit among it, but for the machine: figures of two
    programs never become one result."""
    sides = [(v.name, v.options.settings, v.options.model, v.peer and v.peer.url) for v in variants]
    lines = [(p.source.name, p.line, hashlib.sha256(p.source.text.encode("utf-8", "replace")).hexdigest()) for p in places]
    whole = json.dumps([__version__, commit(), sides, lines, seed], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def finished(samples: Sequence[KeySample], names: Sequence[str], places: Sequence[Place]) -> int:
    """How many places, from the first on, need not be typed again: whole files, each place by all of `names`."""
    there = {(s.variant, s.place) for s in samples}
    done = next((n for n in range(len(places)) if any((name, n) not in there for name in names)), len(places))
    while 0 < done < len(places) and places[done].source is places[done - 1].source:
        done -= 1
    return done


@dataclass(slots=True)
class SavedRun:
    """A closed run's file. path None: nothing is kept. Raises OSError from its methods."""

    path: Path | None = None
    tag: str = ""
    samples: list[KeySample] = field(default_factory=list)

    def load(self, names: Sequence[str], places: Sequence[Place]) -> int:
        """Read what stands there; keeps the samples of the places that `finished` counts, and returns their number."""
        found = self._read()
        done = finished(found, names, places)
        self.samples = [s for s in found if s.place < done]
        return done

    def add(self, samples: Sequence[KeySample]) -> None:
        """Keep a place's samples, on disk too."""
        first = not self.samples
        self.samples += samples
        if self.path is None:
            return
        _write(self.path, os.O_TRUNC if first else os.O_APPEND, self.tag, samples)

    def rewrite(self) -> None:
        """Leave on disk what is kept, so that a place of which a part was written does not stand there twice."""
        if self.path is None or not self.samples:
            return
        beside = self.path.with_name(self.path.name + ".new")
        _write(beside, os.O_TRUNC, self.tag, self.samples)
        os.replace(beside, self.path)

    def _read(self) -> list[KeySample]:
        if self.path is None or not self.path.exists():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                raw: dict[str, Any] = json.loads(line)
                if raw.pop("tag") == self.tag:
                    found.append(KeySample(**raw))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return found


def _write(path: Path, flag: int, tag: str, samples: Sequence[KeySample]) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"tag": tag, **asdict(s)}) + "\n" for s in samples)
