"""The api's dataclasses as JSON values and back, driven by their annotations.

Strategy: one decoder per annotated type, built once and kept; a field that is added to `api.py` is carried
without a change here. Bytes are base64 text, tuples are lists, enums are their numbers.

Rules:
- Decoding never trusts: exact types (a bool is no int), finite floats, no unknown fields, no missing ones.
  Anything else raises ProtocolError that names the field and not the value.
- `check_request` holds the limits of what one request may ask for.
"""

from __future__ import annotations

import base64
import binascii
import enum
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from lsp_complete.engine.api import CompletionRequest
from lsp_complete.errors import ProtocolError, RequestFailed

T = TypeVar("T")
_Decoder = Callable[[object, str], Any]
_INT_LIMIT = 2**63

MAX_TOKENS = 4096
MAX_CANDIDATES = 8
MAX_TIME_MS = 600_000.0
MAX_FORCED = 4096
MAX_LOOKUP = 16_384
MAX_LOOKUP_KEY = 64


def to_json(value: object) -> object:
    """A dataclass (or a value inside one) as plain JSON values."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple | list):
        return [to_json(v) for v in value] if value and not isinstance(value[0], int | float) else list(value)
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    return value


def from_json(cls: type[T], value: object) -> T:
    """A value of dataclass `cls` from plain JSON values. Raises ProtocolError; the value is not echoed."""
    decode: _Decoder = _decoder(cls)  # type: ignore[arg-type]  # mypy asks for a hashable type; types are
    result: T = decode(value, cls.__name__)
    return result


def _wrong(where: str, expected: str) -> ProtocolError:
    return ProtocolError(f"{where}: expected {expected}")


def _int(value: object, where: str) -> int:
    if type(value) is not int or not -_INT_LIMIT <= value < _INT_LIMIT:
        raise _wrong(where, "a whole number")
    return value


def _float(value: object, where: str) -> float:
    if type(value) not in (int, float):
        raise _wrong(where, "a number")
    try:
        number = float(typing.cast(float, value))
    except OverflowError:
        raise _wrong(where, "a finite number") from None
    if not math.isfinite(number):
        raise _wrong(where, "a finite number")
    return number


def _bool(value: object, where: str) -> bool:
    if type(value) is not bool:
        raise _wrong(where, "true or false")
    return value


def _str(value: object, where: str) -> str:
    if type(value) is not str:
        raise _wrong(where, "text")
    return value


def _bytes(value: object, where: str) -> bytes:
    try:
        return base64.b64decode(_str(value, where).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _wrong(where, "base64 text") from None


def _any(value: object, where: str) -> object:
    return value


def _ints(value: object, where: str) -> tuple[int, ...]:
    """The hot case: thousands of token ids."""
    if type(value) is not list or not all(type(v) is int for v in value):
        raise _wrong(where, "a list of whole numbers")
    if value and (min(value) < -_INT_LIMIT or max(value) >= _INT_LIMIT):
        raise _wrong(where, "numbers in range")
    return tuple(value)


def _tuple_of(item: _Decoder) -> _Decoder:
    def decode(value: object, where: str) -> tuple[object, ...]:
        if type(value) is not list:
            raise _wrong(where, "a list")
        return tuple(item(v, where) for v in value)

    return decode


def _optional(inner: _Decoder) -> _Decoder:
    return lambda value, where: None if value is None else inner(value, where)


def _enum(cls: type[enum.Enum]) -> _Decoder:
    def decode(value: object, where: str) -> enum.Enum:
        try:
            return cls(_int(value, where) if issubclass(cls, int) else value)
        except ValueError:
            raise _wrong(where, f"a {cls.__name__}") from None

    return decode


def _mapping(value: object, where: str) -> dict[str, object]:
    if type(value) is not dict:
        raise _wrong(where, "an object")
    return value


def _dataclass(cls: type[Any]) -> _Decoder:
    hints = typing.get_type_hints(cls)
    decoders = {f.name: _decoder(hints[f.name]) for f in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}

    def decode(value: object, where: str) -> object:
        values = _mapping(value, where)
        if not needed <= values.keys() <= decoders.keys():
            raise _wrong(where, "exactly the fields of this version")
        try:
            return cls(**{name: decoders[name](v, f"{where}.{name}") for name, v in values.items()})
        except ValueError:
            raise _wrong(where, "values in range") from None

    return decode


_PLAIN: dict[object, _Decoder] = {int: _int, float: _float, bool: _bool, str: _str, bytes: _bytes, object: _any}


@cache
def _decoder(hint: Any) -> _Decoder:
    """The decoder of an annotation. Raises TypeError for annotations that the wire does not carry."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _ints if args[0] is int else _tuple_of(_decoder(args[0]))
    if origin in (types.UnionType, typing.Union) and len(args) == 2 and type(None) in args:
        return _optional(_decoder(args[0] if args[1] is type(None) else args[1]))
    if origin in (dict, Mapping):
        return _mapping
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"no wire form for {hint!r}")


def check_request(request: CompletionRequest, vocab_size: int) -> None:
    """Raises RequestFailed if a request asks for more than the engine gives anyone.

    vocab_size: entries of the loaded vocabulary; ids outside it would be undefined behaviour below.
    """
    for name, ids in (("prompt", request.prompt), ("lookup", request.lookup), *(("drafts", d) for d in request.drafts)):
        if ids and (min(ids) < 0 or max(ids) >= vocab_size):
            raise RequestFailed(f"{name} holds a token id outside the vocabulary of {vocab_size} entries")
    if not request.prompt:
        raise RequestFailed("the prompt is empty; send at least one token")
    if not 0 <= request.max_tokens <= MAX_TOKENS:
        raise RequestFailed(f"max_tokens must be from 0 to {MAX_TOKENS}")
    if not 1 <= request.candidates <= MAX_CANDIDATES:
        raise RequestFailed(f"candidates must be from 1 to {MAX_CANDIDATES}")
    if not 0.0 < request.time_limit_ms <= MAX_TIME_MS:
        raise RequestFailed(f"time_limit_ms must be above 0 and at most {MAX_TIME_MS:.0f}")
    if not 0.0 <= request.temperature <= 10.0 or len(request.forced) > MAX_FORCED:
        raise RequestFailed("temperature must be from 0 to 10, and forced text short")
    if len(request.lookup) > MAX_LOOKUP or len(request.lookup_key) > MAX_LOOKUP_KEY:
        raise RequestFailed(f"look-up text has at most {MAX_LOOKUP} tokens and a short key")
