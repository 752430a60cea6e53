"""What a check found: one line for a person, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEVELS = ("ok", "note", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Finding:
    """level: "ok" | "note" (could be better) | "warn" (something works badly) | "fail" (no suggestions).

    topic: which check. text: what was found. remedy: what to do, "" where nothing is to be done.
    """

    level: str
    topic: str
    text: str
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"unknown level {self.level!r}")
        if self.level in ("warn", "fail") and not self.remedy:
            raise ValueError("what is wrong needs a remedy")


def render(findings: Iterable[Finding]) -> str:
    """Findings as lines, in their order; the remedy stands under its finding."""
    lines = []
    for found in findings:
        mark = found.level.upper() if found.level == "fail" else found.level
        lines.append(f"{mark:<4}  {found.topic}: {found.text}")
        if found.remedy:
            lines.append(f"      → {found.remedy}")
    return "\n".join(lines)


def exit_status(findings: Iterable[Finding]) -> int:
    """1 if anything failed."""
    return int(any(found.level == "fail" for found in findings))
