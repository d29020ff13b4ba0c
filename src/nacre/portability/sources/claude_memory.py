"""Claude Code's own memory: ``~/.claude/projects/<folder>/memory/``, an index and one fact a file.

A fact has front matter (``name``, ``description``, ``type`` at the top or below ``metadata``) and may link others as
``[[name]]``. The index only points; where it says something itself, that is taken in as notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.platform import json_text
from nacre.portability.sources.notes import kind_of, notes
from nacre.portability.sources.shape import (
    front_of,
    imported_id,
    moment,
    readable_front,
    shape,
    tags_of,
    text_of,
    words_hash,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.values.memory import Kind, Link

NAME = "claude-memory"

_INDEX = "MEMORY.md"
_KINDS = {
    "user": Kind.FACT, "feedback": Kind.PREFERENCE, "project": Kind.FACT, "reference": Kind.FACT,
    "preference": Kind.PREFERENCE, "decision": Kind.DECISION, "lesson": Kind.LESSON,
}  # fmt: skip
_POINTER = re.compile(r"\[[^\]]*\]\([^)\s]+\.md\)")
_LINK = re.compile(r"\[\[([^\]\n|#]{1,120})")
_DAY = re.compile(r"\d{4}-\d\d-\d\d.*\.md")
_KNOWN = frozenset({"name", "description", "type", "metadata", "tags", "created", "updated", "modified"})


def _folders(tree: Tree) -> list[str]:
    """The memory folders below what was named; the empty name for the root itself."""
    found = {str(PurePosixPath(name).parent) for name in tree.matching(".md")}
    own = tree.root.name == "memory" or (".claude" in tree.root.parts and "." in found and f"{_INDEX}" in tree.leaves)
    below = sorted(folder for folder in found if PurePosixPath(folder).name == "memory" and folder != ".")
    return [*([""] if own and "." in found else []), *below]


def _recognise(tree: Tree) -> bool:
    if tree.single:
        return tree.root.parent.name == "memory" and ".claude" in tree.root.parts
    inside = [name for folder in _folders(tree) for name in _files(tree, folder)]
    if any(_DAY.fullmatch(PurePosixPath(name).name) for name in inside):
        return False  # daily notes are OpenClaw's
    return any(_is_fact(tree, name) or _is_index(tree, name) for name in inside or tree.matching(".md"))


def _is_fact(tree: Tree, name: str) -> bool:
    front = readable_front(tree, name)
    kind = text_of(front, "type") or text_of(_metadata(front), "type")
    return bool(text_of(front, "name") and text_of(front, "description") and kind in _KINDS and "scope" not in front)


def _is_index(tree: Tree, name: str) -> bool:
    return PurePosixPath(name).name == _INDEX and (
        ".claude" in tree.path_of(name).parts or len(_POINTER.findall(tree.text(name) or "")) >= 2
    )


def _read(tree: Tree) -> Iterator[Item]:
    if tree.single:
        yield from _file(tree, tree.names[0], None, {})
        return
    for folder in _folders(tree) or [""]:
        cwd = _cwd(tree, folder)
        names = list(_files(tree, folder))
        ids = {_name(tree, name): _id(tree, name) for name in names}
        for name in names:
            yield from _file(tree, name, cwd, ids)


def _files(tree: Tree, folder: str) -> Iterator[str]:
    prefix = f"{folder}/" if folder else ""
    return (name for name in tree.matching(".md") if name.startswith(prefix))


def _file(tree: Tree, name: str, cwd: str | None, ids: Mapping[str, str]) -> Iterator[Item]:
    if tree.text(name) is None:
        yield Skipped(name, "it is too large, or no text")
        return
    try:
        front, body = front_of(tree, name)
    except MemoryInvalid as error:
        yield Skipped(name, error.message)
        return
    if not front or PurePosixPath(name).name == _INDEX:
        yield from _notes(tree, name, body, cwd)
    elif not body and not text_of(front, "description"):
        yield Skipped(name, "it is empty")
    else:
        yield _fact(tree, name, front, body, cwd, ids)


def _fact(
    tree: Tree, name: str, front: Mapping[str, Any], body: str, cwd: str | None, ids: Mapping[str, str]
) -> Item:  # fmt: skip
    metadata = _metadata(front)
    kind = text_of(front, "type") or text_of(metadata, "type") or ""
    description = text_of(front, "description")
    linked = dict.fromkeys(one.strip() for one in _LINK.findall(body))
    own = _id(tree, name)
    memory = shape(
        NAME, _key(tree, name), body or description or "", modified=tree.leaves[name].modified,
        subject=description if description and len(description) <= 120 else _title(front, name),
        kind=_KINDS.get(kind, Kind.FACT), stated=moment(text_of(front, "created")), file=str(tree.path_of(name)),
        tags=tags_of(front.get("tags")),
        links=tuple(Link("related_to", ids[other]) for other in linked if other in ids and ids[other] != own),
        extra={key: value for key, value in front.items() if key not in _KNOWN},
    )  # fmt: skip
    return Found(memory, cwd=cwd)


def _notes(tree: Tree, name: str, body: str, cwd: str | None) -> Iterator[Item]:
    for note in notes(body):
        if _POINTER.search(note.text) or not note.is_said:
            continue
        key = f"{_key(tree, name)}#{words_hash(note.text)}"
        yield Found(
            shape(
                NAME, key, note.text, modified=tree.leaves[name].modified, subject=note.subject,
                kind=kind_of(note.headings, Kind.FACT), file=str(tree.path_of(name)),
            ),
            cwd=cwd,
        )  # fmt: skip


def _cwd(tree: Tree, folder: str) -> str | None:
    """The folder a project's sessions ran in: their transcripts lie beside the memory and say it."""
    place = (tree.root / folder).parent
    if not place.is_dir():
        return None
    for transcript in sorted(place.glob("*.jsonl"))[:3]:
        with transcript.open("rb") as file:
            for line in file.read(65_536).split(b"\n"):
                try:
                    cwd = json_text.parse(line).get("cwd")
                except (ValueError, AttributeError):
                    continue
                if isinstance(cwd, str) and cwd:
                    return tree.clean(cwd)
    return None


def _metadata(front: Mapping[str, Any]) -> Mapping[str, Any]:
    value = front.get("metadata")
    return value if isinstance(value, dict) else {}


def _name(tree: Tree, name: str) -> str:
    return text_of(readable_front(tree, name), "name") or PurePosixPath(name).stem


def _title(front: Mapping[str, Any], name: str) -> str:
    return (text_of(front, "name") or PurePosixPath(name).stem).replace("-", " ").replace("_", " ").capitalize()


def _key(tree: Tree, name: str) -> str:
    return str(tree.path_of(name))


def _id(tree: Tree, name: str) -> str:
    return imported_id(NAME, _key(tree, name), moment(text_of(readable_front(tree, name), "created")))


SOURCE = ImportSource(NAME, "Claude Code memory", _recognise, _read)
