"""basic-memory: Markdown notes with observations (``- [category] text #tag (context)``) and relations
(``- relation [[Note]]``).

An observation that is a statement becomes a memory of its own; what else a note says stays together under its title.
Relations become links between notes. Its database is an index of the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.platform.ids import to_millisecond
from nacre.portability.sources.notes import Note, kind_of
from nacre.portability.sources.shape import front_of, imported_id, moment, shape, tags_of, text_of, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.text.passages import shorten
from nacre.values.memory import Kind, Link
from nacre.vault.layout import slugify

NAME = "basic-memory"

_OBSERVATION = re.compile(r"^\s*[-*]\s+\[(?![ xX-]\])([^\[\]()\n]{1,60})\]\s+(\S.*)$")
_RELATION = re.compile(r"""^\s*[-*]\s+(?:"([^"\n]+)"|'([^'\n]+)'|([^\s\[\]"']+))\s+\[\[([^\]\n]+)\]\]""")
_LINKS = frozenset({
    "supersedes", "depends_on", "contradicts", "specializes", "part_of", "alternative_to", "builds_on", "elaborates",
})  # fmt: skip
_PLAIN = frozenset({"relates_to", "related_to", "links_to"})
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_HEADING = re.compile(r"^#{1,6}\s")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LEAST_WORDS = 4
_KNOWN = frozenset({"title", "type", "tags", "permalink", "created", "modified", "schema"})
_SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class _Note:
    """A note taken apart: what it is called, its front matter, its statements, its relations, and the rest."""

    name: str
    title: str
    front: Mapping[str, Any]
    observations: tuple[tuple[str, str], ...]
    relations: tuple[tuple[str, str], ...]
    rest: str


def _recognise(tree: Tree) -> bool:
    return any(
        {"title", "permalink"} <= front.keys() and not {"kind", "id"} & front.keys()
        for front in (_front(tree, name) for name in tree.matching(".md"))
    )


def _read(tree: Tree) -> Iterator[Item]:
    found: list[_Note] = []
    for name in tree.matching(".md"):
        note = _note(tree, name)
        if isinstance(note, Skipped):
            yield note
        else:
            found.append(note)
    ids = _names(tree, found)
    for note in found:
        yield from _memories(tree, note, ids)


def _note(tree: Tree, name: str) -> _Note | Skipped:
    if tree.text(name) is None:
        return Skipped(name, "it is too large, or no text")
    try:
        front, body = front_of(tree, name)
    except MemoryInvalid as error:
        return Skipped(name, error.message)
    if str(front.get("type")).lower() == _SCHEMA:
        return Skipped(name, "a schema says how notes look")
    title = text_of(front, "title") or PurePosixPath(name).stem
    note = _taken_apart(name, title, front, body)
    return note if note.rest or note.observations else Skipped(name, "it says nothing")


def _taken_apart(name: str, title: str, front: Mapping[str, Any], body: str) -> _Note:
    observations: list[tuple[str, str]] = []
    relations: list[tuple[str, str]] = []
    rest: list[str] = []
    fence = False
    for line in body.splitlines():
        fence ^= bool(_FENCE.match(line))
        said = None if fence else _OBSERVATION.match(line)
        relation = None if fence or said else _RELATION.match(line)
        if said and _is_statement(said.group(2)):
            observations.append((said.group(1).strip(), said.group(2).strip()))
            continue
        if relation:
            relations.append((next(filter(None, relation.groups())), relation.group(4)))
        rest.append(line)
    return _Note(name, title, front, tuple(observations), tuple(relations), _without_bare_headings(title, rest))


def _is_statement(text: str) -> bool:
    """Whether an observation can stand alone; a bare value, as of a name, belongs to its note."""
    return Note((), text).is_said and (not text.isascii() or len(text.split()) >= _LEAST_WORDS)


def _without_bare_headings(title: str, lines: list[str]) -> str:
    """The lines that are left, without the title and without headings below which nothing is left."""
    kept: list[str] = []
    for line in reversed(lines):
        is_bare = _HEADING.match(line) and (not kept or _HEADING.match(kept[-1]))
        if is_bare or (not line.strip() and (not kept or not kept[-1])):
            continue
        kept.append(line.rstrip())
    text = "\n".join(reversed(kept)).strip()
    first, _, below = text.partition("\n")
    return below.strip() if first.startswith("# ") and first[2:].strip() == title else text


