"""agent-knowledge: Markdown entries by category; edges and scores where their databases lie beside. Seed facts 2.1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import InvalidInput, MemoryInvalid
from nacre.platform.days import day_of
from nacre.portability.sources.notes import kind_of, notes
from nacre.portability.sources.shape import (
    between,
    front_of,
    imported_id,
    is_true,
    moment,
    project_of,
    readable_front,
    shape,
    tags_of,
    text_of,
    words_hash,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.storage.sqlite.foreign import ForeignDatabase, open_foreign
from nacre.values.memory import USUAL_STRENGTH, Confidence, Kind, Link, Validity
from nacre.values.review import Usage

NAME = "agent-knowledge"

CATEGORIES = {
    "projects": Kind.FACT, "people": Kind.RELATIONSHIP, "decisions": Kind.DECISION, "workflows": Kind.LESSON,
    "notes": Kind.FACT,
}  # fmt: skip
_IDENTITY = frozenset({"identity.md"})
_KNOWN = frozenset({"title", "tags", "updated", "confidence", "confidence_score", "evergreen", "author"})
_RELATIONS = frozenset({
    "related_to", "supersedes", "depends_on", "contradicts", "specializes", "part_of", "alternative_to", "builds_on",
    "elaborates",
})  # fmt: skip
_SAYS_WHAT_HOLDS = frozenset({"supersedes", "contradicts"})
"""Of these an ended edge says nothing any more."""


def _recognise(tree: Tree) -> bool:
    telling = {"title", "tags", "updated"}
    return any(_category(name) and telling & readable_front(tree, name).keys() for name in tree.names)


def _read(tree: Tree) -> Iterator[Item]:
    links, usage = _beside(tree)
    ids = {name: _id(tree, name) for name in tree.names if _category(name)}
    for name in tree.matching(".md"):
        if name.lower() in _IDENTITY:
            yield from _identity(tree, name)
        elif name in ids:
            yield _entry(
                tree,
                name,
                [replace(link, to=ids[link.to]) for link in links.get(name, []) if link.to in ids],
                usage.get(name),
            )
        elif not name.startswith("."):
            yield Skipped(name, "in none of the categories")


def _category(name: str) -> Kind | None:
    parts = PurePosixPath(name).parts
    return CATEGORIES.get(parts[0]) if len(parts) > 1 and name.lower().endswith(".md") else None


def _entry(tree: Tree, name: str, links: list[Link], usage: Usage | None) -> Item:
    if tree.text(name) is None:
        return Skipped(name, "it is too large, or no text")
    try:
        front, body = front_of(tree, name)
    except MemoryInvalid as error:
        return Skipped(name, error.message)
    title = text_of(front, "title") or PurePosixPath(name).stem.replace("-", " ").capitalize()
    body = without_title(body, title)
    if not body:
        return Skipped(name, "it is empty")
    parts = PurePosixPath(name).parts
    in_project = parts[0] == "projects"
    named = parts[1].removesuffix(".md") if in_project else text_of(front, "project")
    score = text_of(front, "confidence_score")
    memory = shape(
        NAME, str(tree.path_of(name)), body, modified=moment(text_of(front, "updated")) or tree.leaves[name].modified,
        subject=title, kind=_category(name) or Kind.FACT, file=str(tree.path_of(name)),
        tags=tags_of(front.get("tags"), *([] if in_project else [parts[0]])), project=project_of(named),
        confidence=Confidence.INFERRED if text_of(front, "confidence") == "inferred" else Confidence.EXTRACTED,
        confidence_score=between(score, 0, 1, 0.5) if score else None, evergreen=is_true(front.get("evergreen")),
        author=text_of(front, "author"), links=tuple(links),
        extra={key: value for key, value in front.items() if key not in _KNOWN},
    )  # fmt: skip
    return Found(memory, usage)


def _identity(tree: Tree, name: str) -> Iterator[Item]:
    """Who the owner is: each statement a memory of its own."""
    for note in notes(tree.clean(tree.text(name) or "")):
        if note.is_said:
            key = f"{tree.path_of(name)}#{words_hash(note.text)}"
            memory = shape(
                NAME, key, note.text, modified=tree.leaves[name].modified, subject=note.subject,
                kind=kind_of(note.headings, Kind.PREFERENCE), file=str(tree.path_of(name)), tags=("identity",),
            )  # fmt: skip
            yield Found(memory)


def _beside(tree: Tree) -> tuple[dict[str, list[Link]], dict[str, Usage]]:
    """Edges and scores from databases in the same folder; its own folder for them is elsewhere and may be copied in."""
    links: dict[str, list[Link]] = {}
    usage: dict[str, Usage] = {}
    for name in tree.names:
        if tree.root.is_dir() and tree.is_database(name):
            try:
                with open_foreign(tree.path_of(name), tree.clean) as database:
                    _edges(database, links)
                    _scores(database, usage)
            except InvalidInput:
                continue
    return links, usage


def _edges(database: ForeignDatabase, links: dict[str, list[Link]]) -> None:
    for row in database.rows("edges", ("source", "target", "rel_type", "strength", "valid_from", "valid_to")):
        if row.get("rel_type") in _RELATIONS and not (row.get("valid_to") and row["rel_type"] in _SAYS_WHAT_HOLDS):
            links.setdefault(str(row.get("source")), []).append(_edge(row))


def _edge(row: Mapping[str, Any]) -> Link:
    """A link to a name; it keeps its strength and when it holds."""
    ends = (moment(row.get(name)) for name in ("valid_from", "valid_to"))
    valid = Validity(*(day_of(end) if end else None for end in ends))
    said = row.get("strength")
    strength = between(said, 0, 1, USUAL_STRENGTH) if said is not None else None
    return Link(str(row["rel_type"]), str(row.get("target")), strength=strength, valid=valid)


def _scores(database: ForeignDatabase, usage: dict[str, Usage]) -> None:
    for row in database.rows("entry_scores", ("entry_path", "access_count", "last_accessed")):
        count = int(between(row.get("access_count"), 0, 1e9, 0))
        usage[str(row.get("entry_path"))] = Usage(last_recalled=moment(row.get("last_accessed")), access_count=count)


def without_title(body: str, title: str) -> str:
    """A body without the heading that says its title once more."""
    first, _, rest = body.partition("\n")
    return rest.strip() if first.lstrip("# ").strip() == title and first.startswith("#") else body


def _id(tree: Tree, name: str) -> str:
    return imported_id(NAME, str(tree.path_of(name)), None)


SOURCE = ImportSource(NAME, "agent-knowledge", _recognise, _read)
