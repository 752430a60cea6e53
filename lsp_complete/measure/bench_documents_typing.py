"""The typist of `bench documents`, and what each of his keys costs.

Rules: repeatable by the seed; what is measured is checked on the way (ids against the whole text's). Times in milliseconds.
"""

from __future__ import annotations

import asyncio
import random
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..service.documents import OpenDocument
from ..syntax.languages import language_for, load
from ..syntax.trees import SyntaxTree, edited, parse, why_not_parsed
from ..syntax.worker import SyntaxWorker
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding, units
from ..text.tokenizer import Tokenizer
from ..text.tokens import TokenTable
from .statistics import percentile, ratio

WINDOW = (40, 15)
"""Lines above and below the cursor whose ids each key reads: the default window of a small model."""
PLACES, KEYS = 25, 16
_PARTS = (
    "argparse",
    "tarfile",
    "typing",
    "_pydecimal",
    "inspect",
    "pdb",
    "doctest",
    "ipaddress",
    "subprocess",
    "zipfile",
)
Figures = dict[str, Any]


def source_text(lines: int) -> str:
    """That many lines of Python from the standard library, repeated as needed."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [folder / f"{name}.py" for name in _PARTS] + sorted(folder.glob("*.py"))
    text = "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in files[:40] if path.is_file()
    )
    found = text.split("\n")
    return "\n".join((found * (lines // len(found) + 1))[:lines]) + "\n"


def keys(lines: int, seed: int) -> Iterator[tuple[int, str | None]]:
    """A typist's keys in a file of `lines` lines: (line, what is typed at its end, None for a deletion there).

    At each place a line is opened, written key by key, and two slips are erased.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable typing, no secret
    for _ in range(PLACES):
        line = rng.randrange(lines - 1)
        yield line, "\n"
        yield from ((line + 1, char) for char in rng.choices("abcdef xyz_(.=)é", k=KEYS))
        yield from ((line + 1, None), (line + 1, None))


def change(document: Document, line: int, typed: str | None) -> Change:
    """One key as an editor sends it."""
    end = units(document.buffer.line_content(line), Encoding.UTF16)
    return Change(((line, end if typed else end - 1), (line, end)), typed or "")


def window_ids(table: TokenTable, document: Document, offset: int) -> list[int]:
    """Ids of the lines around an offset."""
    line, _ = document.buffer.position(offset)
    start = document.buffer.line_start(line - WINDOW[0])
    return table.ids(start, document.buffer.line_start(line + WINDOW[1]))


@dataclass(slots=True)
class Times:
    """Milliseconds of each key: the change, the table's update, the tree's move, and the ids; `scratch` the same without reuse."""

    apply: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    tree: list[float] = field(default_factory=list)
    ids: list[float] = field(default_factory=list)
    scratch: list[float] = field(default_factory=list)

    def total(self) -> list[float]:
        """The whole key."""
        return [sum(parts) for parts in zip(self.apply, self.update, self.tree, self.ids, strict=True)]


def type_keys(
    document: Document, tokenizer: Tokenizer, seed: int, scratch_every: int
) -> tuple[Times, Figures]:
    """Type into a document; every so many keys the same is done from scratch, and compared."""
    table, tree = TokenTable(tokenizer, document.buffer), _tree(document)
    times, clock = Times(), time.perf_counter
    table.ids(0, document.buffer.length)
    made = reused = 0
    for number, (line, typed) in enumerate(keys(document.buffer.line_count, seed)):
        key, old = change(document, line, typed), document
        t0 = clock()
        document, edits = document.apply([key], Encoding.UTF16, number)
        t1 = clock()
        table.update(old.buffer, document.buffer, edits)
        t2 = clock()
        moved = None if tree is None else edited(tree, edits, document.buffer)
        t3 = clock()  # trees are freed behind this: the thread does that
        before = table.stats()
        t4 = clock()
        window_ids(table, document, edits[0].new_end)
        t5 = clock()
        after = table.stats()
        tree = None if moved is None else parse(moved.grammar, document.buffer, moved)  # the thread's work, not the key's
        moved = None
        made += after.tokens_tokenized - before.tokens_tokenized
        reused += after.tokens_reused - before.tokens_reused
        for spent, times_of in zip(
            (t1 - t0, t2 - t1, t3 - t2, t5 - t4), (times.apply, times.update, times.tree, times.ids), strict=True
        ):
            times_of.append(spent * 1e3)
        if number % scratch_every == 0:
            times.scratch.append(_from_scratch(document, table, tokenizer))
    held = len(times.apply) * table.count(0, document.buffer.length)
    return times, {
        "tokens_reused": 1 - ratio(made, held),
        "window_tokens_reused": ratio(reused, made + reused),
    }


def _tree(document: Document) -> SyntaxTree | None:
    """The document's tree; None if it is too large for one."""
    facts = language_for(document.language_id)
    grammar = None if facts is None or why_not_parsed(document.buffer) else load(facts)
    return None if grammar is None else parse(grammar, document.buffer)


def _from_scratch(document: Document, table: TokenTable, tokenizer: Tokenizer) -> float:
    """Milliseconds to build the document and its ids from the plain text, which must be the table's ids."""
    text = document.buffer.text()
    start = time.perf_counter()
    again = Document.open(document.uri, document.language_id, document.version, text)
    ids = tokenizer.tokenize(text)
    spent = (time.perf_counter() - start) * 1e3
    if again.buffer.text() != text or table.ids(0, document.buffer.length) != ids:
        raise ValueError("the incremental document or its tokens differ from the plain ones")
    return spent


async def type_live(tokenizer: Tokenizer, seed: int) -> Figures:
    """Type the same keys into 10,000 lines while the parse thread follows; milliseconds of keys, and of turns of the loop."""
    document = Document.open("file:///bench.py", "python", 0, source_text(10_000))
    table = TokenTable(tokenizer, document.buffer)
    table.ids(0, document.buffer.length)
    state = OpenDocument(document, 0.0, table)
    parses: list[str] = []
    worker, clock = SyntaxWorker(parses.append), time.perf_counter
    worker.open(document)
    await worker.wait_idle()
    spent, turns = [], []
    for number, (line, typed) in enumerate(keys(document.buffer.line_count, seed)):
        key = change(state.document, line, typed)
        start = clock()
        edits = state.change([key], Encoding.UTF16, number, 0.0)
        worker.change(state.document, edits)
        window_ids(table, state.document, edits[0].new_end)
        spent.append((clock() - start) * 1e3)
        for _ in range(20):  # turns of the loop, the thread at work meanwhile
            start = clock()
            await asyncio.sleep(0)
            turns.append((clock() - start) * 1e3)
    await worker.wait_idle()
    if worker.problems or not parses:
        raise ValueError("the parse thread failed")
    await worker.close()
    return {
        "edit_while_parsing_p95_ms": percentile(spent, 0.95),
        "edit_while_parsing_max_ms": max(spent),
        "loop_turn_while_parsing_p99_ms": percentile(turns, 0.99),
        "loop_turn_while_parsing_max_ms": max(turns),
    }
