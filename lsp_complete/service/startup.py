"""Opening the engine for the settings in force: which model, which options, which prompt format.

Rules:
- No model: ModelError with the exact command to run. Nothing is ever downloaded here.
- The vocabulary is loaded only after the engine has validated the file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import psutil
from platformdirs import user_cache_dir

from ..config import Settings
from ..context.anchor import Window
from ..context.header import HeaderFormat, Part
from ..context.prompt import FimTokens
from ..engine.api import ModelInfo
from ..engine.client import EngineClient
from ..engine.launch import EngineLaunch, ServeRules
from ..engine.options import SPECULATIVE_TOKENS, EngineOptions
from ..engine.retry import ClientRules
from ..engine.vocab import load_vocab
from ..errors import ModelError
from ..models.auto import choose_installed
from ..models.detect import detect_format
from ..models.formats import FimFormat
from ..models.gguf import read_header
from ..models.installed import resolve
from ..store.disk import DiskCache
from ..text.tokenizer import Tokenizer
from .brain import Opened
from .planning import LoadedModel

REFERENCE_SLOTS = 2
REFERENCE_RULES = ServeRules(idle_s=10.0, grace_s=120.0, stall_s=1800.0, load_s=3600.0, loop_s=300.0, handshake_s=60.0, close_s=60.0)
REFERENCE_CLIENT = ClientRules(grace_s=600.0, handshake_s=120.0)
"""A process that gets only what others leave may stand still for minutes without being hung."""

PLANNED = "lsp_complete.commands.engine_load:planned_engine"
"""What the engine process loads its model with: by a plan for the memory that is free when it starts."""


async def open_engine(settings: Settings, on_state: Callable[[str, str], None]) -> Opened:
    """Start or join the engine for these settings. Raises ModelError if there is no model."""
    path = await asyncio.to_thread(model_path, settings)
    client = EngineClient(await asyncio.to_thread(engine_launch, settings, path), on_state)
    return Opened(client, lambda info: load_model(path, info))


async def open_reference(settings: Settings, on_state: Callable[[str, str], None]) -> Opened:
    """Start or join the reference model's engine. Raises ModelError if there is none, or it is the model itself."""
    path = await asyncio.to_thread(model_path, settings)
    launch = await asyncio.to_thread(reference_launch, settings, path)
    client = EngineClient(launch, on_state, rules=REFERENCE_CLIENT)
    return Opened(client, lambda info: load_model(Path(launch.model_path), info))


def open_index_cache() -> DiskCache:
    """The index's cache on disk. Blocks for some milliseconds."""
    return DiskCache(Path(user_cache_dir("lsp-complete")) / "index")


def model_path(settings: Settings) -> Path:
    """The model file that the settings name; "auto" is the largest installed one that this machine runs fast
    enough. Blocks (it may have to check a digest). Raises ModelError with the command to run."""
    folder = Path(settings.model_dir) if settings.model_dir else None
    if settings.model and settings.model != "auto":
        return resolve(settings.model, folder)
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return choose_installed(psutil.virtual_memory().available, cores, folder=folder)[1]


def draft_path(settings: Settings, path: Path) -> str:
    """The draft model's file; "" for none. Blocks. Raises ModelError if it is not there, or is the model itself."""
    if not settings.draft_model or not settings.engine.speculation:
        return ""
    draft = resolve(settings.draft_model, Path(settings.model_dir) if settings.model_dir else None)
    if draft == path:
        raise ModelError(f"{draft.name} cannot be the draft model of itself. Set draft_model to a smaller model, or leave it empty.")
    return str(draft)


def prompts_folder() -> Path:
    """Where engines keep prompts beyond their own life."""
    return Path(user_cache_dir("lsp-complete")) / "prompts"


def reference_path(settings: Settings, path: Path) -> Path:
    """The reference model's file. path: the model's. Blocks. Raises ModelError if it is not there, or is the model itself."""
    reference = resolve(settings.reference_model, Path(settings.model_dir) if settings.model_dir else None)
    if reference == path:
        raise ModelError(
            f"{reference.name} cannot be the reference model of itself. Set reference_model to a larger or more precise model, or leave it empty."
        )
    return reference


