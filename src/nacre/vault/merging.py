"""Three-way merges of values, text, documents and whole vaults.

Swapping the two sides never changes the result, so two machines get the same result. ``base`` is
their common ancestor, or ``None`` if there is none. Changes made by only one side are accepted.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.ids import uuid7
from nacre.base.text import numbered, to_text
from nacre.base.times import in_utc
from nacre.errors import InvalidMemoryError
from nacre.vault.documents import MANAGED, MergeOutcome, Note, dump, has_marks, load, split
from nacre.vault.files import LEDGER, LISTING, is_memory_file, normalise_remote, place_of
from nacre.vault.files import read as read_ledger

Value = TypeVar("Value")

_MAX_MATCHING_PAIRS = 4_000_000
"""Maximum number of pairs of equal lines or sentences in a merge. More would take seconds."""

_SENTENCE = re.compile(r"(?<=[.!?;。！？；])(\s+)|(\s*\n\s*)")


def merge_value(
    base: Value, ours: Value, theirs: Value, choose: Callable[[Value, Value], Value]
) -> Value:
    """Return the value that one side changed.

    If both changed it, return ``choose(ours, theirs)``.
    """
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else choose(ours, theirs)


def greatest(left: Any, right: Any) -> Any:
    """Return the greater of two values. The order of the arguments does not matter."""
    return max(left, right, key=lambda value: (str(value), repr(value)))


def merge_list(
    base: Sequence[Any],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    key: Callable[[Any], Hashable] = repr,
    merge: Callable[[Any, Any, Any], Any] = lambda _, left, right: greatest(left, right),
) -> list[Any]:
    """Merge ``ours`` and ``theirs``, two changed copies of the list ``base``.

    The result contains all items that neither copy removed. If one copy has the same items as the
    result, its order is used. Otherwise, items of ``base`` come first. ``key`` identifies an item.
    If both copies changed an item, ``merge(base, ours, theirs)`` is called. By default, the greater
    item is chosen.
    """
    sides = [{key(item): item for item in side} for side in (base, ours, theirs)]
    had, left, right = sides
    common = [name for name in had if name in left and name in right]
    new = sorted({name for name in (*left, *right) if name not in had}, key=repr)
    items = {
        name: _merge_items(
            had.get(name), left.get(name, right.get(name)), right.get(name, left.get(name)), merge
        )
        for name in (*common, *new)
    }
    orders = [list(side) for side in (left, right) if side.keys() == items.keys()]
    order = max(orders, key=repr) if orders else [*common, *new]
    return [items[name] for name in order]


def _merge_items(base: Any, ours: Any, theirs: Any, merge: Callable[[Any, Any, Any], Any]) -> Any:
    return merge_value(base, ours, theirs, lambda left, right: merge(base, left, right))


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Merge two texts that were changed from ``base``. Return ``None`` if they cannot be merged.

    Lines that both sides changed are merged sentence by sentence. The merge fails if both sides
    changed the same sentence differently. If both sides added text at the same position, both
    additions are kept in alphabetical order. The merge also fails if merging the result with a side
    again would change it, for example because a sentence occurs twice.
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
    """Merge lists of lines or sentences with the diff3 algorithm. Return ``None`` on failure."""
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
    """Yield each part that all three texts share, as its start in each text and its length.

    The last part is empty and marks the end of the texts.
    """
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
_COMMENT = re.compile(r"(\s+#.*?)\s*$")
_TAIL = "\0tail"


@frozen
class Block:
    """The lines of one key, and the comments and empty lines above them."""

    lead: tuple[str, ...] = ()
    lines: str = ""


def split_blocks(front: str) -> dict[str, Block]:
    """Split front matter into blocks of lines, one for each key.

    Another block contains the comments and empty lines after the last key. Other lines are omitted.
    """
    blocks: dict[str, Block] = {}
    key = ""
    lead: list[str] = []
    for line in front.splitlines(keepends=True):
        match = _KEY.match(line)
        if not line.strip() or line.startswith("#"):
            lead.append(line)
        elif match:
            key = match.group(1).strip("\"'")
            blocks[key] = Block(tuple(lead), line)
            lead = []
        elif key:
            blocks[key] = Block(blocks[key].lead, blocks[key].lines + "".join(lead) + line)
            lead = []
    return {**blocks, _TAIL: Block(tuple(lead))} if lead else blocks


def merge_blocks(fronts: Sequence[str], values: Mapping[str, Any]) -> str:
    """Format ``values`` as front matter, keeping lines of the existing ``fronts`` where possible.

    ``fronts`` contains the front matter of the base and of both sides.
    """
    sides = [split_blocks(front) for front in fronts]
    text = "".join(_block(key, value, sides) for key, value in values.items())
    text += "".join(_lead(_TAIL, sides))
    return text if _has_values(text, values) else dump(values)


def _has_values(text: str, values: Mapping[str, Any]) -> bool:
    try:
        return load(text) == dict(values)
    except InvalidMemoryError:
        return False


def _block(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    matching = [
        side[key].lines
        for side in sides[1:]
        if key in side and _has_values(side[key].lines, {key: value})
    ]
    if len(matching) == 2:
        before = sides[0].get(key, Block()).lines
        lines = merge_value(before, matching[0], matching[1], greatest)
    else:
        lines = matching[0] if matching else _write_line(key, value, sides)
    return "".join(_lead(key, sides)) + (lines if lines.endswith("\n") else f"{lines}\n")


def _write_line(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    comments = [_comment(side.get(key, Block()).lines) for side in sides]
    return (
        dump({key: value}).rstrip("\n")
        + merge_value(comments[0], comments[1], comments[2], greatest)
        + "\n"
    )


def _comment(lines: str) -> str:
    match = _COMMENT.search(lines) if lines.count("\n") <= 1 else None
    return match.group(1) if match else ""


def _lead(key: str, sides: Sequence[Mapping[str, Block]]) -> tuple[str, ...]:
    base, ours, theirs = (side.get(key, Block()).lead for side in sides)
    return merge_value(base, ours, theirs, lambda left, right: tuple(merge_list(base, left, right)))


# -- Merging documents --------------------------------------------------------
# Front matter is merged field by field, and the body as text. If both sides changed a field:
#
# - tags, triggers, suppressed_contexts, links (by rel and to), confirmed, the lists of a project's
#   page and unknown lists: union, without items that either side removed. A link that both sides
#   changed is merged field by field.
# - created: the earlier; updated: the later (also if only one side changed it).
# - importance: from the later version, or the higher if both have the same time.
# - trust: untrusted if either side is untrusted. scope: the narrower.
# - valid: the earlier start and the earlier end.
# - superseded_by: the later id (ids contain their time).
# - retired: the earlier, with its reason.
# - source: turns of the same session are combined; otherwise, from the later version.
# - kind, project: determined by the path of the merged file.
# - subject: both versions are kept.
# - other fields: from the later version, or the greater text if both have the same time.
#
# The body is merged line by line and sentence by sentence. If that fails, both versions are kept.
# The later version has the later ``updated``.


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
    """A parsed document: its front matter as text and as values, and its body."""

    front: str
    values: dict[str, Any]
    body: str

    @property
    def updated(self) -> datetime:
        """Return when the document was last changed, according to its front matter."""
        return _time(self.values.get("updated") or self.values.get("created"))


@frozen
class MergedDocument:
    """A merged document.

    ``fields``: names of the fields that both sides changed differently. ``is_whole``: False if the
    bodies could not be merged, so that the later body is used.
    """

    text: str
    is_whole: bool = True
    fields: tuple[str, ...] = ()


def read_document(text: str) -> Document:
    """Parse a document. Raises InvalidMemoryError."""
    front, body = split(text.replace("\r\n", "\n"))
    return Document(front or "", load(front or ""), body)


def merge_document(
    base: Document | None, ours: Document, theirs: Document, place: Mapping[str, str | None]
) -> MergedDocument:
    """Merge two versions of a document.

    ``place`` contains the front matter values that depend on the document's path.
    """
    before = _in_full(base) if base else Document("", {}, "")
    sides = _Sides(before, ours, theirs)
    values = sides.merged()
    values = {
        key: place.get(key, value)
        for key, value in values.items()
        if key not in place or place[key]
    }
    front = merge_blocks((before.front, ours.front, theirs.front), values)
    body = (
        merge_text(
            _with_final_newline(before.body),
            _with_final_newline(ours.body),
            _with_final_newline(theirs.body),
        )
        if base
        else None
    )
    fields = sides.chosen
    if body is None and _with_final_newline(ours.body) != _with_final_newline(theirs.body):
        body = _with_final_newline(sides.later(ours.body, theirs.body))
        return MergedDocument(_join(front, body), is_whole=False, fields=(*fields, "body"))
    return MergedDocument(
        _join(front, _with_final_newline(ours.body) if body is None else body), fields=fields
    )


def with_values(text: str, changes: Mapping[str, Any]) -> str:
    """Return a document with changed front matter values. The value ``None`` removes a key."""
    document = read_document(text)
    values = {**document.values, **changes}
    remaining = {key: value for key, value in values.items() if value is not None}
    return _join(merge_blocks((document.front,) * 3, remaining), document.body)


class _Sides:
    """The front matter of two versions of a document and of their common base."""

    def __init__(self, base: Document, ours: Document, theirs: Document) -> None:
        self._base, self._ours, self._theirs = base.values, ours.values, theirs.values
        self._times = (ours.updated, theirs.updated)
        self.chosen: tuple[str, ...] = ()
        self._rules: dict[str, Callable[[Any, Any, Any], Any]] = {
            "importance": self._importance,
            "trust": lambda _, left, right: (
                "untrusted" if "untrusted" in (left, right) else greatest(left, right)
            ),
            "scope": lambda _, left, right: max(left, right, key=_rank_of_scope),
            "valid": self._valid,
            "superseded_by": lambda _, left, right: greatest(left, right),
            "retired": lambda _, left, right: min(left, right, key=_order_of_retirement),
            "source": self._source,
        }

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
        """Return the value from the later version. At equal times, return the greater value."""
        if self._times[0] == self._times[1]:
            return greatest(ours, theirs)
        return ours if self._times[0] > self._times[1] else theirs

    def _field(self, key: str) -> Any:
        base, ours, theirs = (side.get(key) for side in (self._base, self._ours, self._theirs))
        if key in _TIMES and isinstance(ours, str) and isinstance(theirs, str):
            return _TIMES[key]((ours, theirs), key=lambda text: (_time(text), text))
        return merge_value(
            base, ours, theirs, lambda left, right: self._choose_field(key, base, left, right)
        )

    def _choose_field(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        self.chosen = (*self.chosen, key)
        return self._merge_changed(key, base, ours, theirs)

    def _merge_changed(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        if key in LISTS or (isinstance(ours, list) and isinstance(theirs, list)):
            lists = as_list(base), as_list(ours), as_list(theirs)
            if key == "links":
                return merge_list(*lists, _link, partial(self._mapping, is_front=True))
            return merge_list(*lists)
        rule = self._rules.get(key)
        if rule and type(ours) is type(theirs):
            return rule(base, ours, theirs)
        return self._mapping(base, ours, theirs)

    def _mapping(self, base: Any, ours: Any, theirs: Any, *, is_front: bool = False) -> Any:
        if not (isinstance(ours, dict) and isinstance(theirs, dict)):
            return self.later(ours, theirs)
        had = base if isinstance(base, dict) else {}
        keys = merge_list(list(had), list(ours), list(theirs), key=str)
        merged = {}
        for key in keys:
            sides = had.get(key), ours.get(key), theirs.get(key)
            merged[key] = merge_value(
                *sides, choose=partial(self._merge_changed, key if is_front else "", sides[0])
            )
        return {key: value for key, value in merged.items() if value is not None}

    def _importance(self, _: Any, ours: str, theirs: str) -> str:
        if self._times[0] != self._times[1]:
            return str(self.later(ours, theirs))
        return max(ours, theirs, key=lambda text: (_number(text), text))

    def _valid(self, base: Any, ours: Any, theirs: Any) -> Any:
        if not isinstance(ours, dict):
            return self.later(ours, theirs)
        had = base if isinstance(base, dict) else {}
        ends = {
            end: merge_value(had.get(end, ""), ours.get(end, ""), theirs.get(end, ""), _earlier)
            for end in {**ours, **theirs}
        }
        return {end: ends[end] for end in sorted(ends)}

    def _source(self, base: Any, ours: Any, theirs: Any) -> Any:
        if isinstance(ours, dict) and ours.get("session") == theirs.get("session"):
            return self._mapping(base, ours, theirs)
        return self.later(ours, theirs)


def _in_full(base: Document) -> Document:
    """Return the base with default values for missing fields.

    A side that only adds a default value then counts as unchanged.
    """
    heading = _HEADING.match(base.body)
    subject = {"subject": heading.group(1)} if heading else {}
    return Document(base.front, {**_DEFAULTS, **subject, **base.values}, base.body)


def _join(front: str, body: str) -> str:
    return f"---\n{front}---\n{body}" if front else body


def _with_final_newline(body: str) -> str:
    return body if not body or body.endswith("\n") else f"{body}\n"


def _time(text: Any) -> datetime:
    try:
        return in_utc(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return _OLDEST


def _number(text: Any) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _rank_of_scope(text: Any) -> tuple[int, str]:
    return (_SCOPES.index(text) if text in _SCOPES else -1), str(text)


def _order_of_retirement(retired: Any) -> tuple[datetime, str]:
    return (_time(retired.get("at")) if isinstance(retired, dict) else _OLDEST), repr(retired)


def _earlier(left: str, right: str) -> str:
    return min((text for text in (left, right) if text), default="")


def as_list(value: Any) -> list[Any]:
    """Return a front matter value as a list. Text is split at commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list) else []


