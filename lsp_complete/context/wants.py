"""Which symbols the code at the cursor needs, and how badly: the step before any text is written. Pure.

Strategy: every rule adds wants; wants for the same symbol meet and the strongest counts; a want for a member becomes a want for
its class with that member. What the cursor touches comes first, then what the enclosing function calls and is called by,
then what the lines around it name.

Rules:
- The look-ups are the caller's (an index, a test's table); each is asked a bounded number of times.
- A name that an import brings in is taken from the module that the import names, or not at all if several files could be meant.
- The same inputs give the same wants in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .modules import folder, in_package, matches, shared_folders
from .near import AtCursor, Guess, Near, guess, parts, returned, type_names
from .symbol import ImportLine, Symbol

MAX_CALLS = 12
MAX_CALLERS = 3
MAX_DEPTH = 3
MAX_RECEIVERS = 80
_SELF = frozenset({"self", "this", "cls", "Self", "$this"})
_SUPER = frozenset({"super", "base", "parent"})


@dataclass(frozen=True, slots=True)
class Lookups:
    """Questions about other files. named: definitions of a name; users: functions that call it; members: definitions directly
    inside a class, by path and qualified name; top: definitions of a file at its top level."""

    named: Callable[[str], Sequence[Symbol]]
    users: Callable[[str], Sequence[Symbol]]
    members: Callable[[str, str], Sequence[Symbol]]
    top: Callable[[str], Sequence[Symbol]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cursor is, as plain values. own: symbols of the open file, in order. visible: first and last line that the
    prompt shows anyway. scope: text from the start of the enclosing function (or class) to the cursor. recent: rank of recently
    edited or opened files by path, 0 the most recent.
    """

    path: str
    language: str
    near: tuple[Near, ...] = ()
    at: AtCursor = field(default_factory=AtCursor)
    imports: tuple[ImportLine, ...] = ()
    own: tuple[Symbol, ...] = ()
    function: Symbol | None = None
    enclosing_class: Symbol | None = None
    visible: tuple[int, int] = (0, 0)
    scope: str = ""
    recent: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Want:
    """A symbol wanted. members: names inside it that must be seen. lines: first lines of the body are wanted too."""

    symbol: Symbol
    tier: str
    weight: float
    members: set[str] = field(default_factory=set)
    lines: bool = False


