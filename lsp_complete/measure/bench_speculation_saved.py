"""What `bench speculation --save` keeps of a point, so that a run can be stopped and gone on with: one JSON object a line.

Rules: a line belongs to a model, a place and the options that matter; a line of another run, or half a line, is passed over. What
proposers learned is not kept: a run that goes on learns anew. The text is that of the measured files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine.api import Candidate, Completion
from ..engine.wire import from_json, to_json
from ..errors import ProtocolError
from .bench_speculation_best import BestOf
from .bench_speculation_report import Kinds, Measured, Run


def since(before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]) -> Kinds:
    """What came to the sums of a proposer."""
    found = {k: {what: n - before.get(k, {}).get(what, 0) for what, n in sums.items()} for k, sums in now.items()}
    return {kind: sums for kind, sums in found.items() if any(sums.values())}


def line_of(tag: str, one: Measured) -> str:
    """A point as one line. tag: names model and options."""
    runs = {
        name: {"candidate": to_json(r.candidate), "times": r.times, "drafted": r.drafted, "accepted": r.accepted}
        for name, r in one.runs.items()
    }
    best = None
    if one.best is not None:
        best = {"line": one.best.line, "greedy": to_json(one.best.greedy), "several": to_json(one.best.several)}
    values = {
        "tag": tag, "place": one.place, "repeated": one.repeated, "runs": runs, "kinds": one.kinds, "best": best, "costs": one.costs,
        "judged": one.judged,
    }  # fmt: skip
    return json.dumps(values) + "\n"


def read_line(tag: str, line: str) -> Measured | None:
    """The inverse of `line_of`; None for another tag or for what cannot be read."""
    try:
        raw: dict[str, Any] = json.loads(line)
        if raw["tag"] != tag:
            return None
        runs = {
            name: Run(from_json(Candidate, r["candidate"]), [float(t) for t in r["times"]], r["drafted"], r["accepted"])
            for name, r in raw["runs"].items()
        }
        best = raw["best"] and BestOf(
            raw["best"]["line"], from_json(Completion, raw["best"]["greedy"]), from_json(Completion, raw["best"]["several"])
        )
        judged = {name: [(bool(right), float(p)) for right, p in said] for name, said in raw.get("judged", {}).items()}
        return Measured(raw["place"], raw["repeated"], runs, raw["kinds"], best, raw["costs"], judged)
    except (ValueError, KeyError, TypeError, AttributeError, ProtocolError):
        return None


def load_saved(path: Path | None, tag: str) -> dict[str, Measured]:
    """Saved points of this tag by place. Raises OSError."""
    if path is None or not path.exists():
        return {}
    with open(path, encoding="utf-8") as lines:
        found = [one for one in (read_line(tag, line) for line in lines) if one is not None]
    return {one.place: one for one in found}


def keep(path: Path | None, tag: str, one: Measured) -> None:
    """Add a point to the file. Raises OSError."""
    if path is not None:
        with open(path, "a", encoding="utf-8") as out:
            out.write(line_of(tag, one))
