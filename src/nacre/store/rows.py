"""Conversion between database rows and values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from nacre.base import json as json_values
from nacre.base.ids import at_ms, from_ms
from nacre.store.schema import Row
from nacre.values.memory import Memory

# -- Row codecs ---------------------------------------------------------------
# Each dataclass field has a column of the same name. Days are stored as ISO strings, times as
# milliseconds, and lists and mappings as JSON. Each field of a nested value has its own column,
# such as ``valid_since`` for ``valid.since``.


T = TypeVar("T")
_Read = Callable[[Any], Any]


def records(kind: type[T], rows: Iterable[Row]) -> list[T]:
    """Build values of a dataclass from rows.

    The columns must be in the order of the fields; the last ones can be missing.
    """
    build: Any = kind
    reads = _readers(build)
    if not any(reads):
        return [build(*row) for row in rows]
    return [
        build(
            *(
                read(value) if read and value is not None else value
                for read, value in zip(reads, row, strict=False)
            )
        )
        for row in rows
    ]


def record(kind: type[T], row: Row | None) -> T | None:
    """Build a value from a row like :func:`records`, or return ``None`` without a row."""
    return records(kind, [row])[0] if row else None


@cache
def _readers(kind: Any) -> list[_Read | None]:
    return [_reader(field_type) for field_type in get_type_hints(kind).values()]


_ELSEWHERE = ("tags", "links", "confirmed")
"""Fields of memories that have their own tables."""

_RENAMED = {"source_session": "session", "source_turns": "turns"}


@cache
def _memory_fields() -> dict[str, tuple[Any, bool, dict[str, tuple[str, _Read | None]]]]:
    layout = {}
    for name, kind in get_type_hints(Memory).items():
        bare, is_optional = _without_none(kind)
        parts = {name: kind}
        if is_dataclass(bare):
            parts = {f"{name}_{part}": value for part, value in get_type_hints(bare).items()}
        columns = {
            column.removeprefix(f"{name}_"): (_RENAMED.get(column, column), _reader(value))
            for column, value in parts.items()
        }
        if name not in _ELSEWHERE:
            layout[name] = (bare, is_optional, columns)
    return layout


@cache
def memory_columns() -> list[str]:
    """Return the columns to select for a memory: the row number, then its fields."""
    fields = _memory_fields().values()
    return ["row", *(column for *_, parts in fields for column, _ in parts.values())]


def memory_row(memory: Memory) -> dict[str, object]:
    """Return the values of a memory's columns by name."""
    row: dict[str, object] = {}
    for name, (_, _, parts) in _memory_fields().items():
        value = getattr(memory, name)
        for part, (column, _) in parts.items():
            row[column] = value if part == name else getattr(value, part, None)
    return row


def memory_of(row: Row, **fields: Any) -> Memory:
    """Build a memory from a row with :func:`memory_columns` and from ``fields`` stored
    elsewhere.
    """
    stored = iter(row[1:])
    for name, (kind, is_optional, parts) in _memory_fields().items():
        values = [
            value if read is None or value is None else read(value)
            for (_, read), value in zip(parts.values(), stored, strict=False)
        ]
        if name in parts:
            fields[name] = values[0]
        else:
            fields[name] = None if is_optional and values[0] is None else kind(*values)
    return Memory(**fields)


def noted_pair(text: str | None, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Parse a stored JSON pair, or return ``default`` unless its types match."""
    try:
        first, second = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return default
    return (
        (first, second)
        if (type(first), type(second)) == (type(default[0]), type(default[1]))
        else default
    )


def _without_none(kind: Any) -> tuple[Any, bool]:
    is_optional = type(None) in get_args(kind)
    return (
        (next(argument for argument in get_args(kind) if argument is not type(None)), True)
        if is_optional
        else (kind, False)
    )


def _reader(kind: Any) -> _Read | None:
    kind, is_optional = _without_none(kind)
    origin: Any = get_origin(kind) or kind
    if origin in (str, int, float, bytes):
        return None
    if origin in (tuple, frozenset):
        return lambda text: origin(() if text == "[]" else json.loads(text))
    if isinstance(origin, type) and is_dataclass(origin):
        return lambda text: json_values.decode(text.encode(), origin)
    reads: dict[Any, Any] = {
        dict: json.loads,
        datetime: from_ms if is_optional else at_ms,
        date: date.fromisoformat,
    }
    read: _Read = reads.get(origin, origin)
    return read