class Wants:
    """Collects wants by symbol, in the order in which they first came."""

    def __init__(self, place: Place, lookups: Lookups) -> None:
        self.place, self._ask = place, lookups
        self.found: dict[tuple[str, str], Want] = {}
        self._bound = {name: line for line in place.imports for name in line.binds}
        self._types: dict[tuple[str, ...], list[Symbol]] = {}
        self._own_by_name: dict[str, list[Symbol]] = {}
        for symbol in place.own:
            self._own_by_name.setdefault(symbol.name, []).append(symbol)

    # -- adding -----------------------------------------------------------------------------------------

    def add(self, symbol: Symbol, tier: str, weight: float, member: str = "", *, lines: bool = False) -> None:
        """Want a symbol; one that is in view already is left out."""
        if symbol.path == self.place.path and self._visible(symbol):
            return
        want = self.found.setdefault((symbol.path, symbol.qualified), Want(symbol, tier, weight))
        want.tier, want.weight = min(want.tier, tier), max(want.weight, weight)
        want.lines = want.lines or lines
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

    def holder(self, symbol: Symbol) -> Symbol | None:
        """The class around a member."""
        if symbol.path == self.place.path:
            return next((s for s in self.place.own if s.role == "class" and s.qualified == symbol.container), None)
        outer, _, name = symbol.container.rpartition(".")
        return next(
            (s for s in self._ask.named(name) if (s.path, s.container, s.role) == (symbol.path, outer, "class")), None
        )

    # -- finding ----------------------------------------------------------------------------------------

    def resolve(self, name: str, receiver: tuple[str, ...] = ()) -> list[Symbol]:
        """What a name stands for, best first: own definitions, then what an import brings in, then neighbours."""
        if receiver:
            return self._resolve_member(name, receiver)
        own = [s for s in self._own_by_name.get(name, ()) if not s.container and s.role != "import"]
        if own:
            return own[:1]
        line = self._bound.get(name)
        hits = [s for s in self._ask.named(name) if not s.container and s.path != self.place.path]
        if line is not None:
            scored = sorted(hits, key=lambda s: (-self._fits(s.path, line), self._distance(s)))
            good = [s for s in scored if self._fits(s.path, line) > 0]
            if good:
                return good[:1]
            near = [s for s in scored if in_package(s.path, line.module)]
            return near[:1]
        near = sorted((s for s in hits if s.language == self.place.language), key=self._distance)
        if near and (len(near) == 1 or folder(near[0].path) == folder(self.place.path)):
            return near[:1] if self._reachable(near[0]) else []
        return []

    def _fits(self, path: str, line: ImportLine) -> int:
        """How well a file fits an import, whether it names the module or something in it."""
        outer, _, last = line.module.rpartition(".")
        inside = matches(path, outer, self.place.path) if outer.strip(".") and last in line.binds else 0
        return max(matches(path, line.module, self.place.path), inside)

    def _reachable(self, symbol: Symbol) -> bool:
        """Whether a name may mean this though no import brings it in: languages that import whole modules."""
        whole = any(not line.binds or "*" in line.text for line in self.place.imports)
        return whole or folder(symbol.path) == folder(self.place.path) or not self.place.imports

    def _resolve_member(self, name: str, receiver: tuple[str, ...]) -> list[Symbol]:
        classes = self.types_of(receiver)
        for cls in classes:
            for member in self.members_with_bases(cls):
                if member.name == name:
                    return [member]
        line = self._bound.get(receiver[-1])
        if line is not None and not classes:
            module = f"{line.module}.{receiver[-1]}" if receiver[-1] != line.module else line.module
            hits = [s for s in self._ask.named(name) if not s.container and s.path != self.place.path]
            hits = [s for s in hits if max(matches(s.path, module, self.place.path), self._fits(s.path, line)) > 0]
            return sorted(hits, key=lambda s: -matches(s.path, module, self.place.path))[:1]
        return []

    def members_with_bases(self, cls: Symbol, depth: int = 0) -> list[Symbol]:
        """Members of a class and of its bases, own first."""
        found = list(self.members(cls))
        if depth < MAX_DEPTH:
            for base in self.bases(cls):
                found += self.members_with_bases(base, depth + 1)
        return found

    def members(self, cls: Symbol) -> Sequence[Symbol]:
        """Definitions directly inside a class."""
        if cls.path == self.place.path:
            return [s for s in self.place.own if s.container == cls.qualified]
        return self._ask.members(cls.path, cls.qualified)

    def bases(self, cls: Symbol) -> list[Symbol]:
        """Classes that a class's header names."""
        header = cls.signature.partition(cls.name)[2]
        found: list[Symbol] = []
        for name in type_names(header.replace("extends", " ").replace("implements", " ").replace("metaclass", " ")):
            if name == cls.name:
                continue
            hits = self.resolve(name) if cls.path == self.place.path else self._beside(name, cls)
            found += [s for s in hits if s.role == "class"]
        return found

    def _beside(self, name: str, symbol: Symbol) -> list[Symbol]:
        """A class of this name as another file means it: there, or nearest to it."""
        hits = [s for s in self._ask.named(name) if s.role == "class" and not s.container]
        hits.sort(key=lambda s: (s.path != symbol.path, -shared_folders(s.path, symbol.path), s.path))
        return hits[:1]

    def types_of(self, receiver: tuple[str, ...]) -> list[Symbol]:
        """Classes that `a.b.c` may be an object of (or be itself). What is asked again while being found out is unknown:
        code may well say that a is made from b and b from a."""
        if receiver not in self._types:
            self._types[receiver] = []
            if receiver and len(self._types) <= MAX_RECEIVERS:
                self._types[receiver] = self._find_types(receiver)
        return self._types[receiver]

    def _find_types(self, receiver: tuple[str, ...]) -> list[Symbol]:
        first, rest = receiver[0], receiver[1:]
        cls = self.place.enclosing_class
        if first in _SELF:
            found = [cls] if cls is not None else []
        elif first in _SUPER:
            found = self.bases(cls) if cls is not None else []
        else:
            found = self._classes(first) or self._guessed(guess(first, self.place.scope))
        for name in rest:
            found = [inner for outer in found for inner in self._attribute(outer, name)][:2]
        return found

    def _classes(self, name: str) -> list[Symbol]:
        return [s for s in self.resolve(name) if s.role == "class"]

    def _guessed(self, what: Guess) -> list[Symbol]:
        for name in what.types:
            if found := self._classes(name):
                return found
        if what.made_by:
            *receiver, name = what.made_by
            if tuple(receiver) and receiver[0] == name:
                return []
            for made in self.resolve(name, tuple(receiver)):
                if made.role == "class":
                    return [made]
                for returns in returned(made.signature):
                    found = self._classes(returns) or self._beside(returns, made)
                    if found:
                        return found
        return []

    def _attribute(self, cls: Symbol, name: str) -> list[Symbol]:
        """Classes of an attribute of a class: by field, by what its methods set, by the constructor's annotation."""
        for member in self.members(cls):
            if member.name == name:
                for known in type_names(member.signature.partition(":")[2].partition("=")[0]) or returned(member.signature):
                    if found := self._beside(known, cls):
                        return found
        for written, annotation, value in cls.attributes:
            if parts(written + ".")[-1] == name:
                return self._from_value(cls, annotation, value)
        return []

    def _from_value(self, cls: Symbol, annotation: str, value: str) -> list[Symbol]:
        for known in type_names(annotation):
            if found := self._beside(known, cls):
                return found
        called, bracket, _ = value.partition("(")
        if bracket:
            return self._beside(parts(called.replace("new ", "").replace("await ", "").strip() + ".")[-1], cls) if called.strip() else []
        for maker in self.members(cls):
            if maker.role == "function" and value.isidentifier():
                for known in guess(value, maker.signature).types:
                    if found := self._beside(known, cls):
                        return found
        return []

    def _distance(self, symbol: Symbol) -> tuple[float, ...]:
        recent = self.place.recent.get(symbol.path, 99)
        test = "test" in symbol.path and "test" not in self.place.path
        return (test, -shared_folders(symbol.path, self.place.path), recent, symbol.path.count("/"), symbol.path)  # type: ignore[return-value]
