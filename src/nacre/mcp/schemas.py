"""The JSON schema of a struct as models are shown it: flat, without what tells them nothing."""

from __future__ import annotations

from typing import Any

import msgspec

_UNTOLD = ("title", "description")
_NO_DEFAULTS: tuple[object, ...] = (None, (), [])


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """An object's schema: every struct in its place, optional fields without ``null``, nothing else admitted."""
    (whole,), known = msgspec.json.schema_components([arguments])
    found: dict[str, Any] = _flat(whole, known)
    for word in _UNTOLD:
        found.pop(word, None)
    return found


def _flat(schema: Any, known: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_flat(item, known) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = {key: value for key, value in known[schema["$ref"].rpartition("/")[2]].items() if key not in _UNTOLD}
        return _flat(target | rest, known)
    flat = {key: _flat(value, known) for key, value in schema.items()}
    if "anyOf" in flat:
        some = [option for option in flat.pop("anyOf") if option != {"type": "null"}]
        flat = {**some[0], **flat} if len(some) == 1 else {**flat, "anyOf": some}
    if "default" in flat and flat["default"] in _NO_DEFAULTS:
        del flat["default"]
    if flat.get("enum") and "type" not in flat:
        flat["type"] = "string"
    return flat
