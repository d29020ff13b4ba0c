"""Conversion of values to plain data for JSON and front matter.

Keys are field names by default. ``field(metadata={"key": "from"})`` sets a different key.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from typing import Any


def plain(value: Any) -> Any:
    """Convert a value to JSON data. Dates and times become ISO 8601 text, in UTC.

    Numbers are rounded if the metadata of their field contains ``digits``.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return plain_fields(value)


def plain_fields(value: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a dataclass's fields as a mapping. ``names`` selects and orders the fields."""
    kind: type = type(value)
    keys = _keys(kind)
    return {
        keys[name][0]: _round(plain(getattr(value, name)), keys[name][1])
        for name in (keys if names is None else names)
    }


def texts_of(value: Any, but: Container[str]) -> list[str]:
    """Return all strings in a value at any depth, including mapping keys.

    Enums and the fields named in ``but`` are skipped.
    """
    texts = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    with_texts(value, note, but, keys=True)
    return texts


def with_texts(
    value: Any, change: Callable[[str], str], but: Container[str] = (), *, keys: bool = False
) -> Any:
    """Return a copy of a value with ``change`` applied to every string.

    Enums, the fields named in ``but`` and, by default, mapping keys stay the same.
    """
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, dict):
        return {
            change(str(key)) if keys else key: with_texts(item, change, but, keys=keys)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(with_texts(item, change, but, keys=keys) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in fields(value) if field.name not in but]
    changed = {name: with_texts(getattr(value, name), change, but, keys=keys) for name in names}
    return replace(value, **changed)


def keys_of(kind: Any) -> dict[str, str]:
    """Return the JSON key of each field of a dataclass."""
    return {name: key for name, (key, _) in _keys(kind).items()}


def stamp(moment: datetime) -> str:
    """Format a time as ISO 8601 in UTC. Milliseconds are omitted if they are zero."""
    moment = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds' if moment.microsecond else 'seconds')}Z"


def _round(value: Any, digits: int | None) -> Any:
    return value if digits is None or value is None else round(value, digits)


@cache
def _keys(kind: Any) -> dict[str, tuple[str, int | None]]:
    return {
        field.name: (field.metadata.get("key", field.name), field.metadata.get("digits"))
        for field in fields(kind)
    }
