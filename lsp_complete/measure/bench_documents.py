"""`lsp-complete bench documents`: what a key costs in a large document before any model is asked.

Strategy: real source (the standard library's) is put together to files of 10,000 and 100,000 lines; a seeded typist writes,
erases and breaks lines at places all over them. Each key does what the server's event loop does: apply the change, update the
token table, move the syntax tree (where the file is not too large for one), read the token ids of the lines around the cursor. The
same keys are done from scratch beside it (new text, whole tokenization), and compared as ratios in the same run. They are also typed
while the parse thread is at work behind every one of them, which must not delay the next.

Rules:
- Figures come in sections; a section is a function from options to figures, listed in SECTIONS. Sections check as
  they go: a wrong id ends the benchmark. `outline-quality` asks a model, takes minutes, and runs only when named.
- `tokens_reused` is the share of the document's tokens that a key leaves as they are; `window_tokens_reused` the share of the
  ids it reads that were there already (a window holds few spans, so the edited one weighs more).
- Times in milliseconds. Thresholds are not judged here.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine.vocab import load_vocab
from ..errors import ModelError
from ..models.installed import list_installed, resolve
from ..service.documents import OpenDocument
from ..syntax.languages import language_for, load
from ..syntax.trees import SyntaxTree, edited, parse, why_not_parsed
from ..syntax.worker import SyntaxWorker
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding, units
from ..text.tokenizer import Tokenizer
from ..text.tokens import TokenTable, shared_cache
from . import bench_outline, bench_outline_quality
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


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """tokenizer: whose ids to make. seed: of the typist. model, points, save: of `outline-quality` (see there)."""

    tokenizer: Tokenizer
    seed: int = 1
    model: Path = Path()
    points: int = bench_outline_quality.POINTS
    save: Path | None = None


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


def edit_figures(options: DocumentOptions) -> Figures:
    """Single keys in files of 10,000 and 100,000 lines."""
    figures: Figures = {}
    for lines, suffix, every in ((10_000, "", 40), (100_000, "_100k", 250)):
        document = Document.open("file:///bench.py", "python", 0, source_text(lines))
        gc.collect()
        times, reuse = type_keys(document, options.tokenizer, options.seed, every)
        total = times.total()
        figures |= {
            f"edit_p50_ms{suffix}": percentile(total, 0.5),
            f"edit_p95_ms{suffix}": percentile(total, 0.95),
            f"edit_max_ms{suffix}": max(total),
            f"apply_p95_ms{suffix}": percentile(times.apply, 0.95),
            f"table_update_p95_ms{suffix}": percentile(times.update, 0.95),
            f"tree_move_p95_ms{suffix}": percentile(times.tree, 0.95),
            f"window_ids_p95_ms{suffix}": percentile(times.ids, 0.95),
            f"scratch_p50_ms{suffix}": percentile(times.scratch, 0.5),
            f"scratch_ratio{suffix}": ratio(percentile(times.scratch, 0.5), percentile(total, 0.5)),
            **{f"{name}{suffix}": value for name, value in reuse.items()},
        }
    return figures | {"keys": len(total)}


def live_figures(options: DocumentOptions) -> Figures:
    """Single keys in a file of 10,000 lines while the parse thread works on the key before: the key itself, and how long the event
    loop waited for its next turn."""
    return asyncio.run(_type_live(options))


async def _type_live(options: DocumentOptions) -> Figures:
    document = Document.open("file:///bench.py", "python", 0, source_text(10_000))
    state = OpenDocument(document, 0.0, TokenTable(options.tokenizer, document.buffer))
    parses: list[str] = []
    worker, clock = SyntaxWorker(parses.append), time.perf_counter
    worker.open(document)
    await worker.wait_idle()
    spent, turns = [], []
    for number, (line, typed) in enumerate(keys(document.buffer.line_count, options.seed)):
        key = change(state.document, line, typed)
        start = clock()
        edits = state.change([key], Encoding.UTF16, number, 0.0)
        worker.change(state.document, edits)
        window_ids(state.ensure_table(options.tokenizer, shared_cache(options.tokenizer)), state.document, edits[0].new_end)
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


def huge_figures(options: DocumentOptions) -> Figures:
    """One line of 2 MB, and a file of 50 MB: opening, and keys with the ids of 4,000 characters before the cursor."""
    figures: Figures = {}
    block = source_text(20_000)
    texts = {"line_2mb": block.replace("\n", " ")[:2_000_000].ljust(2_000_000, "x"), "file_50mb": block}
    texts["file_50mb"] = (block * (50_000_000 // len(block) + 1))[:50_000_000]
    for name, text in texts.items():
        start = time.perf_counter()
        document = Document.open("file:///bench.py", "python", 0, text)
        figures[f"{name}_open_ms"] = (time.perf_counter() - start) * 1e3
        figures[f"{name}_edit_p95_ms"] = percentile(_huge_keys(document, options), 0.95)
    return figures


def _huge_keys(document: Document, options: DocumentOptions) -> list[float]:
    table, spent = TokenTable(options.tokenizer, document.buffer), []
    rng = random.Random(options.seed)  # noqa: S311 - repeatable places, no secret
    for version in range(60):
        if version % 20 == 0:
            line, column = document.buffer.position(rng.randrange(document.buffer.length))
        old, at = document, (line, column)
        start = time.perf_counter()
        document, edits = old.apply([Change((at, at), "x")], Encoding.UTF16, version)
        table.update(old.buffer, document.buffer, edits)
        table.ids(edits[0].new_end - 4000, edits[0].new_end)
        spent.append((time.perf_counter() - start) * 1e3)
        column += 1
    return spent


def outline_figures(options: DocumentOptions) -> Figures:
    """Outlines of pinned real files: after an edit, from the caches, and their size (`bench_outline`)."""
    count = options.tokenizer
    return bench_outline.run(bench_outline.OutlineOptions(lambda text: len(count.tokenize(text)), options.seed))


def quality_figures(options: DocumentOptions) -> Figures:
    """Lines completed with an outline as context and with the whole file (`bench_outline_quality`): some nine minutes."""
    files = [(file.path.name, file.grammar, file.text) for file in bench_outline.corpus()]
    found = bench_outline_quality.run(
        options.model, files, _say, count=options.points, seed=options.seed, save=options.save
    )
    return {"outline_quality": found}


SECTIONS: dict[str, Callable[[DocumentOptions], Figures]] = {
    "edits": lambda options: edit_figures(options) | live_figures(options),
    "huge": huge_figures,
    "outlines": outline_figures,
    "outline-quality": quality_figures,
}
QUICK = ("edits", "huge", "outlines")
"""What runs unless asked otherwise: seconds, and no weights are loaded."""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(options: Any) -> Figures:
    """The figures of the sections asked for. options: the parsed command line (`seed`, `sections`, `model`, `points`, `save`).
    Raises ModelError if no model is installed."""
    wanted = getattr(options, "model", "")
    path = resolve(wanted) if wanted else _smallest()
    chosen = DocumentOptions(
        load_vocab(str(path)),
        getattr(options, "seed", 1),
        path,
        getattr(options, "points", bench_outline_quality.POINTS),
        getattr(options, "save", None),
    )
    figures: Figures = {"vocabulary": path.name}
    for name in getattr(options, "sections", None) or QUICK:
        figures |= SECTIONS[name](chosen)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}


def _smallest() -> Path:
    models = sorted(
        (item for item in list_installed() if item.state != "damaged"), key=lambda item: item.size
    )
    if not models:
        raise ModelError(
            "no model is installed, so there is no vocabulary to measure with; run `lsp-complete models pull`"
        )
    return models[0].path
