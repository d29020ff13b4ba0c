"""agenr: one SQLite (libSQL) file of entries. Seed facts 1.1.

What is retired or superseded there stays so. Its embeddings belong to another model and are left behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.platform.ids import to_millisecond, to_ms
from nacre.portability.sources.databases import database_with, refused
from nacre.portability.sources.shape import (
    between,
    imported_id,
    is_true,
    listed,
    modified_of,
    moment,
    project_of,
    shape,
    tags_of,
    text_of,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.storage.sqlite.foreign import ForeignDatabase, open_foreign
from nacre.values.memory import Claim, Expiry, Kind, Link, Retirement, Scope
from nacre.values.review import Usage

NAME = "agenr"
EXPIRED = "EXPIRED"
"""The sentinel in ``superseded_by`` of what agenr expired."""

_COLUMNS = (
    "id", "type", "subject", "canonical_key", "content", "importance", "expiry", "scope", "platform", "project",
    "source_file", "source_context", "created_at", "updated_at", "last_recalled_at", "recall_count",
    "recall_intervals", "contradictions", "quality_score", "superseded_by", "retired", "retired_at", "retired_reason",
    "suppressed_contexts", "subject_entity", "subject_attribute", "claim_predicate", "claim_object",
    "claim_confidence",
)  # fmt: skip
_TABLES = {"entries": frozenset({"id", "type", "subject", "content"})}
_RELATIONS = {"supersedes": "supersedes", "contradicts": "contradicts", "elaborates": "elaborates"}
_MOST_INTERVALS = 100


def _recognise(tree: Tree) -> bool:
    return _database(tree) is not None


def _database(tree: Tree) -> Path | None:
    return database_with(tree, _TABLES)


def _read(tree: Tree) -> Iterator[Item]:
    path = _database(tree)
    if path is None:
        yield from refused(tree, "it has no table of entries as agenr makes it")
        return
    with open_foreign(path, tree.clean) as database:
        tags = _grouped(database, "tags", "entry_id", "tag")
        links = _links(database)
        entries = list(database.rows("entries", _COLUMNS))
        modified = modified_of(path)
        known = {str(entry["id"]): _id(entry) for entry in entries}
        for entry in entries:
            yield _found(entry, path, modified, tags.get(str(entry["id"]), []), links.get(str(entry["id"]), []), known)


def _found(
    entry: Mapping[str, Any], path: Path, modified: datetime, tags: list[str], links: list[tuple[str, str]],
    known: Mapping[str, str],
) -> Item:  # fmt: skip
    own, content = str(entry["id"]), text_of(entry, "content")
    if not content:
        return Skipped(own, "it has no content")
    try:
        kind = Kind(str(entry.get("type")).lower())
    except ValueError:
        return Skipped(own, f"of a type nacre does not know: {entry.get('type')}")
    stated = moment(entry.get("created_at"))
    updated = moment(entry.get("updated_at")) or stated
    memory = shape(
        NAME, own, content, modified=updated or modified, stated=stated, kind=kind,
        subject=text_of(entry, "subject"), file=text_of(entry, "source_file") or str(path), extra=_extra(entry),
        importance=round(between(entry.get("importance"), 1, 10, 7)), tags=tags_of(tags),
        expiry=_choice(Expiry, entry.get("expiry"), Expiry.PERMANENT),
        scope=_choice(Scope, entry.get("scope"), Scope.PRIVATE), project=project_of(text_of(entry, "project")),
        canonical_key=text_of(entry, "canonical_key"), claim=_claim(entry),
        suppressed_contexts=tuple(listed(entry.get("suppressed_contexts"))),
    )  # fmt: skip
    memory = replace(memory, updated=to_millisecond(updated or memory.updated))
    ended = str(entry.get("superseded_by") or "")
    retired = _retirement(entry, ended, known)
    if retired:
        memory = replace(memory, retired=Retirement(to_millisecond(retired[0] or memory.updated), retired[1]))
    mapped = tuple(Link(rel, known[other]) for rel, other in links if other in known)
    return Found(replace(memory, links=mapped, superseded_by=known.get(ended)), _usage(entry))


def _retirement(entry: Mapping[str, Any], ended: str, known: Mapping[str, str]) -> tuple[Any, str | None] | None:
    if is_true(entry.get("retired")):
        return moment(entry.get("retired_at")), text_of(entry, "retired_reason") or "retired in agenr"
    if ended == EXPIRED:
        return moment(entry.get("updated_at")), "expired in agenr"
    if ended and ended not in known:
        return moment(entry.get("updated_at")), "superseded in agenr by an entry that is gone"
    return None


def _claim(entry: Mapping[str, Any]) -> Claim | None:
    names = ("subject_entity", "subject_attribute", "claim_predicate", "claim_object")
    entity, attribute, predicate, said = (text_of(entry, name) or "" for name in names)
    if not (entity and attribute and said):
        return None
    return Claim(entity, attribute, predicate, said, between(entry.get("claim_confidence"), 0, 1, 0.5))


def _extra(entry: Mapping[str, Any]) -> dict[str, Any]:
    found = {"platform": text_of(entry, "platform"), "source_context": text_of(entry, "source_context")}
    return {key: value for key, value in found.items() if value}


def _usage(entry: Mapping[str, Any]) -> Usage | None:
    count = int(between(entry.get("recall_count"), 0, 1e9, 0))
    quality = between(entry.get("quality_score"), 0, 1, 0.5)
    contradictions = int(between(entry.get("contradictions"), 0, 1e6, 0))
    if not count and quality == 0.5 and not contradictions:
        return None
    times = [to_ms(at) for value in listed(entry.get("recall_intervals")) if (at := moment(value))]
    intervals = tuple(at for at in times if at is not None)[-_MOST_INTERVALS:]
    return Usage(count, moment(entry.get("last_recalled_at")), intervals, contradictions, quality, count)


def _links(database: ForeignDatabase) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for row in database.rows("relations", ("source_id", "target_id", "relation_type")):
        rel = _RELATIONS.get(str(row.get("relation_type")), "related_to")
        found.setdefault(str(row.get("source_id")), []).append((rel, str(row.get("target_id"))))
    return found


def _grouped(database: ForeignDatabase, table: str, key: str, value: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in database.rows(table, (key, value)):
        found.setdefault(str(row.get(key)), []).append(str(row.get(value)))
    return found


def _id(entry: Mapping[str, Any]) -> str:
    return imported_id(NAME, str(entry["id"]), moment(entry.get("created_at")))


def _choice(options: Any, value: object, default: Any) -> Any:
    try:
        return options(str(value).lower())
    except ValueError:
        return default


SOURCE = ImportSource(NAME, "agenr", _recognise, _read)
