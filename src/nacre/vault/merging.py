"""Three-way merges of values, text, documents and whole vaults.

Swapping the sides never changes the result, so two machines get the same result. ``base`` is their
common ancestor or ``None``. Changes made by only one side are accepted.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.ids import uuid7
from nacre.base.text import numbered, to_text
from nacre.base.times import parsed
from nacre.errors import InvalidMemoryError
from nacre.vault.documents import (
    MANAGED,
    MergeOutcome,
    Note,
    adjust,
    dump,
    has_marks,
    load,
    merge,
    split,
)
from nacre.vault.files import LEDGER, is_memory_file, normalise_remote, place_of
from nacre.vault.files import read as read_ledger

Value = TypeVar("Value")

_MAX_MATCHING_PAIRS = 4_000_000
"""Maximum number of pairs of equal lines or sentences in a merge. More would take seconds."""

_SENTENCE = re.compile(r"(?<=[.!?;。！？；])(\s+)|(\s*\n\s*)")


def merge_value(
    base: Value, ours: Value, theirs: Value, choose: Callable[[Value, Value], Value]
) -> Value:
    """Return the value of the side that changed it, or ``choose(ours, theirs)`` if both did."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else choose(ours, theirs)


def greatest(left: Any, right: Any) -> Any:
    """Return the greater of two values, compared as text."""
    return max(left, right, key=lambda value: (str(value), repr(value)))


def merge_list(
    base: Sequence[Any],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    key: Callable[[Any], Hashable] = repr,
    merge: Callable[[Any, Any, Any], Any] = lambda _, left, right: greatest(left, right),
) -> list[Any]:
    """Merge two changed copies of the list ``base``. Items that either copy removed are dropped.

    ``key`` identifies an item, and ``merge`` resolves one that both copies changed, by default to
    the greater value.
    """
    sides = [{key(item): item for item in side} for side in (base, ours, theirs)]
    before, left, right = sides
    common = [name for name in before if name in left and name in right]
    new = sorted({name for name in (*left, *right) if name not in before}, key=repr)
    items = {
        name: merge_value(
            before.get(name),
            left.get(name, right.get(name)),
            right.get(name, left.get(name)),
            partial(merge, before.get(name)),
        )
        for name in (*common, *new)
    }
    orders = [list(side) for side in (left, right) if side.keys() == items.keys()]
    order = max(orders, key=repr) if orders else [*common, *new]
    return [items[name] for name in order]


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Merge two texts that were changed from ``base``, or return ``None`` if they conflict.

    Lines that both sides changed are merged sentence by sentence. They conflict if both sides
    changed a sentence differently.
    """
    merged = _merge_lines(base, ours, theirs)
    if merged is None or any(_merge_lines(base, merged, side) != merged for side in (ours, theirs)):
        return None
    return merged


def _merge_lines(base: str, ours: str, theirs: str) -> str | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    merged = _merge_pieces(
        *(text.splitlines(keepends=True) for text in (base, ours, theirs)), finer=_merge_sentences
    )
    return None if merged is None else "".join(merged)


Pieces = list[str]
Finer = Callable[[Pieces, Pieces, Pieces], Pieces | None]


def _merge_sentences(base: Pieces, ours: Pieces, theirs: Pieces) -> Pieces | None:
    pieces = [
        [part for part in _SENTENCE.split("".join(side)) if part] for side in (base, ours, theirs)
    ]
    return _merge_pieces(*pieces, finer=lambda *_: None)


def _merge_pieces(base: Pieces, ours: Pieces, theirs: Pieces, *, finer: Finer) -> Pieces | None:
    """Merge lines or sentences with the diff3 algorithm. Return ``None`` on conflict."""
    if _comparisons(base, ours) + _comparisons(base, theirs) > _MAX_MATCHING_PAIRS:
        return None
    merged: Pieces = []
    positions = (0, 0, 0)
    for starts, length in _shared_stretches(base, ours, theirs):
        gaps = [
            side[begin:end]
            for side, begin, end in zip((base, ours, theirs), positions, starts, strict=True)
        ]
        chosen = _merge_gap(*gaps, finer=finer)
        if chosen is None:
            return None
        merged += chosen + base[starts[0] : starts[0] + length]
        positions = (starts[0] + length, starts[1] + length, starts[2] + length)
    return merged


def _merge_gap(base: Pieces, ours: Pieces, theirs: Pieces, *, finer: Finer) -> Pieces | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not base:
        for less, more in ((ours, theirs), (theirs, ours)):
            remaining = iter(more)
            if all(piece in remaining for piece in less):
                return more
        if {piece for piece in ours if piece.strip()} & {
            piece for piece in theirs if piece.strip()
        }:
            return None
        return [piece for side in sorted((ours, theirs)) for piece in side]
    return finer(base, ours, theirs)


def _shared_stretches(
    base: Pieces, ours: Pieces, theirs: Pieces
) -> Iterator[tuple[tuple[int, int, int], int]]:
    # The last stretch is empty and marks the end of the texts.
    left, right = (
        list(SequenceMatcher(None, base, side, autojunk=False).get_matching_blocks())
        for side in (ours, theirs)
    )
    while left and right:
        our_block, their_block = left[0], right[0]
        start = max(our_block.a, their_block.a)
        end = min(our_block.a + our_block.size, their_block.a + their_block.size)
        if start < end:
            yield (
                (start, our_block.b + start - our_block.a, their_block.b + start - their_block.a),
                end - start,
            )
        shorter = (
            left if our_block.a + our_block.size <= their_block.a + their_block.size else right
        )
        del shorter[0]
    yield (len(base), len(ours), len(theirs)), 0


def _comparisons(left: Pieces, right: Pieces) -> int:
    counts = Counter(right)
    return sum(counts[piece] for piece in left)


# -- Merging front matter -----------------------------------------------------
# Front matter is split into blocks of lines by key, so that comments and formatting survive a
# merge.


_KEY = re.compile(r"""("[^"\n]*"|'[^'\n]*'|[^\s#"'\[\]{}&*!|>%@`?,-][^:#\n]*?)\s*:(?=\s|$)""")
_TAIL = "\0tail"


