"""Access to fields of decoded JSON whose types are uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]

Values = Mapping[str, Any]
"""A read-only JSON object."""


def mapping(value: Any, *keys: str) -> Values:
    """Follow keys through nested objects, and return the object found or an empty one."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects(value: Any, key: str) -> list[Values]:
    """Return the objects in the list at ``key``, or an empty list."""
    return objects_in(value.get(key)) if isinstance(value, Mapping) else []


def objects_in(items: Any) -> list[Values]:
    """Return the objects in a list, or an empty list for any other value."""
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def string(value: Any, *keys: str) -> str | None:
    """Return the first of the given fields that is a non-blank string."""
    for key in keys:
        text = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(text, str) and text.strip():
            return text
    return None


def total(values: Values, *names: str) -> int:
    """Add up the given fields, ignoring values that are not integers."""
    counts = (values.get(name) for name in names)
    return sum(value for value in counts if type(value) is int)
