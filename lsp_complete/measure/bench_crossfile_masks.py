"""Places where another file decides what comes next: masks for `bench crossfile`. Pure but for reading the corpus.

The rule: a line of code is cut behind `Name(` or `object.`; the rest of the line is what must be written. `Name` is defined at the top
of exactly one file of the project, which is another one; or the member behind the dot is defined in exactly one class of the
project, in another file, or at the top of exactly one other file. So which definition is meant does not hang on anyone's guess of types.

Rules:
- Masks depend on the seed and the files only. At most PER_FILE of a file, at least APART lines apart.
- What is left to write has at least three characters beside closers; definitions, imports and comments are no places.
- Test files are no places: they repeat what they test.
"""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..index.index import SymbolIndex
from ..index.walk import Guard, Rules, walk
from ..index.worker import IndexWorker
from ..syntax.nodes import Outline
from ..syntax.outline import outline_text

PER_FILE = 8
APART = 12
_CALL = re.compile(r"(?<![\w.])((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)\(")
_MEMBER = re.compile(r"(?<![\w.\])])((?:[A-Za-z_]\w*\.)+)([A-Za-z_]\w*)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_STRING = re.compile(r"('''|\"\"\").*?(\1|\Z)|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?", re.DOTALL)
_NO_PLACE = ("def ", "class ", "import ", "from ", "#", "@", "async def ", '"""', "'''")

LANGUAGE_NAMES = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls"}) | {
    name for kind in (str, bytes, dict, list, set, tuple, int, float) for name in dir(kind)
}


@dataclass(frozen=True, slots=True)
class Mask:
    """One place. text: the document with the rest of the line gone; offset: the cursor; rest: what was there."""

    project: str
    path: str
    kind: str
    name: str
    text: str
    offset: int
    rest: str

    @property
    def key(self) -> str:
        """Its identity, for resuming and pairing."""
        return f"{self.project}:{self.path}:{self.offset}:{self.kind}"


@dataclass(frozen=True, slots=True)
class Project:
    """A project at hand. names: every identifier in its files."""

    name: str
    root: Path
    files: tuple[str, ...]
    index: SymbolIndex
    names: frozenset[str]


def read_project(name: str, root: Path) -> Project:
    """Index a project's files. Blocks; some seconds."""
    guard = Guard([root], Rules(), root / "no-excludes")
    index = SymbolIndex()
    worker = IndexWorker(index, guard)
    worker.scan()
    worker.wait_idle()
    worker.close()
    files = tuple(entry.path for entry in walk(guard) if entry.path.endswith(".py"))
    names: set[str] = set()
    for path in files:
        names.update(_IDENTIFIER.findall(Path(path).read_text("utf-8", "replace")))
    return Project(name, root, files, index, frozenset(names))


def masks_of(project: Project, count: int, seed: int) -> list[Mask]:
    """Up to `count` masks of a project, spread over its files."""
    rng = random.Random(f"{seed}:{project.name}")  # noqa: S311 - repeatable choice of lines, no secret
    found: list[Mask] = []
    for path in project.files:
        shown = Path(path).relative_to(project.root).as_posix()
        if re.search(r"(?:^|/)(?:tests?|testing|conftest|examples?|docs?)(?:/|\.py|_)|test_[^/]*$", shown):
            continue
        found += _of_file(project, path, shown, rng)
    rng.shuffle(found)
    kinds = Counter[str]()
    chosen: list[Mask] = []
    for mask in found:  # as many calls as members, as far as there are
        if len(chosen) < count and kinds[mask.kind] < (count + 1) // 2:
            kinds[mask.kind] += 1
            chosen.append(mask)
    chosen += [mask for mask in found if mask not in chosen][: count - len(chosen)]
    return chosen


def _of_file(project: Project, path: str, shown: str, rng: random.Random) -> list[Mask]:
    text = Path(path).read_text("utf-8", "replace")
    outline = outline_text("python", path, text)
    if outline is None or len(text) > 400_000:
        return []
    own = outline.names() - {name for node in outline.nodes if node.role == "import" for name in node.binds}
    defined = {node.name for node in outline.nodes if node.role in ("function", "class", "constant")}
    outside = {
        name
        for node in outline.nodes
        if node.role == "import" and not _in_project(project, node.name)
        for name in (*node.binds, node.name.split(".")[0])
    }
    places = [place for place in _places(text, outline) if _elsewhere(project, path, own, defined, outside, place)]
    rng.shuffle(places)
    chosen: list[tuple[int, int, str, str]] = []
    for place in places:
        if len(chosen) < PER_FILE and all(abs(place[0] - other[0]) >= APART for other in chosen):
            chosen.append(place)
    made = []
    for _, offset, kind, name in chosen:
        end = text.find("\n", offset)
        end = len(text) if end < 0 else end
        made.append(Mask(project.name, shown, kind, name, text[:offset] + text[end:], offset, text[offset:end].rstrip()))
    return made


def _in_project(project: Project, module: str) -> bool:
    """Whether an imported module is one of the project's own."""
    top = module.split(".")[0]
    return module.startswith(".") or any(top in Path(path).relative_to(project.root).parts for path in project.files[:400])


def _places(text: str, outline: Outline) -> Iterable[tuple[int, int, str, str]]:
    """(line, offset behind the mark, kind, name) of every place that is code."""
    strings = [(m.start(), m.end()) for m in _STRING.finditer(text) if "\n" in m.group()]
    inside = [(node.start, node.end) for node in outline.nodes if node.role in ("comment", "import")] + strings
    start = 0
    for number, line in enumerate(text.split("\n")):
        bare = line.strip()
        code = bool(bare) and not bare.startswith(_NO_PLACE) and not any(a <= start + len(line) - len(bare) < b for a, b in inside)
        if code and len(line) <= 160 and "#" not in line:
            blank = _STRING.sub(lambda m: " " * len(m.group()), line).partition("#")[0]
            for match in _CALL.finditer(blank):
                if _worth(line[match.end() :]):
                    yield number, start + match.end(), "call", match.group(1) + match.group(2)
            for match in _MEMBER.finditer(blank):
                at = match.start(2)
                if _worth(line[at:]):
                    yield number, start + at, "member", match.group(1) + match.group(2)
        start += len(line) + 1


def _worth(rest: str) -> bool:
    return len(re.sub(r"[\s)\]}:,(\[{]", "", rest)) >= 3


def _elsewhere(project: Project, path: str, own: frozenset[str], defined: set[str], outside: set[str], place: tuple[int, int, str, str]) -> bool:
    """Whether the name is defined in exactly one place of the project, in another file. outside: names that imports bring in from
    elsewhere."""
    _, _, kind, dotted = place
    *receiver, name = dotted.split(".")
    if name in defined or name in own or name in LANGUAGE_NAMES or receiver in (["self"], ["cls"], ["super"]):
        return False
    if receiver and receiver[0] in outside:
        return False
    hits = [hit for hit in project.index.lookup(name) if hit.definition.role in ("function", "class", "constant")]
    if len(hits) != 1 or hits[0].path == path:
        return False
    top = not hits[0].definition.container
    if kind == "call":
        return top if not receiver else True
    return bool(receiver)


def answer_identifiers(text: str) -> list[str]:
    """Identifiers of an answer's line, without those in strings and comments."""
    return _IDENTIFIER.findall(_STRING.sub(" ", text).partition("#")[0])


def imported_names(text: str, stdlib: Callable[[str], frozenset[str]]) -> frozenset[str]:
    """Identifiers in the modules of the standard library that a file imports, and the names of all that it imports."""
    found: set[str] = set()
    for match in re.finditer(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w., ]+))", text, re.MULTILINE):
        for module in (match.group(1) or match.group(2)).split(","):
            words = module.split()
            if words:
                found |= set(words[0].split(".")) | stdlib(words[0])
    return frozenset(found)


