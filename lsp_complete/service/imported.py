"""Which files that are not open a developer is likely to go to next, and where: the definitions in imported files that the code at
the cursor names.

Strategy: the outline of the document says what it imports; a module is looked for beside the document, in the folders above it up to its
workspace folder, and in a `src` folder there, as a path with the document's own kind of ending. What is found is read and
outlined; the first definition there whose name stands near the cursor is the place.

Rules:
- Only what may be read: inside the workspace, not secret, not ignored, not too large (`index.walk.Guard`).
- Bounded: MODULES modules, FILES files, `PROBES` looks at the disk; a file is read and outlined once per modification.
- A module that is found nowhere is nothing: most imports are of libraries.
- `Imports.places` is for the event loop; the disk is looked at by a worker thread.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..context.modules import module_parts
from ..context.near import names_near
from ..index.symbols import imported_module
from ..index.walk import Guard
from ..syntax.nodes import Outline
from ..syntax.outline import outline_text
from ..text.document import Document
from .documents import OpenDocument

MODULES, FILES, PROBES = 16, 3, 200
NEAR_BEFORE, NEAR_AFTER = 4_000, 1_000
_KEPT = 32
_ENDINGS: tuple[tuple[str, ...], ...] = (
    (".py", ".pyi"), (".ts", ".tsx", ".js", ".jsx", ".mjs"), (".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu"), (".rs",), (".go",),
    (".java", ".kt"), (".rb",), (".php",), (".cs",), (".swift",), (".lua",), (".scala",),
)  # fmt: skip
_INDEX = ("__init__", "index", "mod")
"""Files that stand for their folder."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A file as it was read. definitions: name → offset of the name, of the first definition of that name."""

    stamp: tuple[int, int]
    text: str
    definitions: dict[str, int]


def endings_for(path: str) -> tuple[str, ...]:
    """Endings that an imported file may have, the document's own first."""
    own = PurePosixPath(path).suffix
    group = next((endings for endings in _ENDINGS if own in endings), (own,) if own else ())
    return tuple(dict.fromkeys((own, *group)))


def candidates(module: str, path: str, root: str) -> Iterator[str]:
    """Paths where the module that `path` imports may be, the nearest first. root: the workspace folder."""
    parts = module_parts(module)
    bare = module.strip("\"'<>`; ")
    levels = len(bare) - len(bare.lstrip(".")) if "/" not in bare else 0
    if not parts:
        return
    here = Path(path).parent
    bases = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
    if levels:
        bases = bases[levels - 1 : levels]
    else:
        bases.append(Path(root) / "src")
    for base in dict.fromkeys(bases):
        stem = base.joinpath(*parts)
        for ending in endings_for(path):
            yield f"{stem}{ending}"
        for index in _INDEX:
            yield f"{stem / index}{PurePosixPath(path).suffix}"


def definitions_of(outline: Outline, text: str) -> dict[str, int]:
    """Where each function and class of a file is named first."""
    found: dict[str, int] = {}
    for node in outline.nodes:
        if node.role in ("function", "class") and node.name and node.name not in found:
            at = text.find(node.name, node.span.start, node.span.end)
            found[node.name] = at if at >= 0 else node.span.start
    return found


class Imports:
    """See the module's rules. outline: of an open document; guard: what may be read now; path_of: a URI's path, "" for none;
    opened: the open document with a URI, None for none (event loop)."""

    def __init__(
        self,
        outline: Callable[[str], Outline | None],
        guard: Callable[[], Guard],
        path_of: Callable[[str], str],
        opened: Callable[[str], object],
    ) -> None:
        self._outline, self._guard, self._path_of, self._opened = outline, guard, path_of, opened
        self._read: OrderedDict[str, _Read] = OrderedDict()

    async def places(self, state: OpenDocument) -> Sequence[tuple[Document, int]]:
        """Files with the offset of the definition that the code at the cursor names, the most wanted first."""
        document = state.document
        outline, path = self._outline(document.uri), self._path_of(document.uri)
        if outline is None or not path:
            return ()
        imports = [node for node in outline.nodes if node.role == "import"]
        modules = list(dict.fromkeys(imported_module(outline.language, node) for node in imports))[:MODULES]
        buffer, at = document.buffer, min(state.cursor, document.buffer.length)
        before, after = buffer.slice(max(0, at - NEAR_BEFORE), at), buffer.slice(at, min(buffer.length, at + NEAR_AFTER))
        names = [near.name for near in names_near(before, after)]
        if not modules or not names:
            return ()
        found = await asyncio.to_thread(self._find, modules, names, path, document.language_id)
        return [one for one in found if self._opened(one[0].uri) is None][:FILES]

    def _find(self, modules: Sequence[str], names: Sequence[str], path: str, language_id: str) -> list[tuple[Document, int]]:
        found: list[tuple[int, Document, int]] = []
        for file in self._files(modules, path):
            read = self._reading(file, language_id)
            rank = next((rank for rank, name in enumerate(names) if name in read.definitions), -1) if read is not None else -1
            if read is not None and rank >= 0:
                document = Document.open(Path(file).as_uri(), language_id, 0, read.text)
                found.append((rank, document, read.definitions[names[rank]]))
        found.sort(key=lambda one: one[0])
        return [(document, offset) for _, document, offset in found]

    def _files(self, modules: Sequence[str], path: str) -> Iterator[str]:
        """The files of the modules that exist and may be read."""
        guard = self._guard()
        root = guard.root_of(path)
        probes = PROBES
        for module in modules if root is not None else ():
            for file in candidates(module, path, str(root)):
                if probes <= 0:
                    return
                probes -= 1
                if file != path and Path(file).is_file():
                    if guard.indexable(file) is not None:
                        yield file
                    break

    def _reading(self, file: str, language_id: str) -> _Read | None:
        """The file's text and definitions, read again only if it was written."""
        try:
            info = Path(file).stat()
            stamp = info.st_mtime_ns, info.st_size
            known = self._read.get(file)
            if known is not None and known.stamp == stamp:
                return known
            text = Path(file).read_text("utf-8")
        except (OSError, ValueError):
            return None
        outline = outline_text(language_id, file, text)
        read = self._read[file] = _Read(stamp, text, definitions_of(outline, text) if outline is not None else {})
        while len(self._read) > _KEPT:
            self._read.popitem(last=False)
        return read
