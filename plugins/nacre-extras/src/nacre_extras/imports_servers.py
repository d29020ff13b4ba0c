"""Imports from Letta, mcp-memory-service, mem0 and claude-mem.

From Letta, agent files (``.af``) and archival memory are read. The persona, messages, tools and
files are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from nacre.base.times import day_of
from nacre.data.importers import (
    ImportedMemory,
    ImportSource,
    Item,
    Skipped,
    Tree,
    database_with,
    from_note,
    imported_id,
    json_of,
    kind_of,
    listed,
    modified_of,
    moment,
    named,
    notes,
    objects_of,
    project_of,
    refused,
    shape,
    tags_of,
    text_of,
    words_hash,
)
from nacre.store.foreign import open_foreign
from nacre.values.memory import Expiry, Kind, Link
from nacre.vault.documents import Values
from nacre_extras.imports_systems import found_in

NAME = "letta"

_SKIPPED_PARTS = {
    "messages": "messages of conversations",
    "tools": "tools",
    "files": "files",
    "skills": "skills",
}


def _is_agent(tree: Tree, name: str) -> bool:
    head = tree.head(name)
    if name.lower().endswith(".af"):
        return b"agent_type" in head or b"agents" in head
    return (
        name.lower().endswith(".json")
        and b'"agent_type"' in head
        and (b'"block_ids"' in head or b'"core_memory"' in head)
    )


def _is_archive(tree: Tree, name: str) -> bool:
    head = tree.head(name)
    return (
        name.lower().endswith(".json")
        and b'"text"' in head
        and (b'"archive_id"' in head or b'"passage-' in head)
    )


def _read(tree: Tree) -> Iterator[Item]:
    for name in tree.names:
        is_agent = _is_agent(tree, name)
        if not tree.single and not is_agent and not _is_archive(tree, name):
            continue
        content = json_of(tree, name)
        if isinstance(content, str):  # an agent file can contain its JSON as a string
            content = named(content)
        if isinstance(content, dict) and (is_agent or "blocks" in content):
            agents = objects_of(content.get("agents")) or [content]
            owners = {
                str(block): agent for agent in agents for block in listed(agent.get("block_ids"))
            }
            for block in (
                *objects_of(content.get("blocks")),
                *objects_of(content.get("core_memory")),
            ):
                agent = owners.get(str(block.get("id")), agents[0])
                yield from _block(tree, name, block, text_of(agent, "name") or "agent")
            for passage in (item for agent in agents for item in objects_of(agent.get("passages"))):
                yield _passage(tree, name, passage)
            for key, label in _SKIPPED_PARTS.items():
                among = (content, *agents) if agents[0] is not content else agents
                if number := sum(len(listed(item.get(key))) for item in among):
                    yield Skipped(f"{name}: {label}", "no memories", number)
        elif content is None:
            yield Skipped(name, "too large or not JSON")
        else:
            yield from _passages(tree, name, content)


def _block(tree: Tree, name: str, block: Values, agent: str) -> Iterator[Item]:
    label, value = text_of(block, "label") or "block", text_of(block, "value")
    if label.lower() == "persona":
        yield Skipped(f"{agent}: {label}", "a description of the agent")
        return
    statements = list(notes(value or ""))
    if not statements:
        yield Skipped(f"{agent}: {label}", "empty")
    for note in statements:
        yield from_note(
            NAME,
            tree,
            name,
            note,
            Kind.FACT,
            key=f"{agent}#{label}#{words_hash(note.text)}",
            kind=kind_of((label.replace("_", " "), *note.headings), Kind.FACT),
            date=moment(block.get("created_at")),
            tags=tags_of([label]),
        )


def _passages(tree: Tree, name: str, content: object) -> Iterator[Item]:
    if isinstance(content, dict):
        content = content.get("passages") or content.get("results")
    passages = objects_of(content)
    if not passages:
        yield Skipped(name, "no list of passages")
    for passage in passages:
        yield _passage(tree, name, passage)


def _passage(tree: Tree, name: str, passage: Values) -> Item:
    content = text_of(passage, "text", "content")
    own = text_of(passage, "id") or words_hash(content or "")
    if not content:
        return Skipped(own, "no text")
    if passage.get("is_deleted") is True:
        return Skipped(own, "deleted in Letta")
    if passage.get("file_id"):
        return Skipped(own, "a part of a file")
    return found_in(
        NAME,
        tree,
        name,
        own,
        content,
        date=moment(passage.get("created_at")) or moment(passage.get("timestamp")),
        tags=tags_of(passage.get("tags"), "archival"),
    )


SOURCE = ImportSource(
    NAME,
    "Letta",
    lambda tree: any(_is_agent(tree, name) or _is_archive(tree, name) for name in tree.names),
    _read,
)


# -- Services with a database, or with an export of its rows ---------------------------------------


Rows = Callable[[str, tuple[str, ...]], Sequence[Values]]
"""Function that returns the given columns of a table."""

_EXPORTED = {"session_summaries": "summaries", "user_prompts": "prompts"}
"""Names in exports of tables with other names in databases."""


Make = Callable[..., ImportedMemory]
"""Function that creates a memory from a key, content and other fields."""


def _service(
    name: str,
    tables: Mapping[str, frozenset[str]],
    marks: tuple[bytes, ...],
    items: Callable[[Rows, Make], Iterator[Item]],
) -> ImportSource:
    def exports(tree: Tree) -> list[str]:
        names = tree.matching(".json")
        return [name for name in names if all(mark in tree.head(name) for mark in marks)]

    def make(
        path: Path, modified: datetime, own: str, content: str, **facts: Any
    ) -> ImportedMemory:
        return ImportedMemory(shape(name, own, content, modified=modified, file=str(path), **facts))

    def read(tree: Tree) -> Iterator[Item]:
        path, files = database_with(tree, tables), exports(tree)
        if path:
            with open_foreign(path, tree.clean) as database:
                yield from items(
                    lambda table, columns: list(database.rows(table, columns)),
                    partial(make, path, modified_of(path)),
                )
        elif not files:
            yield from refused(tree, f"it has no memories in the format of {name}")
        for file in files:
            content = json_of(tree, file)
            if isinstance(content, dict):
                memory = partial(make, tree.path_of(file), tree.leaves[file].modified)
                yield from items(partial(_exported, content), memory)
            else:
                yield Skipped(file, "too large or not JSON")

    return ImportSource(
        name,
        name,
        lambda tree: database_with(tree, tables) is not None or bool(exports(tree)),
        read,
    )


def _exported(content: Values, table: str, _: tuple[str, ...]) -> Sequence[Values]:
    return objects_of(content.get(_EXPORTED.get(table, table)))


# -- mcp-memory-service ----------------------------------------------------------------------------
# A SQLite file (``sqlite_vec.db``) or a JSON export. Embeddings and similarity links are recomputed.


NAME_MCP_MEMORY = "mcp-memory-service"

_TABLES = {"memories": frozenset({"content_hash", "content", "memory_type", "metadata"})}
_COLUMNS = tuple(
    (
        "content_hash content tags memory_type metadata created_at updated_at created_at_iso "
        "deleted_at superseded_by"
    ).split()
)
_EDGES = ("source_hash", "target_hash", "relationship_type")
_SIMILARITY = "related"
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
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_OWN_TAGS = ("sys:", "q:", "t:", "agent:")
_PROJECT_TAG = "proj:"
_HANDLED = frozenset("tags type memory_type content_hash timestamp project embedding".split())


def _items(read: Rows, make: Make) -> Iterator[Item]:
    rows, edges = read("memories", _COLUMNS), read("memory_graph", _EDGES)
    ids = {
        str(row.get("content_hash")): imported_id(
            NAME_MCP_MEMORY, str(row.get("content_hash")), _created_at(row)
        )
        for row in rows
        if not row.get("deleted_at")
    }
    links: dict[str, list[Link]] = {}
    alike = 0
    for edge in edges:
        relation = str(edge.get("relationship_type") or _SIMILARITY)
        target = ids.get(str(edge.get("target_hash")))
        if relation == _SIMILARITY:
            alike += 1
        elif target:
            is_known = relation == "contradicts"
            link = Link(relation, target) if is_known else Link("related_to", target, relation)
            links.setdefault(str(edge.get("source_hash")), []).append(link)
    if alike:
        yield Skipped("links", "similarity links are computed again", alike)
    for row in rows:
        yield _memory(row, make, tuple(links.get(str(row.get("content_hash")), ())), ids)


def _memory(row: Values, make: Make, links: tuple[Link, ...], ids: Mapping[str, str]) -> Item:
    own, content = str(row.get("content_hash")), text_of(row, "content")
    kind = str(row.get("memory_type") or "")
    if row.get("deleted_at"):
        return Skipped(own, "deleted in mcp-memory-service")
    if not content or not row.get("content_hash"):
        return Skipped(own, "no text or no hash")
    metadata, tags = named(row.get("metadata")), tags_of(row.get("tags"))
    if set(tags) >= _ASSOCIATION:
        return Skipped(own, "an association that the service computed")
    project = text_of(metadata, "project") or next(
        (tag for tag in tags if tag.startswith(_PROJECT_TAG)), ""
    )
    successor = text_of(row, "superseded_by")
    is_missing = successor and successor not in ids
    return make(
        own,
        content,
        date=_created_at(row),
        updated=moment(row.get("updated_at")),
        ended="superseded in mcp-memory-service by a missing memory" if is_missing else None,
        superseded_by=ids.get(successor or ""),
        kind=_KIND_OF.get(kind) or kind_of((kind.replace("_", " "),), Kind.FACT),
        tags=tags_of(
            [
                tag.removeprefix("topic:").removeprefix("user:")
                for tag in tags
                if tag != "untagged" and not tag.startswith((*_OWN_TAGS, _PROJECT_TAG))
            ],
            kind,
        ),
        project=project_of(project.removeprefix(_PROJECT_TAG)),
        links=links,
        extra={
            key: value
            for key, value in metadata.items()
            if key not in _HANDLED and isinstance(value, str)
        },
    )


def _created_at(row: Values) -> datetime | None:
    return moment(row.get("created_at")) or moment(row.get("created_at_iso"))


SOURCE_MCP_MEMORY = _service(
    NAME_MCP_MEMORY, _TABLES, (b'"export_metadata"', b'"memories"'), _items
)


# -- mem0 ------------------------------------------------------------------------------------------
# JSON lists and exports, and OpenMemory's backup. Exports with a custom schema contain no memories.


NAME_MEM0 = "mem0"

_LISTED = (re.compile(rb'"memory"\s*:\s*"'), re.compile(rb'"id"\s*:'))
_BACKUP = re.compile(rb'^\s*\{\s*"user"\s*:(?:.|\n)*"apps"\s*:|"content"\s*:\s*"[^}]*"user_id"\s*:')
"""Pattern for OpenMemory's backup and the dashboard's export."""
_SKIPPED_STATES = {"archived": "archived in mem0", "paused": "paused in mem0"}
_HANDLED_MEM0 = frozenset("data hash type project project_id category categories tags".split())
_TEXT_KEYS = ("memory", "content", "text", "data")
_OWNER_KEYS = ("user_id", "agent_id", "run_id", "actor_id")


def _is_own(tree: Tree, name: str) -> bool:
    head = tree.head(name)
    return name.lower().endswith(".json") and (
        all(pattern.search(head) for pattern in _LISTED) or bool(_BACKUP.search(head))
    )


def _read_mem0(tree: Tree) -> Iterator[Item]:
    for name in tree.names:
        if tree.single or _is_own(tree, name):
            yield from _of_json(tree, name)


def _of_json(tree: Tree, name: str) -> Iterator[Item]:
    content = json_of(tree, name)
    if content is None:
        yield Skipped(name, "too large or not JSON")
        return
    rows: Any = content
    categories: dict[str, list[str]] = {}
    if isinstance(content, dict):
        lists = map(content.get, ("results", "memories", "items"))
        rows = next((rows for rows in lists if isinstance(rows, list)), [])
        names = {
            str(entry.get("id")): text_of(entry, "name")
            for entry in objects_of(content.get("categories"))
        }
        for entry in objects_of(content.get("memory_categories")):
            if category := names.get(str(entry.get("category_id"))):
                categories.setdefault(str(entry.get("memory_id")), []).append(category)
    memory_rows = [row for row in objects_of(rows) if text_of(row, *_TEXT_KEYS)]
    if not memory_rows:
        yield Skipped(name, "no list of memories")
    for row in memory_rows:
        yield _memory_mem0(row, tree, name, categories.get(str(row.get("id")), []))


def _memory_mem0(row: Values, tree: Tree, name: str, categories: list[str]) -> Item:
    content = text_of(row, *_TEXT_KEYS) or ""
    own = text_of(row, "id") or name
    state = str(row.get("state") or "active")
    if state == "deleted" or row.get("deleted_at"):
        return Skipped(own, "deleted in mem0")
    metadata = named(row.get("metadata"))
    until = moment(row.get("expiration_date"))
    tags = tags_of(row.get("categories"), *categories, *tags_of(metadata.get("tags")))
    kinds = (*tags, *filter(None, (text_of(metadata, "category"), text_of(metadata, "type"))))
    extra = {key: text for key in _OWNER_KEYS if (text := text_of(row, key))}
    for key, value in metadata.items():
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if key not in _HANDLED_MEM0 and (is_list or isinstance(value, str | int | float)):
            extra[key] = value
    return found_in(
        NAME_MEM0,
        tree,
        name,
        own,
        content,
        date=moment(row.get("created_at")),
        updated=moment(row.get("updated_at")),
        ended=_SKIPPED_STATES.get(state),
        kind=kind_of(tuple(kind_name.replace("_", " ") for kind_name in kinds), Kind.FACT),
        tags=tags,
        expires_on=day_of(until) if until else None,
        project=project_of(text_of(metadata, "project", "project_id") or text_of(row, "app_id")),
        extra=extra,
    )


SOURCE_MEM0 = ImportSource(
    NAME_MEM0, "mem0", lambda tree: any(_is_own(tree, name) for name in tree.names), _read_mem0
)


# -- claude-mem ------------------------------------------------------------------------------------
# A SQLite file of observations and session summaries, or a JSON export.


NAME_CLAUDE_MEM = "claude-mem"

_TABLES_CLAUDE_MEM = {
    "observations": frozenset({"project", "type", "created_at_epoch"}),
    "session_summaries": frozenset({"project", "request", "learned"}),
}
_OBSERVATION = tuple(
    (
        "memory_session_id sdk_session_id project merged_into_project type title subtitle "
        "narrative text facts concepts files_modified created_at created_at_epoch"
    ).split()
)
_SUMMARY = tuple(
    (
        "memory_session_id sdk_session_id project merged_into_project request learned "
        "completed next_steps notes created_at created_at_epoch"
    ).split()
)
_PARTS = {
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
_KINDS_CLAUDE_MEM = {"decision": Kind.DECISION, "bugfix": Kind.LESSON, "discovery": Kind.FACT}
_WORK = frozenset({"feature", "refactor", "change"})
_PASSING: dict[str, Any] = {"kind": Kind.EVENT, "importance": 5, "expiry": Expiry.TEMPORARY}
"""Fields of memories about finished work."""
_MAX_FILES = 20


def _items_claude_mem(read: Rows, make: Make) -> Iterator[Item]:
    for row in read("observations", _OBSERVATION):
        yield _observation(row, make)
    for row in read("session_summaries", _SUMMARY):
        yield _summary(row, make)
    if number := len(read("user_prompts", ("created_at_epoch",))):
        yield Skipped("prompts", "prompts are in the sessions; nacre ingest reads them", number)


def _observation(row: Values, make: Make) -> Item:
    text = text_of(row, "narrative", "text", "subtitle")
    statements = (fact.strip() for fact in listed(row.get("facts")) if isinstance(fact, str))
    items = "\n".join(f"- {statement}" for statement in statements if statement)
    content = "\n\n".join(filter(None, (text, items)))
    title = text_of(row, "title")
    if not content:
        return Skipped(_key_claude_mem(row, title), "an observation without text")
    kind, concepts = str(row.get("type") or ""), tags_of(listed(row.get("concepts")))
    files = [name for name in listed(row.get("files_modified")) if isinstance(name, str)]
    facts: dict[str, Any] = {
        "tags": tags_of([kind, *concepts]),
        "extra": {"files": files[:_MAX_FILES]} if files else {},
    }
    if kind in _WORK:
        facts |= _PASSING
    else:
        facts["kind"] = _KINDS_CLAUDE_MEM.get(kind) or kind_of((*concepts, kind), Kind.FACT)
    return _memory_claude_mem(row, make, "", title, content, **facts)


def _summary(row: Values, make: Make) -> Item:
    parts = [f"{name}: {text}" for key, name in _PARTS.items() if (text := text_of(row, key))]
    request = text_of(row, "request")
    if not parts:
        return Skipped(_key_claude_mem(row, request), "an empty summary of a session")
    facts = {**_PASSING, "tags": ("session-summary",)}
    text = "\n\n".join(parts)
    return _memory_claude_mem(row, make, "summary#", request, text, **facts)


def _memory_claude_mem(
    row: Values, make: Make, prefix: str, title: str | None, content: str, **facts: Any
) -> ImportedMemory:
    # A worktree is called ``project/worktree``.
    project = (text_of(row, "merged_into_project", "project") or "").partition("/")[0]
    return make(
        f"{prefix}{_key_claude_mem(row, title)}",
        content,
        subject=title,
        date=moment(row.get("created_at_epoch")) or moment(row.get("created_at")),
        project=project_of(project),
        **facts,
    )


def _key_claude_mem(row: Values, title: str | None) -> str:
    session = text_of(row, "memory_session_id", "sdk_session_id") or ""
    return f"{session}#{title or ''}#{row.get('created_at_epoch')}"


SOURCE_CLAUDE_MEM = _service(
    NAME_CLAUDE_MEM, _TABLES_CLAUDE_MEM, (b'"totalObservations"',), _items_claude_mem
)
