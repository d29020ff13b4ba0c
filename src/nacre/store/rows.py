"""Codecs between database rows and values."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, from_ms, to_ms
from nacre.store.schema import Row
from nacre.values.memory import Memory

if TYPE_CHECKING:
    pass

# -- Row codecs ---------------------------------------------------------------
# Each dataclass field has a column of its name. Days are ISO texts, times milliseconds, lists and
# mappings JSON. Each field of a nested value has its own column: ``valid_since`` for
# ``valid.since``.


T = TypeVar("T")
_Read = Callable[[Any], Any]


class RowCodec(Generic[T]):
    """Converts a frozen dataclass to table rows and back.

    ``elsewhere`` lists the fields stored in other tables. ``renamed`` maps fields to columns whose
    names differ from the rule. ``columns`` are the columns to select: the row number, then one per
    field in reading order.
    """

    def __init__(
        self, kind: type[T], *, elsewhere: Collection[str], renamed: Mapping[str, str]
    ) -> None:
        self._kind = kind
        self.columns = ["row"]
        self._single: list[_Column] = []
        self._nested: list[_Nested] = []
        for name, type_ in _types(kind).items():
            bare, is_optional = _without_none(type_)
            if name in elsewhere:
                continue
            if not is_dataclass(bare):
                self._single.append(self._column(name, renamed.get(name, name), type_))
                continue
            inner = {field_name: f"{name}_{field_name}" for field_name in _types(bare)}
            parts = [
                self._column(
                    field_name, renamed.get(column_name, column_name), _types(bare)[field_name]
                )
                for field_name, column_name in inner.items()
            ]
            self._nested.append(_Nested(name, bare, is_optional, parts))

    def _column(self, field: str, name: str, kind: Any) -> _Column:
        self.columns.append(name)
        return _Column(field, name, len(self.columns) - 1, _reader(kind))

    def encode(self, value: T) -> dict[str, object]:
        """Return the columns of a value."""
        row = {column.name: _to_column(getattr(value, column.field)) for column in self._single}
        for part in self._nested:
            nested = getattr(value, part.field)
            row |= {
                column.name: _to_column(getattr(nested, column.field, None))
                for column in part.columns
            }
        return row

    def decode(self, row: Row, **others: Any) -> T:
        """Build a value from a row of ``columns`` and the fields stored in other tables."""
        for column in self._single:
            others[column.field] = column.value_in(row)
        for part in self._nested:
            others[part.field] = part.value_in(row)
        return self._kind(**others)


@frozen
class _Column:
    """A field's column: name, position, and a converter (None if the stored value is used unchanged)."""

    field: str
    name: str
    at: int
    read: _Read | None

    def value_in(self, row: Row) -> Any:
        stored = row[self.at]
        return stored if self.read is None or stored is None else self.read(stored)


@frozen
class _Nested:
    """A field with a nested value. An optional value is present if its first column is not null."""

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
    """Return the codec of ``memories`` rows, for both engines.

    Tags, links, confirmations and claims have their own tables.
    """
    renamed = {"source_session": "session", "source_turns": "turns"}
    return RowCodec(Memory, elsewhere=("tags", "links", "confirmed", "claim"), renamed=renamed)


def noted_pair(text: str | None, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Parse two stored JSON values. Return the default if they are missing or of other types."""
    try:
        first, second = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return default
    return (
        (first, second)
        if (type(first), type(second)) == (type(default[0]), type(default[1]))
        else default
    )


def _types(kind: Any) -> dict[str, Any]:
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def _without_none(kind: Any) -> tuple[Any, bool]:
    """Return a type without ``None``, and whether it included ``None``."""
    is_optional = type(None) in get_args(kind)
    return (
        (next(argument for argument in get_args(kind) if argument is not type(None)), True)
        if is_optional
        else (kind, False)
    )


def _to_column(value: Any) -> object:
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
    """Return the converter for a column's values, or ``None`` if no conversion is needed."""
    kind, is_optional = _without_none(kind)
    origin = get_origin(kind) or kind
    if origin in (str, int, float):
        return None
    if origin is tuple:
        return lambda text: () if text == "[]" else tuple(json.loads(text))
    reads: dict[Any, _Read] = {
        dict: json.loads,
        datetime: from_ms if is_optional else at_ms,
        date: date.fromisoformat,
    }
    constructor: _Read = origin
    return reads.get(origin, constructor)
