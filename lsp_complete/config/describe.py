"""Settings as shown: JSON schema for editors, a table for the terminal and for the README."""

from __future__ import annotations

import json
from typing import Any

from lsp_complete.config.load import Loaded
from lsp_complete.config.options import OPTIONS, Option, value_of
from lsp_complete.config.settings import Settings

_FROM = {"own": "you", "narrow": "you; others only stricter", "any": "you, workspace, editor"}


def schema() -> dict[str, Any]:
    """JSON schema of `lsp-complete.toml`. Each setting carries `unit`, `scope` and `sensitive`."""
    made = Settings.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "lsp-complete.toml"
    return made


def editor_properties(section: str = "") -> dict[str, dict[str, Any]]:
    """Schema per dotted name for editors (VS Code's `contributes.configuration`): only what editors may set."""
    prefix = f"{section}." if section else ""
    return {prefix + name: _property(option) for name, option in OPTIONS.items() if option.scope != "own"}


def _property(option: Option) -> dict[str, Any]:
    where: dict[str, Any] = schema()
    group, _, key = option.name.rpartition(".")
    owner = where["$defs"][_definition(where, group)] if group else where
    found = dict(owner["properties"][key])
    for extra in ("scope", "sensitive", "path", "unit", "title"):
        found.pop(extra, None)
    if option.unit:
        found["description"] = f"{option.description} ({option.unit})"
    return found


def _definition(made: dict[str, Any], group: str) -> str:
    return str(made["properties"][group]["$ref"]).rpartition("/")[2]


def as_json(loaded: Loaded) -> dict[str, object]:
    """Effective values and origins as plain JSON values."""
    return {
        "settings": {
            name: {"value": plain(value_of(loaded.settings, name)), "origin": loaded.origins[name]}
            for name in OPTIONS
        },
        "problems": list(loaded.problems),
    }


def as_text(loaded: Loaded) -> str:
    """Effective values and origins as aligned lines, one setting each."""
    rows = [
        (name, json.dumps(plain(value_of(loaded.settings, name)), ensure_ascii=False), loaded.origins[name])
        for name in OPTIONS
    ]
    wide = max(len(row[0]) for row in rows)
    middle = min(36, max(len(row[1]) for row in rows))
    return "\n".join(f"{name:<{wide}}  {value:<{middle}}  {origin}" for name, value, origin in rows)


def plain(value: object) -> object:
    """A setting's value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def markdown() -> str:
    """The README's table of settings."""
    lines = ["| setting | default | meaning | who may set it |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        default = json.dumps(plain(option.default), ensure_ascii=False)
        meaning = option.description + (f" ({option.unit})" if option.unit else "")
        if option.choices:
            meaning += ": " + ", ".join(f"`{choice}`" for choice in option.choices)
        cells = (f"`{option.name}`", f"`{default}`", meaning.replace("|", "\\|"), _FROM[option.scope])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