def _names(tree: Tree, found: list[_Note]) -> dict[str, str]:
    """What notes are called, in every way a link may name them, and the memory that each leads to."""
    ids: dict[str, str] = {}
    for note in found:
        for called in _called(note):
            ids.setdefault(slugify(called), _leading(tree, note))
    return ids


def _called(note: _Note) -> tuple[str, ...]:
    path = PurePosixPath(note.name)
    names = (note.title, text_of(note.front, "permalink"), str(path.with_suffix("")), path.stem)
    return tuple(name for name in names if name)


def _leading(tree: Tree, note: _Note) -> str:
    """The memory that stands for a note: what it says at large, else its first observation."""
    key = _key(tree, note) if note.rest else _key(tree, note, note.observations[0][1])
    return imported_id(NAME, key, moment(note.front.get("created")))


def _memories(tree: Tree, note: _Note, ids: Mapping[str, str]) -> Iterator[Item]:
    leading = _leading(tree, note)
    kind = kind_of((text_of(note.front, "type") or "",), Kind.FACT)
    tags = tags_of(note.front.get("tags"))
    extra = {key: value for key, value in note.front.items() if key not in _KNOWN} | _aliases(note)
    if note.rest:
        links = _links(note, ids, leading)
        more = {"subject": note.title, "kind": kind, "tags": tags, "links": links, "extra": extra}
        yield _found(tree, note, _key(tree, note), note.rest, **more)
    seen: set[str] = set()
    for category, said in note.observations:
        if said in seen:
            continue
        seen.add(said)
        yield _found(
            tree, note, _key(tree, note, said), said, subject=_subject(note, said),
            kind=kind_of((category,), Kind.FACT), tags=tags_of([*tags, category, *_TAG.findall(said)]),
            links=(Link("part_of", leading),) if note.rest else (),
            extra={} if note.rest or len(seen) > 1 else extra,
        )  # fmt: skip


def _subject(note: _Note, said: str) -> str:
    return f"{note.title}: {shorten(_TAG.sub('', said).strip(), 60)}"


def _aliases(note: _Note) -> dict[str, list[str]]:
    """Names beside the subject that the text of other notes may use."""
    names = {slugify(name): name for name in reversed(_called(note)[:2])}
    own = slugify(note.title) if note.rest else ""
    found = [name for slug, name in names.items() if slug and slug != own]
    return {"aliases": found} if found else {}


def _links(note: _Note, ids: Mapping[str, str], own: str) -> tuple[Link, ...]:
    found = []
    for relation, target in note.relations:
        to = ids.get(slugify(target.partition("|")[0].partition("#")[0]))
        if to and to != own:
            name = relation.lower().replace("-", "_").replace(" ", "_")
            known = name if name in _LINKS else "related_to"
            found.append(Link(known, to, None if name in _LINKS | _PLAIN else relation))
    return tuple(dict.fromkeys(found))


def _found(tree: Tree, note: _Note, key: str, content: str, **more: Any) -> Found:
    modified = moment(note.front.get("modified"))
    memory = shape(
        NAME, key, content, modified=modified or tree.leaves[note.name].modified,
        stated=moment(note.front.get("created")), file=str(tree.path_of(note.name)), **more,
    )  # fmt: skip
    return Found(replace(memory, updated=to_millisecond(modified or memory.created)))


def _key(tree: Tree, note: _Note, statement: str | None = None) -> str:
    """A note keeps its permalink when its file moves."""
    own = f"{tree.root}#{text_of(note.front, 'permalink') or note.name}"
    return f"{own}#{words_hash(statement)}" if statement else own


def _front(tree: Tree, name: str) -> Mapping[str, Any]:
    try:
        return front_of(tree, name)[0]
    except MemoryInvalid:
        return {}


SOURCE = ImportSource(NAME, "basic-memory", _recognise, _read)
