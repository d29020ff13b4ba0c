"""Parameters of a path and a query as fields of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from nacre.catalogue import CATALOGUE
from nacre.errors import InvalidInput
from nacre.operation import Operation
from nacre.platform import json_values
from nacre.platform.ids import utc_now
from nacre.text.time_expressions import parse_moment
from nacre.values.codec import stamp
from nacre.web.rest.resources import Resource

EXPECTED = "expected"
"""The field of a request that holds the entity tag of what its sender has read."""

_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
_OBJECTS = (inspect.StructType, inspect.DataclassType)
_MAPPINGS = (inspect.DictType, *_OBJECTS)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field that a query can name: where it is in the request, and whether it may be given more than once.

    A moment is given in words, as on the command line: 2026-11-20, 3d, yesterday.
    """

    place: tuple[str, ...]
    many: bool
    required: bool = False
    is_moment: bool = False


@cache
def parameters_of(request: Any) -> Mapping[str, Parameter]:
    """The fields of a request, and those of the filter in it, by name; a field that holds objects is none."""
    fields = _fields(inspect.type_info(request))
    found: dict[str, Parameter] = {}
    for one in fields:
        kind = _bare(one.type)
        if not _holds_objects(kind):
            found[one.name] = _parameter(kind, one.name, required=one.required)
    for one in fields:
        for inner in _fields(_bare(one.type)):
            kind = _bare(inner.type)
            if not _holds_objects(kind):
                found.setdefault(inner.name, _parameter(kind, one.name, inner.name))
    return found


def _parameter(kind: inspect.Type, *place: str, required: bool = False) -> Parameter:
    return Parameter(place, isinstance(kind, _LISTS), required, isinstance(kind, inspect.DateTimeType))


def named(request: Any, name: str) -> Parameter | None:
    """The parameter of a name; a list may be named by one of it, as ``kind`` for ``kinds``."""
    known = parameters_of(request)
    if name in known:
        return known[name]
    plural = known.get(f"{name}s")
    return plural if plural and plural.many else None


def has_pages(resource: Resource) -> bool:
    """Whether a list can be gone on with."""
    return resource.rows is not None and resource.offset in parameters_of(CATALOGUE[resource.operation].request)


def expects(operation: Operation) -> bool:
    """Whether a request can say what its sender has read: by its entity tag."""
    return EXPECTED in parameters_of(operation.request)


def request_of(
    operation: Operation, texts: Iterable[tuple[str, str]], names: Mapping[str, str], fields: dict[str, Any]
) -> dict[str, Any]:
    """The fields of a request with what a path and a query say of it, which have to be texts.

    Raises InvalidInput for what the operation does not know, or what is given twice and is no list.
    """
    for name, text in texts:
        known = named(operation.request, names.get(name, name))
        if known is None:
            offered = ", ".join(sorted(parameters_of(operation.request))) or "it has none"
            raise InvalidInput(f"{operation.name} has no parameter {name!r}", hint=f"parameters: {offered}")
        *outer, last = known.place
        inside = fields
        for one in outer:
            inside = inside.setdefault(one, {})
        if not known.many:
            inside[last] = _once(inside, last, stamp(parse_moment(text, utc_now())) if known.is_moment else text)
        else:
            inside.setdefault(last, []).append(text)
    return fields


def _once(inside: Mapping[str, Any], name: str, text: str) -> str:
    if isinstance(inside.get(name), str):
        raise InvalidInput(f"{name} is given twice", hint="give it once")
    return text


def converted(operation: Operation, fields: Mapping[str, Any]) -> Any:
    """The request of texts, which stand for numbers and truth values, too. Raises InvalidInput."""
    try:
        return json_values.from_plain(fields, operation.request, strict=False)
    except (msgspec.ValidationError, NotImplementedError) as error:
        raise InvalidInput(f"{operation.name}: {error}", hint="/api/docs lists what may be given") from error


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, _OBJECTS) else ()


def _bare(kind: inspect.Type) -> inspect.Type:
    """A type without its notes, and without ``None`` or nothing beside it."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        some = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _bare(some[0]) if len(some) == 1 else kind
    return kind


def _holds_objects(kind: inspect.Type) -> bool:
    if isinstance(kind, _LISTS):
        return isinstance(_bare(kind.item_type), _MAPPINGS)
    return isinstance(kind, _MAPPINGS)
