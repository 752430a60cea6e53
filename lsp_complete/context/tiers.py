"""From wants to tiers: what the function at the cursor needs is A, what the lines around it name is B, the rest is C.

Before anything is left out the question is asked: if the model did not know that this existed, would it make it up? Then its
signature stays (the article's section 5.1): callers and callees of the function at the cursor are A with their first lines,
wherever they are defined.

Rules:
- Pure; bounded by the numbers of names, calls and callers looked at.
- What the prompt's window shows is not said twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .forms import class_forms, folded, function_forms, module_forms, short_forms, used_forms
from .modules import module_parts
from .near import Near
from .resolve import Lookups, Place
from .symbol import Chunk, Symbol
from .wants import MAX_CALLERS, MAX_CALLS, Want, Wants

MAX_CHUNKS = 60
IMPORTED = 0.2
_AFTER_DOT = re.compile(r"(?:\.|->|::)([A-Za-z_]\w*)")


def gather(place: Place, lookups: Lookups, *, cross_file: bool = True) -> list[Chunk]:
    """All chunks for a place, from symbols alone. cross_file: other files too."""
    wants = Wants(place, lookups)
    _touched(wants)
    _calls(wants, lookups, cross_file)
    _around(wants)
    _named(wants)
    likely = _likely(place)
    chunks = [_chunk(want, wants, likely) for want in wants.found.values() if cross_file or want.symbol.path == place.path]
    chunks += _imports(place, lookups)
    if cross_file:
        chunks += _module(wants, lookups)
    chunks.sort(key=lambda chunk: (chunk.tier, -chunk.weight, chunk.path, chunk.line))
    return chunks[:MAX_CHUNKS]


def _touched(wants: Wants) -> None:
    """What the cursor stands in: the callee whose arguments are written, the object whose member is named."""
    at = wants.place.at
    if at.callee:
        for symbol in wants.resolve(at.callee, at.callee_receiver):
            wants.add_found(symbol, "A", 3.0, lines=True)
    if at.receiver:
        for cls in wants.types_of(at.receiver):
            started = [m.name for m in wants.members_with_bases(cls) if at.started and m.name.startswith(at.started)]
            wants.add(cls, "A", 4.0, used=True)
            for name in started[:6]:
                wants.add(cls, "A", 4.0, name, used=True)
            for base in wants.bases(cls):
                wants.add(base, "B", 2.5, used=True)
        for symbol in wants.resolve(at.started, at.receiver) if at.started else ():
            wants.add_found(symbol, "A", 4.0)


def _module(wants: Wants, lookups: Lookups) -> list[Chunk]:
    """What is at the top of the module whose name stands before the cursor's dot."""
    receiver = wants.place.at.receiver
    path = wants.module_of(receiver) if receiver and not wants.types_of(receiver) else ""
    symbols = lookups.top(path) if path else ()
    forms = module_forms(path, symbols, _likely(wants.place)) if symbols else ()
    return [Chunk(f"{path}#", path, "A", 4.0, forms)] if forms else []


def _likely(place: Place) -> set[str]:
    """Names that the open file uses behind a dot anywhere, so that of a large class or module the right ones are shown."""
    return set(_AFTER_DOT.findall(place.text))


def _calls(wants: Wants, lookups: Lookups, cross_file: bool) -> None:
    """Callees and callers of the enclosing function."""
    function = wants.place.function
    if function is None:
        return
    near = {name.name: name for name in wants.place.near}
    for name in _nearest_first(function.uses, near):
        receiver = near[name].receiver if name in near else ()
        found = wants.resolve(name, receiver) or _own_method(wants, name)
        for symbol in found[:1]:
            wants.add_found(symbol, "A", 2.0 + (near[name].weight if name in near else 0.0), lines=True)
    for caller in [s for s in wants.place.own if function.name in s.uses and s.qualified != function.qualified][:MAX_CALLERS]:
        wants.add(caller, "A", 1.0, lines=True)
    if cross_file and not function.name.startswith("__"):
        callers = [s for s in lookups.users(function.name) if s.path != wants.place.path and s.language == wants.place.language]
        if len(callers) <= 2 * MAX_CALLERS:
            for caller in callers[:1]:
                wants.add_found(caller, "C", 0.5)


