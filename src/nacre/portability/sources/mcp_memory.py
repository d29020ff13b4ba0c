"""mcp-memory-service: its SQLite file (``sqlite_vec.db``), or the JSON that it exports.

Embeddings and links of mere likeness are found again; what it deleted stays deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.platform.ids import to_millisecond
from nacre.portability.sources.databases import database_with, refused
from nacre.portability.sources.notes import kind_of
from nacre.portability.sources.shape import (
    imported_id,
    json_of,
    listed,
    modified_of,
    moment,
    named,
    project_of,
    shape,
    tags_of,
    text_of,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.storage.sqlite.foreign import open_foreign
from nacre.values.memory import Kind, Link, Retirement

NAME = "mcp-memory-service"

_TABLES = {"memories": frozenset({"content_hash", "content", "memory_type", "metadata"})}
_COLUMNS = (
    "content_hash", "content", "tags", "memory_type", "metadata", "created_at", "updated_at", "created_at_iso",
    "deleted_at", "superseded_by",
)  # fmt: skip
_EDGES = ("source_hash", "target_hash", "relationship_type")
_LIKENESS = "related"
_ASSOCIATION = frozenset({"association", "discovered"})
_KINDS = {
    Kind.DECISION: "decision architecture tool_choice approach configuration",
    Kind.LESSON: (
        "learning insight best_practice anti_pattern gotcha error bug failure exception timeout mistake pattern "
        "recurring_issue code_smell design_pattern workflow"
    ),
    Kind.PREFERENCE: "preference feedback",
    Kind.TODO: "backlog_item action_item follow_up retrospective_action todo task",
    Kind.EVENT: (
        "conversation conversation_turn session ceremony sprint_review daily_standup meeting minutes milestone "
        "standup_note status_update command file_access search code_edit"
    ),
}  # fmt: skip
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_OWN_TAGS = ("sys:", "q:", "t:", "agent:")
_PROJECT_TAG = "proj:"
_HANDLED = frozenset({"tags", "type", "memory_type", "content_hash", "timestamp", "project", "embedding"})


def _recognise(tree: Tree) -> bool:
    return database_with(tree, _TABLES) is not None or bool(_exports(tree))


def _exports(tree: Tree) -> list[str]:
    return [
        name for name in tree.matching(".json")
        if b'"export_metadata"' in (head := tree.head(name)) and b'"memories"' in head
    ]  # fmt: skip


def _read(tree: Tree) -> Iterator[Item]:
    path = database_with(tree, _TABLES)
    exports = _exports(tree)
    if path:
        with open_foreign(path, tree.clean) as database:
            rows = list(database.rows("memories", _COLUMNS))
            edges = list(database.rows("memory_graph", _EDGES))
        yield from _items(rows, edges, path, modified_of(path))
    elif not exports:
        yield from refused(tree, "it has no memories as mcp-memory-service keeps them")
    for name in exports:
        held = json_of(tree, name)
        if isinstance(held, dict):
            rows = [row for row in listed(held.get("memories")) if isinstance(row, dict)]
            yield from _items(rows, [], tree.path_of(name), tree.leaves[name].modified)
        else:
            yield Skipped(name, "it is no JSON, or too large")


def _items(
    rows: list[dict[str, Any]], edges: list[dict[str, Any]], path: Path, modified: datetime
) -> Iterator[Item]:  # fmt: skip
    known = {str(row.get("content_hash")): _id(row) for row in rows if not row.get("deleted_at")}
    links: dict[str, list[Link]] = {}
    alike = 0
    for edge in edges:
        relation, target = str(edge.get("relationship_type") or _LIKENESS), known.get(str(edge.get("target_hash")))
        alike += relation == _LIKENESS
        if target and relation != _LIKENESS:
            link = Link(relation, target) if relation == "contradicts" else Link("related_to", target, relation)
            links.setdefault(str(edge.get("source_hash")), []).append(link)
    if alike:
        yield Skipped("links", "links of mere likeness are found again", alike)
    for row in rows:
        yield _found(row, path, modified, tuple(links.get(str(row.get("content_hash")), ())), known)


def _found(
    row: Mapping[str, Any], path: Path, modified: datetime, links: tuple[Link, ...], known: Mapping[str, str]
) -> Item:  # fmt: skip
    own, content, kind = str(row.get("content_hash")), text_of(row, "content"), str(row.get("memory_type") or "")
    if row.get("deleted_at"):
        return Skipped(own, "deleted in mcp-memory-service")
    if not content or not row.get("content_hash"):
        return Skipped(own, "it has no words, or no hash")
    metadata, tags = named(row.get("metadata")), tags_of(row.get("tags"))
    if set(tags) >= _ASSOCIATION:
        return Skipped(own, "an association that it found itself")
    project = text_of(metadata, "project") or next((tag for tag in tags if tag.startswith(_PROJECT_TAG)), "")
    kept = {key: value for key, value in metadata.items() if key not in _HANDLED and isinstance(value, str)}
    memory = shape(
        NAME, own, content, modified=modified, stated=_stated(row), file=str(path),
        kind=_KIND_OF.get(kind) or kind_of((kind.replace("_", " "),), Kind.FACT), tags=_tags(tags, kind),
        project=project_of(project.removeprefix(_PROJECT_TAG)), links=links, extra=kept,
    )  # fmt: skip
    memory = replace(memory, updated=to_millisecond(moment(row.get("updated_at")) or memory.updated))
    ended = text_of(row, "superseded_by")
    if ended and ended not in known:
        reason = "superseded in mcp-memory-service by a memory that is gone"
        memory = replace(memory, retired=Retirement(memory.updated, reason))
    return Found(replace(memory, superseded_by=known.get(ended or "")))


def _tags(tags: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Tags without those of its own bookkeeping; a topic goes without its namespace."""
    kept = [tag for tag in tags if tag != "untagged" and not tag.startswith((*_OWN_TAGS, _PROJECT_TAG))]
    return tags_of([tag.removeprefix("topic:").removeprefix("user:") for tag in kept], *([kind] if kind else []))


def _stated(row: Mapping[str, Any]) -> datetime | None:
    return moment(row.get("created_at")) or moment(row.get("created_at_iso"))


def _id(row: Mapping[str, Any]) -> str:
    return imported_id(NAME, str(row.get("content_hash")), _stated(row))


SOURCE = ImportSource(NAME, "mcp-memory-service", _recognise, _read)
