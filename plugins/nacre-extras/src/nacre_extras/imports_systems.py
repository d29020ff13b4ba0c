"""Imports from agenr, agent-knowledge, basic-memory and ClawXMemory.

From agenr, a SQLite file of entries is read, without embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.ids import to_millisecond, to_ms
from nacre.base.text import shorten
from nacre.base.times import day_of
from nacre.data.importers import (
    RELATIONS,
    ImportedMemory,
    ImportSource,
    Item,
    Note,
    Page,
    Skipped,
    Tree,
    between,
    database_with,
    from_note,
    imported_id,
    is_true,
    kind_of,
    listed,
    modified_of,
    moment,
    notes,
    objects_of,
    project_of,
    read_note,
    readable_front,
    refused,
    shape,
    tags_of,
    text_of,
    words_hash,
)
from nacre.errors import InvalidInputError
from nacre.store.foreign import open_foreign
from nacre.values.memory import (
    USUAL_STRENGTH,
    Confidence,
    Expiry,
    Kind,
    Link,
    Retirement,
    Scope,
    Validity,
)
from nacre.values.review import Usage
from nacre.vault.documents import Values, dump
from nacre.vault.files import slugify

NAME = "agenr"
EXPIRED = "EXPIRED"
"""Value of ``superseded_by`` for expired entries."""

_COLUMNS = tuple(
    (
        "id type subject canonical_key content importance expiry scope platform project "
        "source_file source_context created_at updated_at last_recalled_at recall_count "
        "recall_intervals quality_score superseded_by retired retired_at "
        "retired_reason suppressed_contexts"
    ).split()
)
_TABLES = {"entries": frozenset({"id", "type", "subject", "content"})}
_RELATIONS = frozenset({"supersedes", "contradicts", "elaborates"})
_MAX_INTERVALS = 100


def found_in(
    system: str,
    tree: Tree,
    name: str,
    own: str,
    content: str,
    *,
    modified: datetime | None = None,
    usage: Usage | None = None,
    **more: Any,
) -> ImportedMemory:
    """Convert a file to a memory. ``modified`` defaults to the file's modification time."""
    at = modified or tree.leaves[name].modified
    file = str(tree.path_of(name))
    return ImportedMemory(shape(system, own, content, modified=at, file=file, **more), usage)


def _read(tree: Tree) -> Iterator[Item]:
    path = database_with(tree, _TABLES)
    if path is None:
        yield from refused(tree, "it has no table of entries in the format of agenr")
        return
    with open_foreign(path, tree.clean) as database:
        tags: dict[str, list[str]] = {}
        for row in database.rows("tags", ("entry_id", "tag")):
            tags.setdefault(str(row.get("entry_id")), []).append(str(row.get("tag")))
        links: dict[str, list[tuple[str, str]]] = {}
        for row in database.rows("relations", ("source_id", "target_id", "relation_type")):
            relation = str(row.get("relation_type"))
            relation = relation if relation in _RELATIONS else "related_to"
            link = relation, str(row.get("target_id"))
            links.setdefault(str(row.get("source_id")), []).append(link)
        entries = list(database.rows("entries", _COLUMNS))
        ids = {
            str(entry["id"]): imported_id(NAME, str(entry["id"]), moment(entry.get("created_at")))
            for entry in entries
        }
        for entry in entries:
            own = str(entry["id"])
            yield _memory(entry, path, tags.get(own, []), links.get(own, []), ids)


