"""ClawXMemory: Markdown below ``global/`` and ``projects/``, or the snapshot its interface exports. Seed facts 3.1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.platform import json_text
from nacre.platform.ids import to_millisecond
from nacre.portability.sources.notes import kind_of, notes
from nacre.portability.sources.shape import (
    front_of,
    is_true,
    moment,
    project_of,
    readable_front,
    shape,
    text_of,
    words_hash,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Page, Skipped
from nacre.portability.sources.tree import Tree
from nacre.values.memory import Kind, Retirement
from nacre.vault.front_matter import dump

NAME = "clawxmemory"

_SNAPSHOT = "clawxmemory-memory-snapshot"
_META, _PROFILE, _MANIFEST = "project.meta.md", "user-profile.md", "MEMORY.md"
_KINDS = {"feedback": Kind.PREFERENCE, "project": Kind.FACT, "user": Kind.PREFERENCE}
_TEMPORARY = "_tmp"
_ONE_SECTION = re.compile(r"\A## (?:Rule|Decisions|Next Steps|Notes)\n\n((?:(?!## ).*\n)*(?!## ).+)\Z")
"""A body of one section: its heading says what the file's kind says."""

_KNOWN = frozenset({
    "name", "description", "type", "scope", "project_id", "updated_at", "captured_at", "deprecated", "dream_attempts",
})  # fmt: skip


def _recognise(tree: Tree) -> bool:
    if tree.single:
        return _SNAPSHOT.encode() in tree.head(tree.names[0])
    return any(_is_own(tree, name) for name in tree.matching(".md"))


def _is_own(tree: Tree, name: str) -> bool:
    parts = PurePosixPath(name).parts
    if parts[-1] in (_META, _PROFILE):
        return parts[0] in ("projects", "global") or len(parts) <= 2
    front = readable_front(tree, name)
    return parts[0] == "projects" and {"name", "type", "scope", "captured_at"} <= front.keys()


def _read(tree: Tree) -> Iterator[Item]:
    if tree.single:
        tree = _unpacked(tree)
    projects = dict(_projects(tree))
    yield from (Page(f"projects/{slug}/project.md", document) for slug, document in projects.values())
    slugs = {own: slug for own, (slug, _) in projects.items()}
    for name in tree.matching(".md"):
        last = PurePosixPath(name).name
        if last == _PROFILE:
            yield from _profile(tree, name)
        elif last not in (_META, _MANIFEST):
            yield _entry(tree, name, slugs)


def _unpacked(tree: Tree) -> Tree:
    """The files that a snapshot holds as ``{relativePath, content}``."""
    try:
        files = json_text.parse(tree.text(tree.names[0]) or "null").get("files")
    except (ValueError, AttributeError):
        files = None
    held = [one for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    return tree.grown({str(one.get("relativePath")): str(one.get("content") or "") for one in held})


def _projects(tree: Tree) -> Iterator[tuple[str, tuple[str, str]]]:
    """Project ids with the slug and the page each gets here."""
    taken: set[str] = set()
    for name in tree.names:
        if PurePosixPath(name).name != _META:
            continue
        front = readable_front(tree, name)
        folder = PurePosixPath(name).parent.name
        own = text_of(front, "project_id") or folder
        title = text_of(front, "project_name") or own
        slug = project_of(title) or project_of(own) or "project"
        slug = slug if slug not in taken else f"{slug}-{folder[-4:]}"
        taken.add(slug)
        aliases = [title, *_aliases(front.get("aliases"))]
        values = {
            "name": title, "status": text_of(front, "status"), "aliases": list(dict.fromkeys(aliases)), "remotes": [],
            "roots": [], "labels": [own],
        }  # fmt: skip
        page = f"---\n{dump({key: value for key, value in values.items() if value is not None})}---\n# {title}\n"
        about = text_of(front, "description")
        yield own, (slug, f"{page}\n{about}\n" if about else page)


def _entry(tree: Tree, name: str, slugs: Mapping[str, str]) -> Item:
    if tree.text(name) is None:
        return Skipped(name, "it is too large, or no text")
    try:
        front, body = front_of(tree, name)
    except MemoryInvalid as error:
        return Skipped(name, error.message)
    parts = PurePosixPath(name).parts
    content = _ONE_SECTION.sub(r"\1", body) or text_of(front, "description")
    if not front or not content:
        return Skipped(name, "it is no memory file")
    folder = parts[1] if parts[0] == "projects" and len(parts) > 2 else ""
    own = text_of(front, "project_id") or folder
    unsettled = _TEMPORARY in (folder, own)
    updated = moment(text_of(front, "updated_at"))
    memory = shape(
        NAME, f"{tree.root}#{name}", content, modified=updated or tree.leaves[name].modified,
        subject=text_of(front, "name", "description"), stated=moment(text_of(front, "captured_at")),
        kind=_KINDS.get(str(front.get("type")).lower(), Kind.FACT), file=str(tree.path_of(name)),
        project=None if unsettled or not own else slugs.get(own) or project_of(own), inbox=unsettled,
        extra={key: value for key, value in front.items() if key not in _KNOWN},
    )  # fmt: skip
    memory = replace(memory, updated=to_millisecond(updated or memory.created))
    gone = is_true(front.get("deprecated")) or "Archive" in parts
    reason = "deprecated in ClawXMemory" if is_true(front.get("deprecated")) else "archived in ClawXMemory"
    return Found(replace(memory, retired=Retirement(memory.updated, reason)) if gone else memory)


def _profile(tree: Tree, name: str) -> Iterator[Item]:
    """The owner's profile: each statement a memory of its own."""
    try:
        _, body = front_of(tree, name)
    except MemoryInvalid as error:
        yield Skipped(name, error.message)
        return
    for note in notes(body):
        if note.is_said:
            memory = shape(
                NAME, f"{tree.root}#{name}#{words_hash(note.text)}", note.text, modified=tree.leaves[name].modified,
                subject=note.subject, kind=kind_of(note.headings, Kind.FACT), file=str(tree.path_of(name)),
                tags=("profile",),
            )  # fmt: skip
            yield Found(memory)


def _aliases(value: Any) -> list[str]:
    """A list, or a list as JSON text."""
    if isinstance(value, str):
        try:
            value = json_text.parse(value)
        except ValueError:
            value = re.split(r"\s*,\s*", value)
    return [str(one) for one in value if str(one).strip()] if isinstance(value, list) else []


SOURCE = ImportSource(NAME, "ClawXMemory", _recognise, _read)
