"""Three-way merge of whole vaults: by memory id, never by path; pure, and the same on both machines.

What one side changed is taken. A memory that one side moved and the other edited is moved and edited; retired and
edited, it stays retired with the edit in it; deleted and edited, it stays. Where two bodies cannot be merged, both are
kept, each as its side wrote it, as two memories that contradict each other. Other files are merged as text, or both are
kept. Nothing else is lost.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.platform import json_text
from nacre.vault.document import has_marks
from nacre.vault.identity import Tree, Version, derived_id, is_document, names_of, sides_of, united_ids, with_ids
from nacre.vault.layout import LEDGER, is_memory_file, place_of
from nacre.vault.ledger import read as read_ledger
from nacre.vault.listing import LISTING
from nacre.vault.merge_notes import MergeOutcome, Note
from nacre.vault.merging_document import Document, MergedDocument, listed, merge_document, read_document, with_values
from nacre.vault.namesakes import apart
from nacre.vault.threeway import greatest, merge_text, merge_value

_RETIRED = "retired/"
_CONTRADICTS = "contradicts"
_WHY_APART = "changed on two machines"
_STANDING = ("created", "retired", "superseded_by")
"""Fields in which two versions of a memory stay alike when their words come apart."""


@dataclass(frozen=True, slots=True)
class MergedVault:
    """The files that result, what is worth telling, and ids that are given up: those → the ids that stay."""

    files: dict[str, bytes]
    notes: tuple[Note, ...] = ()
    united: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Placed:
    """What is to lie at a path, if that is free; those of lower rank come first."""

    name: str
    version: Version
    rank: int


_WAS_THERE, _NEW, _SECOND = range(3)


def merge_vaults(base: Tree, ours: Tree, theirs: Tree) -> MergedVault:
    """Merge two vaults that were made from ``base``; that is empty where they began apart."""
    notes: list[Note] = []
    ours, theirs = apart(base, ours, theirs)
    united = united_ids(base, ours, theirs, notes)
    trees = [base, with_ids(ours, united), with_ids(theirs, united)]
    sides = sides_of(trees, names_of(trees), notes)
    names = sorted({name for side in sides for name in side})
    placed = [one for name in names for one in _merge_named(name, [side.get(name) for side in sides], notes)]
    known = {name for side in sides for name in side}
    files = _settled([one for one in placed if one.rank != _SECOND or one.name not in known], notes)
    files = _unblocked(files | _merge_others(trees, notes), notes)
    told = (note for note in notes if not (note.outcome is MergeOutcome.KEPT_TWICE and note.other in known))
    return MergedVault(files, tuple(dict.fromkeys(told)), united)


def merge_ledgers(*ledgers: bytes) -> bytes:
    """The union of ledgers, ordered by operation; lines of one operation stay in their order.

    A line from which forgetting took the words on one side replaces the full one.
    """
    lines: dict[str, dict[bytes, None]] = {}
    sides = [
        [
            line
            for line in data.splitlines()
            if line.strip() and not (line.startswith((b"<<<<<<< ", b">>>>>>> ", b"||||||| ")) or line == b"=======")
        ]
        for data in ledgers
    ]
    for side in sorted(sides, key=lambda side: (-len(side), side)):
        for line in side:
            lines.setdefault(_operation(line), {}).setdefault(line)
    return b"".join(line + b"\n" for operation in sorted(lines) for line in _shortest(lines[operation]))


def _shortest(lines: Iterable[bytes]) -> list[bytes]:
    """Lines of one operation, without those that are there without their words, too."""
    found = [*lines]
    entries = [next(read_ledger(line), None) for line in found] if len(found) > 1 else []
    cut = [one for one in entries if one and one.without_words() != one and one.without_words() in entries]
    return [line for line, entry in zip(found, entries, strict=True) if entry not in cut] if cut else found


def _operation(line: bytes) -> str:
    try:
        return str(json_text.parse(line)["op"])
    except (ValueError, KeyError, TypeError):
        return ""


# What becomes of one memory or page.


def _merge_named(name: str, sides: Sequence[Version | None], notes: list[Note]) -> list[_Placed]:
    base, ours, theirs = sides
    if ours is not None and theirs is not None and ours != theirs and base not in (ours, theirs):
        return _merge_both(name, base, ours, theirs, notes)
    taken = merge_value(base, ours, theirs, lambda one, other: one or other)
    if taken is None:
        return []
    if None in (ours, theirs) and base is not None:
        notes.append(Note(MergeOutcome.KEPT_EDITED, taken.path, _memory_id(name), _subject(taken.data)))
    return [_Placed(name, taken, _rank(taken.path, base))]


def merge_versions(base: Version | None, ours: Version, theirs: Version) -> tuple[str, MergedDocument] | None:
    """Merge two versions of one file: where it is to lie, and what it says. ``None`` when one cannot be read."""
    mine, its = _read(ours.data), _read(theirs.data)
    if mine is None or its is None:
        return None
    before = _read(base.data) if base else None
    path = _merge_path(base.path if base else None, ours, theirs, (mine, its))
    return path, merge_document(before, mine, its, _place(path))


def _merge_both(name: str, base: Version | None, ours: Version, theirs: Version, notes: list[Note]) -> list[_Placed]:
    mine, its = _read(ours.data), _read(theirs.data)
    both = merge_versions(base, ours, theirs)
    if both is None or mine is None or its is None:
        return _unreadable(name, base, (ours, mine), (theirs, its), notes)
    before = _read(base.data) if base else None
    path, merged = both
    version = Version(path, merged.text.encode())
    memory_id = _memory_id(name)
    if not merged.is_whole or (memory_id and "subject" in merged.fields):
        version, second = _apart(name, version, ((ours, mine), (theirs, its)))
        told = Note(
            MergeOutcome.KEPT_TWICE, version.path, memory_id, _subject(version.data), second.name, merged.fields
        )
        notes.append(told)
        return [_Placed(name, version, _rank(version.path, base)), second]
    subject = _subject(version.data)
    if _is_retired_edit(path, ours, theirs, before, (mine, its)):
        notes.append(Note(MergeOutcome.STAYS_RETIRED, path, memory_id, subject))
    elif ours.data != theirs.data or path not in (ours.path, theirs.path):
        notes.append(Note(MergeOutcome.MERGED, path, memory_id, subject, None, merged.fields))
    return [_Placed(name, version, _rank(path, base))]


def _apart(name: str, merged: Version, sides: Iterable[tuple[Version, Document]]) -> tuple[Version, _Placed]:
    """Two versions whose words cannot be merged, each whole: the later one keeps the id and contradicts the other.

    A project's page keeps the merged front matter.
    """
    ordered = sorted(sides, key=lambda side: (side[1].updated, _words(side[1]), side[0].data), reverse=True)
    (first, document), (second, other) = ordered
    standing = {key: read_document(merged.data.decode()).values.get(key) for key in _STANDING}
    own = derived_id(_memory_id(name) or "", _words(other).encode())
    if name.startswith("page:"):
        first = merged
    else:
        link = {"rel": _CONTRADICTS, "to": own, "reason": _WHY_APART}
        links = [one for one in listed(document.values.get("links")) if one != link]
        first = _standing_as(merged, first, {**standing, "links": [*links, link]})
    return first, _Placed(f"memory:{own}", _standing_as(merged, second, {**standing, "id": own}), _SECOND)


def _standing_as(merged: Version, version: Version, values: Mapping[str, Any]) -> Version:
    """A version with some values, in ``retired/`` where the merged one is."""
    _, folder, name = _parts(version.path)
    return Version(f"{_parts(merged.path)[0]}{folder}{name}", with_values(version.data.decode(), values).encode())


def _words(document: Document) -> str:
    return f"{document.values.get('subject') or ''}\n{document.body.strip()}"


def _unreadable(
    name: str,
    base: Version | None,
    ours: tuple[Version, Document | None],
    theirs: tuple[Version, Document | None],
    notes: list[Note],
) -> list[_Placed]:
    """Nobody can tell what one of two versions says: the one that can be read stays, the other one lies beside it."""
    order = sorted((ours, theirs), key=lambda side: (side[1] is not None, side[0].data), reverse=True)
    first, second = order[0][0], order[1][0]
    path = _beside(first.path, second.data)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, first.path, _memory_id(name), None, path))
    return [_Placed(name, first, _rank(first.path, base)), _Placed(f"path:{path}", Version(path, second.data), _NEW)]


def _read(data: bytes) -> Document | None:
    try:
        text = data.decode()
        return None if has_marks(text) else read_document(text)
    except (MemoryInvalid, UnicodeDecodeError):
        return None


def _subject(data: bytes) -> str | None:
    document = _read(data)
    subject = document.values.get("subject") if document else None
    return subject if isinstance(subject, str) else None


def _memory_id(name: str) -> str | None:
    kind, _, found = name.partition(":")
    return found if kind == "memory" else None


def _rank(path: str, base: Version | None) -> int:
    return _WAS_THERE if base and base.path == path else _NEW


def _is_retired_edit(
    path: str, ours: Version, theirs: Version, base: Document | None, sides: tuple[Document, Document]
) -> bool:
    """Whether one side retired a memory and the other changed what it says."""
    retired = [version.path.startswith(_RETIRED) for version in (ours, theirs)]
    if not path.startswith(_RETIRED) or all(retired) or base is None:
        return False
    edited = sides[retired.index(False)]
    return edited.body != base.body or edited.values.get("subject") != base.values.get("subject")


# Where it lies.


def _merge_path(base: str | None, ours: Version, theirs: Version, sides: tuple[Document, Document]) -> str:
    """Retirement, folder and name each three-way; where both moved it, as the later version has it."""

    def later(one: str, other: str) -> str:
        times = sides[0].updated, sides[1].updated
        if times[0] == times[1]:
            return str(greatest(one, other))
        return one if times[0] > times[1] else other

    before = _parts(base) if base else (None, None, None)
    mine, its = _parts(ours.path), _parts(theirs.path)
    retired = merge_value(before[0], mine[0], its[0], greatest)
    folder = merge_value(before[1], mine[1], its[1], lambda *_: later(mine[1], its[1]))
    name = merge_value(before[2], mine[2], its[2], lambda *_: later(mine[2], its[2]))
    return f"{retired}{folder}{name}"


def _parts(path: str) -> tuple[str, str, str]:
    retired = _RETIRED if path.startswith(_RETIRED) else ""
    folder, slash, name = path.removeprefix(retired).rpartition("/")
    return retired, folder + slash, name


def _place(path: str) -> dict[str, str | None]:
    """What a path says that front matter says, too."""
    if not is_memory_file(path):
        return {}
    try:
        place = place_of(path)
    except MemoryInvalid:
        return {}
    values: dict[str, str | None] = {} if place.retired else {"retired": None}
    if path.removeprefix(_RETIRED).startswith(("projects/", "global/")):
        values["project"] = place.project
        if place.kind:
            values["kind"] = place.kind.value
    return values


def _settled(placed: Iterable[_Placed], notes: list[Note]) -> dict[str, bytes]:
    """Files at their paths; of several that want one path, the first has it and the others get a number."""
    files: dict[str, bytes] = {}
    taken: set[str] = set()
    for one in sorted(placed, key=lambda one: (one.rank, one.name)):
        wanted = path = one.version.path
        number = 1
        while _folded(path) in taken:
            number += 1
            path = str(PurePosixPath(wanted).with_name(f"{PurePosixPath(wanted).stem}-{number}.md"))
        taken.add(_folded(path))
        files[path] = one.version.data
        if path != wanted:
            _tell_path(one, wanted, path, notes)
    return files


def _tell_path(one: _Placed, wanted: str, path: str, notes: list[Note]) -> None:
    if one.rank != _SECOND:
        notes.append(Note(MergeOutcome.RENAMED, path, _memory_id(one.name), _subject(one.version.data), wanted))
        return
    for number, note in enumerate(notes):
        if note.outcome is MergeOutcome.KEPT_TWICE and note.other == one.name:
            notes[number] = replace(note, other=path)


def _folded(path: str) -> str:
    """A path as file systems see it that do not tell upper from lower case."""
    return unicodedata.normalize("NFC", path).casefold()


# Other files.


def _merge_others(trees: Sequence[Tree], notes: list[Note]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path in sorted({path for tree in trees for path in tree if not is_document(path)}):
        base, ours, theirs = (tree.get(path) for tree in trees)
        if ours is None or theirs is None or ours == theirs or (base in (ours, theirs) and path != LEDGER):
            taken = merge_value(base, ours, theirs, lambda one, other: one or other)
            if taken is not None:
                files[path] = taken
            if taken is not None and base is not None and None in (ours, theirs):
                notes.append(Note(MergeOutcome.KEPT_EDITED, path))
        else:
            files |= _merge_other(path, base, ours, theirs, notes)
    return files


def _merge_other(path: str, base: bytes | None, ours: bytes, theirs: bytes, notes: list[Note]) -> dict[str, bytes]:
    if path == LEDGER:
        return {path: merge_ledgers(ours, theirs)}
    if PurePosixPath(path).name == LISTING:
        return {path: greatest(ours, theirs)}
    try:
        merged = merge_text((base or b"").decode(), ours.decode(), theirs.decode()) if base is not None else None
    except UnicodeDecodeError:
        merged = None
    if merged is not None:
        return {path: merged.encode()}
    first = max(ours, theirs)
    second = theirs if first == ours else ours
    beside = _beside(path, second)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=beside))
    return {path: first, beside: second}


def _beside(path: str, data: bytes) -> str:
    """The name of another version of a file: one that no program takes for the file itself."""
    return f"{path}.other-{hashlib.blake2b(data, digest_size=4).hexdigest()}"


def _unblocked(files: dict[str, bytes], notes: list[Note]) -> dict[str, bytes]:
    """A file where the other side has a folder gets another name."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    blocking = sorted(files.keys() & folders)
    for path in blocking:
        data = files.pop(path)
        files[_beside(path, data)] = data
        notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=_beside(path, data)))
    return files
