"""Outlines in numbers: what one costs after a key, from the caches and from nothing, and how much of a file it leaves.

Strategy: real files of 300–500 lines in five languages, pinned like the other corpora. A seeded typist writes into them, and
each key does what the parse thread does: move the tree, parse from it, read the changed definitions, keep what broke. The
same text from scratch stands beside it. Sizes are in tokens of the installed model, for each function as the cursor's in turn.

Rules:
- Times in milliseconds, ratios of the same run. Thresholds are not judged here.
- The outline after each tenth key is compared with one made from scratch wherever both trees agree; a difference ends the benchmark.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..store.disk import DiskCache
from ..store.outlines import outline_cache
from ..syntax.languages import Grammar, language_for, load
from ..syntax.outline import (
    Outline,
    focus_for_cursor,
    levels_for_cursor,
    merge_last_good,
    outline_of,
    render,
    shifted,
    update_outline,
)
from ..syntax.trees import SyntaxTree, edited, hull, parse
from ..text.document import Document
from ..text.edits import Change, Edit
from ..text.positions import Encoding
from .corpus import PACKAGES, Package, cache_folder, obtain
from .statistics import percentile, ratio

MORE = {
    package.name: package
    for package in (
        Package(
            "django",
            "5.2.8",
            "django-5.2.8-py3-none-any.whl",
            "37e687f7bd73ddf043e2b6b97cfe02fcbb11f2dbb3adccc6a2b18c6daa054d7f",
            2005,
        ),
        Package(
            "python-for-android",
            "2026.5.9",
            "python_for_android-2026.5.9-py3-none-any.whl",
            "79a58606a78ed3cec1aba110876a414d4aa988f082385d68393e208d009e1e94",
            2012,
        ),
    )
}
_ANDROID = "pythonforandroid/bootstraps/service_only/build/src/main/java/org/kivy/android"
FILES = (
    ("httpcore", "httpcore/_async/http11.py"),
    ("httpcore", "httpcore/_async/connection_pool.py"),
    ("coverage", "coverage/results.py"),
    ("coverage", "coverage/templite.py"),
    ("pydantic-handlebars", "pydantic_handlebars/_helpers.py"),
    ("django", "django/contrib/admin/static/admin/js/inlines.js"),
    ("django", "django/contrib/admin/static/admin/js/SelectFilter2.js"),
    ("nanobind", "nanobind/src/error.cpp"),
    ("nanobind", "nanobind/src/nb_internals.cpp"),
    ("pybind11", "pybind11/include/pybind11/embed.h"),
    ("python-for-android", f"{_ANDROID}/PythonActivity.java"),
    ("python-for-android", "pythonforandroid/recipes/android/src/android/_android_sound_jni.c"),
)
_CPP = {"embed.h"}
KEYS = {True: "if foo(bar, [1]):\n    x = {'a': 1}\n", False: 'if (foo(bar, [1])) {\n  x = f("a");\n}\n'}
"""What is typed: closers come when they are typed, as without an editor's help. By whether blocks end by indentation."""
LONG_LINES = 10_000
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutlineOptions:
    """count: tokens of a text; None measures sizes in characters and says so. files: instead of the corpus."""

    count: Callable[[str], int] | None = None
    seed: int = 1
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file at hand, its line ends as they are."""

    path: Path
    grammar: Grammar
    text: str


def corpus(options: OutlineOptions = OutlineOptions()) -> list[SourceFile]:
    """The files to measure on, fetched if need be. Raises DownloadError."""
    paths: list[tuple[Path, str]] = [(path, "") for path in options.files]
    if not paths:
        for name, inner in FILES:
            package = PACKAGES.get(name) or MORE[name]
            root = obtain(package, cache_folder(), lambda line: print(line, file=sys.stderr))
            paths.append((root / inner, "cpp" if Path(inner).name in _CPP else ""))
    found = []
    for path, language in paths:
        facts = language_for(language, path.name)
        grammar = load(facts) if facts is not None else None
        if grammar is not None:
            found.append(SourceFile(path, grammar, path.read_bytes().decode("utf-8", "replace")))
    return found


def _typed(document: Document, keys: str, seed: int) -> Iterator[tuple[Document, tuple[Edit, ...]]]:
    """Keys at six places of a document: a line is opened with its neighbour's indentation, written, and half of it erased."""
    rng = random.Random(seed)  # noqa: S311 - repeatable typing, no secret
    for _ in range(6):
        line = rng.randrange(document.buffer.line_count)
        content = document.buffer.line_content(line)
        at = document.buffer.line_start(line) + len(content)
        indent = content[: len(content) - len(content.lstrip())]
        text = keys.replace("\n", "\n" + indent)
        first = ("\n" + indent, False)
        steps = [first] + [(key, False) for key in text] + [("", True)] * (len(text) // 2)
        for key, erase in steps:
            start = document.buffer.position(at - erase)
            change = Change((start, document.buffer.position(at)), key)
            document, edits = document.apply([change], Encoding.UTF32, document.version + 1)
            at = edits[-1].new_end
            yield document, edits


def _first(file: SourceFile, text: str) -> tuple[Document, SyntaxTree, Outline]:
    document = Document.open(file.path.as_uri(), file.grammar.facts.key, 0, text)
    tree = parse(file.grammar, document.buffer)
    if tree is None:
        raise ValueError(f"{file.path.name} could not be parsed")
    return document, tree, outline_of(tree)


@dataclass(slots=True)
class _Typed:
    """Milliseconds of each key on the event loop, until the outline is there, and from scratch (every tenth key). unlike: for each
    of the tenth keys whose text is broken, 1 if the outline differs from one made from scratch, which comes right at rest."""

    moving: list[float] = field(default_factory=list)
    outlined: list[float] = field(default_factory=list)
    scratch: list[float] = field(default_factory=list)
    unlike: list[int] = field(default_factory=list)

    def add(self, other: _Typed) -> None:
        """Take in the keys of another file."""
        self.moving += other.moving
        self.outlined += other.outlined
        self.scratch += other.scratch
        self.unlike += other.unlike


def _type_into(file: SourceFile, text: str, seed: int) -> _Typed:
    """Type into a file, and look at the outline after each key."""
    document, tree, raw = _first(file, text)
    kept, clock, typed = raw, time.perf_counter, _Typed()
    for number, (after, edits) in enumerate(_typed(document, KEYS[file.grammar.facts.ends_block], seed)):
        start = clock()
        moved = edited(tree, edits, after.buffer)
        typed.moving.append((clock() - start) * 1e3)
        change = hull(edits, document.buffer, after.buffer)
        parsed = parse(file.grammar, after.buffer, moved)
        if parsed is None:
            raise ValueError(f"{file.path.name} could not be parsed after a key")
        last = shifted(raw, edits)
        best = last if kept is raw else shifted(kept, edits)
        raw = update_outline(last, moved, parsed, [(change.start, change.new_end)])
        kept = merge_last_good(best, raw, after.buffer)
        typed.outlined.append((clock() - start) * 1e3)
        if number % 10 == 0:
            start = clock()
            fresh = parse(file.grammar, after.buffer)
            whole = outline_of(fresh) if fresh is not None else None
            typed.scratch.append((clock() - start) * 1e3)
            if parsed.settled and raw != whole:
                raise ValueError(f"{file.path.name}: the updated outline differs from one made from scratch")
            if not parsed.settled:
                typed.unlike.append(raw != whole)
        document, tree = after, parsed
    return typed


def edit_figures(files: Sequence[SourceFile], seed: int) -> Figures:
    """The outline after each key in files of 300–500 lines, and in one of 10,000 lines."""
    all_files = _Typed()
    for file in files:
        all_files.add(_type_into(file, file.text, seed))
    moving, outlined, scratch = all_files.moving, all_files.outlined, all_files.scratch
    figures: Figures = {
        "edited_outline_p50_ms": percentile(outlined, 0.5),
        "edited_outline_p95_ms": percentile(outlined, 0.95),
        "edited_outline_max_ms": max(outlined),
        "edited_tree_loop_p95_ms": percentile(moving, 0.95),
        "scratch_outline_p50_ms": percentile(scratch, 0.5),
        "scratch_outline_ratio": ratio(percentile(scratch, 0.5), percentile(outlined, 0.5)),
        "outline_keys": len(outlined),
        "broken_keys_checked": len(all_files.unlike),
        "broken_outline_differs": ratio(sum(all_files.unlike), len(all_files.unlike)),
    }
    python = [file for file in files if file.grammar.facts.key == "python"] or list(files[:1])
    lines = "".join(file.text + "\n" for file in python)
    long = lines * (LONG_LINES // max(lines.count("\n"), 1) + 1)
    large = _type_into(python[0], long, seed)
    moving, outlined, scratch = large.moving, large.outlined, large.scratch
    return figures | {
        "edited_outline_p50_ms_10k": percentile(outlined, 0.5),
        "edited_outline_p95_ms_10k": percentile(outlined, 0.95),
        "edited_tree_loop_p95_ms_10k": percentile(moving, 0.95),
        "scratch_outline_p50_ms_10k": percentile(scratch, 0.5),
        "scratch_outline_ratio_10k": ratio(percentile(scratch, 0.5), percentile(outlined, 0.5)),
    }


def cache_figures(files: Sequence[SourceFile]) -> Figures:
    """Outlines of files that were seen before: from memory, from disk after a restart, and made."""
    made: list[float] = []
    memory: list[float] = []
    disk: list[float] = []
    clock = time.perf_counter
    with tempfile.TemporaryDirectory() as scratch:
        paths: list[str] = []
        for number, file in enumerate(files):
            copy = Path(scratch) / f"{number}{file.path.suffix}"
            copy.write_bytes(file.text.encode("utf-8"))
            os.utime(copy, (1_600_000_000, 1_600_000_000))
            paths.append(str(copy))
        store = DiskCache(Path(scratch) / "cache")
        cache = outline_cache(store)
        for path in paths:
            start = clock()
            cache.get(path)
            made.append((clock() - start) * 1e3)
        for _ in range(20):
            restarted = outline_cache(store)
            for path in paths:
                for times, known in ((memory, cache), (disk, restarted)):
                    start = clock()
                    known.get(path)
                    times.append((clock() - start) * 1e3)
            if restarted.made:
                raise ValueError("an outline that is on disk was made again")
        store.close()
    return {
        "hot_outline_p95_ms": percentile(memory, 0.95),
        "hot_outline_disk_p95_ms": percentile(disk, 0.95),
        "cold_outline_p50_ms": percentile(made, 0.5),
        "hot_outline_ratio": ratio(percentile(made, 0.5), percentile(memory, 0.5)),
        "hot_outline_disk_ratio": ratio(percentile(made, 0.5), percentile(disk, 0.5)),
    }


def size_figures(files: Sequence[SourceFile], count: Callable[[str], int] | None) -> Figures:
    """How much of a file is left at "signature only outside the cursor's function", the cursor in each function in turn."""
    measure = count or len
    per_file: Figures = {}
    for file in files:
        document, _, outline = _first(file, file.text)
        whole = measure(file.text)
        shares = []
        for node in outline.nodes:
            if node.role == "function" and node.has_body:
                offset = node.span.body_start + 1
                focus = focus_for_cursor(document.buffer, offset)
                levels = levels_for_cursor(outline, offset)
                inside = outline.enclosing(offset, "function") is not None
                text = render(outline, document.buffer, levels, focus=(-1, -1) if inside else focus)
                shares.append(ratio(measure(text), whole))
        if shares:
            per_file[file.path.name] = round(sum(shares) / len(shares), 4)
    mean = ratio(sum(per_file.values()), len(per_file))
    return {
        "outline_ratio": mean,
        "outline_ratio_max": max(per_file.values(), default=0.0),
        "prefill_saved": 1 - mean,
        "outline_ratio_unit": "tokens" if count is not None else "characters",
        "outline_files": per_file,
    }


def run(options: Any) -> Figures:
    """All figures. options: an `OutlineOptions`, or a parsed command line (`seed`). Raises DownloadError without a corpus."""
    chosen = (
        options
        if isinstance(options, OutlineOptions)
        else OutlineOptions(_counter(), getattr(options, "seed", 1))
    )
    files = corpus(chosen)
    figures = {
        **edit_figures(files, chosen.seed),
        **cache_figures(files),
        **size_figures(files, chosen.count),
    }
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}


def _counter() -> Callable[[str], int] | None:
    """Counts tokens of the smallest installed model; None if there is none."""
    from ..engine.vocab import load_vocab
    from ..models.installed import list_installed

    models = sorted(
        (item for item in list_installed() if item.state != "damaged"), key=lambda item: item.size
    )
    if not models:
        return None
    vocab = load_vocab(str(models[0].path))
    return lambda text: len(vocab.tokenize(text))
