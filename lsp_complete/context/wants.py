"""Which symbols the code at the cursor needs, and how badly: the step before any text is written. Pure.

Strategy: every rule of `tiers.py` adds wants; wants for the same symbol meet and the strongest counts; a want for a member becomes a
want for its class with that member.

Rules: the same inputs give the same wants in the same order; what the prompt's window shows is not wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .resolve import Lookups, Place, Resolver
from .symbol import Symbol

MAX_CALLS = 12
MAX_CALLERS = 3


@dataclass(slots=True)
class Want:
    """A symbol wanted. members: names inside it that must be seen. lines: first lines of the body are wanted too; used: a class whose
    objects are used here, so its members count, not how one is made."""

    symbol: Symbol
    tier: str
    weight: float
    members: set[str] = field(default_factory=set)
    lines: bool = False
    used: bool = False


class Wants(Resolver):
    """Collects wants by symbol, in the order in which they first came."""

    def __init__(self, place: Place, lookups: Lookups) -> None:
        super().__init__(place, lookups)
        self.found: dict[tuple[str, str], Want] = {}

    def add(self, symbol: Symbol, tier: str, weight: float, member: str = "", *, lines: bool = False, used: bool = False) -> None:
        """Want a symbol; one that is in view already is left out."""
        if symbol.path == self.place.path and self._visible(symbol):
            return
        want = self.found.setdefault((symbol.path, symbol.qualified), Want(symbol, tier, weight))
        want.tier, want.weight = min(want.tier, tier), max(want.weight, weight)
        want.lines, want.used = want.lines or lines, want.used or used
        if member:
            want.members.add(member)

    def _visible(self, symbol: Symbol) -> bool:
        first, last = self.place.visible
        end = symbol.first_line if symbol.role == "class" else min(symbol.last_line, symbol.first_line + 3)
        return first <= symbol.first_line and end <= last

    def add_found(self, symbol: Symbol, tier: str, weight: float, *, lines: bool = False) -> None:
        """Want a symbol, or its class with it if it is a member."""
        holder = self.holder(symbol) if symbol.container else None
        if holder is not None and symbol.path != self.place.path:
            self.add(holder, tier, weight, symbol.name)
        else:
            self.add(symbol, tier, weight, lines=lines)
