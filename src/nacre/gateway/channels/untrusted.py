"""Read what a platform sent: of any size and shape, until it was looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def decode(data: str | bytes) -> Any:
    """The JSON in a text. Raises ValueError where it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError("no JSON") from error


def decode_object(data: str | bytes) -> Mapping[str, Any]:
    """The JSON object in a text. Raises ValueError where it is none."""
    found = decode(data)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def text(values: Mapping[str, Any], key: str, most: int = 200) -> str:
    """A text, cut to ``most`` characters; empty where there is none."""
    found = values.get(key)
    return found[:most] if isinstance(found, str) else ""


def number(values: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative and finite."""
    found = values.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < 1e15 else None


def mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object; an empty one where there is none."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def mappings(values: Mapping[str, Any], key: str, most: int = 50) -> list[Mapping[str, Any]]:
    """The objects of a list, ``most`` at most."""
    found = values.get(key)
    return [one for one in found[:most] if isinstance(one, dict)] if isinstance(found, list) else []


def identifier(values: Mapping[str, Any], key: str) -> str:
    """An id of the platform's, fit to stand in an address. Raises ValueError where it is none."""
    found = values.get(key)
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise ValueError(f"{key} is no id")
    return found
