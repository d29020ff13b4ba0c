"""mem0: what its interfaces list or export as JSON, OpenMemory's backup, and the Markdown that its plugin writes.

A memory is what mem0's model made of a conversation, whoever said it. Exports with a schema of the owner's own are
profiles of any form, and hold no memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from nacre.platform.days import day_of
from nacre.platform.ids import to_millisecond
from nacre.portability.sources.notes import kind_of
from nacre.portability.sources.shape import json_of, listed, moment, named, project_of, shape, tags_of, text_of
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.values.memory import Kind, Retirement

NAME = "mem0"

_LISTED = (re.compile(rb'"memory"\s*:\s*"'), re.compile(rb'"id"\s*:'))
_BACKUP = re.compile(rb'^\s*\{\s*"user"\s*:(?:.|\n)*"apps"\s*:|"content"\s*:\s*"[^}]*"user_id"\s*:')
"""The lists of mem0 itself; OpenMemory's backup, and what the dashboard exports."""
_BLOCK = re.compile(r"^---[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"^([A-Za-z_]\w*)[ \t]*:[ \t]*(.*)$", re.MULTILINE)
_PLUGIN = re.compile(rb"\A\s*---\s*\nid:[^\n]*\ncreated_at:[^\n]*\ntype:[^\n]*\nconfidence:")
_GONE = {"archived": "archived in mem0", "paused": "paused in mem0"}
_HANDLED = frozenset({"data", "hash", "type", "project", "project_id", "category", "categories", "tags"})
_WORDS = ("memory", "content", "text", "data")
_WHOSE = ("user_id", "agent_id", "run_id", "actor_id")


def _recognise(tree: Tree) -> bool:
    return any(_is_own(tree, name) for name in tree.names)


def _is_own(tree: Tree, name: str) -> bool:
    lower, head = name.lower(), tree.head(name)
    if lower.endswith(".md"):
        return bool(_PLUGIN.match(head))
    return lower.endswith(".json") and (all(one.search(head) for one in _LISTED) or bool(_BACKUP.search(head)))


def _read(tree: Tree) -> Iterator[Item]:
    names = tree.names if tree.single else tuple(name for name in tree.names if _is_own(tree, name))
    for name in names:
        yield from _of_plugin(tree, name) if name.lower().endswith(".md") else _of_json(tree, name)


def _of_json(tree: Tree, name: str) -> Iterator[Item]:
    held = json_of(tree, name)
    if held is None:
        yield Skipped(name, "it is no JSON, or too large")
        return
    rows, categories = held, {}
    if isinstance(held, dict):
        rows = next((held[key] for key in ("results", "memories", "items") if isinstance(held.get(key), list)), [])
        categories = _categories(held)
    found = [row for row in _objects(rows) if text_of(row, *_WORDS)]
    if not found:
        yield Skipped(name, "it lists no memories")
    for row in found:
        yield _found(row, tree, name, categories.get(str(row.get("id")), []))


def _categories(held: Mapping[str, Any]) -> dict[str, list[str]]:
    """OpenMemory keeps the categories of memories in tables beside them."""
    names = {
        str(one.get("id")): text_of(one, "name") for one in listed(held.get("categories")) if isinstance(one, dict)
    }
    found: dict[str, list[str]] = {}
    for one in listed(held.get("memory_categories")):
        if isinstance(one, dict) and (category := names.get(str(one.get("category_id")))):
            found.setdefault(str(one.get("memory_id")), []).append(category)
    return found


def _of_plugin(tree: Tree, name: str) -> Iterator[Item]:
    """Blocks of front matter and text, one after the other."""
    parts = _BLOCK.split(tree.clean(tree.text(name) or ""))
    for front, body in zip(parts[1::2], parts[2::2], strict=False):
        values: dict[str, Any] = dict(_LINE.findall(front))
        files = [one.strip() for one in values.get("files", "").split(",") if one.strip()]
        metadata = {key: values[key] for key in ("type", "branch") if values.get(key)} | (
            {"files": files} if files else {}
        )
        row = {**values, "memory": body, "metadata": metadata}
        yield _found(row, tree, name, [])


def _found(row: Mapping[str, Any], tree: Tree, name: str, categories: list[str]) -> Item:
    content = text_of(row, *_WORDS)
    own = text_of(row, "id") or name
    if not content:
        return Skipped(own, "it has no words")
    state = str(row.get("state") or "active")
    if state == "deleted" or row.get("deleted_at"):
        return Skipped(own, "deleted in mem0")
    metadata = named(row.get("metadata"))
    until = _day(row.get("expiration_date"))
    tags = tags_of(row.get("categories"), *categories, *tags_of(metadata.get("tags")))
    kinds = (*tags, *filter(None, (text_of(metadata, "category"), text_of(metadata, "type"))))
    stated = moment(row.get("created_at"))
    whose = {key: text for key in _WHOSE if (text := text_of(row, key))}
    kept = {key: value for key, value in metadata.items() if key not in _HANDLED and _is_plain(value)}
    memory = shape(
        NAME, own, content, modified=tree.leaves[name].modified, stated=stated, file=str(tree.path_of(name)),
        kind=kind_of(tuple(one.replace("_", " ") for one in kinds), Kind.FACT), tags=tags, expires_on=until,
        project=project_of(text_of(metadata, "project", "project_id") or text_of(row, "app_id")), extra=whose | kept,
    )  # fmt: skip
    updated = to_millisecond(moment(row.get("updated_at")) or memory.updated)
    reason = _GONE.get(state)
    return Found(replace(memory, updated=updated, retired=Retirement(updated, reason) if reason else None))


def _is_plain(value: object) -> bool:
    """Whether a value can stand in front matter as it is."""
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return is_list or isinstance(value, str | int | float)


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in listed(value) if isinstance(one, dict)]


def _day(value: object) -> date | None:
    found: datetime | None = moment(value)
    return day_of(found) if found else None


SOURCE = ImportSource(NAME, "mem0", _recognise, _read)
