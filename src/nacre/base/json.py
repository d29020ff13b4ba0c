"""A safe JSON parser for files that might be damaged, and the codec for nacre's values."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nacre.errors import NacreError

MOST_LEVELS = 100
"""Maximum nesting depth. Recursive code elsewhere would fail on deeper values."""


def parse(data: bytes | str) -> Any:
    """Parse JSON, replacing invalid UTF-8.

    Raises ValueError for malformed or too deeply nested JSON, and for NaN and infinities.
    """
    text = data.decode("utf-8", errors="replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if text.count("[") + text.count("{") > MOST_LEVELS and _levels(value) > MOST_LEVELS:
        raise ValueError("it is nested too deeply")
    return value


def quoted(value: Mapping[str, object]) -> str:
    """Encode a value for a prompt as one line of JSON, with escaped angle brackets."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _levels(value: Any) -> int:
    level, values = 0, [value]
    while values and level <= MOST_LEVELS:
        level += 1
        values = [
            inner
            for outer in values
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return level


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# -- Nacre's values --------------------------------------------------------------------------------
# msgspec encodes and decodes nacre's values. The hooks below handle types that it does not support,
# such as paths.


T = TypeVar("T")


def _special(kind: Any, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"{value!r} is not a {getattr(kind, '__name__', kind)}")


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_PREPARING = threading.RLock()


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Create a decoder under a lock, because msgspec crashes if two threads prepare one type at
    once.
    """
    if kind not in _DECODERS:
        with _PREPARING:
            _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_special)
    return _DECODERS[kind]


def convert(
    value: Any,
    kind: type[T],
    *,
    strict: bool = True,
    dec_hook: Callable[[Any, Any], Any] = _special,
) -> T:
    """Convert plain dicts, lists, strings and numbers to a value of a type.

    Unless ``strict``, strings can stand for numbers and booleans. Raises msgspec.ValidationError.
    """
    _decoder(kind)
    return msgspec.convert(value, kind, strict=strict, dec_hook=dec_hook)


def encode(value: Any) -> bytes:
    """Encode a value as JSON."""
    return msgspec.json.encode(value, enc_hook=_plain)


def decode(data: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON into a value of the given type.

    Raises msgspec.ValidationError, or msgspec.DecodeError if the data is not JSON.
    """
    try:
        return _decoder(kind).decode(data)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(f"JSON cannot be read: {error}") from error


def to_plain(value: Any) -> Any:
    """Convert a value to plain dicts, lists, strings and numbers."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def schema_hook(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a type that msgspec does not support."""
    if issubclass(kind, Path):
        return {"type": "string"}
    if issubclass(kind, NacreError):
        fields = {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": ["string", "null"]},
        }
        return {
            "type": "object",
            "description": "What is wrong, and what to do.",
            "properties": fields,
        }
    raise NotImplementedError(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, NacreError):  # for display; never decoded
        return {"code": value.code, "message": value.message, "hint": value.hint}
    raise NotImplementedError(f"{type(value).__name__} cannot be sent to another process")