def _link(link: Any) -> tuple[Any, Any] | str:
    return (link.get("rel"), link.get("to")) if isinstance(link, dict) else repr(link)


# -- Matching files of both sides by id, never by path ------------------------


Tree = Mapping[str, bytes]
"""The contents of a vault's files, by path."""

_ID = re.compile(r"^id:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_PAGE = re.compile(r"projects/([^/]+)/project\.md")


@frozen
class Version:
    """The path and content of a file in one of the vaults to merge."""

    path: str
    data: bytes


def is_document(path: str) -> bool:
    """Return True if the path belongs to a memory or a project page.

    Such files are matched by id and merged field by field.
    """
    return is_memory_file(path) or _PAGE.fullmatch(path) is not None


def derived_id(memory_id: str, seed: bytes) -> str:
    """Return a UUIDv7 made from a memory id's time and a hash. All machines get the same result."""
    digest = int.from_bytes(
        hashlib.blake2b(memory_id.encode() + b"\n" + seed, digest_size=16).digest()
    )
    is_uuid = re.fullmatch(r"[0-9a-f]{32}", memory_id.replace("-", ""))
    time = int(memory_id.replace("-", "")[:12], 16) if is_uuid else 0
    return uuid7(time, digest)


def id_in(data: bytes) -> str | None:
    """Return the id in a document's front matter."""
    front, _ = split(to_text(data))
    match = _ID.search(front or "")
    return match.group(1) if match else None


def _ids(tree: Tree) -> dict[str, str | None]:
    return {path: id_in(data) for path, data in tree.items() if is_document(path)}


def united_ids(base: Tree, ours: Tree, theirs: Tree, notes: list[Note]) -> dict[str, str]:
    """Return new ids for files to which both sides gave different ids.

    The smaller id replaces the greater id. This applies to a project's page, a file without an id
    in the base, and a file with the same text on both sides.
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
        if is_page or had_none or _has_same_text(ours[path], theirs[path]):
            replacements[max(our_id, their_id)] = min(our_id, their_id)
            notes.append(
                Note(MergeOutcome.UNITED, path, None if is_page else min(our_id, their_id))
            )
    return replacements


def _has_same_text(left: bytes, right: bytes) -> bool:
    try:
        left_document, right_document = read_document(left.decode()), read_document(right.decode())
    except (UnicodeDecodeError, InvalidMemoryError):
        return False
    return left_document.body.strip() == right_document.body.strip() and left_document.values.get(
        "subject"
    ) == right_document.values.get("subject")


def with_ids(tree: Tree, united: Mapping[str, str]) -> Tree:
    """Replace ids in the documents of one side. ``united``: mapping from old ids to new ids."""
    if not united:
        return tree
    pattern = re.compile("|".join(map(re.escape, sorted(united))).encode())
    return {
        path: pattern.sub(lambda match: united[match[0].decode()].encode(), data)
        if is_document(path)
        else data
        for path, data in tree.items()
    }


def names_of(trees: Iterable[Tree]) -> list[dict[str, str]]:
    """Return the name of each path on each side. The same file has the same name on all sides.

    Files with the same id are the same file. A file without an id gets the id at the same path on
    another side.
    """
    ids = [_ids(tree) for tree in trees]
    everywhere = [set(side.values()) for side in ids]
    named = []
    for number, side in enumerate(ids):
        names = {}
        for path, memory_id in side.items():
            others = (other.get(path) for other in (*ids[1:], ids[0]))
            borrowed = next(
                (
                    other_id
                    for other_id in others
                    if other_id and other_id not in everywhere[number]
                ),
                None,
            )
            known_id = memory_id or borrowed
            kind = "page" if _PAGE.fullmatch(path) else "memory"
            names[path] = f"{kind}:{known_id}" if known_id else f"path:{path}"
        named.append(names)
    return named


def sides_of(
    trees: Sequence[Tree], named: Sequence[Mapping[str, str]], notes: list[Note]
) -> list[dict[str, Version]]:
    """Return the files of each side, keyed by name. ``named`` comes from :func:`names_of`.

    If a side has two copies of a file, the second copy gets a new name.
    """
    paths_of_sides: list[dict[str, list[str]]] = [{} for _ in named]
    for paths_by_name, names in zip(paths_of_sides, named, strict=True):
        for path in sorted(names):
            paths_by_name.setdefault(names[path], []).append(path)
    return [_side(number, tree, paths_of_sides, notes) for number, tree in enumerate(trees)]


def _side(
    number: int, tree: Tree, paths_of_sides: Sequence[Mapping[str, list[str]]], notes: list[Note]
) -> dict[str, Version]:
    side: dict[str, Version] = {}
    for name, paths in paths_of_sides[number].items():
        elsewhere = (
            path
            for other in paths_of_sides
            for path in other.get(name, ())
            if other is not paths_of_sides[number]
        )
        first = next((path for path in elsewhere if path in paths), paths[0])
        side[name] = Version(first, tree[first])
        for path in paths:
            if path != first:
                own, data = _with_new_id(name, path, tree[path])
                side[own] = Version(path, data)
                if number:
                    notes.append(
                        Note(MergeOutcome.COPY_KEPT, path, own.partition(":")[2], other=first)
                    )
    return side


def _with_new_id(name: str, path: str, data: bytes) -> tuple[str, bytes]:
    kind, _, memory_id = name.partition(":")
    own = derived_id(memory_id, path.encode())
    try:
        return f"{kind}:{own}", with_values(data.decode(), {"id": own}).encode()
    except (InvalidMemoryError, UnicodeDecodeError):
        return f"path:{path}", data


# -- Different projects with the same name ---------------------------------------------------------
# Two machines can create projects with the same name but different remotes. One of them moves to
# another folder.


def apart(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, Tree]:
    """Give one of two different projects with the same name a new folder. The greater id moves."""
    sides = [dict(ours), dict(theirs)]
    for path in sorted(ours.keys() & theirs.keys() - base.keys()):
        match = _PAGE.fullmatch(path)
        ids = [id_in(side[path]) for side in (ours, theirs)]
        if match and all(ids) and ids[0] != ids[1] and _are_others(ours[path], theirs[path]):
            mover = 0 if str(ids[0]) > str(ids[1]) else 1
            stays = sides[1 - mover]
            slug = _folder_of_page(str(ids[mover]), stays) or _free_slug(match.group(1), sides)
            sides[mover] = _move_project(sides[mover], base, match.group(1), slug)
    return sides[0], sides[1]


def _are_others(left: bytes, right: bytes) -> bool:
    """Return True if both project pages name git remotes, but none in common."""
    left_remotes, right_remotes = _remotes(left), _remotes(right)
    return bool(left_remotes) and bool(right_remotes) and not left_remotes & right_remotes


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


def _free_slug(slug: str, sides: list[dict[str, bytes]]) -> str:
    paths = {path for side in sides for path in side}
    return numbered(
        slug,
        lambda name: name == slug or any(path.startswith(f"projects/{name}/") for path in paths),
    )


def _move_project(side: Mapping[str, bytes], base: Tree, slug: str, to: str) -> dict[str, bytes]:
    """Move one side's project to another folder. Files of the base are not moved."""
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
        return with_values(text, {"project": project}).encode() if has_project else data
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
_STANDING = ("created", "retired", "superseded_by")
"""Fields that both memories share if their bodies cannot be merged."""


@frozen
class MergedVault:
    """The result of a merge. ``notes``: notes for the user. ``united``: new ids by replaced id."""

    files: dict[str, bytes]
    notes: tuple[Note, ...] = ()
    united: Mapping[str, str] = field(default_factory=dict)


@frozen
class _Placed:
    """A version to store.

    If several need the same path, the version with the lowest rank gets it.
    """

    name: str
    version: Version
    rank: int


_WAS_THERE, _NEW, _SECOND = range(3)


def merge_vaults(base: Tree, ours: Tree, theirs: Tree) -> MergedVault:
    """Merge two vaults that were changed from ``base``.

    An empty ``base`` means no common ancestor.
    """
    notes: list[Note] = []
    ours, theirs = apart(base, ours, theirs)
    united = united_ids(base, ours, theirs, notes)
    trees = [base, with_ids(ours, united), with_ids(theirs, united)]
    sides = sides_of(trees, names_of(trees), notes)
    names = sorted({name for side in sides for name in side})
    placed = [
        item
        for name in names
        for item in _merge_named(name, [side.get(name) for side in sides], notes)
    ]
    names_before = {name for side in sides for name in side}
    files = _assign_paths(
        [item for item in placed if item.rank != _SECOND or item.name not in names_before], notes
    )
    files = _rename_blocked(files | _merge_others(trees, notes), notes)
    relevant = (
        note
        for note in notes
        if not (note.outcome is MergeOutcome.KEPT_TWICE and note.other in names_before)
    )
    return MergedVault(files, tuple(dict.fromkeys(relevant)), united)


def merge_ledgers(*ledgers: bytes) -> bytes:
    """Merge ledgers and sort the lines by operation. Lines of one operation keep their order.

    A line is omitted if another ledger has the same line without its forgotten text.
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
    """Remove each line that also exists in a version without its forgotten text."""
    all_lines = [*lines]
    entries = [next(read_ledger(line), None) for line in all_lines] if len(all_lines) > 1 else []
    outdated = [
        entry
        for entry in entries
        if entry and entry.without_words() != entry and entry.without_words() in entries
    ]
    return (
        [line for line, entry in zip(all_lines, entries, strict=True) if entry not in outdated]
        if outdated
        else all_lines
    )


def _operation(line: bytes) -> str:
    try:
        return str(json.parse(line)["op"])
    except (ValueError, KeyError, TypeError):
        return ""


def _merge_named(name: str, sides: Sequence[Version | None], notes: list[Note]) -> list[_Placed]:
    base, ours, theirs = sides
    if ours is not None and theirs is not None and ours != theirs and base not in (ours, theirs):
        return _merge_both(name, base, ours, theirs, notes)
    version = merge_value(base, ours, theirs, lambda left, right: left or right)
    if version is None:
        return []
    if None in (ours, theirs) and base is not None:
        notes.append(
            Note(MergeOutcome.KEPT_EDITED, version.path, _memory_id(name), _subject(version.data))
        )
    return [_Placed(name, version, _rank(version.path, base))]


def merge_versions(
    base: Version | None, ours: Version, theirs: Version
) -> tuple[str, MergedDocument] | None:
    """Merge two versions of a file and return its path and content, or ``None`` if one cannot be read."""
    our_document, their_document = _read_if_valid(ours.data), _read_if_valid(theirs.data)
    if our_document is None or their_document is None:
        return None
    before = _read_if_valid(base.data) if base else None
    path = _merge_path(base.path if base else None, ours, theirs, (our_document, their_document))
    return path, merge_document(before, our_document, their_document, _place(path))


def _merge_both(
    name: str, base: Version | None, ours: Version, theirs: Version, notes: list[Note]
) -> list[_Placed]:
    our_document, their_document = _read_if_valid(ours.data), _read_if_valid(theirs.data)
    merged_pair = merge_versions(base, ours, theirs)
    if merged_pair is None or our_document is None or their_document is None:
        return _unreadable(name, base, (ours, our_document), (theirs, their_document), notes)
    before = _read_if_valid(base.data) if base else None
    path, merged = merged_pair
    version = Version(path, merged.text.encode())
    memory_id = _memory_id(name)
    if not merged.is_whole or (memory_id and "subject" in merged.fields):
        version, second = _apart(name, version, ((ours, our_document), (theirs, their_document)))
        note = Note(
            MergeOutcome.KEPT_TWICE,
            version.path,
            memory_id,
            _subject(version.data),
            second.name,
            merged.fields,
        )
        notes.append(note)
        return [_Placed(name, version, _rank(version.path, base)), second]
    subject = _subject(version.data)
    if _is_retired_edit(path, ours, theirs, before, (our_document, their_document)):
        notes.append(Note(MergeOutcome.STAYS_RETIRED, path, memory_id, subject))
    elif ours.data != theirs.data or path not in (ours.path, theirs.path):
        notes.append(Note(MergeOutcome.MERGED, path, memory_id, subject, None, merged.fields))
    return [_Placed(name, version, _rank(path, base))]


def _apart(
    name: str, merged: Version, sides: Iterable[tuple[Version, Document]]
) -> tuple[Version, _Placed]:
    """Return the versions of a document that cannot be merged, as two separate documents.

    The later version keeps the id and gets a ``contradicts`` link to the other. A project's page
    keeps the merged front matter.
    """
    ordered = sorted(
        sides, key=lambda side: (side[1].updated, _words(side[1]), side[0].data), reverse=True
    )
    (first, document), (second, other) = ordered
    standing = {key: read_document(merged.data.decode()).values.get(key) for key in _STANDING}
    own = derived_id(_memory_id(name) or "", _words(other).encode())
    if name.startswith("page:"):
        first = merged
    else:
        link = {"rel": _CONTRADICTS, "to": own, "reason": _CONTRADICTION_REASON}
        links = [existing for existing in as_list(document.values.get("links")) if existing != link]
        first = _with_values_at(merged, first, {**standing, "links": [*links, link]})
    return first, _Placed(
        f"memory:{own}", _with_values_at(merged, second, {**standing, "id": own}), _SECOND
    )


def _with_values_at(merged: Version, version: Version, values: Mapping[str, Any]) -> Version:
    """Return ``version`` with new front matter values, and retire it if ``merged`` is retired."""
    _, folder, name = _parts(version.path)
    return Version(
        f"{_parts(merged.path)[0]}{folder}{name}",
        with_values(version.data.decode(), values).encode(),
    )


def _words(document: Document) -> str:
    return f"{document.values.get('subject') or ''}\n{document.body.strip()}"


def _unreadable(
    name: str,
    base: Version | None,
    ours: tuple[Version, Document | None],
    theirs: tuple[Version, Document | None],
    notes: list[Note],
) -> list[_Placed]:
    """Keep both versions of a file if one is unreadable.

    A readable version keeps its path, and the other version is stored next to it.
    """
    order = sorted(
        (ours, theirs), key=lambda side: (side[1] is not None, side[0].data), reverse=True
    )
    first, second = order[0][0], order[1][0]
    path = _other_name(first.path, second.data)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, first.path, _memory_id(name), None, path))
    return [
        _Placed(name, first, _rank(first.path, base)),
        _Placed(f"path:{path}", Version(path, second.data), _NEW),
    ]


def _read_if_valid(data: bytes) -> Document | None:
    try:
        text = data.decode()
        return None if has_marks(text) else read_document(text)
    except (InvalidMemoryError, UnicodeDecodeError):
        return None


def _subject(data: bytes) -> str | None:
    document = _read_if_valid(data)
    subject = document.values.get("subject") if document else None
    return subject if isinstance(subject, str) else None


def _memory_id(name: str) -> str | None:
    kind, _, memory_id = name.partition(":")
    return memory_id if kind == "memory" else None


def _rank(path: str, base: Version | None) -> int:
    return _WAS_THERE if base and base.path == path else _NEW


def _is_retired_edit(
    path: str,
    ours: Version,
    theirs: Version,
    base: Document | None,
    sides: tuple[Document, Document],
) -> bool:
    retired = [version.path.startswith(_RETIRED) for version in (ours, theirs)]
    if not path.startswith(_RETIRED) or all(retired) or base is None:
        return False
    edited = sides[retired.index(False)]
    return edited.body != base.body or edited.values.get("subject") != base.values.get("subject")


def _merge_path(
    base: str | None, ours: Version, theirs: Version, sides: tuple[Document, Document]
) -> str:
    """Merge two paths of a file. Retirement, folder and name are merged separately.

    If both sides changed the folder or the name, the later version decides.
    """

    def later(left: str, right: str) -> str:
        times = sides[0].updated, sides[1].updated
        if times[0] == times[1]:
            return str(greatest(left, right))
        return left if times[0] > times[1] else right

    before = _parts(base) if base else (None, None, None)
    our_parts, their_parts = _parts(ours.path), _parts(theirs.path)
    retired = merge_value(before[0], our_parts[0], their_parts[0], greatest)
    folder = merge_value(
        before[1], our_parts[1], their_parts[1], lambda *_: later(our_parts[1], their_parts[1])
    )
    name = merge_value(
        before[2], our_parts[2], their_parts[2], lambda *_: later(our_parts[2], their_parts[2])
    )
    return f"{retired}{folder}{name}"


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


def _assign_paths(placed: Iterable[_Placed], notes: list[Note]) -> dict[str, bytes]:
    """Assign paths to files. If several need the same path, all except the first get a number."""
    files: dict[str, bytes] = {}
    used: set[str] = set()
    for item in sorted(placed, key=lambda item: (item.rank, item.name)):
        requested = path = item.version.path
        number = 1
        while _fold_path(path) in used:
            number += 1
            path = str(
                PurePosixPath(requested).with_name(f"{PurePosixPath(requested).stem}-{number}.md")
            )
        used.add(_fold_path(path))
        files[path] = item.version.data
        if path != requested:
            _note_path(item, requested, path, notes)
    return files


def _note_path(item: _Placed, requested: str, path: str, notes: list[Note]) -> None:
    if item.rank != _SECOND:
        notes.append(
            Note(
                MergeOutcome.RENAMED,
                path,
                _memory_id(item.name),
                _subject(item.version.data),
                requested,
            )
        )
        return
    for number, note in enumerate(notes):
        if note.outcome is MergeOutcome.KEPT_TWICE and note.other == item.name:
            notes[number] = replace(note, other=path)


def _fold_path(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _merge_others(trees: Sequence[Tree], notes: list[Note]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path in sorted({path for tree in trees for path in tree if not is_document(path)}):
        base, ours, theirs = (tree.get(path) for tree in trees)
        if (
            ours is None
            or theirs is None
            or ours == theirs
            or (base in (ours, theirs) and path != LEDGER)
        ):
            data = merge_value(base, ours, theirs, lambda left, right: left or right)
            if data is not None:
                files[path] = data
            if data is not None and base is not None and None in (ours, theirs):
                notes.append(Note(MergeOutcome.KEPT_EDITED, path))
        else:
            files |= _merge_other(path, base, ours, theirs, notes)
    return files


def _merge_other(
    path: str, base: bytes | None, ours: bytes, theirs: bytes, notes: list[Note]
) -> dict[str, bytes]:
    if path == LEDGER:
        return {path: merge_ledgers(ours, theirs)}
    if PurePosixPath(path).name == LISTING:
        return {path: greatest(ours, theirs)}
    try:
        merged = (
            merge_text((base or b"").decode(), ours.decode(), theirs.decode())
            if base is not None
            else None
        )
    except UnicodeDecodeError:
        merged = None
    if merged is not None:
        return {path: merged.encode()}
    first = max(ours, theirs)
    second = theirs if first == ours else ours
    second_path = _other_name(path, second)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=second_path))
    return {path: first, second_path: second}


def _other_name(path: str, data: bytes) -> str:
    """Return a name for another version of a file. Programs do not treat it as a memory file."""
    return f"{path}.other-{hashlib.blake2b(data, digest_size=4).hexdigest()}"


def _rename_blocked(files: dict[str, bytes], notes: list[Note]) -> dict[str, bytes]:
    """Rename files that have the same path as a folder."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    blocking = sorted(files.keys() & folders)
    for path in blocking:
        data = files.pop(path)
        files[_other_name(path, data)] = data
        notes.append(Note(MergeOutcome.KEPT_BESIDE, path, other=_other_name(path, data)))
    return files