def _memory(
    entry: Values,
    path: Path,
    tags: list[str],
    links: list[tuple[str, str]],
    ids: Mapping[str, str],
) -> Item:
    own, content = str(entry["id"]), text_of(entry, "content")
    if not content:
        return Skipped(own, "no content")
    kind = _choice(Kind, entry.get("type"), None)
    if kind is None:
        return Skipped(own, f"unknown type: {entry.get('type')}")
    created = moment(entry.get("created_at"))
    updated = moment(entry.get("updated_at")) or created
    modified = updated or modified_of(path)
    successor = str(entry.get("superseded_by") or "")
    at, reason = modified, ""
    if is_true(entry.get("retired")):
        at = moment(entry.get("retired_at")) or modified
        reason = text_of(entry, "retired_reason") or "retired in agenr"
    elif successor == EXPIRED:
        reason = "expired in agenr"
    elif successor and successor not in ids:
        reason = "superseded in agenr by a missing entry"
    memory = shape(
        NAME,
        own,
        content,
        modified=modified,
        date=created,
        updated=updated,
        kind=kind,
        subject=text_of(entry, "subject"),
        file=text_of(entry, "source_file") or str(path),
        extra={
            name: text for name in ("platform", "source_context") if (text := text_of(entry, name))
        },
        importance=round(between(entry.get("importance"), 1, 10, 7)),
        tags=tags_of(tags),
        expiry=_choice(Expiry, entry.get("expiry"), Expiry.PERMANENT),
        scope=_choice(Scope, entry.get("scope"), Scope.PRIVATE),
        project=project_of(text_of(entry, "project")),
        canonical_key=text_of(entry, "canonical_key"),
        suppressed_contexts=tuple(listed(entry.get("suppressed_contexts"))),
        retired=Retirement(to_millisecond(at), reason) if reason else None,
        links=tuple(Link(rel, ids[other]) for rel, other in links if other in ids),
        superseded_by=ids.get(successor),
    )
    return ImportedMemory(memory, _usage(entry))


def _usage(entry: Values) -> Usage | None:
    count = int(between(entry.get("recall_count"), 0, 1e9, 0))
    quality = between(entry.get("quality_score"), 0, 1, 0.5)
    if not count and quality == 0.5:
        return None
    times = [to_ms(at) for value in listed(entry.get("recall_intervals")) if (at := moment(value))]
    intervals = tuple(at for at in times if at is not None)[-_MAX_INTERVALS:]
    return Usage(count, moment(entry.get("last_recalled_at")), intervals, quality, count)


def _choice(options: Any, value: object, default: Any) -> Any:
    try:
        return options(str(value).lower())
    except ValueError:
        return default


SOURCE = ImportSource(NAME, "agenr", lambda tree: database_with(tree, _TABLES) is not None, _read)


# -- agent-knowledge: Markdown files. Databases in the same folder have edges and scores ----------


NAME_AGENT_KNOWLEDGE = "agent-knowledge"

CATEGORIES = {
    "projects": Kind.FACT,
    "people": Kind.RELATIONSHIP,
    "decisions": Kind.DECISION,
    "workflows": Kind.LESSON,
    "notes": Kind.FACT,
}
_FRONT_KEYS = frozenset("title tags updated confidence confidence_score evergreen author".split())
_EDGE = ("source", "target", "rel_type", "strength", "valid_from", "valid_to")
_SCORE = ("entry_path", "access_count", "last_accessed")
_CURRENT_ONLY = frozenset({"supersedes", "contradicts"})
"""Relations that are not imported if they have ended."""


def _read_agent_knowledge(tree: Tree) -> Iterator[Item]:
    links, usage = _from_databases(tree)
    ids = {
        name: imported_id(NAME_AGENT_KNOWLEDGE, str(tree.path_of(name)), None)
        for name in tree.names
        if _category(name)
    }
    for name in tree.matching(".md"):
        if name.lower() == "identity.md":
            for note in notes(tree.clean(tree.text(name) or "")):
                more: dict[str, Any] = {"tags": ("identity",)}
                yield from_note(NAME_AGENT_KNOWLEDGE, tree, name, note, Kind.PREFERENCE, **more)
        elif name in ids:
            yield _entry(
                tree,
                name,
                [replace(link, to=ids[link.to]) for link in links.get(name, []) if link.to in ids],
                usage.get(name),
            )
        elif not name.startswith("."):
            yield Skipped(name, "in no category")


