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
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.vocab import load_vocab
from ..errors import ModelError
from ..models.installed import list_installed, resolve
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding
from ..text.tokenizer import Tokenizer
from ..text.tokens import TokenTable
from . import bench_outline, bench_outline_quality
from .bench_documents_typing import source_text, type_keys, type_live
from .statistics import percentile, ratio

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """tokenizer: whose ids to make. seed: of the typist. model, points, save: of `outline-quality` (see there)."""

    tokenizer: Tokenizer
    seed: int = 1
    model: Path = Path()
    points: int = bench_outline_quality.POINTS
    save: Path | None = None


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
    return asyncio.run(type_live(options.tokenizer, options.seed))


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
    """Lines completed with an outline as context and with the whole file (`bench_outline_quality`): up to half an hour."""
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