def split_blocks(front: str) -> dict[str, str]:
    """Split front matter into blocks of lines by key. Comments belong to the key below them.

    Comments after the last key form another block.
    """
    blocks: dict[str, str] = {}
    key = above = ""
    for line in front.splitlines(keepends=True):
        if not line.strip() or line.startswith("#"):
            above += line
            continue
        if match := _KEY.match(line):
            key = match.group(1).strip("\"'")
            blocks[key] = ""
        if key:
            blocks[key] += above + line
            above = ""
    return {**blocks, _TAIL: above} if above else blocks


def merge_blocks(fronts: Sequence[str], values: Mapping[str, Any]) -> str:
    """Format ``values`` as front matter, reusing lines of the three versions where possible."""
    sides = [split_blocks(front) for front in fronts]
    text = "".join(_block(key, value, sides) for key, value in values.items())
    base, ours, theirs = (side.get(_TAIL, "") for side in sides)
    text += merge_value(base, ours, theirs, max)
    return text if _has_values(text, values) else dump(values)


def _has_values(text: str, values: Mapping[str, Any]) -> bool:
    try:
        return load(text) == dict(values)
    except InvalidMemoryError:
        return False


def _block(key: str, value: Any, sides: Sequence[Mapping[str, str]]) -> str:
    base, ours, theirs = (side.get(key, "") for side in sides)
    matching = [block for block in (ours, theirs) if _has_values(block, {key: value})]
    block = merge_value(base, ours, theirs, lambda *blocks: max(matching or blocks))
    try:
        return block if _has_values(block, {key: value}) else merge(block, {key: value}, [])
    except InvalidMemoryError:
        return dump({key: value})


# -- Merging documents --------------------------------------------------------
# Front matter is merged field by field, and the body as text. If both sides changed a field:
#
# - tags, triggers, suppressed_contexts, links (by rel and to), confirmed, the lists of a project's
#   page and unknown lists: union, without items that either side removed. A link that both sides
#   changed is merged field by field.
# - created: the earlier; updated: the later (also if only one side changed it).
# - trust: untrusted if either side is untrusted. scope: the narrower.
# - retired: the earlier, with its reason.
# - kind, project: determined by the path of the merged file.
# - subject: both versions are kept.
# - other fields: from the later version, or the greater text if both have the same time.
#
# The body is merged line by line and sentence by sentence. If that fails, both versions are kept.
# The later version is the one with the later ``updated``.


