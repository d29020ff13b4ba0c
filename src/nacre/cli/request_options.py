"""Options and arguments of the command line, made from the fields of requests: type, bounds, help and default.

A command adds only its own: a short name, another wording, where a field stands. A field is one of an operation's
request, or of a value that a request holds: ``option("store", "kind")``, ``option(Filter, "kinds")``.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import msgspec

from nacre.catalogue import CATALOGUE
from nacre.cli.command import TEXT
from nacre.cli.completions import completer_of
from nacre.cli.moment import MOMENT, PERIOD
from nacre.platform.bounds import annotations_of, bounds_of
from nacre.values.memory import Validity

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

_SIMPLE: dict[Any, Any] = {
    str: TEXT, Any: TEXT, int: click.INT, float: click.FLOAT, datetime: MOMENT, date: MOMENT,
    Path: click.Path(path_type=Path), Validity: PERIOD,
}  # fmt: skip
_ABSENT = (MISSING, msgspec.NODEFAULT, msgspec.UNSET)


@dataclass(frozen=True, slots=True)
class RequestField:
    """What a field of a request is on a command line. ``item`` is its type, or that of each of ``many``."""

    name: str
    item: Any
    many: bool
    optional: bool
    default: Any
    meta: Any

    @property
    def type(self) -> Any:
        """The type of click, with the field's bounds."""
        meta, item = self.meta, self.item
        if isinstance(item, type) and issubclass(item, StrEnum):
            return click.Choice([one.value for one in item], case_sensitive=False)
        if get_origin(item) is Literal:
            return click.Choice(list(get_args(item)), case_sensitive=False)
        least, most = (meta.ge if meta.ge is not None else meta.gt), (meta.le if meta.le is not None else meta.lt)
        if item in (int, float) and (least, most) != (None, None) and not self.many:
            kind = click.IntRange if item is int else click.FloatRange
            return kind(least, most, min_open=meta.gt is not None, max_open=meta.lt is not None)
        return _SIMPLE[item]


def field_of(source: str | type, name: str) -> RequestField:
    """A field of the request of an operation, or of a value."""
    request = CATALOGUE[source].request if isinstance(source, str) else source
    kind, many, optional = annotations_of(request)[name], False, False
    meta = bounds_of(request, name)
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind = get_args(kind)[0]
        elif origin in (Union, types.UnionType):
            options = [one for one in get_args(kind) if one not in (type(None), msgspec.UnsetType)]
            optional, kind = True, options[0]
        elif origin is tuple:
            many, kind = True, get_args(kind)[0]
        else:
            return RequestField(name, kind, many, optional, _defaults(request)[name], meta)


def option(source: str | type, name: str, *declarations: str, **own: Any) -> Decorator:
    """The option of a field: ``--name``, repeated for lists, a flag for what is true or false.

    A flag that is on by default becomes ``--no-name``. ``declarations`` take the place of these names, ``own`` of what
    the field says.
    """
    field = field_of(source, name)
    return click.option(*(declarations or _names(field)), name, **_told(field) | _completed(source, name) | own)


def argument(source: str | type, name: str, **own: Any) -> Decorator:
    """The positional argument of a field."""
    field = field_of(source, name)
    told = {"type": field.type, "nargs": -1 if field.many else 1, "required": field.default in _ABSENT}
    return click.argument(name, **told | _completed(source, name) | own)


def options(source: str | type, *names: str) -> Decorator:
    """The options of some fields, in this order."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = option(source, name)(function)
        return function

    return decorate


def _completed(source: str | type, name: str) -> dict[str, Any]:
    complete = completer_of(source, name)
    return {"shell_complete": complete} if complete else {}


def _names(field: RequestField) -> tuple[str, ...]:
    word = field.name.replace("_", "-")
    if field.item is bool:
        if field.optional and field.default is None:
            return (f"--{word}/--no-{word}",)
        return (f"--no-{word}",) if field.default is True else (f"--{word}",)
    return (f"--{word.removesuffix('s') if field.many else word}",)


def _told(field: RequestField) -> dict[str, Any]:
    told: dict[str, Any] = {"help": field.meta.description}
    if field.item is bool:
        if field.optional and field.default is None:
            return told | {"default": None}
        return told | {"is_flag": True, "default": field.default is True, "flag_value": field.default is not True}
    told["type"] = field.type
    if field.many:
        return told | {"multiple": True}
    if field.default in _ABSENT or field.default is None:
        return told | {"required": field.default in _ABSENT and not field.optional}
    default = field.default.value if isinstance(field.default, StrEnum) else field.default
    return told | {"default": default, "show_default": True}


@cache
def _defaults(request: type) -> dict[str, Any]:
    """The defaults of a request's fields, read once: msgspec evaluates all types for them."""
    found = fields(request) if is_dataclass(request) else msgspec.structs.fields(request)
    return {one.name: one.default for one in found}
