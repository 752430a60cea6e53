"""The values that context is made from: symbols of this file and of others, chunks of text to choose from. Pure.

Rules:
- Paths are as the model sees them: relative to the workspace, with slashes.
- A chunk has one identity for as long as it means the same thing (`key`), whatever its text becomes.
"""

from __future__ import annotations

from dataclasses import dataclass

TIERS = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition, here or in another file. role: "class" | "function" | "constant" | "import"; container: names around it,
    joined by ".".

    body: its text after the signature, the first lines at least; whole: that is all. uses: names it calls. attributes: what a
    class's methods set: (name as written: `self.x`, annotation, first value). summary: one sentence, the doc's or a model's.
    """

    path: str
    language: str
    name: str
    role: str
    kind: str = ""
    container: str = ""
    signature: str = ""
    summary: str = ""
    body: str = ""
    whole: bool = False
    uses: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str, str], ...] = ()
    first_line: int = 0
    last_line: int = 0

    @property
    def qualified(self) -> str:
        """Container and name, joined by "."."""
        return f"{self.container}.{self.name}" if self.container else self.name


@dataclass(frozen=True, slots=True)
class ImportLine:
    """An import of the open file: the module as written, the names it brings in, its own text and line."""

    module: str
    binds: tuple[str, ...]
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of text that may stand in the prompt. forms: longest first, each ending in a line end, at least one.

    tier: one of TIERS. weight: within the tier, higher is more wanted. line: order within its file. own: it belongs to the
    open file and stands in its prefix, not in a file of its own. key: see the module's rules.
    """

    key: str
    path: str
    tier: str
    weight: float
    forms: tuple[str, ...]
    line: int = 0
    own: bool = False

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise ValueError(f"unknown tier {self.tier!r}")
        if not self.forms or not all(form.endswith("\n") for form in self.forms):
            raise ValueError("a chunk needs forms that end in a line end")
