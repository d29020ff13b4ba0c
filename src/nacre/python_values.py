"""Conversion of Python API arguments to request values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any, TypedDict, TypeVar

from nacre.base import times
from nacre.errors import InvalidInputError, InvalidMemoryError
from nacre.values.memory import Expiry, Kind, Scope, Validity
from nacre.values.recall import Filter

Choice = TypeVar("Choice", bound=StrEnum)


class Changes(TypedDict, total=False):
    """The editable fields of a memory."""

    subject: str
    content: str
    kind: Kind | str
    importance: int
    expiry: Expiry | str
    expires_on: date | None
    scope: Scope | str
    project: str | None
    tags: Sequence[str]
    add_tags: Sequence[str]
    triggers: Sequence[str]
    trigger_times: int
    valid: Validity
    evergreen: bool
    suppressed_contexts: Sequence[str]


def choose(options: type[Choice], given: str, error: type[InvalidInputError]) -> Choice:
    """Return the enum member with a given value, or raise ``error`` with a list of valid values."""
    try:
        return options(given)
    except ValueError:
        choices = ", ".join(options)
        raise error(
            f"{given!r} is an unknown {options.__name__.lower()}", hint=f"one of {choices}"
        ) from None


def changes_given(changes: Changes) -> dict[str, Any]:
    """Check and convert the changed fields of a memory. Raises InvalidMemoryError."""
    unknown = next((name for name in changes if name not in Changes.__annotations__), None)
    if unknown:
        fields = ", ".join(Changes.__annotations__)
        raise InvalidMemoryError(f"{unknown!r} cannot be edited", hint=f"editable fields: {fields}")
    converted: dict[str, Any] = dict(changes)
    for name, options in (("kind", Kind), ("expiry", Expiry), ("scope", Scope)):
        if name in converted:
            converted[name] = choose(options, converted[name], InvalidMemoryError)
    for name in ("subject", "content"):
        if name in converted:
            converted[name] = _non_empty(name, converted[name])
    if "importance" in converted:
        converted["importance"] = checked_importance(converted["importance"])
    if "project" in converted:
        converted["project"] = converted["project"] or None
    for name in ("tags", "add_tags", "triggers", "suppressed_contexts"):
        if name in converted:
            converted[name] = tags_of(converted[name])
    return converted


def _non_empty(name: str, text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidMemoryError(
            f"a memory needs a {name}", hint="retire it to remove it from recall"
        )
    return text.strip()


def checked_importance(given: object) -> int:
    """Return ``given`` if it is an integer. Raises InvalidMemoryError."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidMemoryError(f"importance is a number from 1 to 10, not {given!r}")
    return given


def tags_of(given: Sequence[str]) -> tuple[str, ...]:
    """Return the tags without duplicates. Raises InvalidMemoryError for a string instead of a list."""
    if isinstance(given, str) or not all(isinstance(tag, str) for tag in given):
        raise InvalidMemoryError(
            f"tags are a list of words, not {given!r}", hint="e.g. tags=['billing']"
        )
    return tuple(dict.fromkeys(given))


def in_utc(criteria: Filter | None) -> Filter:
    """Return a filter with its times in UTC, or an empty filter for ``None``."""
    return (
        replace(criteria, since=utc(criteria.since), until=utc(criteria.until))
        if criteria
        else Filter()
    )


def utc(moment: datetime | None) -> datetime | None:
    """Convert a time to UTC. A time without a zone is local."""
    return times.in_utc(moment) if moment else None