def _category(name: str) -> Kind | None:
    parts = PurePosixPath(name).parts
    return CATEGORIES.get(parts[0]) if len(parts) > 1 and name.lower().endswith(".md") else None


def _entry(tree: Tree, name: str, links: list[Link], usage: Usage | None) -> Item:
    note = read_note(tree, name)
    if isinstance(note, Skipped):
        return note
    front, body = note
    title = text_of(front, "title") or PurePosixPath(name).stem.replace("-", " ").capitalize()
    body = without_title(body, title)
    if not body:
        return Skipped(name, "empty")
    folder, inner, *_ = PurePosixPath(name).parts
    in_project = folder == "projects"
    named = inner.removesuffix(".md") if in_project else text_of(front, "project")
    score = text_of(front, "confidence_score")
    return found_in(
        NAME_AGENT_KNOWLEDGE,
        tree,
        name,
        str(tree.path_of(name)),
        body,
        modified=moment(text_of(front, "updated")),
        usage=usage,
        subject=title,
        kind=_category(name) or Kind.FACT,
        tags=tags_of(front.get("tags"), *([] if in_project else [folder])),
        project=project_of(named),
        confidence=Confidence.INFERRED
        if text_of(front, "confidence") == "inferred"
        else Confidence.EXTRACTED,
        confidence_score=between(score, 0, 1, 0.5) if score else None,
        evergreen=is_true(front.get("evergreen")),
        author=text_of(front, "author"),
        links=tuple(links),
        extra={key: value for key, value in front.items() if key not in _FRONT_KEYS},
    )


def _from_databases(tree: Tree) -> tuple[dict[str, list[Link]], dict[str, Usage]]:
    links: dict[str, list[Link]] = {}
    usage: dict[str, Usage] = {}
    for name in tree.names:
        if tree.root.is_dir() and tree.is_database(name):
            try:
                with open_foreign(tree.path_of(name), tree.clean) as database:
                    for row in database.rows("edges", _EDGE):
                        if link := _edge(row):
                            links.setdefault(str(row.get("source")), []).append(link)
                    for row in database.rows("entry_scores", _SCORE):
                        count = int(between(row.get("access_count"), 0, 1e9, 0))
                        last = moment(row.get("last_accessed"))
                        usage[str(row.get("entry_path"))] = Usage(
                            last_recalled=last, access_count=count
                        )
            except InvalidInputError:
                continue
    return links, usage


def _edge(row: Values) -> Link | None:
    relation = str(row.get("rel_type"))
    is_over = row.get("valid_to") and relation in _CURRENT_ONLY
    if is_over or relation not in {"related_to", *RELATIONS}:
        return None
    ends = (moment(row.get(name)) for name in ("valid_from", "valid_to"))
    valid = Validity(*(day_of(end) if end else None for end in ends))
    raw_strength = row.get("strength")
    strength = between(raw_strength, 0, 1, USUAL_STRENGTH) if raw_strength is not None else None
    return Link(relation, str(row.get("target")), strength=strength, valid=valid)


def without_title(body: str, title: str) -> str:
    """Remove a heading that repeats a note's title."""
    first, _, below = body.partition("\n")
    return below.strip() if first.lstrip("# ").strip() == title and first.startswith("#") else body


SOURCE_AGENT_KNOWLEDGE = ImportSource(
    NAME_AGENT_KNOWLEDGE,
    "agent-knowledge",
    lambda tree: any(
        _category(name) and {"title", "tags", "updated"} & readable_front(tree, name).keys()
        for name in tree.names
    ),
    _read_agent_knowledge,
)


# -- basic-memory: Markdown notes with observations and relations ----------------------------------
# ``- [category] text #tag (context)`` is an observation, and ``- relation [[Note]]`` is a relation.
# Each observation that is a statement becomes a memory, and so does the note's remaining text.


NAME_BASIC_MEMORY = "basic-memory"