class Stdlib:
    """Identifiers of standard library modules, read from their sources once."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}

    def __call__(self, module: str) -> frozenset[str]:
        """Every identifier in a module's source; none for other modules."""
        if module not in self._known:
            self._known[module] = self._read(module)
        return self._known[module]

    @staticmethod
    def _read(module: str) -> frozenset[str]:
        if module.split(".")[0] not in sys.stdlib_module_names:
            return frozenset()
        try:
            spec = importlib.util.find_spec(module)
            path = Path(spec.origin) if spec is not None and spec.origin else None
            files = sorted(path.parent.rglob("*.py")) if path is not None and path.name == "__init__.py" else [path]
            texts = [file.read_text("utf-8", "replace") for file in files if file is not None and file.suffix == ".py"]
        except (ImportError, OSError, ValueError, AttributeError):
            return frozenset()
        return frozenset(name for text in texts for name in _IDENTIFIER.findall(text))


def unknown(text: str, project: Project, file_text: str, stdlib: Stdlib) -> tuple[int, int]:
    """(identifiers that exist nowhere in the project or its imports, all identifiers) of an answer."""
    names = answer_identifiers(text)
    imported = imported_names(file_text, stdlib)
    strange = [name for name in names if name not in project.names and name not in LANGUAGE_NAMES and name not in imported]
    return len(strange), len(names)


def all_masks(projects: Sequence[Project], count: int, seed: int) -> list[Mask]:
    """`count` masks over all projects, as evenly as they have them, in an order that mixes projects."""
    share = -(-count // max(1, len(projects)))
    lists = [masks_of(project, share + share // 2, seed) for project in projects]
    chosen: list[Mask] = []
    for at in range(max((len(masks) for masks in lists), default=0)):
        chosen += [masks[at] for masks in lists if at < len(masks)]
    return chosen[:count]
