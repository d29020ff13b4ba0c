"""Reads: what a model answers; of models that are held to no schema also what nearly fits it."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import msgspec

from nacre.platform import json_values

Evidence = Annotated[int, msgspec.Meta(ge=0, description="number of a turn, as 12 for [m12]")]


class Told(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One memory as a model proposes it."""

    kind: Literal["fact", "decision", "preference", "todo", "relationship", "event", "lesson"]
    subject: str
    content: str
    importance: int
    expiry: Literal["permanent", "temporary"]
    tags: list[str]
    canonical_key: str | None
    evidence: list[Evidence]
    quote: str


class Answer(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a model found worth keeping; nothing, most of the time."""

    memories: list[Told]


class Over(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that was shown as known, and that the session shows to hold no longer."""

    known: Annotated[int, msgspec.Meta(ge=1, description="number of a known memory, as 2 for [k2]")]
    evidence: list[Evidence]
    quote: str


class AnswerBesideKnown(Answer, forbid_unknown_fields=True, frozen=True):
    """What a model found worth keeping, and which of the known memories are over."""

    over: list[Over]


_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TURN = re.compile(r"\[?m?0*(\d{1,7})\]?", re.IGNORECASE)
_OTHER_NAMES = {
    "content": ("description", "detail", "text", "summary"),
    "subject": ("name", "topic", "title", "entity"),
    "kind": ("type",),
    "evidence": ("turns", "evidence_turns"),
}
"""What models call the fields that were asked for (seed facts 1.5)."""

_MISSING: dict[str, Any] = {"expiry": "permanent", "tags": [], "canonical_key": None, "importance": 6, "quote": ""}


def tidied(text: str) -> str:
    """An answer in the shape that was asked for, where it nearly is; memories that are none are left out.

    What cannot be read is given back as it is, for whoever checks it to say so.
    """
    fenced = _FENCE.match(text)
    try:
        data = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text
    over = None
    if isinstance(data, dict):
        over = data.get("over")
        one = next((data[name] for name in ("memories", "entries", "items") if name in data), None)
        if one is None and over is None and _memory(data) is None:
            return text  # neither memories nor that there are none
        data = [data] if one is None else one
    if not isinstance(data, list):
        return text
    found = {"memories": [one for item in data if (one := _memory(item))]}
    return json.dumps(found if over is None else {**found, "over": over}, ensure_ascii=False)


def _memory(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    found = {**_MISSING, **item}
    for name, others in _OTHER_NAMES.items():
        other = next((one for one in others if item.get(one)), None)
        if not item.get(name) and other:
            found[name] = item[other]
    found["kind"] = str(found.get("kind", "")).lower()
    found["evidence"] = [int(match[1]) for match in map(_TURN.fullmatch, _texts(found.get("evidence"))) if match]
    found["tags"] = _texts(found["tags"])
    fitting = {name: found[name] for name in Told.__struct_fields__ if name in found}
    try:
        json_values.convert(fitting, Told)
    except msgspec.ValidationError:
        return None
    return fitting


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else re.split(r"[,\s]+", value) if isinstance(value, str) else [value]
    return [str(item).strip() for item in items if item is not None and str(item).strip()]
