"""Options and arguments of the command line, made from the fields of requests: type, bounds, help and default.

A command adds only its own: a short name, another wording, where a field stands. A field is named after an operation or
after a value that a request holds: ``option("store", "kind")``, ``option("Filter", "kinds")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from nacre.cli.command import TEXT
from nacre.cli.moment import MOMENT
from nacre.cli.request_fields import FIELDS, REQUESTS
from nacre.platform.lazy import load

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

_PLAIN: Mapping[str, Any] = {
    "text": TEXT, "int": click.INT, "float": click.FLOAT, "moment": MOMENT,
}  # fmt: skip
_RANGES: Mapping[str, Any] = {"int": click.IntRange, "float": click.FloatRange}


def option(source: str, name: str, *declarations: str, **own: Any) -> Decorator:
    """The option of a field: ``--name``, repeated for lists, a flag for what is true or false.

    A flag that is on by default becomes ``--no-name``. ``declarations`` take the place of these names, ``own`` of what
    the field says.
    """
    field = _field(source, name)
    return click.option(*(declarations or _names(name, field)), name, **_described(field) | own)


def argument(source: str, name: str, **own: Any) -> Decorator:
    """The positional argument of a field."""
    field = _field(source, name)
    described = {"type": _type(field), "nargs": -1 if "many" in field else 1, "required": "default" not in field}
    return click.argument(name, **described | own)


def options(source: str, *names: str) -> Decorator:
    """The options of some fields, in this order."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = option(source, name)(function)
        return function

    return decorate


def _field(source: str, name: str) -> Mapping[str, Any]:
    return FIELDS[REQUESTS.get(source, source)][name]


def _type(field: Mapping[str, Any]) -> Any:
    """The type of click, with the field's bounds."""
    if field["type"] == "choice":
        return click.Choice(list(field["choices"]), case_sensitive=False)
    least, most = field.get("ge", field.get("gt")), field.get("le", field.get("lt"))
    if field["type"] == "path":
        return click.Path(path_type=load("pathlib:Path"))  # few commands need it, and it takes as long as three modules
    if (least, most) == (None, None):
        return _PLAIN[field["type"]]
    return _RANGES[field["type"]](least, most, min_open="gt" in field, max_open="lt" in field)


def _names(name: str, field: Mapping[str, Any]) -> tuple[str, ...]:
    word = name.replace("_", "-")
    if field["type"] != "flag":
        return (f"--{word.removesuffix('s') if 'many' in field else word}",)
    if "optional" in field and field["default"] is None:
        return (f"--{word}/--no-{word}",)
    return (f"--no-{word}",) if field.get("default") else (f"--{word}",)


def _described(field: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"help": field["help"]}
    default = field.get("default")
    if field["type"] == "flag":
        if "optional" in field and default is None:
            return described | {"default": None}
        return described | {"is_flag": True, "default": default is True, "flag_value": default is not True}
    described["type"] = _type(field)
    if "many" in field:
        return described | {"multiple": True}
    if default is None:
        return described | {"required": "default" not in field and "optional" not in field}
    return described | {"default": default, "show_default": True}