LISTS = frozenset(
    {
        "tags",
        "triggers",
        "suppressed_contexts",
        "links",
        "confirmed",
        "remotes",
        "roots",
        "labels",
        "aliases",
    }
)
_SCOPES = ("public", "personal", "private")
_TIMES: Mapping[str, Callable[..., str]] = {"created": min, "updated": max}
_DEFAULTS = {
    "importance": "7",
    "expiry": "permanent",
    "scope": "private",
    "speaker": "owner",
    "trust": "trusted",
    "confidence": "extracted",
}
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(\S[^\n]*?)[ \t]*(?:\n|\Z)")
_RANKS = {key: number for number, key in enumerate(MANAGED)}
_OLDEST = datetime.min.replace(tzinfo=UTC)


@frozen
class Document:
    """A document's front matter, as text and as values, and its body."""

    front: str
    values: dict[str, Any]
    body: str

    @property
    def updated(self) -> datetime:
        """The time of the document's last change, according to its front matter."""
        return _time(self.values.get("updated") or self.values.get("created"))


@frozen
class MergedDocument:
    """The result of merging two versions of a document.

    ``fields`` names the fields that both sides changed. ``is_whole`` is False if the bodies
    conflict and the later one is used.
    """

    path: str
    text: str
    is_whole: bool
    fields: tuple[str, ...]


_EMPTY = Document("", {}, "")


@dataclass(frozen=True)
class Version:
    """The path and content of a file in one of the vaults that are merged."""

    path: str
    data: bytes

    @cached_property
    def document(self) -> Document:
        """The parsed document, or an empty document if the file cannot be parsed."""
        try:
            text = self.data.decode()
            return _EMPTY if has_marks(text) else read_document(text)
        except (InvalidMemoryError, UnicodeDecodeError):
            return _EMPTY

    @property
    def is_readable(self) -> bool:
        return self.document is not _EMPTY

    @property
    def subject(self) -> str | None:
        subject = self.document.values.get("subject")
        return subject if isinstance(subject, str) else None


def read_document(text: str) -> Document:
    """Parse a document with LF or CRLF line ends. Raises InvalidMemoryError."""
    front, body = split(text.replace("\r\n", "\n"))
    body = body if not body or body.endswith("\n") else f"{body}\n"
    return Document(front or "", load(front or ""), body)


def merge_versions(base: Version | None, ours: Version, theirs: Version) -> MergedDocument | None:
    """Merge two versions of a document. Return ``None`` if either cannot be parsed."""
    if not (ours.is_readable and theirs.is_readable):
        return None
    has_base = base is not None and base.is_readable
    before = _with_defaults(base.document) if base and has_base else _EMPTY
    our_document, their_document = ours.document, theirs.document
    sides = _Sides(before, our_document, their_document)
    path = _merge_path(base.path if base else None, ours.path, theirs.path, sides.later)
    place = _place(path)
    values = {
        key: place.get(key, value)
        for key, value in sides.merged().items()
        if key not in place or place[key]
    }
    front = merge_blocks((before.front, our_document.front, their_document.front), values)
    bodies = our_document.body, their_document.body
    body = merge_text(before.body, *bodies) if has_base else None
    is_whole = body is not None or bodies[0] == bodies[1]
    if body is None:
        body = sides.later(*bodies)
    return MergedDocument(
        path,
        f"---\n{front}---\n{body}" if front else body,
        is_whole,
        sides.chosen if is_whole else (*sides.chosen, "body"),
    )


