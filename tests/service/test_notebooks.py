"""Cells of a notebook: their order, and that a cell's prompt begins with the cells above."""

from __future__ import annotations

from pathlib import Path

from lsp_complete.service.notebooks import Notebooks, joined
from lsp_complete.text.document import Document

from .test_context_join import Window_, window

BOOK = "file:///project/book.ipynb"


def cell(number: int) -> str:
    return f"vscode-notebook-cell:/project/book.ipynb#{number}"


def test_order_of_cells() -> None:
    books = Notebooks()
    books.opened(BOOK, ["a", "b", "c"])
    assert list(books.above("c")) == ["a", "b"] and not books.above("a") and not books.above("elsewhere")
    books.spliced(BOOK, 1, 1, ["x", "y"])
    assert list(books.above("c")) == ["a", "x", "y"] and not books.above("b")
    books.spliced(BOOK, 99, 5, ["z"])
    assert list(books.above("z")) == ["a", "x", "y", "c"]
    books.spliced(BOOK, 0, 2, [])
    assert list(books.above("z")) == ["y", "c"]
    books.closed(BOOK)
    assert not books.above("z")


def test_texts_of_cells_are_one_text_nearest_last() -> None:
    assert joined(["a\nb\n", "", "c"], 9) == "a\nb\n\nc\n\n"
    assert joined(["a\nb\n", "c"], 3) == "b\n\nc\n\n"
    assert joined(["a", "c\nd\ne"], 2) == "d\ne\n\n"
    assert joined([], 9) == joined(["\n"], 9) == joined(["a"], 0) == ""


def book(view: Window_) -> None:
    texts = [(1, "python", "import numpy as np\nprices = np.array([1, 2])\n"), (2, "markdown", "# Words of no code\n"),
             (3, "python", "total = prices.sum()\n"), (4, "python", "print(\n")]  # fmt: skip
    view.service.notebooks.opened(BOOK, [cell(number) for number, _, _ in texts])
    for number, language, text in texts:
        view.service.open(Document.open(cell(number), language, 1, text))
    view.cursors[cell(4)] = len("print(")
    view.cursors[cell(1)] = view.cursors[cell(3)] = 0


async def test_a_cells_prompt_begins_with_the_cells_above(tmp_path: Path) -> None:
    async with window(tmp_path, {}, context={"cross_file": False}) as view:
        book(view)
        above = "import numpy as np\nprices = np.array([1, 2])\n\ntotal = prices.sum()\n\n"
        first = await view.ask(cell(4))
        assert first.startswith("<P>" + above) and "Words" not in first
        assert "import numpy" in await view.ask(cell(3)) and "total" not in await view.ask(cell(1))
        view.type(cell(4), "x")
        second = await view.ask(cell(4))
        assert second.startswith("<P>" + above) and view.stages.reuse_break == ""
        view.type(cell(1), "# changed\n", (0, 0))
        assert (await view.ask(cell(4))).startswith("<P># changed\n" + above)
        view.service.notebooks.spliced(BOOK, 2, 1, [])  # the cell with the total is gone
        assert "total" not in await view.ask(cell(4))


async def test_other_documents_are_as_they_were(tmp_path: Path) -> None:
    async with window(tmp_path, {}, context={"cross_file": False}) as view:
        book(view)
        uri = view.open("a.py", "x = 1\n")
        assert "numpy" not in await view.ask(uri)
