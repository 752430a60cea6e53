"""`lsp-complete bench context`: what context costs per key, how much of a prompt stays the same, how fast the workspace is indexed.

Strategy: the product's own service without a model behind it: documents, index, syntax and planning are real, the vocabulary is that of an
installed model, and what the engine would reuse is counted on the prompts themselves, by its rule: the longest common prefix with
any prompt that is still kept. The workspace is the Python standard library with its installed packages.

Rules:
- A key's build time is what the event loop does for it: the change, and the plan. Parsing is waited for between the keys, as the
  pause between two keys allows.
- Every evaluated token counts, cold places included; nothing is made ready ahead.
- Times in milliseconds, memory in MB of this process and its helpers. Thresholds are not judged here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sysconfig
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..config import Settings
from ..context.layout import first_difference
from ..engine.api import ModelInfo
from ..errors import EngineUnavailable, ModelError
from ..index.index import SymbolIndex
from ..index.walk import Guard, Rules
from ..index.worker import IndexWorker
from ..models.installed import list_installed
from ..service import Service
from ..service.brain import Opened
from ..service.planning import LoadedModel, plan
from ..service.startup import load_model
from ..service.windows import window_for
from ..store.disk import DiskCache
from ..text.document import Document
from ..text.edits import Change
from ..text.positions import Encoding
from .statistics import percentile, ratio

FILES = 2_200
KEYS = 500
VISITS = 10
KEPT_PROMPTS = 40
"""Prompts that the engine keeps in slots and in main memory, of about a thousand tokens each."""
NAMES = ("argparse", "http/client", "tarfile")
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """model: whose vocabulary and prompt format; files: of the workspace, at most; keys: of the session; seed: of the typist."""

    model: LoadedModel
    workspace: Path
    files: int = FILES
    keys: int = KEYS
    seed: int = 1


def smallest_model() -> Path:
    """The smallest installed model's file. Raises ModelError if there is none."""
    models = sorted((item for item in list_installed() if item.state != "damaged"), key=lambda item: item.size)
    if not models:
        raise ModelError("no model is installed, so there is no vocabulary to measure with; run `lsp-complete models pull`")
    return models[0].path


def load_vocabulary(path: Path) -> LoadedModel:
    """Vocabulary, format and budgets of a model, as if an engine had loaded it. Blocks."""
    parameters = int(path.stat().st_size / 0.8)  # four bits a weight: near enough for the choice of a budget
    return load_model(path, ModelInfo(str(path), "", path.name, "", 0, 8192, 8, parameters, path.stat().st_size))


class Kept:
    """What the engine would reuse: prompts that were evaluated lately."""

    def __init__(self, limit: int = KEPT_PROMPTS) -> None:
        self._prompts: OrderedDict[tuple[int, ...], None] = OrderedDict()
        self._limit = limit

    def reused(self, prompt: tuple[int, ...]) -> int:
        """Tokens of `prompt` that need no evaluation; remembers it in the place of the one that it continues."""
        best, source = 0, None
        for known in self._prompts:
            common = first_difference(known, prompt)
            if common > best:
                best, source = common, known
        if source is not None and best > 0.9 * len(source):
            del self._prompts[source]
        self._prompts[prompt] = None
        while len(self._prompts) > self._limit:
            self._prompts.popitem(last=False)
        return min(best, len(prompt) - 1)


# -- index ----------------------------------------------------------------------------------------------


def _memory() -> float:
    """Resident MB of this process and its children."""
    total = psutil.Process().memory_info().rss
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += child.memory_info().rss
    return total / 1e6


class _Peak:
    """The highest memory seen while progress was told."""

    def __init__(self) -> None:
        self.mb = _memory()

    def __call__(self, _done: int, _total: int) -> None:
        self.mb = max(self.mb, _memory())


