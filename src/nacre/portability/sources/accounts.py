"""Exports of ChatGPT and Claude.ai accounts: their conversations are transcripts, which ingest reads.

What Claude.ai itself remembers of its owner (``memories.json``) becomes memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.portability.sources.notes import Note, kind_of, notes
from nacre.portability.sources.shape import json_of, project_of, shape, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped, Transcript
from nacre.portability.sources.tree import Tree
from nacre.transcripts.accounts.chatgpt import ADAPTER as CHATGPT_ADAPTER
from nacre.transcripts.accounts.claude_ai import ADAPTER as CLAUDE_AI_ADAPTER
from nacre.transcripts.adapter import Adapter, Head
from nacre.values.memory import Kind, Memory

_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_MEMORIES = re.compile(r"(?:.*/)?memories(?:/[^/]+)?\.json")


def _transcripts(tree: Tree, adapter: Adapter) -> Iterator[Path]:
    """The files that an adapter recognises; a zip counts as one."""
    if tree.root.is_file():
        data = tree.head(tree.names[0]) if tree.single else b"PK\x03\x04"
        if adapter.sniff(Head(tree.root, data)):
            yield tree.root
        return
    for name in tree.names:
        if _CONVERSATIONS.fullmatch(name) and adapter.sniff(Head(tree.path_of(name), tree.head(name))):
            yield tree.path_of(name)


def _source(adapter: Adapter) -> ImportSource:
    def recognise(tree: Tree) -> bool:
        return next(_transcripts(tree, adapter), None) is not None

    def read(tree: Tree) -> Iterator[Item]:
        yield from (Transcript(path) for path in _transcripts(tree, adapter))
        if adapter is CLAUDE_AI_ADAPTER:
            yield from _remembered(tree)

    return ImportSource(adapter.tool, adapter.label, recognise, read)


def _remembered(tree: Tree) -> Iterator[Item]:
    names = {str(project.get("uuid")): str(project.get("name") or "") for project in _projects(tree)}
    for name in tree.names:
        if not _MEMORIES.fullmatch(name):
            continue
        held = json_of(tree, name)
        if held is None:
            yield Skipped(name, "it is no JSON")
        for account in held if isinstance(held, list) else [held]:
            if not isinstance(account, dict):
                continue
            yield from _memories(tree, name, str(account.get("conversations_memory") or ""), None)
            projects = account.get("project_memories")
            for uuid, text in projects.items() if isinstance(projects, dict) else ():
                yield from _memories(tree, name, str(text), project_of(names.get(str(uuid))))


def _memories(tree: Tree, name: str, text: str, project: str | None) -> Iterator[Item]:
    modified = tree.leaves[name].modified
    for note in notes(text):
        if note.is_said:
            yield Found(_memory(note, str(tree.path_of(name)), modified, project))


def _memory(note: Note, file: str, modified: datetime, project: str | None) -> Memory:
    return shape(
        CLAUDE_AI_ADAPTER.tool, words_hash(f"{project}\n{note.text}"), note.text, modified=modified,
        subject=note.subject, kind=kind_of(note.headings, Kind.FACT), file=file, project=project,
    )  # fmt: skip


def _projects(tree: Tree) -> Iterator[dict[str, Any]]:
    for name in tree.names:
        if name.endswith("projects.json") or re.fullmatch(r"(?:.*/)?projects/[^/]+\.json", name):
            held = json_of(tree, name)
            yield from (one for one in (held if isinstance(held, list) else [held]) if isinstance(one, dict))


CHATGPT = _source(CHATGPT_ADAPTER)
CLAUDE_AI = _source(CLAUDE_AI_ADAPTER)