class _Sides:
    def __init__(self, base: Document, ours: Document, theirs: Document) -> None:
        self._base, self._ours, self._theirs = base.values, ours.values, theirs.values
        self._times = (ours.updated, theirs.updated)
        self.chosen: tuple[str, ...] = ()

    def merged(self) -> dict[str, Any]:
        fields = {key: self._field(key) for key in {**self._base, **self._ours, **self._theirs}}
        remaining = {key: value for key, value in fields.items() if value is not None}
        orders = [
            list(side) for side in (self._ours, self._theirs) if side.keys() == remaining.keys()
        ]
        new = sorted(
            remaining.keys() - self._base.keys(),
            key=lambda key: (_RANKS.get(key, len(_RANKS)), key),
        )
        order = max(orders) if orders else [*(key for key in self._base if key in remaining), *new]
        return {key: remaining[key] for key in order}

    def later(self, ours: Any, theirs: Any) -> Any:
        if self._times[0] == self._times[1]:
            return greatest(ours, theirs)
        return ours if self._times[0] > self._times[1] else theirs

    def _field(self, key: str) -> Any:
        base, ours, theirs = (side.get(key) for side in (self._base, self._ours, self._theirs))
        if key in _TIMES and isinstance(ours, str) and isinstance(theirs, str):
            return _TIMES[key]((ours, theirs), key=lambda text: (_time(text), text))
        if ours != theirs and base not in (ours, theirs):
            self.chosen = (*self.chosen, key)
        return merge_value(base, ours, theirs, partial(self._choose, base, key=key))

    def _choose(self, base: Any, ours: Any, theirs: Any, key: str = "") -> Any:
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        if key in LISTS or (isinstance(ours, list) and isinstance(theirs, list)):
            lists = as_list(base), as_list(ours), as_list(theirs)
            return merge_list(*lists, _link, self._choose) if key == "links" else merge_list(*lists)
        if key == "trust" and "untrusted" in (ours, theirs):
            return "untrusted"
        if key == "scope":
            return max(ours, theirs, key=_rank_of_scope)
        if key == "retired":
            return min(ours, theirs, key=_order_of_retirement)
        if key == "source" or not (isinstance(ours, dict) and isinstance(theirs, dict)):
            return self.later(ours, theirs)
        before = base if isinstance(base, dict) else {}
        merged = {
            name: merge_value(
                before.get(name),
                ours.get(name),
                theirs.get(name),
                partial(self._choose, before.get(name)),
            )
            for name in merge_list(list(before), list(ours), list(theirs))
        }
        return {name: value for name, value in merged.items() if value is not None}


def _with_defaults(base: Document) -> Document:
    # A side that only writes out a default must count as unchanged.
    heading = _HEADING.match(base.body)
    subject = {"subject": heading.group(1)} if heading else {}
    return replace(base, values={**_DEFAULTS, **subject, **base.values})


def _time(text: Any) -> datetime:
    return parsed(str(text)) or _OLDEST


def _rank_of_scope(text: Any) -> tuple[int, str]:
    return (_SCOPES.index(text) if text in _SCOPES else -1), str(text)


def _order_of_retirement(retired: Any) -> tuple[datetime, str]:
    return (_time(retired.get("at")) if isinstance(retired, dict) else _OLDEST), repr(retired)


def as_list(value: Any) -> list[Any]:
    """Return a front matter value as a list. Text is split at commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list) else []


def _link(link: Any) -> tuple[Any, Any] | str:
    return (link.get("rel"), link.get("to")) if isinstance(link, dict) else repr(link)


# -- Matching files of both sides by id, never by path ------------------------


Files = dict[str, bytes]
Tree = Mapping[str, bytes]
"""The contents of a vault's files, by path."""