_OBSERVATION = re.compile(r"^\s*[-*]\s+\[(?![ xX-]\])([^\[\]()\n]{1,60})\]\s+(\S.*)$")
_RELATION = re.compile(
    r"""^\s*[-*]\s+(?:"([^"\n]+)"|'([^'\n]+)'|([^\s\[\]"']+))\s+\[\[([^\]\n]+)\]\]"""
)
_PLAIN = frozenset({"relates_to", "related_to", "links_to"})
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_HEADING = re.compile(r"^#{1,6}\s")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MIN_WORDS = 4
_FRONT_KEYS_BASIC_MEMORY = frozenset("title type tags permalink created modified schema".split())


@frozen
class _Note:
    name: str
    title: str
    front: Values
    observations: Mapping[str, str]
    """Categories by statement."""
    relations: Sequence[tuple[str, str]]
    text: str


def _read_basic_memory(tree: Tree) -> Iterator[Item]:
    all_notes: list[_Note] = []
    for name in tree.matching(".md"):
        note = _note(tree, name)
        if isinstance(note, Skipped):
            yield note
        else:
            all_notes.append(note)
    ids: dict[str, str] = {}  # memory ids by each name that a link can use
    for note in all_notes:
        for name in _names_of(note):
            ids.setdefault(slugify(name), _main_id(tree, note))
    for note in all_notes:
        leading = _main_id(tree, note)
        kind = kind_of((text_of(note.front, "type") or "",), Kind.FACT)
        tags = tags_of(note.front.get("tags"))
        extra = {
            key: value for key, value in note.front.items() if key not in _FRONT_KEYS_BASIC_MEMORY
        }
        names = {slugify(name): name for name in reversed(_names_of(note)[:2])}
        main = slugify(note.title) if note.text else ""
        # Links can also use these names.
        if aliases := [name for slug, name in names.items() if slug and slug != main]:
            extra["aliases"] = aliases
        if note.text:
            yield _memory_basic_memory(
                tree,
                note,
                note.title,
                kind=kind,
                tags=tags,
                links=_links_basic_memory(note, ids, leading),
                extra=extra,
            )
        for number, (statement, category) in enumerate(note.observations.items()):
            yield _memory_basic_memory(
                tree,
                note,
                f"{note.title}: {shorten(_TAG.sub('', statement).strip(), 60)}",
                statement,
                kind=kind_of((category,), Kind.FACT),
                tags=tags_of([*tags, category, *_TAG.findall(statement)]),
                links=(Link("part_of", leading),) if note.text else (),
                extra={} if note.text or number else extra,
            )


def _note(tree: Tree, name: str) -> _Note | Skipped:
    read = read_note(tree, name)
    if isinstance(read, Skipped):
        return read
    front, body = read
    if str(front.get("type")).lower() == "schema":
        return Skipped(name, "a schema for notes")
    title = text_of(front, "title") or PurePosixPath(name).stem
    observations: dict[str, str] = {}
    relations: list[tuple[str, str]] = []
    lines: list[str] = []
    fence = False
    for line in body.splitlines():
        fence ^= bool(_FENCE.match(line))
        match = None if fence else _OBSERVATION.match(line)
        relation = None if fence or match else _RELATION.match(line)
        if match and _is_statement(match[2]):
            observations.setdefault(match[2].strip(), match[1].strip())
            continue
        if relation:
            relations.append((next(filter(None, relation.groups())), relation[4]))
        lines.append(line)
    remaining: list[str] = []
    for line in reversed(lines):
        below = remaining[-1] if remaining else ""
        is_bare = _HEADING.match(line) and (not remaining or _HEADING.match(below))
        if not is_bare and (line.strip() or below):
            remaining.append(line.rstrip())
    text = "\n".join(reversed(remaining)).strip()
    text = without_title(text, title)
    if not text and not observations:
        return Skipped(name, "empty")
    return _Note(name, title, front, observations, relations, text)


