"""What a name or an expression at the cursor stands for: definitions, classes of objects, modules. Pure.

Strategy: own definitions first, then what an import brings in, then neighbours. The class of an object comes from what says so (an
annotation, a construction, a field, a return type), and where nothing does, from the members that the file uses of it.

Rules:
- The look-ups are the caller's (an index, a test's table); each is asked a bounded number of times.
- A name that an import brings in is taken from the module that the import names, or not at all if several files could be meant.
- What is asked again while being found out is unknown, so circular code ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .modules import folder, in_package, matches, shared_folders
from .near import AtCursor, Guess, Near, guess, members_used, parts, returned, type_names
from .symbol import ImportLine, Symbol

MAX_DEPTH = 3
MAX_RECEIVERS = 80
MAX_HOLDERS = 6
_SELF = frozenset({"self", "this", "cls", "Self", "$this"})
_SUPER = frozenset({"super", "base", "parent"})


def _no_modules(_name: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Lookups:
    """Questions about other files. named: definitions of a name; users: functions that call it; members: definitions directly
    inside a class, by path and qualified name; top: definitions of a file at its top level; modules: paths of files that a module
    of this name may be."""

    named: Callable[[str], Sequence[Symbol]]
    users: Callable[[str], Sequence[Symbol]]
    members: Callable[[str, str], Sequence[Symbol]]
    top: Callable[[str], Sequence[Symbol]]
    modules: Callable[[str], Sequence[str]] = _no_modules


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cursor is, as plain values. own: symbols of the open file, in order. visible: first and last line that the
    prompt shows anyway. scope: text from the start of the enclosing function (or class) to the cursor; text: of the file, as much as
    is looked through for the way names are used. recent: rank of recently
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
    text: str = ""
    recent: Mapping[str, int] = field(default_factory=dict)


class Resolver:
    """Answers for one place; remembers what it found. Make a new one for each gathering."""

    def __init__(self, place: Place, lookups: Lookups) -> None:
        self.place, self._ask = place, lookups
        self._bound = {name: line for line in place.imports for name in line.binds}
        self._setters: dict[str, list[Symbol]] = {}
        for symbol in place.own:
            for written, _, _ in symbol.attributes:
                self._setters.setdefault(parts(written + ".")[-1], []).append(symbol)
        self._types: dict[tuple[str, ...], list[Symbol]] = {}
        self._own_by_name: dict[str, list[Symbol]] = {}
        for symbol in place.own:
            self._own_by_name.setdefault(symbol.name, []).append(symbol)

    def holder(self, symbol: Symbol) -> Symbol | None:
        """The class around a member."""
        if symbol.path == self.place.path:
            return next((s for s in self.place.own if s.role == "class" and s.qualified == symbol.container), None)
        outer, _, name = symbol.container.rpartition(".")
        return next(
            (s for s in self._ask.named(name) if (s.path, s.container, s.role) == (symbol.path, outer, "class")), None
        )

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
            if not found and first not in self._bound:
                found = self._by_use((first,))
        for name in rest:
            found = [inner for outer in found for inner in self._attribute(outer, name)][:2]
        return found or (self._by_use(receiver) if rest and first not in self._bound else [])

    def _by_use(self, receiver: tuple[str, ...]) -> list[Symbol]:
        """The class that has the members which this file uses of `a.b`, where nothing says what it is: at least two of them."""
        used = members_used(receiver, self.place.text)
        scores: dict[tuple[str, str], int] = {}
        counts: dict[tuple[str, str], int] = {}
        for name in used:
            holders = {(s.path, s.container) for s in (*self._ask.named(name), *self._own_by_name.get(name, ())) if s.container}
            holders |= {(s.path, s.qualified) for s in self._setters.get(name, ())}
            if len(holders) <= MAX_HOLDERS:
                for holder in holders:
                    scores[holder] = scores.get(holder, 0) + (2 if len(holders) == 1 else 1)
                    counts[holder] = counts.get(holder, 0) + 1
        best = max((score for holder, score in scores.items() if counts[holder] > 1), default=0)
        tied = sorted(holder for holder, score in scores.items() if score == best and counts[holder] > 1)
        if not 0 < len(tied) <= 2:
            return []
        return [cls for path, qualified in tied[:1] for cls in self._named_class(path, qualified)]

    def _named_class(self, path: str, qualified: str) -> list[Symbol]:
        outer, _, name = qualified.rpartition(".")
        known = self._own_by_name.get(name, ()) if path == self.place.path else self._ask.named(name)
        return [s for s in known if (s.path, s.container, s.role) == (path, outer, "class")][:1]

    def module_of(self, receiver: tuple[str, ...]) -> str:
        """The file that `a.b` names as a module; "" if it is none."""
        line = self._bound.get(receiver[0]) if receiver else None
        if line is None:
            return ""
        real = re.search(rf"([A-Za-z_][\w.]*)\s+as\s+{re.escape(receiver[0])}(?!\w)", line.text)
        receiver = (*parts(real.group(1) + "."), *receiver[1:]) if real else receiver
        wanted = ".".join((line.module, *receiver)) if receiver[-1] != line.module.rpartition(".")[2] else line.module
        paths = [path for path in self._ask.modules(receiver[-1]) if path != self.place.path]
        aliased = line.module.rpartition(".")[2]
        paths += [path for path in self._ask.modules(aliased) if aliased and path not in paths]
        ranked = sorted(paths, key=lambda path: (-max(matches(path, wanted, self.place.path), self._fits(path, line)), path))
        good = [path for path in ranked if max(matches(path, wanted, self.place.path), self._fits(path, line)) > 0]
        return good[0] if good else ""

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
        called, bracket, _ = value.removeprefix("(").removeprefix("new ").removeprefix("await ").partition("(")
        if bracket and called and " " not in called:
            return self._made(parts(called + ".")[-1], cls)
        first = value.split(" ")[0].rstrip(",;")
        for maker in self.members(cls):
            if maker.role == "function" and first.isidentifier():
                for known in guess(first, maker.signature).types:
                    if found := self._beside(known, cls):
                        return found
        return []

    def _made(self, name: str, cls: Symbol) -> list[Symbol]:
        """What a call of this name gives, as the file of `cls` means it: an object of the class, or what the function returns."""
        if found := self._beside(name, cls):
            return found
        makers = [s for s in self._ask.named(name) if s.role == "function" and not s.container]
        for maker in sorted(makers, key=lambda s: (-shared_folders(s.path, cls.path), s.path))[:1]:
            for known in returned(maker.signature):
                if found := self._beside(known, maker):
                    return found
        return []

    def _distance(self, symbol: Symbol) -> tuple[float, ...]:
        recent = self.place.recent.get(symbol.path, 99)
        test = "test" in symbol.path and "test" not in self.place.path
        return (test, -shared_folders(symbol.path, self.place.path), recent, symbol.path.count("/"), symbol.path)  # type: ignore[return-value]