_ID = re.compile(r"^id:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_PAGE = re.compile(r"projects/([^/]+)/project\.md")


def is_document(path: str) -> bool:
    """Return True if a path is that of a memory or a project page, which are merged by field."""
    return is_memory_file(path) or _PAGE.fullmatch(path) is not None


def derived_id(memory_id: str, seed: bytes) -> str:
    """Return a UUIDv7 with the time of ``memory_id`` and bits derived from it and ``seed``."""
    digest = int.from_bytes(
        hashlib.blake2b(memory_id.encode() + b"\n" + seed, digest_size=16).digest()
    )
    is_uuid = re.fullmatch(r"[0-9a-f]{32}", memory_id.replace("-", ""))
    time = int(memory_id.replace("-", "")[:12], 16) if is_uuid else 0
    return uuid7(time, digest)


def id_in(data: bytes) -> str | None:
    """Return the id in a document's front matter, or ``None``."""
    try:
        front, _ = split(to_text(data))
    except InvalidMemoryError:
        return None
    match = _ID.search(front or "")
    return match.group(1) if match else None


def _ids(tree: Tree) -> dict[str, str | None]:
    return {path: id_in(data) for path, data in tree.items() if is_document(path)}


def united_ids(base: Tree, ours: Tree, theirs: Tree, notes: list[Note]) -> dict[str, str]:
    """Map ids to their replacements where two sides gave the same file different ids.

    The smaller id is kept.
    """
    had, our_ids, their_ids = _ids(base), _ids(ours), _ids(theirs)
    old = set(had.values())
    replacements: dict[str, str] = {}
    for path in our_ids.keys() & their_ids.keys():
        our_id, their_id = our_ids[path], their_ids[path]
        if our_id is None or their_id is None or our_id == their_id or {our_id, their_id} & old:
            continue
        if our_id in their_ids.values() or their_id in our_ids.values():
            continue
        is_page, had_none = _PAGE.fullmatch(path), had.get(path, "") is None
        ours_here, theirs_here = Version(path, ours[path]), Version(path, theirs[path])
        has_same_text = _words(ours_here) == _words(theirs_here) and ours_here.is_readable
        if is_page or had_none or has_same_text:
            replacements[max(our_id, their_id)] = min(our_id, their_id)
            notes.append(
                Note(MergeOutcome.UNITED, path, None if is_page else min(our_id, their_id))
            )
    return replacements


def with_ids(tree: Tree, united: Mapping[str, str]) -> Tree:
    """Replace ids in the documents of one side. ``united`` maps old ids to new ones."""
    if not united:
        return tree
    pattern = re.compile("|".join(map(re.escape, sorted(united))).encode())
    return {
        path: pattern.sub(lambda match: united[match[0].decode()].encode(), data)
        if is_document(path)
        else data
        for path, data in tree.items()
    }


def sides_of(trees: Sequence[Tree]) -> list[dict[str, Version]]:
    """Return the documents of each side, keyed by a name that all sides share.

    Files with the same id are versions of one document. A file without an id gets the id that
    another side has at its path.
    """
    ids = [_ids(tree) for tree in trees]
    sides: list[dict[str, Version]] = []
    for tree, own in zip(trees, ids, strict=True):
        elsewhere = [side for side in ids if side is not own]
        own_ids, side = set(own.values()), dict[str, Version]()
        shared = {path for path in own if any(other.get(path) == own[path] for other in elsewhere)}
        for path in sorted(own, key=lambda path: (path not in shared, path)):
            borrowed = (other.get(path) for other in elsewhere)
            memory_id = own[path] or next(
                (other_id for other_id in borrowed if other_id and other_id not in own_ids), None
            )
            name = f"{'page' if _PAGE.fullmatch(path) else 'memory'}:{memory_id}"
            is_free = memory_id and name not in side
            side[name if is_free else f"path:{path}"] = Version(path, tree[path])
        sides.append(side)
    return sides


# -- Different projects with the same name ---------------------------------------------------------
# Two machines can create projects with the same name but different remotes. One of them moves to
# another folder.


def apart(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, Tree]:
    """Rename a project's folder on one side if the other side has a different project there.

    The project with the greater id is renamed.
    """
    sides = [dict(ours), dict(theirs)]
    for path in sorted(ours.keys() & theirs.keys() - base.keys()):
        match = _PAGE.fullmatch(path)
        ids = [id_in(side[path]) for side in (ours, theirs)]
        if not match or not all(ids) or ids[0] == ids[1]:
            continue
        our_remotes, their_remotes = _remotes(ours[path]), _remotes(theirs[path])
        if our_remotes and their_remotes and not our_remotes & their_remotes:
            mover = 0 if str(ids[0]) > str(ids[1]) else 1
            target = sides[1 - mover]
            slug = _folder_of_page(str(ids[mover]), target) or _free_slug(match.group(1), sides)
            sides[mover] = _move_project(sides[mover], base, match.group(1), slug)
    return sides[0], sides[1]


def _remotes(data: bytes) -> set[str]:
    try:
        remotes = read_document(to_text(data)).values.get("remotes")
    except InvalidMemoryError:
        return set()
    return (
        {normalise_remote(str(remote)) for remote in remotes}
        if isinstance(remotes, list)
        else set()
    )


def _folder_of_page(page_id: str, side: Tree) -> str | None:
    pages = (
        (match.group(1), data) for path, data in side.items() if (match := _PAGE.fullmatch(path))
    )
    return next((slug for slug, data in pages if id_in(data) == page_id), None)


def _free_slug(slug: str, sides: list[Files]) -> str:
    paths = {path for side in sides for path in side}
    return numbered(
        slug,
        lambda name: name == slug or any(path.startswith(f"projects/{name}/") for path in paths),
    )


def _move_project(side: Mapping[str, bytes], base: Tree, slug: str, to: str) -> Files:
    moved = {}
    for path, data in side.items():
        match = re.fullmatch(rf"((?:retired/)?projects/){re.escape(slug)}(/.*)", path)
        if match and path not in base:
            moved[f"{match.group(1)}{to}{match.group(2)}"] = _rename_project(path, data, to)
        else:
            moved[path] = data
    return moved


def _rename_project(path: str, data: bytes, project: str) -> bytes:
    try:
        text = data.decode()
        has_project = is_memory_file(path) and "project" in read_document(text).values
        return adjust(text, {"project": project}).encode() if has_project else data
    except (InvalidMemoryError, UnicodeDecodeError):
        return data


# -- Merging vaults -----------------------------------------------------------
# Memories are merged by id, never by path, with the same result on both machines. Changes made by
# only one side are accepted. If one side moved a memory and the other edited it, both changes are
# applied. If one side retired it, the edited memory is retired. If one side deleted it, the edited
# memory is kept. If two bodies cannot be merged, both are kept as two memories that contradict each
# other. Other files are merged as text, or both versions are kept.


_RETIRED = "retired/"
_CONTRADICTS = "contradicts"
_CONTRADICTION_REASON = "changed on two machines"
_SHARED_FIELDS = ("created", "retired", "superseded_by")
"""Fields copied to both memories if their bodies cannot be merged."""


@frozen
class MergedVault:
    """The merged files, and notes for the user. ``united`` maps replaced ids to new ones."""

    files: Files
    notes: tuple[Note, ...] = ()
    united: Mapping[str, str] = field(default_factory=dict)


@frozen
class _Placed:
    """A version to store. If several need the same path, the lowest rank gets it."""

    name: str
    version: Version
    rank: int


_WAS_THERE, _NEW, _SECOND = range(3)


def merge_vaults(base: Tree, ours: Tree, theirs: Tree) -> MergedVault:
    """Merge two vaults that were changed from ``base``, which is empty without an ancestor."""
    notes: list[Note] = []
    ours, theirs = apart(base, ours, theirs)
    united = united_ids(base, ours, theirs, notes)
    trees = [base, with_ids(ours, united), with_ids(theirs, united)]
    sides = sides_of(trees)
    names = {name for side in sides for name in side}
    placed = [
        item
        for name in sorted(names)
        for item in _merge_named(name, *(side.get(name) for side in sides), notes=notes)
        if item.rank != _SECOND or item.name not in names
    ]
    files, second_paths = _assign_paths(placed, notes)
    files = _rename_blocked(files | _merge_others(trees, notes), notes)
    final_notes = (
        replace(note, other=second_paths.get(note.other or ""))
        if note.outcome is MergeOutcome.KEPT_TWICE
        else note
        for note in notes
        if note.outcome is not MergeOutcome.KEPT_TWICE or note.other in second_paths
    )
    return MergedVault(files, tuple(dict.fromkeys(final_notes)), united)


def merge_ledgers(*ledgers: bytes) -> bytes:
    """Merge ledgers, sorted by operation.

    If text was forgotten in one ledger, it is forgotten in the merged ledger.
    """
    lines: dict[str, dict[bytes, None]] = {}
    sides = [
        [
            line
            for line in data.splitlines()
            if line.strip()
            and not (line.startswith((b"<<<<<<< ", b">>>>>>> ", b"||||||| ")) or line == b"=======")
        ]
        for data in ledgers
    ]
    for side in sorted(sides, key=lambda side: (-len(side), side)):
        for line in side:
            lines.setdefault(_operation(line), {}).setdefault(line)
    return b"".join(
        line + b"\n" for operation in sorted(lines) for line in _shortest(lines[operation])
    )


def _shortest(lines: Iterable[bytes]) -> list[bytes]:
    """Remove each line that also exists without its forgotten text."""
    entries = {line: next(read_ledger(line), None) for line in lines}
    outdated = [
        line
        for line, entry in entries.items()
        if entry and entry.without_words() != entry and entry.without_words() in entries.values()
    ]
    return [line for line in entries if line not in outdated]


def _operation(line: bytes) -> str:
    try:
        return str(json.parse(line)["op"])
    except (ValueError, KeyError, TypeError):
        return ""


def _merge_named(
    name: str,
    base: Version | None,
    ours: Version | None,
    theirs: Version | None,
    *,
    notes: list[Note],
) -> list[_Placed]:
    if ours is not None and theirs is not None and ours != theirs and base not in (ours, theirs):
        return _merge_both(name, base, ours, theirs, notes)
    version = merge_value(base, ours, theirs, lambda left, right: left or right)
    if version is None:
        return []
    if None in (ours, theirs) and base is not None:
        notes.append(
            Note(MergeOutcome.KEPT_EDITED, version.path, _memory_id(name), version.subject)
        )
    return [_Placed(name, version, _rank(version.path, base))]


def _merge_both(
    name: str, base: Version | None, ours: Version, theirs: Version, notes: list[Note]
) -> list[_Placed]:
    merged = merge_versions(base, ours, theirs)
    memory_id = _memory_id(name)
    if merged is None:
        # A readable version keeps its path, and the other version is stored next to it.
        first, second = sorted(
            (ours, theirs), key=lambda side: (side.is_readable, side.data), reverse=True
        )
        path = _other_name(first.path, second.data)
        notes.append(Note(MergeOutcome.KEPT_BESIDE, first.path, memory_id, None, path))
        return [
            _Placed(name, first, _rank(first.path, base)),
            _Placed(f"path:{path}", Version(path, second.data), _NEW),
        ]
    version = Version(merged.path, merged.text.encode())
    if not merged.is_whole or (memory_id and "subject" in merged.fields):
        version, placed = _apart(name, version, ours, theirs)
        note = Note(
            MergeOutcome.KEPT_TWICE,
            version.path,
            memory_id,
            version.subject,
            placed.name,
            merged.fields,
        )
        notes.append(note)
        return [_Placed(name, version, _rank(version.path, base)), placed]
    if _is_retired_edit(merged.path, base, ours, theirs):
        notes.append(Note(MergeOutcome.STAYS_RETIRED, merged.path, memory_id, version.subject))
    elif ours.data != theirs.data or merged.path not in (ours.path, theirs.path):
        notes.append(
            Note(
                MergeOutcome.MERGED,
                merged.path,
                memory_id,
                version.subject,
                fields=merged.fields,
            )
        )
    return [_Placed(name, version, _rank(version.path, base))]


def _apart(name: str, merged: Version, ours: Version, theirs: Version) -> tuple[Version, _Placed]:
    # The later version keeps the id, and gets a contradicts link to the other one.
    first, second = sorted(
        (ours, theirs),
        key=lambda side: (side.document.updated, _words(side), side.data),
        reverse=True,
    )
    shared = {key: merged.document.values.get(key) for key in _SHARED_FIELDS}
    own = derived_id(_memory_id(name) or "", _words(second).encode())
    links = as_list(first.document.values.get("links"))
    link = {"rel": _CONTRADICTS, "to": own, "reason": _CONTRADICTION_REASON}
    if name.startswith("page:"):
        first = merged
    else:
        links = [*(existing for existing in links if existing != link), link]
        first = _adjusted(merged, first, {**shared, "links": links})
    return first, _Placed(
        f"memory:{own}", _adjusted(merged, second, {**shared, "id": own}), _SECOND
    )


def _adjusted(merged: Version, version: Version, values: Mapping[str, Any]) -> Version:
    retired, (_, folder, name) = _parts(merged.path)[0], _parts(version.path)
    return Version(f"{retired}{folder}{name}", adjust(version.data.decode(), values).encode())


def _words(version: Version) -> str:
    return f"{version.subject or ''}\n{version.document.body.strip()}"


def _memory_id(name: str) -> str | None:
    kind, _, memory_id = name.partition(":")
    return memory_id if kind == "memory" else None


def _rank(path: str, base: Version | None) -> int:
    return _WAS_THERE if base and base.path == path else _NEW


def _is_retired_edit(path: str, base: Version | None, ours: Version, theirs: Version) -> bool:
    active = [side for side in (ours, theirs) if not side.path.startswith(_RETIRED)]
    if not path.startswith(_RETIRED) or not active or base is None or not base.is_readable:
        return False
    before, edited = base.document, active[0].document
    return (before.body, before.values.get("subject")) != (
        edited.body,
        edited.values.get("subject"),
    )


def _merge_path(base: str | None, ours: str, theirs: str, later: Callable[[Any, Any], Any]) -> str:
    before = _parts(base) if base else (None, None, None)
    retired, folder, name = zip(before, _parts(ours), _parts(theirs), strict=True)
    return (
        f"{merge_value(*retired, greatest)}{merge_value(*folder, later)}{merge_value(*name, later)}"
    )


def _parts(path: str) -> tuple[str, str, str]:
    retired = _RETIRED if path.startswith(_RETIRED) else ""
    folder, slash, name = path.removeprefix(retired).rpartition("/")
    return retired, folder + slash, name


def _place(path: str) -> dict[str, str | None]:
    if not is_memory_file(path):
        return {}
    try:
        place = place_of(path)
    except InvalidMemoryError:
        return {}
    values: dict[str, str | None] = {} if place.retired else {"retired": None}
    if path.removeprefix(_RETIRED).startswith(("projects/", "global/")):
        values["project"] = place.project
        if place.kind:
            values["kind"] = place.kind.value
    return values


def _assign_paths(placed: Iterable[_Placed], notes: list[Note]) -> tuple[Files, dict[str, str]]:
    files: Files = {}
    second_paths: dict[str, str] = {}
    used: set[str] = set()
    for item in sorted(placed, key=lambda item: (item.rank, item.name)):
        requested = PurePosixPath(item.version.path)
        path, number = item.version.path, 1
        while _fold_path(path) in used:
            number += 1
            path = str(requested.with_name(f"{requested.stem}-{number}.md"))
        used.add(_fold_path(path))
        files[path] = item.version.data
        if item.rank == _SECOND:
            second_paths[item.name] = path
        elif path != item.version.path:
            notes.append(
                Note(
                    MergeOutcome.RENAMED,
                    path,
                    _memory_id(item.name),
                    item.version.subject,
                    item.version.path,
                )
            )
    return files, second_paths


def _fold_path(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _merge_others(trees: Sequence[Tree], notes: list[Note]) -> Files:
    files: Files = {}
    for path in sorted({path for tree in trees for path in tree if not is_document(path)}):
        base, ours, theirs = (tree.get(path) for tree in trees)
        if ours is None or theirs is None or (path != LEDGER and base in (ours, theirs)):
            data = merge_value(base, ours, theirs, lambda left, right: left or right)
            if data is not None:
                files[path] = data
            if data is not None and base is not None and None in (ours, theirs):
                notes.append(Note(MergeOutcome.KEPT_EDITED, path))
        elif ours == theirs:
            files[path] = ours
        elif path == LEDGER:
            files[path] = merge_ledgers(ours, theirs)
        else:
            files |= _merge_other(path, base, ours, theirs, notes)
    return files


def _merge_other(
    path: str, base: bytes | None, ours: bytes, theirs: bytes, notes: list[Note]
) -> Files:
    with suppress(UnicodeDecodeError):
        merged = merge_text((base or b"").decode(), ours.decode(), theirs.decode())
        if base is not None and merged is not None:
            return {path: merged.encode()}
    first, second = max(ours, theirs), min(ours, theirs)
    second_path = _other_name(path, second)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=second_path))
    return {path: first, second_path: second}


def _other_name(path: str, data: bytes) -> str:
    # The name must not look like a memory file.
    return f"{path}.other-{hashlib.blake2b(data, digest_size=4).hexdigest()}"


def _rename_blocked(files: Files, notes: list[Note]) -> Files:
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    blocking = sorted(files.keys() & folders)
    for path in blocking:
        data = files.pop(path)
        files[_other_name(path, data)] = data
        notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=_other_name(path, data)))
    return files
