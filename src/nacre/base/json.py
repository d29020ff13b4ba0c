"""The one door for JSON that lies in files and may be damaged: lines of the ledger, spools, exports, what is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nacre.errors import NacreError

MOST_LEVELS = 100
"""What is nested deeper is no value of nacre's, and would end whoever goes through it later by its recursion."""


def parse(data: bytes | str) -> Any:
    """The value in a text. Raises ValueError, and nothing else, for what is no JSON or nests too deeply.

    Bytes that are no UTF-8 are replaced. NaN and infinities are refused: what reads a line elsewhere stops at them.
    """
    text = data.decode("utf-8", errors="replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if text.count("[") + text.count("{") > MOST_LEVELS and _levels(value) > MOST_LEVELS:
        raise ValueError("it is nested too deeply")
    return value


def quoted(told: Mapping[str, object]) -> str:
    """A value on one line for a prompt: nothing that it holds can end the quotation it stands in."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _levels(value: Any) -> int:
    """How deeply a value is nested, at most one more than is allowed."""
    level, held = 0, [value]
    while held and level <= MOST_LEVELS:
        level += 1
        held = [
            inner
            for one in held
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return level


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# ----------------------------------------------------------------------------
# Values of nacre as JSON and back, by msgspec: also paths and patterns, which it does not know.


T = TypeVar("T")

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_KNOWN: set[Any] = set()
_MAKING = threading.RLock()


def _know(wanted: Any) -> None:
    """Have msgspec learn a type, in one thread at a time.

    What it knows of a class it keeps there before all of it is known: another thread that reads such a value meanwhile
    ends the process. So nobody else in nacre has msgspec read values of a type, but by decoders made on import.
    """
    if wanted not in _KNOWN:
        with _MAKING:
            msgspec.json.Decoder(wanted)
            _KNOWN.add(wanted)


def convert(
    value: Any,
    wanted: type[T],
    *,
    strict: bool = True,
    dec_hook: Callable[[Any, Any], Any] | None = None,
) -> T:
    """As ``msgspec.convert``. Raises msgspec.ValidationError."""
    _know(wanted)
    return msgspec.convert(value, wanted, strict=strict, dec_hook=dec_hook)


def parse_json_values(data: bytes | str | msgspec.Raw, wanted: type[T]) -> T:
    """As ``msgspec.json.decode``. Raises msgspec.ValidationError, msgspec.DecodeError."""
    _know(wanted)
    return msgspec.json.decode(data, type=wanted)


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
    found = _DECODERS.get(wanted)
    if found is None:
        _know(wanted)
        found = _DECODERS.setdefault(wanted, msgspec.json.Decoder(wanted, dec_hook=_special))
    return found


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, texts and numbers."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def from_plain(value: Any, wanted: Any, *, strict: bool = True) -> Any:
    """A value of a type from what :func:`to_plain` made; not ``strict``, texts stand for numbers and truth values, too.

    Raises msgspec.ValidationError.
    """
    return convert(value, wanted, strict=strict, dec_hook=_special)


def schema_hook(kind: type) -> dict[str, Any]:
    """The JSON schema of what msgspec does not know."""
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
    if isinstance(value, NacreError):  # for those who only show it: it is not read back
        return {"code": value.code, "message": value.message, "hint": value.hint}
    raise NotImplementedError(f"{type(value).__name__} does not cross processes")


def _special(kind: Any, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"{value!r} is no {getattr(kind, '__name__', kind)}")
