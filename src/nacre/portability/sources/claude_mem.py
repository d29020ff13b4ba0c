"""claude-mem: one SQLite file of observations and session summaries, or the JSON that its export script writes.

Both are what its model wrote of a session. Prompts are the owner's words of one moment, which the sessions hold; they
stay behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.portability.sources.databases import database_with, refused
from nacre.portability.sources.notes import kind_of
from nacre.portability.sources.shape import (
    json_of,
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
from nacre.values.memory import Expiry, Kind

NAME = "claude-mem"

_TABLES = {
    "observations": frozenset({"project", "type", "created_at_epoch"}),
    "session_summaries": frozenset({"project", "request", "learned"}),
}
_OBSERVATION = (
    "memory_session_id", "sdk_session_id", "project", "merged_into_project", "type", "title", "subtitle", "narrative",
    "text", "facts", "concepts", "files_modified", "created_at", "created_at_epoch",
)  # fmt: skip
_SUMMARY = (
    "memory_session_id", "sdk_session_id", "project", "merged_into_project", "request", "learned", "completed",
    "next_steps", "notes", "created_at", "created_at_epoch",
)  # fmt: skip
_ITEM = (
    "id", "project_id", "legacy_observation_id", "kind", "type", "title", "subtitle", "narrative", "text", "facts",
    "concepts", "files_modified", "created_at_epoch",
)  # fmt: skip
_PARTS = {"learned": "Learned", "completed": "Completed", "next_steps": "Next steps", "notes": "Notes"}
_KINDS = {"decision": Kind.DECISION, "bugfix": Kind.LESSON, "discovery": Kind.FACT}
_WORK = frozenset({"feature", "refactor", "change"})
_WORK_IMPORTANCE = 5
_MOST_FILES = 20


def _recognise(tree: Tree) -> bool:
    return database_with(tree, _TABLES) is not None or bool(_exports(tree))


def _exports(tree: Tree) -> list[str]:
    """Files of JSON with observations and summaries, by what stands at their beginning."""
    return [name for name in tree.matching(".json") if b'"totalObservations"' in tree.head(name)]


def _read(tree: Tree) -> Iterator[Item]:
    path = database_with(tree, _TABLES)
    exports = _exports(tree)
    if path:
        yield from _of_database(path, tree)
    elif not exports:
        yield from refused(tree, "it has no observations as claude-mem makes them")
    for name in exports:
        yield from _of_export(tree, name)


def _of_database(path: Path, tree: Tree) -> Iterator[Item]:
    modified = modified_of(path)
    with open_foreign(path, tree.clean) as database:
        for row in database.rows("observations", _OBSERVATION):
            yield _observation(row, path, modified)
        for row in database.rows("session_summaries", _SUMMARY):
            yield _summary(row, path, modified)
        yield from _items(database, path, modified)
        yield from _prompts(len(list(database.rows("user_prompts", ("created_at_epoch",)))))


def _of_export(tree: Tree, name: str) -> Iterator[Item]:
    held = json_of(tree, name)
    if not isinstance(held, dict):
        yield Skipped(name, "it is no JSON, or too large")
        return
    path, modified = tree.path_of(name), tree.leaves[name].modified
    for row in _rows(held, "observations"):
        yield _observation(row, path, modified)
    for row in _rows(held, "summaries"):
        yield _summary(row, path, modified)
    yield from _prompts(len(_rows(held, "prompts")))


def _rows(held: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in listed(held.get(name)) if isinstance(row, dict)]


def _prompts(number: int) -> Iterator[Item]:
    if number:
        yield Skipped("prompts", "what was asked is in the sessions, which nacre ingest reads", number)


def _items(database: ForeignDatabase, path: Path, modified: datetime) -> Iterator[Item]:
    """What the server keeps in a table of its own; what it copied from the observations is known already."""
    projects = {str(row["id"]): row.get("name") for row in database.rows("projects", ("id", "name"))}
    for row in database.rows("memory_items", _ITEM):
        if row.get("kind") in ("observation", "manual") and row.get("legacy_observation_id") is None:
            project = projects.get(str(row.get("project_id")))
            yield _observation({**row, "project": project, "memory_session_id": row.get("id")}, path, modified)


def _observation(row: Mapping[str, Any], path: Path, modified: datetime) -> Item:
    said = text_of(row, "narrative", "text", "subtitle")
    facts = [f"- {fact.strip()}" for fact in listed(row.get("facts")) if isinstance(fact, str) and fact.strip()]
    content = "\n\n".join(part for part in (said, "\n".join(facts)) if part)
    title = text_of(row, "title")
    if not content:
        return Skipped(_key(row, title), "an observation without words")
    kind, concepts = str(row.get("type") or ""), tags_of(listed(row.get("concepts")))
    is_work = kind in _WORK
    files = [one for one in listed(row.get("files_modified")) if isinstance(one, str)][:_MOST_FILES]
    memory = shape(
        NAME, _key(row, title), content, modified=modified, subject=title, stated=_stated(row), file=str(path),
        kind=Kind.EVENT if is_work else _KINDS.get(kind) or kind_of((*concepts, kind), Kind.FACT),
        importance=_WORK_IMPORTANCE if is_work else 7, expiry=Expiry.TEMPORARY if is_work else Expiry.PERMANENT,
        tags=tags_of([kind, *concepts]), project=_project(row), extra={"files": files} if files else {},
    )  # fmt: skip
    return Found(memory)


def _summary(row: Mapping[str, Any], path: Path, modified: datetime) -> Item:
    """A session in brief: an event of its day."""
    parts = [f"{name}: {text}" for key, name in _PARTS.items() if (text := text_of(row, key))]
    request = text_of(row, "request")
    if not parts:
        return Skipped(_key(row, request), "a session's summary that says nothing")
    memory = shape(
        NAME, f"summary#{_key(row, request)}", "\n\n".join(parts), modified=modified, subject=request,
        stated=_stated(row), file=str(path), kind=Kind.EVENT, importance=_WORK_IMPORTANCE, expiry=Expiry.TEMPORARY,
        tags=("session-summary",), project=_project(row),
    )  # fmt: skip
    return Found(memory)


def _key(row: Mapping[str, Any], title: str | None) -> str:
    """What claude-mem itself knows an observation again by, in every installation."""
    session = text_of(row, "memory_session_id", "sdk_session_id") or ""
    return f"{session}#{title or ''}#{row.get('created_at_epoch')}"


def _stated(row: Mapping[str, Any]) -> datetime | None:
    return moment(row.get("created_at_epoch")) or moment(row.get("created_at"))


def _project(row: Mapping[str, Any]) -> str | None:
    """The project's name; a worktree is called ``project/worktree``."""
    return project_of((text_of(row, "merged_into_project", "project") or "").partition("/")[0])


SOURCE = ImportSource(NAME, "claude-mem", _recognise, _read)