def _nearest_first(calls: Sequence[str], near: Mapping[str, Near]) -> list[str]:
    """The calls of a function, those around the cursor first."""
    order = {name: at for at, name in enumerate(near)}
    return sorted(calls, key=lambda name: order.get(name, len(order)))[:MAX_CALLS]


def _own_method(wants: Wants, name: str) -> list[Symbol]:
    """A method of the enclosing class or the only one of its name in this file."""
    cls = wants.place.enclosing_class
    own = [s for s in wants.place.own if s.name == name and s.role == "function"]
    inside = [s for s in own if cls is not None and s.container == cls.qualified]
    return inside[:1] or (own if len(own) == 1 else [])


def _around(wants: Wants) -> None:
    """The header of the enclosing class with its constructor, of the enclosing function, and the class's bases."""
    function, cls = wants.place.function, wants.place.enclosing_class
    if function is not None:
        wants.add(function, "A", 5.0)
    if cls is None:
        return
    wants.add(cls, "A", 5.0)
    for member in wants.members(cls):
        if member.name in ("__init__", "constructor", "initialize", "new", cls.name):
            wants.add(member, "A", 2.0, lines=True)
        elif member.role == "constant":
            wants.add(member, "B", 0.8)
        elif member.role == "function":
            wants.add(member, "C", 0.6)
    for base in wants.bases(cls):
        wants.add(base, "B", 1.5)


def _named(wants: Wants) -> None:
    """Names in the lines around the cursor, and the classes of the objects that are used there."""
    imported = {name for line in wants.place.imports for name in line.binds}
    for near in wants.place.near:
        strong = near.name in imported or near.receiver
        for symbol in wants.resolve(near.name, near.receiver):
            wants.add_found(symbol, "B" if strong or symbol.path == wants.place.path else "C", near.weight + bool(strong))
        if near.receiver and near.receiver[0] not in ("self", "this", "cls"):
            for cls in wants.types_of(near.receiver):
                wants.add(cls, "B", near.weight + 0.9, used=True)
        elif len(near.receiver) > 1 or (near.receiver and near.weight > 0.6):
            for cls in wants.types_of((*near.receiver, near.name)):
                wants.add(cls, "B", near.weight + 0.5, used=True)


def _imported(wants: Wants) -> None:
    """What the file imports from the project and does not use here: it may be used next, and stays the same all over the file."""
    for line in wants.place.imports:
        for name in line.binds:
            for symbol in wants.resolve(name):
                if symbol.path != wants.place.path:
                    wants.add(symbol, "C", IMPORTED)


def _chunk(want: Want, wants: Wants, likely: Collection[str]) -> Chunk:
    symbol, own = want.symbol, want.symbol.path == wants.place.path
    if symbol.role == "class":
        write = used_forms if want.used else class_forms
        forms = short_forms(symbol) if own and not want.used else write(symbol, wants.members(symbol), want.members, likely)
        if not want.members and want.tier == "C":
            forms = forms[1:] or forms
    elif symbol.role == "function" and want.lines:
        forms = function_forms(symbol)
    else:
        forms = short_forms(symbol)
    if own and symbol.container:
        depth = symbol.container.count(".") + 1
        forms = tuple("".join("    " * depth + line for line in form.splitlines(keepends=True)) for form in forms)
    return Chunk(f"{symbol.path}#{symbol.qualified}", symbol.path, want.tier, want.weight, forms, symbol.first_line, own)


def _imports(place: Place, lookups: Lookups) -> list[Chunk]:
    """Import lines above the window that bring in what is used near the cursor: A from the project itself, B from elsewhere."""
    near = {name.name for name in place.near} | {name.receiver[0] for name in place.near if name.receiver}
    found = []
    for line in place.imports:
        if not near & set(line.binds) or not line.text or place.visible[0] <= line.line <= place.visible[1]:
            continue
        parts = module_parts(line.module)
        inside = line.module.startswith(".") or any(lookups.modules(part) for part in parts[-1:])
        text = folded(line.text)[:300] + "\n"
        tier, weight = ("A", 1.0) if inside else ("B", 0.7)
        found.append(Chunk(f"{place.path}#import {line.line}", place.path, tier, weight, (text,), line.line, True))
    return found