def index_figures(options: ContextOptions) -> Figures:
    """A cold and a warm start, look-ups, and one changed file."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="lspc-index-") as folder:
        cache = DiskCache(Path(folder))
        for name in ("cold", "warm"):
            gc.collect()
            before, peak = _memory(), _Peak()
            index = SymbolIndex()
            guard = Guard([options.workspace], Rules(max_files=options.files))
            start = time.perf_counter()
            worker = IndexWorker(index, guard, cache, peak)
            worker.scan()
            worker.wait_idle()
            figures[f"index_{name}_s"] = time.perf_counter() - start
            figures[f"index_{name}_memory_mb"] = max(peak.mb, _memory()) - before
            figures[f"index_{name}_read"] = worker.stats().read
            if name == "warm":
                figures |= _lookups(index, options.seed) | _one_file(worker)
            worker.close()
        stats = index.stats()
        cache.close()
    return figures | {"index_files": stats.files, "index_definitions": stats.definitions, "index_table_mb": stats.bytes / 1e6}


def _lookups(index: SymbolIndex, seed: int) -> Figures:
    rng = random.Random(seed)  # noqa: S311 - repeatable choice, no secret
    names = [index.file(path).name(0) for path in rng.sample(index.paths(), 200) if _filled(index, path)]  # type: ignore[union-attr]
    names += ["get", "__init__", "read", "name", "Path", "close"] * 20
    spent = []
    for name in names:
        start = time.perf_counter()
        index.lookup(name)
        index.users(name, 8)
        spent.append((time.perf_counter() - start) * 1e3)
    return {"lookup_p50_ms": percentile(spent, 0.5), "lookup_p95_ms": percentile(spent, 0.95), "lookup_max_ms": max(spent)}


def _filled(index: SymbolIndex, path: str) -> bool:
    symbols = index.file(path)
    return symbols is not None and symbols.count > 0


def _one_file(worker: IndexWorker) -> Figures:
    path = worker.index.paths()[len(worker.index.paths()) // 2]
    start = time.perf_counter()
    worker.changed([path])
    worker.wait_idle()
    return {"index_one_file_ms": (time.perf_counter() - start) * 1e3}


# -- typing ---------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def workspace(options: ContextOptions, *, wait: bool = True) -> AsyncIterator[Service]:
    """The service over the workspace, without an engine."""
    settings = Settings.model_validate(
        {"prefetch": "off", "context": {"cross_file": True}, "index": {"max_files": options.files}}
    )

    async def opener(_settings: Settings, _state: Any) -> Opened:
        raise EngineUnavailable("this benchmark has no engine")

    service = Service(settings, opener, lambda _l, _m: None, lambda _k, _m, busy=False: None)
    service.set_roots([options.workspace])
    service.configure(settings)
    try:
        if wait and service.context.worker is not None:
            await asyncio.to_thread(service.context.worker.wait_idle)
        yield service
    finally:
        await service.close()


@dataclass(slots=True)
class Typing:
    """What a session came to. build, cold: milliseconds per key; evaluated, prompt: tokens per key; why: reasons for differing tokens."""

    build: list[float]
    cold: list[float]
    evaluated: list[int]
    prompt: list[int]
    why: Counter[str]


def open_file(service: Service, path: Path) -> str:
    """Open a file of the workspace."""
    uri = path.as_uri()
    service.open(Document.open(uri, "python", 1, path.read_text("utf-8", "replace")))
    return uri


def lines_of(document: Document, rng: random.Random) -> int:
    """A line of code somewhere in the middle of a document, inside of a function."""
    for _ in range(200):
        line = rng.randrange(30, document.buffer.line_count - 5)
        text = document.buffer.line_content(line)
        if text.startswith("        ") and 20 <= len(text.strip()) <= 70 and text.strip()[0] not in "#\"')":
            return line
    return document.buffer.line_count // 2


def visit_keys(text: str, count: int) -> Iterator[str]:
    """`count` keys that write a line again and begin the next one: characters, Enter, and some taken back."""
    body = text.strip()
    keys: list[str] = []
    while len(keys) < count:
        for at, char in enumerate(body):
            keys.append(char)
            if at % 17 == 16:
                keys += ["<", char]
        keys.append("\n" + text[: len(text) - len(text.lstrip())])
    yield from keys[:count]


async def type_session(
    service: Service, options: ContextOptions, uris: Sequence[str], visits: int, keys: int
) -> Typing:
    """Visit places in turn, every third visit one seen before, and type at each."""
    rng = random.Random(options.seed)  # noqa: S311 - repeatable typing, no secret
    kept, found = Kept(), Typing([], [], [], [], Counter())
    places: dict[str, list[int]] = {uri: [] for uri in uris}
    window = window_for(options.model, service.settings)
    for visit in range(visits):
        uri = uris[visit % len(uris)]
        state = service.documents.get(uri)
        assert state is not None
        again = places[uri] and visit >= 2 * len(uris)
        line = rng.choice(places[uri]) if again else lines_of(state.document, rng)
        places[uri].append(line)
        source = state.document.buffer.line_content(line)
        offset = state.document.buffer.line_start(line) + len(source) - len(source.lstrip())
        service.focused(uri, offset)
        _erase(service, uri, offset, len(source.lstrip()))
        for number, key in enumerate(visit_keys(source, keys // visits)):
            await service.context.syntax.wait_idle()
            start = time.perf_counter()
            offset = _press(service, uri, offset, key)
            planned = plan(state, offset, options.model, window, service.context)
            spent = (time.perf_counter() - start) * 1e3
            prompt = planned.prompt.prompt
            found.build.append(spent)
            if number == 0:
                found.cold.append(spent)
            found.prompt.append(len(prompt))
            found.evaluated.append(len(prompt) - kept.reused(prompt))
            found.why[planned.differs] += 1
    return found


def _erase(service: Service, uri: str, offset: int, length: int) -> None:
    document = service.snapshot(uri)
    assert document is not None
    span = document.buffer.position(offset), document.buffer.position(offset + length)
    service.change(uri, [Change(span, "")], Encoding.UTF32, document.version + 1)


def _press(service: Service, uri: str, offset: int, key: str) -> int:
    """One key at the cursor; "<" takes the last character back. Returns the cursor behind it."""
    if key == "<":
        _erase(service, uri, offset - 1, 1)
        return offset - 1
    document = service.snapshot(uri)
    assert document is not None
    point = document.buffer.position(offset)
    service.change(uri, [Change((point, point), key)], Encoding.UTF32, document.version + 1)
    return offset + len(key)


async def _typing(options: ContextOptions) -> Figures:
    async with workspace(options) as service:
        uris = [open_file(service, options.workspace / f"{name}.py") for name in NAMES]
        await service.context.syntax.wait_idle()
        session = await type_session(service, options, uris, VISITS, options.keys)
        cold = await type_session(service, options, uris, 60, 60)  # one key at each of 60 places
    figures = {
        "keys": len(session.build),
        "build_p50_ms": percentile(session.build, 0.5),
        "build_p95_ms": percentile(session.build, 0.95),
        "build_max_ms": max(session.build),
        "cold_build_p50_ms": percentile(cold.cold, 0.5),
        "cold_build_p95_ms": percentile(cold.cold, 0.95),
        "prompt_tokens_p50": percentile(session.prompt, 0.5),
        "prompt_reuse": 1 - ratio(sum(session.evaluated), sum(session.prompt)),
        "evaluated_per_key_mean": ratio(sum(session.evaluated), len(session.evaluated)),
        "evaluated_per_key_p50": percentile(session.evaluated, 0.5),
        "differs": dict(session.why),
    }
    async with workspace(options, wait=False) as service:
        uris = [open_file(service, options.workspace / f"{NAMES[0]}.py")]
        await service.context.syntax.wait_idle()
        during = await type_session(service, options, uris, 4, 120)
    return {**figures, "build_p95_ms_while_indexing": percentile(during.build, 0.95)}


def typing_figures(options: ContextOptions) -> Figures:
    """Build times and reuse over a session of keys in three files, cold places, and keys while the index is being built."""
    return asyncio.run(_typing(options))


def run(options: Any) -> Figures:
    """All figures. options: the parsed command line (`seed`, `max_files`, `keys`, `workspace`). Raises ModelError."""
    chosen = ContextOptions(
        load_vocabulary(smallest_model()),
        Path(getattr(options, "workspace", None) or sysconfig.get_paths()["stdlib"]),
        getattr(options, "max_files", FILES),
        getattr(options, "keys", KEYS),
        getattr(options, "seed", 1),
    )
    figures = {"vocabulary": chosen.model.name, **typing_figures(chosen), **index_figures(chosen)}
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