def _is_statement(text: str) -> bool:
    return Note((), text).is_long_enough and (not text.isascii() or len(text.split()) >= _MIN_WORDS)


def _names_of(note: _Note) -> tuple[str, ...]:
    path = PurePosixPath(note.name)
    names = (note.title, text_of(note.front, "permalink"), str(path.with_suffix("")), path.stem)
    return tuple(name for name in names if name)


def _main_id(tree: Tree, note: _Note) -> str:
    key = _key(tree, note) if note.text else _key(tree, note, next(iter(note.observations)))
    return imported_id(NAME_BASIC_MEMORY, key, moment(note.front.get("created")))


def _links_basic_memory(note: _Note, ids: Mapping[str, str], own: str) -> tuple[Link, ...]:
    links = []
    for relation, target in note.relations:
        to = ids.get(slugify(target.partition("|")[0].partition("#")[0]))
        if to and to != own:
            name = relation.lower().replace("-", "_").replace(" ", "_")
            relation_name = name if name in RELATIONS else "related_to"
            links.append(Link(relation_name, to, None if name in RELATIONS | _PLAIN else relation))
    return tuple(dict.fromkeys(links))


def _memory_basic_memory(
    tree: Tree, note: _Note, subject: str, statement: str | None = None, **more: Any
) -> ImportedMemory:
    updated = moment(note.front.get("modified"))
    return found_in(
        NAME_BASIC_MEMORY,
        tree,
        note.name,
        _key(tree, note, statement),
        statement or note.text,
        subject=subject,
        modified=updated,
        updated=updated,
        date=moment(note.front.get("created")),
        **more,
    )


def _key(tree: Tree, note: _Note, statement: str | None = None) -> str:
    own = f"{tree.root}#{text_of(note.front, 'permalink') or note.name}"
    return f"{own}#{words_hash(statement)}" if statement else own


SOURCE_BASIC_MEMORY = ImportSource(
    NAME_BASIC_MEMORY,
    "basic-memory",
    lambda tree: any(
        {"title", "permalink"} <= front.keys() and not {"kind", "id"} & front.keys()
        for front in (readable_front(tree, name) for name in tree.matching(".md"))
    ),
    _read_basic_memory,
)


# -- ClawXMemory: Markdown below ``global/`` and ``projects/``, or its snapshot -------------------


NAME_CLAWXMEMORY = "clawxmemory"

_SNAPSHOT = "clawxmemory-memory-snapshot"
_META, _PROFILE, _MANIFEST = "project.meta.md", "user-profile.md", "MEMORY.md"
_KINDS = {"feedback": Kind.PREFERENCE, "project": Kind.FACT, "user": Kind.PREFERENCE}
_TEMPORARY = "_tmp"
_ONE_SECTION = re.compile(
    r"\A## (?:Rule|Decisions|Next Steps|Notes)\n\n((?:(?!## ).*\n)*(?!## ).+)\Z"
)
"""Pattern for a body that consists of one section."""

_FRONT_KEYS_CLAWXMEMORY = frozenset(
    (
        "name description type scope project_id updated_at captured_at deprecated dream_attempts"
    ).split()
)


def _recognise_clawxmemory(tree: Tree) -> bool:
    if tree.single:
        return _SNAPSHOT.encode() in tree.head(tree.names[0])
    return any(_is_own(tree, name) for name in tree.matching(".md"))


def _is_own(tree: Tree, name: str) -> bool:
    parts = PurePosixPath(name).parts
    if parts[-1] in (_META, _PROFILE):
        return parts[0] in ("projects", "global") or len(parts) <= 2
    front = readable_front(tree, name)
    return parts[0] == "projects" and {"name", "type", "scope", "captured_at"} <= front.keys()


