"""A value as the row of its table, and back: a field is listed in its dataclass, and has a column of its name.

Days are ISO texts, times milliseconds, lists and mappings JSON. The fields of a small value within it have columns of
their own: ``valid_since`` for ``valid.since``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from nacre.platform.ids import at_ms, from_ms, to_ms
from nacre.storage.database import Row
from nacre.values.memory import Memory

T = TypeVar("T")
_Read = Callable[[Any], Any]


class RowCodec(Generic[T]):
    """Rows of a frozen dataclass.

    ``elsewhere`` are fields that other tables hold. ``renamed`` are columns with another name than the rule gives.
    ``columns`` are those to select: the number of a row, then one for each field, in the order in which they are read.
    """

    def __init__(self, kind: type[T], *, elsewhere: Collection[str], renamed: Mapping[str, str]) -> None:
        self._kind = kind
        self.columns = ["row"]
        self._single: list[_Column] = []
        self._nested: list[_Nested] = []
        for name, type_ in _types(kind).items():
            bare, is_optional = _required(type_)
            if name in elsewhere:
                continue
            if not is_dataclass(bare):
                self._single.append(self._column(name, renamed.get(name, name), type_))
                continue
            inner = {one: f"{name}_{one}" for one in _types(bare)}
            parts = [self._column(one, renamed.get(at, at), _types(bare)[one]) for one, at in inner.items()]
            self._nested.append(_Nested(name, bare, is_optional, parts))

    def _column(self, field: str, name: str, kind: Any) -> _Column:
        self.columns.append(name)
        return _Column(field, name, len(self.columns) - 1, _reader(kind))

    def encode(self, value: T) -> dict[str, object]:
        """The columns of a value."""
        row = {column.name: _stored(getattr(value, column.field)) for column in self._single}
        for part in self._nested:
            held = getattr(value, part.field)
            row |= {column.name: _stored(getattr(held, column.field, None)) for column in part.columns}
        return row

    def decode(self, row: Row, **others: Any) -> T:
        """The value of a row of ``columns``, with the fields that other tables hold."""
        for column in self._single:
            others[column.field] = column.value_in(row)
        for part in self._nested:
            others[part.field] = part.value_in(row)
        return self._kind(**others)


@dataclass(frozen=True, slots=True)
class _Column:
    """A field's column: its name, its number, and what reads it where that is not the value itself."""

    field: str
    name: str
    at: int
    read: _Read | None

    def value_in(self, row: Row) -> Any:
        held = row[self.at]
        return held if self.read is None or held is None else self.read(held)


@dataclass(frozen=True, slots=True)
class _Nested:
    """A field that is a small value; an optional one is there where its first column is."""

    field: str
    kind: Any
    is_optional: bool
    columns: list[_Column]

    def value_in(self, row: Row) -> Any:
        if self.is_optional and row[self.columns[0].at] is None:
            return None
        return self.kind(*[column.value_in(row) for column in self.columns])


@cache
def memory_rows() -> RowCodec[Memory]:
    """The rows of ``memories``, on both engines. Tags, links, confirmations and the claim have tables of their own."""
    renamed = {"source_session": "session", "source_turns": "turns"}
    return RowCodec(Memory, elsewhere=("tags", "links", "confirmed", "claim"), renamed=renamed)


def noted_pair(text: str | None, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two values that were noted as JSON, of the types of those that count where nothing is, or no such thing."""
    try:
        one, other = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return default
    return (one, other) if (type(one), type(other)) == (type(default[0]), type(default[1])) else default


def _types(kind: Any) -> dict[str, Any]:
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def _required(kind: Any) -> tuple[Any, bool]:
    """A type without ``None``, and whether it had it."""
    is_optional = type(None) in get_args(kind)
    return (next(one for one in get_args(kind) if one is not type(None)), True) if is_optional else (kind, False)


def _stored(value: Any) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return to_ms(value)
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value) if isinstance(value, (tuple, dict)) else value


def _reader(kind: Any) -> _Read | None:
    """What makes a value of a column's; ``None`` where they are the same."""
    kind, is_optional = _required(kind)
    origin = get_origin(kind) or kind
    if origin in (str, int, float):
        return None
    if origin is tuple:
        return lambda text: () if text == "[]" else tuple(json.loads(text))
    reads: dict[Any, _Read] = {dict: json.loads, datetime: from_ms if is_optional else at_ms, date: date.fromisoformat}
    made: _Read = origin
    return reads.get(origin, made)
