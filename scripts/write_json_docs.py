"""Write the part of docs/json.md about requests of operations from the catalogue; print the page with --show."""

from __future__ import annotations

import json
import re
import sys
from inspect import getdoc
from pathlib import Path
from typing import Any

import msgspec

from nacre.base import json as json_values
from nacre.base.request import Nothing
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.serve.operation import Needs, Operation
from nacre.values.memory import Face

PAGE = Path(__file__).parents[1] / "docs" / "json.md"
HEADING = "## Requests of operations"

INTRODUCTION = f"""{HEADING}

Written by `scripts/write_json_docs.py` from the catalogue of operations; do not edit it by hand. Every operation can be
called from Python (`memory.call("list", limit=5)`; `nacre.call` for what needs the home closed) and, but for those that
say otherwise, over [the daemon's socket](daemon.md). A request names nothing else than these fields, and what is out of
bounds is refused (`invalid_input`).

| operation | does | request |
|---|---|---|
"""

TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
}
LIMITS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "minItems": "at least",
    "maxLength": "at most",
}
"""Bounds in the words of a person; ``pattern`` and the rest are told by the help."""


def page() -> str:
    """The whole page: what is written by hand, then the operations."""
    by_hand = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    return (
        by_hand
        + INTRODUCTION
        + "".join(f"| {' | '.join(row(one))} |\n" for one in CATALOGUE.values())
        + nested()
    )


def row(operation: Operation) -> tuple[str, str, str]:
    """The line of an operation."""
    summary = (
        (getdoc(operation.function) or "")
        .partition("\n\n")[0]
        .replace("\n", " ")
        .partition(" Raises ")[0]
    )
    summary = re.sub(r":\w+:`(?:[\w.]+\.)?(\w+)`", r"`\1`", summary)
    return (
        f"`{operation.name}`",
        " ".join([summary, *notes(operation)]).replace("|", "\\|"),
        request(operation),
    )


def notes(operation: Operation) -> list[str]:
    """What a caller has to know beside it."""
    found = []
    if operation.takes_long:
        found.append("It may take minutes.")
    if operation.needs is Needs.CLOSED:
        found.append("It needs the home closed.")
    elif operation.name not in offered_by(Face.DAEMON):
        found.append(f"Not by the daemon: {operation.not_by[Face.DAEMON]}.")
    return found


def request(operation: Operation) -> str:
    """The fields of its request."""
    if operation.request is Nothing:
        return "–"
    schema, known = schema_of(operation.request)
    return "<br>".join(
        field(name, one, name in schema["required"], known)
        for name, one in schema["properties"].items()
    )


def field(name: str, schema: dict[str, Any], is_required: bool, known: dict[str, Any]) -> str:
    """One field: its name, type, bounds, default and help."""
    options = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    bounds = [
        f"{word} {one[key]:,}" for one in options for key, word in LIMITS.items() if key in one
    ]
    told = ", ".join([*dict.fromkeys(kind(one, known) for one in options), *bounds])
    default = schema.get("default")
    told += (
        ", required"
        if is_required
        else f", default `{json.dumps(default)}`"
        if is_shown(default)
        else ""
    )
    help_ = schema.get("description") or next(
        (one["description"] for one in options if "description" in one), ""
    )
    return f"`{name}` ({told}) {help_}".strip().replace("|", "\\|")


def is_shown(default: Any) -> bool:
    """Whether a default says more than that there is none."""
    return default not in (None, [], "") and not isinstance(default, dict)


def kind(schema: dict[str, Any], known: dict[str, Any]) -> str:
    """A type in words; the objects that several requests hold have a list of their own below."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return kind(known[name], known) if "enum" in known[name] else f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items') or schema['prefixItems'][0], known)}"
    return TYPES.get(str(schema.get("type")), "any value")


def nested() -> str:
    """The objects that requests hold."""
    found: dict[str, dict[str, Any]] = {}
    known: dict[str, Any] = {}
    for operation in CATALOGUE.values():
        if operation.request is Nothing:
            continue
        (whole,), more = msgspec.json.schema_components(
            [operation.request], schema_hook=json_values.schema_hook
        )
        known |= more
        top = whole["$ref"].rpartition("/")[2]
        found |= {name: one for name, one in more.items() if name != top and "properties" in one}
    parts = [
        f"\n### {name}\n\n"
        + "".join(
            f"- {field(field_name, one, field_name in schema['required'], known)}\n"
            for field_name, one in schema["properties"].items()
        )
        for name, schema in found.items()
    ]
    return "".join(parts)


def schema_of(asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a request, and those that it refers to."""
    (whole,), known = msgspec.json.schema_components([asked], schema_hook=json_values.schema_hook)
    return known[whole["$ref"].rpartition("/")[2]], known


if __name__ == "__main__":
    if "--show" in sys.argv:
        print(page(), end="")
    else:
        PAGE.write_text(page(), encoding="utf-8")
