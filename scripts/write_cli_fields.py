"""Write src/nacre/cli/request_fields.py from the requests of the catalogue; print it with --show.

Options of the command line are made from the fields of requests. Describing a request loads msgspec and the values that
it holds, which takes longer than all else that ``nacre store --help`` does: so what they say is written down.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections.abc import Iterator
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from nacre.catalogue import CATALOGUE
from nacre.platform.bounds import bounds_of

MODULE = Path(__file__).parents[1] / "src" / "nacre" / "cli" / "request_fields.py"
HEAD = '''"""Fields of requests, as options show them. Written by scripts/write_cli_fields.py; do not edit it."""

from __future__ import annotations

from typing import Any

# ruff: noqa: E501
# fmt: off
'''
KINDS: dict[Any, str] = {
    str: "text", Any: "text", int: "int", float: "float", bool: "flag", Path: "path",
    datetime: "moment", date: "moment",
}  # fmt: skip
ABSENT = (dataclasses.MISSING, msgspec.NODEFAULT, msgspec.UNSET)
CHOICES = re.compile(r"\^\(([\w|-]+)\)\$")
"""A pattern that is one of some words."""


def module() -> str:
    """The whole module."""
    requests = {name: one.request for name, one in CATALOGUE.items() if any(fields(one.request))}
    kinds: dict[str, type] = {}
    for request in requests.values():
        for kind in with_nested(request):
            if kinds.setdefault(kind.__name__, kind) is not kind:
                raise ValueError(f"two requests are called {kind.__name__}")
    lines = [HEAD, "REQUESTS = {"]
    lines += [f'    "{name}": "{request.__name__}",' for name, request in requests.items()]
    lines += [
        "}",
        '"""The request of each operation that people ask for with one."""',
        "",
        "FIELDS: dict[str, dict[str, dict[str, Any]]] = {",
    ]
    for name, kind in sorted(kinds.items()):
        said = [f'"{field}": {quoted(one)}' for field, one in fields(kind)]
        lines += [f'    "{name}": {{{said[0]}', *(f"        {one}" for one in said[1:])]
        lines[-len(said) :] = [f"{line}," for line in lines[-len(said) : -1]] + [f"{lines[-1]}}},"]
    return "\n".join(
        [*lines, "}", '"""Of each request, and of each value that one holds, by the name of the field."""', ""]
    )


def quoted(value: Any) -> str:
    """A value as it is written in Python, with double quotes where that needs no escape."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)}: {quoted(one)}" for key, one in value.items()) + "}"
    if isinstance(value, str) and '"' not in value and "\\" not in value:
        return f'"{value}"'
    if isinstance(value, tuple):
        return "(" + "".join(f"{quoted(one)}, " for one in value).removesuffix(" ") + ")"
    return repr(value)


def with_nested(kind: type) -> Iterator[type]:
    """A request, and the values with fields of their own that it holds."""
    yield kind
    for hint in get_type_hints(kind, include_extras=True).values():
        item = plain(hint)[0]
        if dataclasses.is_dataclass(item) and isinstance(item, type) and any(fields(item)):
            yield from with_nested(item)


def fields(kind: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields that may be typed: those without fields of their own."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        item, many, optional = plain(hint)
        said, meta = item_of(item), bounds_of(kind, name)
        if said is None or not meta.description:
            continue
        if meta.pattern and (choices := CHOICES.fullmatch(meta.pattern)):
            said = {"type": "choice", "choices": tuple(choices[1].split("|"))}
        said |= {
            word: value for word in ("ge", "gt", "le", "lt") if (value := getattr(meta, word)) is not None and not many
        }
        said |= {word: True for word, is_so in (("many", many), ("optional", optional)) if is_so}
        yield name, said | default_of(kind, name) | {"help": meta.description}


def item_of(item: Any) -> dict[str, Any] | None:
    """The type of one thing that is typed; ``None`` where that cannot be."""
    if isinstance(item, type) and issubclass(item, StrEnum):
        return {"type": "choice", "choices": tuple(one.value for one in item)}
    if get_origin(item) is Literal:
        return {"type": "choice", "choices": get_args(item)}
    return {"type": KINDS[item]} if item in KINDS else None


def plain(kind: Any) -> tuple[Any, bool, bool]:
    """The type, or that of each of many; whether there may be many, and whether there may be none."""
    many = optional = False
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind = get_args(kind)[0]
        elif origin in (Union, types.UnionType):
            optional, kind = True, next(one for one in get_args(kind) if one not in (type(None), msgspec.UnsetType))
        elif origin is tuple:
            many, kind = True, get_args(kind)[0]
        else:
            return kind, many, optional


def default_of(kind: type, name: str) -> dict[str, Any]:
    """``{"default": …}`` where there is one that can be typed."""
    described: Any = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else msgspec.structs.fields(kind)
    default = next(one.default for one in described if one.name == name)
    if any(default is one for one in ABSENT):
        return {}
    if isinstance(default, StrEnum):
        default = default.value
    return {
        "default": tuple(one.value if isinstance(one, StrEnum) else one for one in default)
        if isinstance(default, tuple)
        else default
    }


if __name__ == "__main__":
    written = module()
    if "--show" in sys.argv:
        sys.stdout.write(written)
    else:
        MODULE.write_text(written, encoding="utf-8")
