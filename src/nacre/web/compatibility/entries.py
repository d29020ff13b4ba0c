"""Memories as entries of agent-knowledge: files by category, whose names end in eight characters of an id."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nacre.platform.days import shown_day
from nacre.portability.sources.agent_knowledge import CATEGORIES
from nacre.text.passages import words
from nacre.vault.front_matter import dump
from nacre.vault.layout import slugify

_BY_KIND = {"decision": "decisions", "relationship": "people", "preference": "people", "lesson": "workflows"}
_ID_CHARACTERS = 8


def category_of(memory: Mapping[str, Any]) -> str:
    """The category of a memory: the one that it is tagged with, else by its kind."""
    tagged = next((tag for tag in memory.get("tags", ()) if tag in CATEGORIES), None)
    by_kind = _BY_KIND.get(memory.get("kind") or "")
    return tagged or by_kind or ("projects" if memory.get("project") else "notes")


def path_of(memory: Mapping[str, Any]) -> str:
    """Where an entry is, for a memory or a node of the graph."""
    name = slugify(memory.get("subject") or "") or "entry"
    return f"{category_of(memory)}/{name}-{memory['id'][-_ID_CHARACTERS:]}.md"


def reference_of(path: str) -> str:
    """The memory that a path names: by the end of its id."""
    return path.rpartition("/")[2].removesuffix(".md")[-_ID_CHARACTERS:]


def entry_of(memory: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """A memory as an entry, ``whole`` with its content."""
    found = {
        "path": path_of(memory), "title": memory["subject"], "tags": memory["tags"],
        "updated": shown_day(datetime.fromisoformat(memory["updated"])),
        "category": category_of(memory), "confidence": memory["confidence"], "id": memory["id"],
    }  # fmt: skip
    if memory["confidence_score"] is not None:
        found["confidence_score"] = memory["confidence_score"]
    return found | ({"content": memory["content"]} if whole else {})


def file_of(entry: Mapping[str, Any]) -> str:
    """A whole entry as the file that agent-knowledge would have written."""
    front = {name: entry[name] for name in ("title", "tags", "updated", "confidence")}
    return f"---\n{dump(front)}---\n\n{entry['content']}\n"


def likeness(one: str, other: str) -> float:
    """The share of the words of two texts that both have (Jaccard), to two digits."""
    first, second = set(words(one)), set(words(other))
    return round(len(first & second) / (len(first | second) or 1), 2)
