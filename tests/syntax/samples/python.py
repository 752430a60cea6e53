"""Orders and how they are priced."""

from __future__ import annotations

import json
from dataclasses import dataclass, field as make_field
from pathlib import Path

RATE = 0.19
NAMES: dict[str, int] = {
    "a": 1,
    "b": 2,
}


@dataclass(frozen=True)
class Order:
    """One order. Immutable."""

    number: int
    lines: list[str] = make_field(default_factory=list)

    def total(self, rate: float = RATE) -> float:
        """Sum of all lines with tax.

        More text here.
        """
        amount = 0.0
        for line in self.lines:
            amount += price_of(line)

        def taxed(value: float) -> float:
            return value * (1 + rate)

        return round(taxed(amount), 2)

    @property
    def empty(self) -> bool:
        return not self.lines


# Looks a price up.
# Two lines.
def price_of(
    line: str,
    table: dict[str, int] = NAMES,
) -> int:
    return table.get(line.strip(), 0)


async def load(path: Path) -> Order:
    data = json.loads(path.read_text())
    return Order(data["number"], [f"{x!r}" for x in data["lines"]])


if __name__ == "__main__":
    print(price_of("a"))
