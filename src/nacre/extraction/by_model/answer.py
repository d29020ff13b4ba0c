"""Reads: what a model answers; of models that are held to no schema also what nearly fits it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
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


class State(StrEnum):
    """What a session makes of a memory that is known."""

    CHANGED = "changed"
    OVER = "over"


class Seen(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that was shown as known and holds no longer as it stands: which ``clause`` of it, and, where that is not
    all of it, what the memory says ``now``."""

    known: Annotated[int, msgspec.Meta(ge=1, description="number of a known memory, as 2 for [k2]")]
    clause: str
    state: State
    now: str
    evidence: list[Evidence]
    quote: str


class Changes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which known memories hold no longer as they stand; none, most of the time."""

    known: list[Seen]


class Outdated(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that holds no longer as it stands, by what was said later."""

    number: int
    clause: str
    now: str
    evidence: list[int]


class Outdateds(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Those that hold no longer; none, most of the time."""

    memories: list[Outdated]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said of a session, or of a part of one: memories, and which known ones hold no longer."""

    memories: Sequence[Told]
    known: Sequence[Seen] = ()


_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TURN = re.compile(r"\[?m?0*(\d{1,7})\]?", re.IGNORECASE)
_KNOWN = re.compile(r"\[?k?0*(\d{1,7})\]?", re.IGNORECASE)
_OTHER_NAMES = {
    "content": ("description", "detail", "text", "summary"),
    "subject": ("name", "topic", "title", "entity"),
    "kind": ("type",),
    "evidence": ("turns", "evidence_turns"),
}
"""What models call the fields that were asked for (seed facts 1.5)."""

_MISSING: dict[str, Any] = {"expiry": "permanent", "tags": [], "canonical_key": None, "importance": 6, "quote": ""}
_MISSING_OF_KNOWN: dict[str, Any] = {"clause": "", "now": "", "evidence": [], "quote": ""}


def tidied(text: str) -> str:
    """An answer in the shape that was asked for, where it nearly is; memories that are none are left out.

    What cannot be read is given back as it is, for whoever checks it to say so.
    """
    data = _read(text)
    if isinstance(data, dict):
        one = next((data[name] for name in ("memories", "entries", "items") if name in data), None)
        if one is None and _memory(data) is None:
            return text  # neither memories nor that there are none
        data = [data] if one is None else one
    return _tidy("memories", data, _memory) or text


def tidied_changes(text: str) -> str:
    """The same of what is said of known memories."""
    data = _read(text)
    return _tidy("known", data.get("known") if isinstance(data, dict) else data, _seen) or text


def _read(text: str) -> Any:
    fenced = _FENCE.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None


def _tidy(name: str, items: Any, shape: Callable[[Any], dict[str, Any] | None]) -> str | None:
    if not isinstance(items, list):
        return None
    return json.dumps({name: [one for item in items if (one := shape(item))]}, ensure_ascii=False)


def _memory(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    found = {**_MISSING, **item}
    for name, others in _OTHER_NAMES.items():
        other = next((one for one in others if item.get(one)), None)
        if not item.get(name) and other:
            found[name] = item[other]
    found["kind"] = str(found.get("kind", "")).lower()
    found["evidence"] = _numbers(found.get("evidence"))
    found["tags"] = _texts(found["tags"])
    fitting = {name: found[name] for name in Told.__struct_fields__ if name in found}
    try:
        json_values.convert(fitting, Told)
    except msgspec.ValidationError:
        return None
    return fitting


def _seen(item: Any) -> dict[str, Any] | None:
    """What is said of a known memory; nothing of one that is said to be as it was."""
    if not isinstance(item, dict):
        return None
    found = {**_MISSING_OF_KNOWN, **item}
    found["known"] = next((int(match[1]) for match in map(_KNOWN.fullmatch, _texts(found.get("known"))) if match), 0)
    found["state"] = str(found.get("state", "")).lower()
    found["evidence"] = _numbers(found["evidence"])
    words = {name: found[name] or "" for name in ("clause", "now", "quote")}
    fitting = {name: (found | words)[name] for name in Seen.__struct_fields__}
    try:
        json_values.convert(fitting, Seen)
    except msgspec.ValidationError:
        return None
    return fitting


def _numbers(value: Any) -> list[int]:
    return [int(match[1]) for match in map(_TURN.fullmatch, _texts(value)) if match]


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else re.split(r"[,\s]+", value) if isinstance(value, str) else [value]
    return [str(item).strip() for item in items if item is not None and str(item).strip()]
