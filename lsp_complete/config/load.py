"""From sources to settings: a pure function with a message for everything it does not take.

Strategy: each source is flattened to dotted names and applied in rising precedence (user's file, workspace
files, editor, environment). Each value is validated alone, so one wrong value never spoils another.

Rules:
- Nothing here reads a file or the environment, or raises on what a source holds.
- A workspace or an editor sets what its scope allows and nothing else (see settings.py).
- A message names the setting, its source, the reason, and what holds instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_origin

from lsp_complete.config.options import OPTIONS, PREFIX, Option
from lsp_complete.config.settings import Settings
from lsp_complete.config.values import check, kept, narrow, parse_text, short

Kind = Literal["user", "workspace", "editor", "environment"]

OTHER_VARIABLES = frozenset({"LSP_COMPLETE_CONFIG", "LSP_COMPLETE_DEBUG"})
"""Variables with our prefix that are no settings: the user's file elsewhere, and tracebacks."""

_GROUPS = frozenset(name.split(".")[0] for name in OPTIONS if "." in name)
_WRAPPERS = ("lsp-complete", "lsp_complete", "lspComplete")
_MAPS = tuple(name for name, option in OPTIONS.items() if get_origin(option.annotation) is dict)


@dataclass(frozen=True, slots=True)
class Source:
    """One place settings come from. `name` is shown to people. `problem` says why it could not be read.

    `values` are nested or dotted names; for the environment, variable names and strings.
    """

    kind: Kind
    name: str
    values: Mapping[str, object] = field(default_factory=dict)
    problem: str = ""

    @property
    def trusted(self) -> bool:
        """Whether the user alone decides what stands there."""
        return self.kind in ("user", "environment")


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources, each group in rising precedence. What is absent is empty."""

    user: tuple[Source, ...] = ()
    workspace: tuple[Source, ...] = ()
    editor: tuple[Source, ...] = ()
    environment: tuple[Source, ...] = ()

    def rising(self) -> tuple[Source, ...]:
        """Every source, weakest first."""
        return self.user + self.workspace + self.editor + self.environment


@dataclass(frozen=True, slots=True)
class Loaded:
    """Effective settings; per dotted name, the source it came from (`default` if none); messages."""

    settings: Settings
    origins: dict[str, str]
    problems: tuple[str, ...] = ()


def load(sources: Sources) -> Loaded:
    """Effective settings of these sources. Never raises; any thread."""
    values: dict[str, object] = {name: option.default for name, option in OPTIONS.items()}
    origins = dict.fromkeys(OPTIONS, "default")
    problems: list[str] = []
    for source in sources.rising():
        if source.problem:
            problems.append(f"{source.name}: {source.problem}; this source is left out")
        for name, raw in _flatten(source, problems.append):
            _apply(OPTIONS[name], raw, source, values, origins, problems.append)
    return Loaded(_build(values), origins, tuple(dict.fromkeys(problems)))


def _build(values: Mapping[str, object]) -> Settings:
    tree: dict[str, Any] = {}
    for name, value in values.items():
        group, _, key = name.rpartition(".")
        (tree.setdefault(group, {}) if group else tree)[key] = value
    return Settings.model_validate(tree)


# --- one source: names -------------------------------------------------------------------------------


def _flatten(source: Source, problem: Callable[[str], None]) -> Iterator[tuple[str, object]]:
    if source.kind == "environment":
        return _from_environment(source, problem)
    values = unwrap(source.values) if source.kind == "editor" else source.values
    found: dict[str, object] = {}
    _walk(values, "", source, found, problem)
    return iter(found.items())


def unwrap(values: Mapping[str, object]) -> Mapping[str, object]:
    """What an editor sent, without the section name that some wrap it in."""
    for wrapper in _WRAPPERS:
        inner = values.get(wrapper)
        if isinstance(inner, Mapping):
            rest = {key: value for key, value in values.items() if key != wrapper}
            return {**rest, **inner}
    return values


def _walk(
    values: Mapping[str, object],
    prefix: str,
    source: Source,
    found: dict[str, object],
    problem: Callable[[str], None],
) -> None:
    for key, value in values.items():
        name = f"{prefix}{key}"
        owner = next((m for m in _MAPS if name.startswith(f"{m}.")), None)
        if value is None:
            continue  # editors send null for what is not set
        if name in OPTIONS:
            found[name] = value
        elif owner is not None:
            entries = found.get(owner)
            entries = dict(entries) if isinstance(entries, Mapping) else {}
            found[owner] = {**entries, name[len(owner) + 1 :]: value}
        elif name in _GROUPS and isinstance(value, Mapping):
            _walk(value, f"{name}.", source, found, problem)
        elif name in _GROUPS:
            problem(
                f"setting `{name}` in {source.name} is ignored: it is a group of settings, not {short(value)}"
            )
        else:
            problem(
                f"setting `{name}` in {source.name} is ignored: there is no such setting{_similar(name, OPTIONS)}"
            )


def _from_environment(source: Source, problem: Callable[[str], None]) -> Iterator[tuple[str, object]]:
    by_variable = {option.variable: name for name, option in OPTIONS.items()}
    for variable, value in source.values.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        name = by_variable.get(variable)
        if name is None:
            problem(
                f"variable {variable} is ignored: there is no such setting{_similar(variable, by_variable)}"
            )
            continue
        yield name, parse_text(OPTIONS[name], str(value))


def _similar(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)
    return f" (did you mean `{close[0]}`?)" if close else ""


# --- one value -----------------------------------------------------------------------------------------


def _apply(
    option: Option,
    raw: object,
    source: Source,
    values: dict[str, object],
    origins: dict[str, str],
    problem: Callable[[str], None],
) -> None:
    name, current = option.name, values[option.name]
    where = option.variable if source.kind == "environment" else f"`{name}` in {source.name}"
    value, reason = check(option, raw)
    if reason:
        problem(
            f"setting {where} has a wrong value, {short(raw)}: {reason}; {short(current)} ({origins[name]}) is used"
        )
        return
    if not source.trusted and option.scope == "own":
        if value != option.default:
            problem(
                f"setting {where} is ignored: for safety it is only taken from your own lsp-complete.toml "
                f"or from {option.variable}"
            )
        return
    if not source.trusted and option.scope == "narrow":
        narrowed = narrow(current, value, option.choices)
        if not kept(narrowed, value):
            problem(
                f"setting {where} is not taken as it stands: a workspace or editor can only make it stricter; "
                f"{short(narrowed)} is used (your own lsp-complete.toml or {option.variable} can widen it)"
            )
        value, reason = check(option, narrowed)
        if reason:
            problem(f"setting {where} is ignored: together with {origins[name]}, {reason}")
            return
        if value == current:
            return
    values[name] = value
    origins[name] = option.variable if source.kind == "environment" else source.name
