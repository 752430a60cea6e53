"""The models that this program knows by name: typed view of `catalogue.json`.

Strategy: the catalogue is data. This file only loads it, checks it, and finds entries by name or alias.

Rules:
- A name is the file's name without `.gguf`. Aliases are short names; both are compared without case.
- `verified` says that the file was fetched and run by this project. Of other entries the size may be an
  estimate (`size_exact` false) and the digest unknown: then the hub's own LFS digest is the check.
- Registry parts need a known digest: nothing else would prove that the joined bytes are the model.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lsp_complete.errors import ModelError
from lsp_complete.models.shape import ModelShape

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.gguf\Z")
_ROLES = frozenset({"main", "draft"})


@dataclass(frozen=True, slots=True)
class Licence:
    """commercial: use in paid work is allowed as it stands. note: what a user must be told."""

    id: str
    title: str
    url: str
    commercial: bool
    note: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """size in bytes, exact only if size_exact. sha256: 64 hexadecimal digits or None. quantization: `Q4_K_M`, …"""

    name: str
    size: int
    size_exact: bool
    sha256: str | None
    quantization: str

    def __post_init__(self) -> None:
        if not _FILE_NAME.match(self.name):
            raise ValueError(f"file name {self.name!r}")
        if self.size <= 0:
            raise ValueError("file size must be positive")
        if self.sha256 is not None and not _SHA256.match(self.sha256):
            raise ValueError("sha256 must be 64 lower-case hexadecimal digits")


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a hub repository at a revision (commit, or branch where none was pinned)."""

    repo: str
    revision: str
    file: str


@dataclass(frozen=True, slots=True)
class RegistrySource:
    """Numbered packages that carry the file's bytes in order. `package` holds `{n}`, counted from 1."""

    package: str
    version: str
    count: int

    def __post_init__(self) -> None:
        if "{n}" not in self.package or self.count < 1:
            raise ValueError("a registry source needs a package pattern with {n} and a count")

    def requirement(self, number: int) -> str:
        return f"{self.package.format(n=number)}=={self.version}"


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One model. parameters: number of weights. kind: "base" | "instruct". roles: of {"main", "draft"}."""

    name: str
    title: str
    aliases: tuple[str, ...]
    family: str
    kind: str
    roles: tuple[str, ...]
    licence: Licence
    parameters: int
    shape: ModelShape
    file: ModelFile
    hub: HubSource | None
    registry: RegistrySource | None
    verified: bool
    note: str

    def __post_init__(self) -> None:
        if not self.roles or not set(self.roles) <= _ROLES:
            raise ValueError(f"roles {self.roles!r}")
        if self.kind not in ("base", "instruct"):
            raise ValueError(f"kind {self.kind!r}")
        if self.file.name != f"{self.name}.gguf":
            raise ValueError("the file must be named after the model")
        if self.hub is None and self.registry is None:
            raise ValueError("no source")
        if self.registry is not None and (self.file.sha256 is None or not self.file.size_exact):
            raise ValueError("registry parts need a known digest and size")
        if self.verified and self.file.sha256 is None:
            raise ValueError("a verified model has a digest")

    @property
    def short_name(self) -> str:
        """The name to show in a command."""
        return self.aliases[0] if self.aliases else self.name


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All known models, in the order of the file. `default` is a model's name."""

    models: tuple[CatalogueModel, ...]
    default: str

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for model in self.models:
            for name in (model.name, *model.aliases):
                if name.lower() in seen:
                    raise ValueError(f"the name {name!r} occurs twice")
                seen.add(name.lower())
        if self.default not in {model.name for model in self.models}:
            raise ValueError(f"the default {self.default!r} is not in the catalogue")

    def find(self, name: str) -> CatalogueModel | None:
        """The model of this name, alias or file name; None if there is none."""
        wanted = name.strip().lower().removesuffix(".gguf")
        for model in self.models:
            if wanted == model.name.lower() or wanted in (alias.lower() for alias in model.aliases):
                return model
        return None

    def get(self, name: str) -> CatalogueModel:
        """Like `find`, but raises ModelError that names the nearest known models."""
        model = self.find(name)
        if model is None:
            known = [entry.short_name for entry in self.models]
            near = difflib.get_close_matches(name.lower(), known, n=3) or known[:3]
            raise ModelError(
                f"No model is called {name!r}. Near: {', '.join(near)}. `lsp-complete models list` shows all."
            )
        return model

    @property
    def default_model(self) -> CatalogueModel:
        return self.get(self.default)


@cache
def load_catalogue() -> Catalogue:
    """The catalogue of this installation. Read once; any thread."""
    text = resources.files("lsp_complete.models").joinpath("catalogue.json").read_text("utf-8")
    return parse_catalogue(json.loads(text))


def parse_catalogue(data: Mapping[str, Any]) -> Catalogue:
    """Build and check a catalogue. Raises ModelError that names the entry at fault."""
    if data.get("version") != 1:
        raise ModelError(
            f"The model catalogue has version {data.get('version')!r}, this program reads 1. Reinstall it."
        )
    models = []
    for entry in data["models"]:
        try:
            models.append(_model(entry, data["licences"], data["shapes"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"The model catalogue's entry {entry.get('name', '?')!r} is wrong: {error!s}. Reinstall the program."
            ) from error
    try:
        return Catalogue(tuple(models), data["default"])
    except ValueError as error:
        raise ModelError(f"The model catalogue is wrong: {error}. Reinstall the program.") from error


def _model(
    entry: Mapping[str, Any], licences: Mapping[str, Any], shapes: Mapping[str, Any]
) -> CatalogueModel:
    if len(entry["files"]) != 1:
        raise ValueError("one file per model")
    sources = entry["sources"]
    hub, registry = sources.get("hub"), sources.get("registry")
    return CatalogueModel(
        name=entry["name"],
        title=entry["title"],
        aliases=tuple(entry["aliases"]),
        family=entry["family"],
        kind=entry["kind"],
        roles=tuple(entry["roles"]),
        licence=Licence(id=entry["licence"], **licences[entry["licence"]]),
        parameters=entry["parameters"],
        shape=ModelShape(**shapes[entry["shape"]]),
        file=ModelFile(**entry["files"][0]),
        hub=HubSource(**hub) if hub else None,
        registry=RegistrySource(**registry) if registry else None,
        verified=entry["verified"],
        note=entry["note"],
    )
