"""Which file of one side is which file of the other: by id, never by path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nacre.errors import MemoryInvalid
from nacre.vault.front_matter import split
from nacre.vault.layout import is_memory_file
from nacre.vault.merge_notes import MergeOutcome, Note
from nacre.vault.merging_document import read_document, with_values

Tree = Mapping[str, bytes]
"""The files of a vault: path → bytes."""

_ID = re.compile(r"^id:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_PAGE = re.compile(r"projects/[^/]+/project\.md")


@dataclass(frozen=True, slots=True)
class Version:
    """One side's version of something: where it lies, and its bytes."""

    path: str
    data: bytes


def is_document(path: str) -> bool:
    """Whether a file is merged by id and field: a memory, or a project's page."""
    return is_memory_file(path) or _PAGE.fullmatch(path) is not None


def derived_id(memory_id: str, seed: bytes) -> str:
    """A UUIDv7 that any machine makes from the same: the time of a memory's id, and a hash."""
    digest = int.from_bytes(hashlib.blake2b(memory_id.encode() + b"\n" + seed, digest_size=16).digest())
    known = re.fullmatch(r"[0-9a-f]{32}", memory_id.replace("-", ""))
    time = int(memory_id.replace("-", "")[:12], 16) if known else 0
    value = time << 80 | 0x7 << 76 | (digest >> 64 & 0xFFF) << 64 | 0b10 << 62 | digest & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def id_in(data: bytes) -> str | None:
    """The id that a document gives itself."""
    front, _ = split(data.decode("utf-8", errors="replace"))
    match = _ID.search(front or "")
    return match.group(1) if match else None


def _ids(tree: Tree) -> dict[str, str | None]:
    return {path: id_in(data) for path, data in tree.items() if is_document(path)}


def united_ids(base: Tree, ours: Tree, theirs: Tree, notes: list[Note]) -> dict[str, str]:
    """Ids that both sides gave to one thing, apart from each other: the smaller one stays.

    That is so for a file that had no id before, for a project's page, and for the same words at one path.
    """
    had, one, other = _ids(base), _ids(ours), _ids(theirs)
    old = set(had.values())
    found: dict[str, str] = {}
    for path in one.keys() & other.keys():
        mine, its = one[path], other[path]
        if mine is None or its is None or mine == its or {mine, its} & old:
            continue
        if mine in other.values() or its in one.values():
            continue
        is_page, had_none = _PAGE.fullmatch(path), had.get(path, "") is None
        if is_page or had_none or _says_same(ours[path], theirs[path]):
            found[max(mine, its)] = min(mine, its)
            notes.append(Note(MergeOutcome.UNITED, path, None if is_page else min(mine, its)))
    return found


def _says_same(one: bytes, other: bytes) -> bool:
    try:
        mine, its = read_document(one.decode()), read_document(other.decode())
    except (UnicodeDecodeError, MemoryInvalid):
        return False
    return mine.body.strip() == its.body.strip() and mine.values.get("subject") == its.values.get("subject")


def with_ids(tree: Tree, united: Mapping[str, str]) -> Tree:
    """A side in which every mention of an id that is given up names the one that stays."""
    if not united:
        return tree
    pattern = re.compile("|".join(map(re.escape, sorted(united))).encode())
    return {
        path: pattern.sub(lambda match: united[match[0].decode()].encode(), data) if is_document(path) else data
        for path, data in tree.items()
    }


def names_of(trees: Iterable[Tree]) -> list[dict[str, str]]:
    """For each side: path → what the file is, by id; a file without one is what lies at its path elsewhere."""
    ids = [_ids(tree) for tree in trees]
    everywhere = [set(side.values()) for side in ids]
    named = []
    for number, side in enumerate(ids):
        names = {}
        for path, memory_id in side.items():
            others = (other.get(path) for other in (*ids[1:], ids[0]))
            lent = next((one for one in others if one and one not in everywhere[number]), None)
            known = memory_id or lent
            kind = "page" if _PAGE.fullmatch(path) else "memory"
            names[path] = f"{kind}:{known}" if known else f"path:{path}"
        named.append(names)
    return named


def sides_of(trees: Sequence[Tree], named: Sequence[Mapping[str, str]], notes: list[Note]) -> list[dict[str, Version]]:
    """For each side: what a file is → where it lies and what it says; of copies, the second becomes its own."""
    listed: list[dict[str, list[str]]] = [{} for _ in named]
    for found, names in zip(listed, named, strict=True):
        for path in sorted(names):
            found.setdefault(names[path], []).append(path)
    return [_side(number, tree, listed, notes) for number, tree in enumerate(trees)]


def _side(number: int, tree: Tree, listed: Sequence[Mapping[str, list[str]]], notes: list[Note]) -> dict[str, Version]:
    side: dict[str, Version] = {}
    for name, paths in listed[number].items():
        elsewhere = (path for other in listed for path in other.get(name, ()) if other is not listed[number])
        first = next((path for path in elsewhere if path in paths), paths[0])
        side[name] = Version(first, tree[first])
        for path in paths:
            if path != first:
                own, data = _as_its_own(name, path, tree[path])
                side[own] = Version(path, data)
                if number:
                    notes.append(Note(MergeOutcome.COPY_KEPT, path, own.partition(":")[2], other=first))
    return side


def _as_its_own(name: str, path: str, data: bytes) -> tuple[str, bytes]:
    kind, _, memory_id = name.partition(":")
    own = derived_id(memory_id, path.encode())
    try:
        return f"{kind}:{own}", with_values(data.decode(), {"id": own}).encode()
    except (MemoryInvalid, UnicodeDecodeError):
        return f"path:{path}", data
