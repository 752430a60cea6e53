"""What is known of each setting beside its value, read from the model in settings.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lsp_complete.config.settings import Scope, Settings


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of one setting beside its value. `name` is dotted: `engine.threads`."""

    name: str
    default: object
    description: str
    unit: str
    scope: Scope
    sensitive: bool
    path: bool
    annotation: Any
    field: FieldInfo

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed words of a choice, weakest first as declared; () for other types."""
        return tuple(get_args(self.annotation)) if get_origin(self.annotation) is Literal else ()

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return PREFIX + self.name.replace(".", "_").upper()


PREFIX = "LSP_COMPLETE_"


def _options(group: type[BaseModel], prefix: str) -> Iterator[Option]:
    for key, field in group.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _options(kind, f"{prefix}{key}.")
            continue
        about = cast("dict[str, Any]", field.json_schema_extra)
        yield Option(
            name=prefix + key,
            default=field.default,
            description=field.description or "",
            annotation=kind,
            field=field,
            **about,
        )


OPTIONS: dict[str, Option] = {option.name: option for option in _options(Settings, "")}
"""Every setting by its dotted name, in the order of declaration."""


def value_of(settings: Settings, name: str) -> object:
    """The value of a setting by its dotted name. Raises KeyError if there is no such setting."""
    if name not in OPTIONS:
        raise KeyError(name)
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value
