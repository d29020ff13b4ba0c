"""OpenClaw's workspace: ``MEMORY.md`` and ``USER.md``, which are curated, and ``memory/YYYY-MM-DD.md``, a diary.

What is curated is meant to last; what a diary says is an event of its day, and temporary. ``USER.md`` says of each of
its directives when it was observed, and whether it still holds; of one that does, only the active ones are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from nacre.errors import MemoryInvalid
from nacre.portability.sources.notes import Note, kind_of, notes
from nacre.portability.sources.shape import front_of, moment, shape, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.values.memory import Expiry, Kind, Memory

NAME = "openclaw"

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[-_ ].*)?\.md")
_USER = "user.md"
_CURATED = frozenset({"memory.md", _USER})
_DIARY_IMPORTANCE = 5
_DIRECTIVE = re.compile(
    r"^<!--\s*observed:\s*(\d{4}-\d\d-\d\d)\s*\|\s*status:\s*(\w+)\s*-->\s*\n+((?:[-*]\s.*)(?:\n[ \t]+\S.*)*)",
    re.MULTILINE,
)


def _kept(tree: Tree) -> list[str]:
    """The curated pages and the diary: at the top, below ``memory/``, or as the only file."""
    return [name for name in tree.matching(".md") if _is_kept(PurePosixPath(name))]


def _is_kept(path: PurePosixPath) -> bool:
    if path.name.lower() in _CURATED:
        return len(path.parts) == 1
    return bool(_DAY.fullmatch(path.name)) and path.parts[:-1] in ((), ("memory",))


def _recognise(tree: Tree) -> bool:
    return bool(_kept(tree))


def _read(tree: Tree) -> Iterator[Item]:
    kept = _kept(tree)
    for name in tree.matching(".md"):
        if name in kept:
            yield from _file(tree, name)
        elif PurePosixPath(name).parts[0] == "memory":
            yield Skipped(name, "neither MEMORY.md, USER.md nor a daily note")


def _file(tree: Tree, name: str) -> Iterator[Item]:
    if tree.text(name) is None:
        yield Skipped(name, "it is too large, or no text")
        return
    try:
        _, body = front_of(tree, name)
    except MemoryInvalid:
        body = tree.clean(tree.text(name) or "")
    said = [(note, stated) for text, stated in _parts(name, body) for note in notes(text) if note.is_said]
    if not said:
        yield Skipped(name, "it says nothing")
    seen: set[str] = set()
    for note, stated in said:
        if note.text not in seen:
            seen.add(note.text)
            yield Found(_memory(tree, name, note, stated))


def _parts(name: str, body: str) -> Iterator[tuple[str, datetime | None]]:
    """The texts of a file that say something, each with the day it is of."""
    directives = _DIRECTIVE.findall(body) if PurePosixPath(name).name.lower() == _USER else ()
    if directives:
        yield from ((text, moment(day)) for day, status, text in directives if status == "active")
        return
    day = _DAY.fullmatch(PurePosixPath(name).name)
    yield body, moment(day.group(1)) if day else None


def _memory(tree: Tree, name: str, note: Note, stated: datetime | None) -> Memory:
    key = f"{tree.path_of(name)}#{words_hash(note.text)}"
    if PurePosixPath(name).name.lower() in _CURATED:
        kind = kind_of(note.headings, Kind.PREFERENCE if PurePosixPath(name).name.lower() == _USER else Kind.FACT)
        return shape(
            NAME, key, note.text, modified=tree.leaves[name].modified, stated=stated, subject=note.subject, kind=kind,
            file=str(tree.path_of(name)),
        )  # fmt: skip
    stated = stated or tree.leaves[name].modified
    return shape(
        NAME, key, note.text, modified=stated, stated=stated, subject=note.subject,
        kind=kind_of(note.headings, Kind.EVENT), importance=_DIARY_IMPORTANCE, expiry=Expiry.TEMPORARY,
        file=str(tree.path_of(name)),
    )  # fmt: skip


SOURCE = ImportSource(NAME, "OpenClaw notes", _recognise, _read)
