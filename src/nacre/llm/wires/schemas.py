"""JSON schemas as providers take them: strict ones refuse what they cannot enforce."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nacre.values.model_calls import Capabilities, Prompt

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
    """What a model is told of the schema where nothing else holds it to one; nothing where it answers in plain text."""
    if not prompt.answer:
        return ""
    schema = json.dumps(prompt.answer, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object of this schema, and nothing else:\n{schema}"


def held(able: Capabilities, prompt: Prompt) -> Capabilities:
    """What a model can do, as far as a prompt wants it: one that wants plain text holds it to no schema."""
    return able if prompt.answer else replace(able, answers="text")


def system_of(prompt: Prompt, able: Capabilities) -> str:
    """The system prompt, with the schema where the model is only told of it."""
    is_held = able.answers in ("schema", "tool")
    return "\n\n".join(part for part in (prompt.system, "" if is_held else told(prompt)) if part)
