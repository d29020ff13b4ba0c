"""Write the dashboard's types for requests and results from the catalogue. Print them with --show.

In requests, fields with a default are optional. In results, all fields are present. A value used in
both therefore has two types; the one for requests is named ``…Input``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import generated
import msgspec

from nacre.base.json import schema_hook
from nacre.base.request import Request
from nacre.serve.catalogue import CATALOGUE

PATH = Path(__file__).parents[1] / "web/src/api/types.ts"
REFERENCE = "#/$defs/"
HEAD = "// Written by scripts/write_web_types.py from the operations; do not edit it by hand.\n"
SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}

Schema = dict[str, Any]


class Types:
    """The types of requests or of results. ``renamed`` contains names that both use."""

    def __init__(
        self, roots: list[Any], *, are_requests: bool, taken: Mapping[str, Schema] | None = None
    ) -> None:
        self._are_requests = are_requests
        roots = [str if root is Request else root for root in roots]
        self._roots, self.known = msgspec.json.schema_components(roots, schema_hook=_or_anything)
        self._renamed = {
            name
            for name, schema in self.known.items()
            if name in (taken or {}) and "properties" in schema
        }

    def roots(self) -> list[str]:
        """Return the root types in order. The type of a request with one use is written out."""
        if not self._are_requests:
            return [self._type(schema) for schema in self._roots]
        keys = [schema.get("$ref", "").removeprefix(REFERENCE) for schema in self._roots]
        return [
            f"{{\n{self._fields(self.known.pop(key), '    ')}  }}"
            if keys.count(key) == 1
            else self._name(key) or "Record<string, never>"
            for key in keys
        ]

    def declarations(self, leave_out: Mapping[str, Schema]) -> list[str]:
        """Return declarations for all types, except those in ``leave_out``."""
        return [
            self._declaration(name, schema)
            for name, schema in sorted(self.known.items())
            if name in self._renamed or name not in leave_out
        ]

    def _declaration(self, name: str, schema: Schema) -> str:
        if "properties" not in schema:
            return f"export type {self._name(name)} = {self._type(schema)};\n"
        return f"export interface {self._name(name)} {{\n{self._fields(schema)}}}\n"

    def _fields(self, schema: Schema, indent: str = "  ") -> str:
        required = schema["required"]
        return "".join(
            f"{indent}{key}{'?' if self._are_requests and key not in required else ''}: {self._type(inner)};\n"
            for key, inner in schema["properties"].items()
        )

    def _name(self, name: str) -> str:
        plain = "".join(part[:1].upper() + part[1:] for part in name.replace(".", "_").split("_"))
        return plain + "Input" if name in self._renamed else plain

    def _type(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self._name(schema["$ref"].removeprefix(REFERENCE))
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type(option) for option in schema["anyOf"]))
        if "enum" in schema or "const" in schema:
            return " | ".join(
                msgspec.json.encode(value).decode()
                for value in schema.get("enum", [schema.get("const")])
            )
        return self._composed(schema)

    def _composed(self, schema: Schema) -> str:
        kind = schema.get("type")
        if kind == "array" and "prefixItems" in schema:
            return f"[{', '.join(self._type(item) for item in schema['prefixItems'])}]"
        if kind == "array":
            return f"Array<{self._type(schema.get('items') or {})}>"
        if kind == "object":
            more = schema.get("additionalProperties")
            return f"Record<string, {self._type(more) if isinstance(more, dict) else 'unknown'}>"
        return SIMPLE.get(str(kind), "unknown")


def page() -> str:
    """Return the whole file: the operations that the dashboard calls."""
    code = "".join(path.read_text() for path in PATH.parents[1].rglob("*.ts*") if path != PATH)
    names = re.findall(r'[(?:<[]\s*"([a-z-]+)"', code)
    used = [CATALOGUE[name] for name in CATALOGUE if name in names]
    results = Types([operation.result for operation in used], are_requests=False)
    requests = Types(
        [operation.request for operation in used], are_requests=True, taken=results.known
    )
    rows = "".join(
        f'  "{operation.name}": [{request}, {result}];\n'
        for operation, request, result in zip(used, requests.roots(), results.roots(), strict=True)
    )
    parts = [*results.declarations({}), *requests.declarations(results.known)]
    return "\n".join([HEAD, *parts, f"export interface Operations {{\n{rows}}}\n"])


def _or_anything(kind: type) -> Schema:
    try:
        return schema_hook(kind)
    except (NotImplementedError, TypeError):
        return {"type": "anything"}


if __name__ == "__main__":
    generated.write(PATH, page())
