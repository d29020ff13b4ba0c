"""JSON schemas as providers take them: strict ones refuse what they cannot enforce."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nacre.values.model_calls import Prompt

_UNENFORCED = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems "
    "uniqueItems default examples".split()
)
_NAMED = ("properties", "$defs")
"""Keys whose values are schemas by names of their own."""


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what strict providers refuse; code checks the answer against all of it."""
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _UNENFORCED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            found[key] = {name: strict(part) if isinstance(part, Mapping) else part for name, part in value.items()}
        else:
            found[key] = _stricter(value)
    if found.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


def _stricter(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict(value)
    return [_stricter(item) for item in value] if isinstance(value, list) else value


def told(prompt: Prompt) -> str:
    """What a model is told of the schema where nothing else holds it to one."""
    schema = json.dumps(prompt.answer, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object of this schema, and nothing else:\n{schema}"
