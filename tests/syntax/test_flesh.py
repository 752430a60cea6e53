"""Bodies that an outline keeps: those alike to the cursor's surroundings, within their room, in the order of the text."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from lsp_complete.syntax.flesh import SHARE, levels_with_flesh
from lsp_complete.syntax.languages import all_languages, load
from lsp_complete.syntax.outline import Level, Outline, levels_for_cursor, outline_of, render
from lsp_complete.syntax.trees import parse
from lsp_complete.text.buffer import TextBuffer

TEXT = """\
def unlike(image):
    height = image.height
    width = image.width
    return height * width


def alike(manager):
    with manager.lock:
        entry = manager.entries.pop()
        entry.unref()
    return entry


def tall(book):
    pages = book.pages
    paper = book.paper
    return pages, paper


def here(manager):
    with manager.lock:
        entry = manager.entries.peek()
        entry.
    return entry
"""


def outlined(text: str) -> tuple[Outline, TextBuffer]:
    grammar = load(all_languages()["python"])
    assert grammar is not None
    buffer = TextBuffer.from_text(text)
    tree = parse(grammar, buffer)
    assert tree is not None
    return outline_of(tree), buffer


def shown(text: str, offset: int, share: float) -> str:
    outline, buffer = outlined(text)
    return render(outline, buffer, levels_with_flesh(outline, buffer, offset, levels_for_cursor(outline, offset), share))


def test_the_body_most_alike_comes_first() -> None:
    cursor = TEXT.index("entry.\n") + 6
    bare = len(shown(TEXT, cursor, 0.0))
    text = shown(TEXT, cursor, (bare + 100) / len(TEXT))
    assert "entry.unref()" in text and "image.height" not in text and "book.pages" not in text
    assert text.index("def unlike") < text.index("def alike") < text.index("def tall") < text.index("def here")


def test_what_is_too_long_gives_its_first_lines() -> None:
    long = TEXT.replace("        entry.unref()\n", "        entry.unref()\n" + "        entry.log()\n" * 40)
    cursor = long.index("entry.\n") + 6
    bare = len(shown(long, cursor, 0.0))
    text = shown(long, cursor, (bare + 100) / len(long))
    assert "manager.entries.pop()" in text and "entry.log()" not in text


@pytest.mark.parametrize("name", ["textwrap.py", "shlex.py", "queue.py", "argparse.py"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_it_keeps_to_its_share_and_takes_nothing_away(name: str, part: float) -> None:
    text = (Path(sysconfig.get_paths()["stdlib"]) / name).read_text("utf-8")
    outline, buffer = outlined(text)
    offset = int(part * len(text))
    slim = levels_for_cursor(outline, offset)
    grown = levels_with_flesh(outline, buffer, offset, slim)
    assert all(grown[index] >= level for index, level in slim.items())
    assert all(outline.nodes[index].role == "function" for index, level in grown.items() if level != slim[index])
    sizes = len(render(outline, buffer, slim)), len(render(outline, buffer, grown))
    assert sizes[0] <= sizes[1] <= max(sizes[0], int(SHARE * len(text)))


def test_without_room_or_words_nothing_changes() -> None:
    outline, buffer = outlined(TEXT)
    slim = levels_for_cursor(outline, 0)
    assert levels_with_flesh(outline, buffer, 0, slim, 0.0) == slim
    empty, nothing = outlined("")
    assert levels_with_flesh(empty, nothing, 0, {}) == {}
    assert Level.FULL not in [slim[i] for i, n in enumerate(outline.nodes) if n.name != "unlike"]
