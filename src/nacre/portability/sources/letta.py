"""Letta: an agent file (``.af``, also the older form of MemGPT), and archival memory as its interface lists it.

Memory blocks are what the agent wrote of the owner and of its work, statement by statement. The persona and the system
prompt are about the agent itself; messages, tools and files are no memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nacre.portability.sources.notes import kind_of, notes
from nacre.portability.sources.shape import json_of, listed, moment, named, shape, tags_of, text_of, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.values.memory import Kind

NAME = "letta"

_PERSONA = frozenset({"persona"})
_LEFT = {"messages": "messages of conversations", "tools": "tools", "files": "files", "skills": "skills"}


def _recognise(tree: Tree) -> bool:
    return any(_is_agent(tree, name) or _is_archive(tree, name) for name in tree.names)


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
    return name.lower().endswith(".json") and b'"text"' in head and (b'"archive_id"' in head or b'"passage-' in head)


def _read(tree: Tree) -> Iterator[Item]:
    for name in tree.names:
        is_agent = _is_agent(tree, name)
        if not tree.single and not is_agent and not _is_archive(tree, name):
            continue
        held = json_of(tree, name)
        held = named(held) if isinstance(held, str) else held  # an agent file may hold its JSON as a text
        if isinstance(held, dict) and (is_agent or "blocks" in held):
            yield from _agents(tree, name, held)
        elif held is None:
            yield Skipped(name, "it is no JSON, or too large")
        else:
            yield from _passages(tree, name, held)


def _agents(tree: Tree, name: str, held: dict[str, Any]) -> Iterator[Item]:
    agents = _objects(held.get("agents")) or [held]
    owners = {str(block): agent for agent in agents for block in listed(agent.get("block_ids"))}
    for block in (*_objects(held.get("blocks")), *_objects(held.get("core_memory"))):
        agent = owners.get(str(block.get("id")), agents[0])
        yield from _block(tree, name, block, text_of(agent, "name") or "agent")
    for passage in (one for agent in agents for one in _objects(agent.get("passages"))):
        yield _passage(tree, name, passage)
    for key, what in _LEFT.items():
        among = (held, *agents) if agents[0] is not held else agents
        if number := sum(len(listed(one.get(key))) for one in among):
            yield Skipped(f"{name}: {what}", "no memories", number)


def _block(tree: Tree, name: str, block: Mapping[str, Any], agent: str) -> Iterator[Item]:
    label, value = text_of(block, "label") or "block", text_of(block, "value")
    if label.lower() in _PERSONA:
        yield Skipped(f"{agent}: {label}", "what the agent is told of itself")
        return
    said = [note for note in notes(value or "") if note.is_said]
    if not said:
        yield Skipped(f"{agent}: {label}", "it says nothing")
    seen: set[str] = set()
    for note in said:
        if note.text in seen:
            continue
        seen.add(note.text)
        memory = shape(
            NAME, f"{agent}#{label}#{words_hash(note.text)}", note.text, modified=tree.leaves[name].modified,
            subject=note.subject, kind=kind_of((label.replace("_", " "), *note.headings), Kind.FACT),
            stated=moment(block.get("created_at")), file=str(tree.path_of(name)), tags=tags_of([label]),
        )  # fmt: skip
        yield Found(memory)


def _passages(tree: Tree, name: str, held: object) -> Iterator[Item]:
    if isinstance(held, dict):
        held = held.get("passages") or held.get("results")
    found = _objects(held)
    if not found:
        yield Skipped(name, "it lists no passages")
    for passage in found:
        yield _passage(tree, name, passage)


def _passage(tree: Tree, name: str, passage: Mapping[str, Any]) -> Item:
    content = text_of(passage, "text", "content")
    own = text_of(passage, "id") or words_hash(content or "")
    if not content:
        return Skipped(own, "it has no words")
    if passage.get("is_deleted") is True:
        return Skipped(own, "deleted in Letta")
    if passage.get("file_id"):
        return Skipped(own, "a piece of a file")
    memory = shape(
        NAME, own, content, modified=tree.leaves[name].modified,
        stated=moment(passage.get("created_at")) or moment(passage.get("timestamp")), file=str(tree.path_of(name)),
        tags=tags_of(passage.get("tags"), "archival"),
    )  # fmt: skip
    return Found(memory)


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in listed(value) if isinstance(one, dict)]


SOURCE = ImportSource(NAME, "Letta", _recognise, _read)