def engine_options(settings: Settings, path: Path) -> EngineOptions:
    """Engine options from settings. Blocks. Raises ModelError if the draft model cannot be used."""
    engine = settings.engine
    disk = engine.disk_cache_mb
    return EngineOptions(
        model_path=str(path),
        context=engine.context,
        slots=engine.slots,
        threads=engine.threads,
        kv_type=engine.kv_type,
        v_type="" if engine.v_type == "same" else engine.v_type,
        gpu_layers=engine.gpu_layers,
        host_cache_bytes=engine.host_cache_mb << 20,
        disk_cache_dir=str(prompts_folder()) if disk else None,
        disk_cache_bytes=disk << 20,
        draft_path=draft_path(settings, path),
        speculative_tokens=engine.draft_tokens if engine.speculation else 0,
        draft_temperature=engine.draft_temperature / 100,
        draft_least=engine.draft_least / 100,
        draft_back_off=engine.draft_back_off,
        count_niced=not settings.reference_model,
    )


def reference_launch(settings: Settings, path: Path) -> EngineLaunch:
    """How the reference model's engine is started: on the CPU alone, with what others leave of it, and with the attention cache
    unquantized. path: the model's file, whose pages must stay in memory. Blocks. Raises ModelError."""
    engine, reference = settings.engine, reference_path(settings, path)
    options = EngineOptions(
        model_path=str(reference),
        context=engine.context,
        slots=REFERENCE_SLOTS,
        threads=engine.threads,
        kv_type="f16",
        host_cache_bytes=0,
        remeasure_threads=False,
        speculative_tokens=SPECULATIVE_TOKENS if engine.speculation else 0,
        gives_way=True,
        leave_bytes=path.stat().st_size,
    )
    return EngineLaunch(str(reference), options.as_dict(), REFERENCE_RULES, factory=PLANNED)


def engine_launch(settings: Settings, path: Path) -> EngineLaunch:
    """How the engine process is started for these settings. Blocks. Raises ModelError."""
    return EngineLaunch(
        model_path=str(path),
        options=engine_options(settings, path).as_dict(),
        rules=ServeRules(idle_s=float(settings.engine.idle_exit_s)),
        factory=PLANNED,
    )


def load_model(path: Path, info: ModelInfo) -> LoadedModel:
    """Vocabulary, format and window of a model that the engine has loaded. Blocks; any thread."""
    tokenizer = load_vocab(str(path))
    fmt = detect_format(read_header(path))
    budget = fmt.budget_for(info.parameters)
    window = Window(
        lines_above=budget.lines_above,
        lines_below=budget.lines_below,
        anchor_lines=fmt.anchor_lines,
        max_tail_lines=fmt.anchor_limit,
    )
    return LoadedModel(
        tokenizer,
        fim_tokens(fmt, tokenizer),
        window,
        tokenizer.pre,
        path.stem,
        info.context,
        layout=header_format(fmt, tokenizer),
        context_tokens=budget.context_tokens,
        prefill_tps=info.prefill_tps,
    )


def header_format(fmt: FimFormat, tokenizer: Tokenizer) -> HeaderFormat:
    """The family's layout of other files with its special tokens as ids; those the vocabulary lacks are left out."""

    def parts(layout: tuple[str, ...]) -> tuple[Part, ...]:
        made: list[Part] = []
        for part in layout:
            spelling = fmt.special(part)
            token = tokenizer.special(spelling) if spelling else None
            if not spelling:
                made.append(part)
            elif token is not None:
                made.append((token,))
        return tuple(made)

    return HeaderFormat(
        parts(fmt.repo_layout), parts(fmt.file_layout), parts(fmt.current_layout), fmt.context_at == "prefix"
    )


def fim_tokens(fmt: FimFormat, tokenizer: Tokenizer) -> FimTokens:
    """The format's spellings as ids. Raises ModelError if the vocabulary lacks a needed one."""

    def ids(spelling: str) -> tuple[int, ...]:
        if not spelling:
            return ()
        found = tokenizer.special(spelling)
        if found is None:
            raise ModelError(
                f"The model's vocabulary lacks the token {spelling} of the {fmt.title} prompt format; "
                "choose a code model with fill-in-the-middle tokens (`lsp-complete models list`)."
            )
        return (found,)

    begin = getattr(tokenizer, "bos", None) if fmt.bos else None
    return FimTokens(
        ids(fmt.prefix),
        ids(fmt.suffix),
        ids(fmt.middle),
        begin=(begin,) if isinstance(begin, int) and begin >= 0 else (),
        order=fmt.order,
    )
