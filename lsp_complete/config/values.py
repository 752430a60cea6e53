"""One value: read from a shell's text, checked against its setting, narrowed, shown.

Rules: nothing here raises on what a source holds; types are strict (a quoted number is no number), since a value
that is silently converted hides a mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, cast, get_origin

from pydantic import TypeAdapter, ValidationError

from lsp_complete.config.options import OPTIONS, Option


def parse_text(option: Option, text: str) -> object:
    """A value as written in a shell. What cannot be read stays text and fails validation with a message."""
    text = text.strip() if option.annotation is not str else text
    if option.annotation is bool:
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        return words.get(text.lower(), text)
    if option.annotation is int:
        try:
            return int(text)
        except ValueError:
            return text
    origin = get_origin(option.annotation)
    if origin in (tuple, dict) and text.startswith(("[", "{")):
        try:
            return cast("object", json.loads(text))
        except ValueError:
            return text
    if origin is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if origin is dict:
        pairs = (part.partition("=") for part in text.split(",") if part.strip())
        words = {"true": True, "on": True, "false": False, "off": False}
        return {key.strip(): words.get(value.strip().lower(), value) for key, _, value in pairs}
    return text


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    option = OPTIONS[name]
    kind: Any = Annotated[option.annotation, option.field]
    return TypeAdapter(kind)


def check(option: Option, raw: object) -> tuple[object, str]:
    """(value, "") if `raw` is a right value of this setting, else (None, reason)."""
    try:
        text = json.dumps(raw, default=str)
        return _adapter(option.name).validate_json(text, strict=True), ""
    except ValidationError as error:
        return None, "; ".join(_reason(item["loc"], item["msg"]) for item in error.errors()[:2])
    except (TypeError, ValueError, RecursionError):
        return None, "it cannot be read"


def _reason(loc: tuple[int | str, ...], message: str) -> str:
    message = message.replace("Input should", "it should")
    return f"{'.'.join(map(str, loc))}: {message}" if loc else message


def narrow(current: object, value: object, choices: tuple[str, ...] = ()) -> object:
    """The stricter of the two: off wins, lists join, the weaker choice wins, languages only go off."""
    if isinstance(current, bool):
        return current and bool(value)
    if choices:
        return min(str(current), str(value), key=choices.index)
    if isinstance(current, tuple) and isinstance(value, tuple):
        return current + tuple(item for item in value if item not in current and not item.startswith("!"))
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        rest = current.get("*", True)
        return {**current, **{key: bool(on) and current.get(key, rest) for key, on in value.items()}}
    raise TypeError(f"no stricter value is defined for {type(current).__name__}")


def kept(narrowed: object, value: object) -> bool:
    """Whether everything that was asked for is in the narrowed value."""
    if isinstance(narrowed, tuple) and isinstance(value, tuple):
        return set(value) <= set(narrowed)
    if isinstance(narrowed, Mapping) and isinstance(value, Mapping):
        return all(narrowed.get(key) == on for key, on in value.items())
    return narrowed == value


def short(value: object) -> str:
    text = repr(list(value)) if isinstance(value, tuple) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
