"""Values of nacre as JSON and back, by msgspec: also paths and patterns, which it does not know."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, get_origin

import msgspec

from nacre.errors import NacreError

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_CONVERTED: set[Any] = set()
_MAKING = threading.RLock()


def encode(value: Any) -> bytes:
    """A value as JSON."""
    return msgspec.json.encode(value, enc_hook=_plain)


def decode(data: bytes | msgspec.Raw, wanted: Any) -> Any:
    """A value of a type from JSON. Raises msgspec.ValidationError, msgspec.DecodeError, also where it nests deeply."""
    try:
        return _decoder(wanted).decode(data)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(f"JSON cannot be read: {error}") from error


def _decoder(wanted: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made by one thread at a time.

    msgspec keeps what it knows of a dataclass on the class before all of it is there: another thread that reads such a
    value meanwhile ends the process.
    """
    found = _DECODERS.get(wanted)
    if found is None:
        with _MAKING:
            found = _DECODERS.setdefault(wanted, msgspec.json.Decoder(wanted, dec_hook=_special))
    return found


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, texts and numbers."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def from_plain(value: Any, wanted: Any, *, strict: bool = True) -> Any:
    """A value of a type from what :func:`to_plain` made; not ``strict``, texts stand for numbers and truth values, too.

    Raises msgspec.ValidationError.
    """
    if wanted in _CONVERTED:
        return msgspec.convert(value, wanted, strict=strict, dec_hook=_special)
    with _MAKING:
        try:
            return msgspec.convert(value, wanted, strict=strict, dec_hook=_special)
        finally:
            _CONVERTED.add(wanted)


def schema_hook(kind: type) -> dict[str, Any]:
    """The JSON schema of what msgspec does not know."""
    if issubclass(kind, Path | re.Pattern):
        return {"type": "string"}
    if issubclass(kind, NacreError):
        fields = {"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": ["string", "null"]}}
        return {"type": "object", "description": "What is wrong, and what to do.", "properties": fields}
    raise NotImplementedError(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, NacreError):  # for those who only show it: it is not read back
        return {"code": value.code, "message": value.message, "hint": value.hint}
    raise NotImplementedError(f"{type(value).__name__} does not cross processes")


def _special(kind: Any, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    if get_origin(kind) is re.Pattern and isinstance(value, str):
        return re.compile(value)
    raise TypeError(f"{value!r} is no {getattr(kind, '__name__', kind)}")