def _read_clawxmemory(tree: Tree) -> Iterator[Item]:
    if tree.single:
        try:
            files = json.parse(tree.text(tree.names[0]) or "null").get("files")
        except (ValueError, AttributeError):
            files = None
        entries = objects_of(files)
        tree = tree.grown(
            {str(entry.get("relativePath")): str(entry.get("content") or "") for entry in entries}
        )
    slugs: dict[str, str] = {}
    for own, (slug, document) in dict(_projects(tree)).items():
        yield Page(f"projects/{slug}/project.md", document)
        slugs[own] = slug
    for name in tree.matching(".md"):
        last = PurePosixPath(name).name
        if last == _PROFILE:
            yield from _profile(tree, name)
        elif last not in (_META, _MANIFEST):
            yield _entry_clawxmemory(tree, name, slugs)


def _projects(tree: Tree) -> Iterator[tuple[str, tuple[str, str]]]:
    slugs: set[str] = set()
    for name in tree.names:
        if PurePosixPath(name).name != _META:
            continue
        front = readable_front(tree, name)
        folder = PurePosixPath(name).parent.name
        own = text_of(front, "project_id") or folder
        title = text_of(front, "project_name") or own
        slug = project_of(title) or project_of(own) or "project"
        slug = slug if slug not in slugs else f"{slug}-{folder[-4:]}"
        slugs.add(slug)
        aliases = [title, *_aliases_clawxmemory(front.get("aliases"))]
        status = text_of(front, "status")
        values = {
            "name": title,
            **({"status": status} if status else {}),
            "aliases": list(dict.fromkeys(aliases)),
            "remotes": [],
            "roots": [],
            "labels": [own],
        }
        page = f"---\n{dump(values)}---\n# {title}\n"
        about = text_of(front, "description")
        yield own, (slug, f"{page}\n{about}\n" if about else page)


def _entry_clawxmemory(tree: Tree, name: str, slugs: Mapping[str, str]) -> Item:
    read = read_note(tree, name)
    if isinstance(read, Skipped):
        return read
    front, body = read
    parts = PurePosixPath(name).parts
    content = _ONE_SECTION.sub(r"\1", body) or text_of(front, "description")
    if not front or not content:
        return Skipped(name, "not a memory file")
    folder = parts[1] if parts[0] == "projects" and len(parts) > 2 else ""
    own = text_of(front, "project_id") or folder
    unsettled = _TEMPORARY in (folder, own)
    updated = moment(text_of(front, "updated_at"))
    is_deprecated = is_true(front.get("deprecated"))
    reason = "deprecated" if is_deprecated else "archived" if "Archive" in parts else ""
    return found_in(
        NAME_CLAWXMEMORY,
        tree,
        name,
        f"{tree.root}#{name}",
        content,
        modified=updated,
        updated=updated,
        ended=reason and f"{reason} in ClawXMemory",
        subject=text_of(front, "name", "description"),
        date=moment(text_of(front, "captured_at")),
        kind=_KINDS.get(str(front.get("type")).lower(), Kind.FACT),
        project=None if unsettled or not own else slugs.get(own) or project_of(own),
        inbox=unsettled,
        extra={key: value for key, value in front.items() if key not in _FRONT_KEYS_CLAWXMEMORY},
    )


def _profile(tree: Tree, name: str) -> Iterator[Item]:
    read = read_note(tree, name)
    if isinstance(read, Skipped):
        yield read
        return
    for note in notes(read[1]):
        key = f"{tree.root}#{name}#{words_hash(note.text)}"
        more: dict[str, Any] = {"key": key, "tags": ("profile",)}
        yield from_note(NAME_CLAWXMEMORY, tree, name, note, Kind.FACT, **more)


def _aliases_clawxmemory(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = json.parse(value)
        except ValueError:
            value = re.split(r"\s*,\s*", value)
    return [str(item) for item in value if str(item).strip()] if isinstance(value, list) else []


SOURCE_CLAWXMEMORY = ImportSource(
    NAME_CLAWXMEMORY, "ClawXMemory", _recognise_clawxmemory, _read_clawxmemory
)
