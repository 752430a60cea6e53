"""Inventory of a small shop — reads CSV, keeps totals (naïve on purpose)."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field


@dataclass
class Item:
    """One row; `price` is in cents."""

    name: str
    price: int = 0
    tags: list[str] = field(default_factory=list)

    def label(self) -> str:
        # it's shown to people, so don't shorten
        return f"{self.name!r}: {self.price / 100:.2f} €  {'★' * len(self.tags)}"


def load(path: str, *, limit: int = 1_000) -> dict[str, Item]:
    items: dict[str, Item] = {}
    with open(path, encoding="utf-8") as handle:
        for number, row in enumerate(csv.reader(handle)):
            if number >= limit or not row:
                continue
            name, price, *tags = row
            items[name] = Item(name, int(price), tags)

    return items


def total(items, /, rate=0.19):
    # tabs here, as files have them
    if not items:
        return 0
    return sum(i.price for i in items.values()) * (1 + rate) // 1


if __name__ == "__main__":
    print("\n".join(i.label() for i in load("shop.csv").values()), "👩‍💻 done")
