"""What a notebook's earlier cells say: they open the prompt of a cell, as if the notebook were one file.

Strategy: a cell is a document of its own; here is only the order of a notebook's cells. `CellFramer` stands between planning and the context that there is
for any document: to the frame of a cell it adds the cells above it, nearest last, as far as a limit allows.

Rules:
- Cells of the same language only; a cell in another one, or of text, says nothing.
- As many lines as the model's window has above the cursor, less those of the cell itself, from the nearest upwards; the same texts give the same ids.
- The frame is made anew when a cell above has changed, come or gone, not by typing in the cell itself.
- Thread: the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..context.anchor import Anchor
from ..context.header import Frame
from .documents import DocumentSet, OpenDocument
from .planning import Framer, LoadedModel

FEWEST = 8
"""Lines of earlier cells that even a long cell is given."""
TOKENS = 600
"""Most tokens of them."""


@dataclass(slots=True)
class Notebooks:
    """The order of the cells of each open notebook, of whatever kind."""

    _cells: dict[str, list[str]] = field(default_factory=dict)
    _of: dict[str, str] = field(default_factory=dict)

    def opened(self, notebook: str, cells: Sequence[str]) -> None:
        """A notebook was opened with these cells, top to bottom."""
        self._cells[notebook] = list(cells)
        self._of.update(dict.fromkeys(cells, notebook))

    def spliced(self, notebook: str, start: int, count: int, cells: Sequence[str]) -> None:
        """`count` cells from `start` on were replaced by these. An index outside of the notebook is brought inside."""
        known = self._cells.setdefault(notebook, [])
        start = min(max(0, start), len(known))
        for gone in known[start : start + count]:
            self._of.pop(gone, None)
        known[start : start + count] = cells
        self._of.update(dict.fromkeys(cells, notebook))

    def closed(self, notebook: str) -> None:
        """A notebook was closed."""
        for cell in self._cells.pop(notebook, ()):
            self._of.pop(cell, None)

    def above(self, cell: str) -> Sequence[str]:
        """The cells above one, top to bottom; empty for any other document."""
        cells = self._cells.get(self._of.get(cell, ""), ())
        return cells[: cells.index(cell)] if cell in cells else ()


def joined(texts: Sequence[str], lines: int) -> str:
    """Texts of cells as one, a blank line between, at most so many lines from the end; "" for none."""
    kept: list[str] = []
    for text in reversed(texts):
        own = text.strip("\r\n").splitlines()
        left = lines - len(kept)
        if not own or left <= 0:
            continue
        kept = [*own[-left:], "", *kept]
    return "\n".join(kept) + "\n" if kept else ""


class CellFramer:
    """`planning.Framer` over another one. See the module's rules."""

    def __init__(self, inner: Framer, notebooks: Notebooks, documents: DocumentSet) -> None:
        self._inner, self._notebooks, self._documents = inner, notebooks, documents

    def _above(self, state: OpenDocument) -> list[OpenDocument]:
        language = state.document.language_id
        found = [self._documents.get(uri) for uri in self._notebooks.above(state.document.uri)]
        return [one for one in found if one is not None and one.document.language_id == language]

    @staticmethod
    def _key(above: Sequence[OpenDocument]) -> tuple[tuple[str, int], ...]:
        return tuple((one.document.uri, one.document.version) for one in above)

    def frame(self, state: OpenDocument, anchor: Anchor, cursor: int, model: LoadedModel) -> Frame:
        """The other framer's, with the cells above before its opening."""
        frame = self._inner.frame(state, anchor, cursor, model)
        above = self._above(state)
        if not above:
            return frame
        lines = max(FEWEST, model.window.lines_above - state.document.buffer.position(cursor)[0])
        text = joined([one.document.buffer.text() for one in above], lines)
        ids = model.spans.ids(text)[-TOKENS:] if text else []
        return replace(frame, opening=(*ids, *frame.opening), above=self._key(above))

    def stale(self, state: OpenDocument) -> bool:
        """Whether a cell above is another than the frame says, or the other framer's frame is stale."""
        return self._key(self._above(state)) != state.frame.above or self._inner.stale(state)

    def wanting(self, state: OpenDocument, cursor: int, model: LoadedModel) -> bool:
        """The other framer's answer."""
        return self._inner.wanting(state, cursor, model)

    async def ready(self, state: OpenDocument) -> None:
        """As the other framer."""
        await self._inner.ready(state)

    def room(self, frame: Frame) -> int:
        """The other framer's answer."""
        return self._inner.room(frame)
