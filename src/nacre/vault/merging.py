"""Three-way merge of values, lists and texts. Which side is which never matters: both machines come to the same.

``base`` is what both sides were made from, ``None`` where there was nothing. What only one side changed is taken.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from nacre.base import json
from nacre.base.times import in_utc
from nacre.errors import MemoryInvalid
from nacre.vault.documents import MANAGED, MergeOutcome, Note, dump, has_marks, load, split
from nacre.vault.files import LEDGER, LISTING, is_memory_file, normalise_remote, place_of
from nacre.vault.files import read as read_ledger

Value = TypeVar("Value")

_MOST_COMPARISONS = 4_000_000
"""Texts in which more pairs of pieces are alike than that are not merged: it would take seconds."""

_SENTENCE = re.compile(r"(?<=[.!?;。！？；])(\s+)|(\s*\n\s*)")


def merge_value(
    base: Value, ours: Value, theirs: Value, choose: Callable[[Value, Value], Value]
) -> Value:
    """What one side changed, or what both agree on; ``choose`` decides where both changed it."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else choose(ours, theirs)


def greatest(one: Any, other: Any) -> Any:
    """One of two values, the same whichever comes first."""
    return max(one, other, key=lambda value: (str(value), repr(value)))


def merge_list(
    base: Sequence[Any],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    key: Callable[[Any], Hashable] = repr,
    merge: Callable[[Any, Any, Any], Any] = lambda _, one, other: greatest(one, other),
) -> list[Any]:
    """The union of two lists without what either side took out.

    Where one side holds just the result, its order stays; else what was there before comes first. Of items with the
    same ``key`` that both sides changed, each in its own way, ``merge`` (of base, ours and theirs) makes one: the
    greatest.
    """
    sides = [{key(item): item for item in side} for side in (base, ours, theirs)]
    had, one, other = sides
    kept = [name for name in had if name in one and name in other]
    new = sorted({name for name in (*one, *other) if name not in had}, key=repr)
    items = {
        name: _merged(
            had.get(name), one.get(name, other.get(name)), other.get(name, one.get(name)), merge
        )
        for name in (*kept, *new)
    }
    orders = [list(side) for side in (one, other) if side.keys() == items.keys()]
    order = max(orders, key=repr) if orders else [*kept, *new]
    return [items[name] for name in order]


def _merged(base: Any, ours: Any, theirs: Any, merge: Callable[[Any, Any, Any], Any]) -> Any:
    return merge_value(base, ours, theirs, lambda one, other: merge(base, one, other))


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Merge texts by lines, and by sentences within lines that both changed; ``None`` where that fails.

    Two changes within one sentence fail: words put together would say what nobody said. So does a merge that would
    change when either side meets it again: where a sentence is said twice, nobody can tell the old one. What both add
    at one place is kept, in alphabetical order.
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
    """The diff3 algorithm: between stretches that all three share, at most one side may differ from the base."""
    if _comparisons(base, ours) + _comparisons(base, theirs) > _MOST_COMPARISONS:
        return None
    merged: Pieces = []
    at = (0, 0, 0)
    for starts, length in _shared(base, ours, theirs):
        gaps = [
            side[begin:end]
            for side, begin, end in zip((base, ours, theirs), at, starts, strict=True)
        ]
        chosen = _merge_gap(*gaps, finer=finer)
        if chosen is None:
            return None
        merged += chosen + base[starts[0] : starts[0] + length]
        at = (starts[0] + length, starts[1] + length, starts[2] + length)
    return merged


def _merge_gap(base: Pieces, ours: Pieces, theirs: Pieces, *, finer: Finer) -> Pieces | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not base:
        return _both_added(ours, theirs)
    return finer(base, ours, theirs)


def _both_added(ours: Pieces, theirs: Pieces) -> Pieces | None:
    for less, more in ((ours, theirs), (theirs, ours)):
        rest = iter(more)
        if all(piece in rest for piece in less):
            return more
    if {piece for piece in ours if piece.strip()} & {piece for piece in theirs if piece.strip()}:
        return None
    return [piece for side in sorted((ours, theirs)) for piece in side]


def _shared(
    base: Pieces, ours: Pieces, theirs: Pieces
) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Stretches that all three share: where they begin in each, and how long they are; the end is the last."""
    left, right = (
        list(SequenceMatcher(None, base, side, autojunk=False).get_matching_blocks())
        for side in (ours, theirs)
    )
    while left and right:
        one, other = left[0], right[0]
        start = max(one.a, other.a)
        end = min(one.a + one.size, other.a + other.size)
        if start < end:
            yield (start, one.b + start - one.a, other.b + start - other.a), end - start
        shorter = left if one.a + one.size <= other.a + other.size else right
        del shorter[0]
    yield (len(base), len(ours), len(theirs)), 0


def _comparisons(one: Pieces, other: Pieces) -> int:
    counts = Counter(other)
    return sum(counts[piece] for piece in one)


# ----------------------------------------------------------------------------
# Front matter as blocks of lines, one for each key, so that comments and ways of writing survive a
# merge.


_KEY = re.compile(r"""("[^"\n]*"|'[^'\n]*'|[^\s#"'\[\]{}&*!|>%@`?,-][^:#\n]*?)\s*:(?=\s|$)""")
_COMMENT = re.compile(r"(\s+#.*?)\s*$")
_TAIL = "\0tail"


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one key, and the comments and empty lines above them."""

    lead: tuple[str, ...] = ()
    lines: str = ""


def split_blocks(front: str) -> dict[str, Block]:
    """Front matter by key; what follows the last key is under a name that is none.

    Lines that belong to no key are left out: whoever puts blocks together looks at what they say.
    """
    found: dict[str, Block] = {}
    key = ""
    lead: list[str] = []
    for line in front.splitlines(keepends=True):
        match = _KEY.match(line)
        if not line.strip() or line.startswith("#"):
            lead.append(line)
        elif match:
            key = match.group(1).strip("\"'")
            found[key] = Block(tuple(lead), line)
            lead = []
        elif key:
            found[key] = Block(found[key].lead, found[key].lines + "".join(lead) + line)
            lead = []
    return {**found, _TAIL: Block(tuple(lead))} if lead else found


def merge_blocks(fronts: Sequence[str], values: Mapping[str, Any]) -> str:
    """Front matter that says ``values``, written as base, ours and theirs (``fronts``) write it."""
    sides = [split_blocks(front) for front in fronts]
    text = "".join(_block(key, value, sides) for key, value in values.items())
    text += "".join(_lead(_TAIL, sides))
    return text if _says(text, values) else dump(values)


def _says(text: str, values: Mapping[str, Any]) -> bool:
    try:
        return load(text) == dict(values)
    except MemoryInvalid:
        return False


def _block(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    fitting = [
        side[key].lines
        for side in sides[1:]
        if key in side and _says(side[key].lines, {key: value})
    ]
    if len(fitting) == 2:
        before = sides[0].get(key, Block()).lines
        lines = merge_value(before, fitting[0], fitting[1], greatest)
    else:
        lines = fitting[0] if fitting else _written(key, value, sides)
    return "".join(_lead(key, sides)) + (lines if lines.endswith("\n") else f"{lines}\n")


def _written(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    """A line of our own, with the comment that stood behind the value."""
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
    return merge_value(base, ours, theirs, lambda one, other: tuple(merge_list(base, one, other)))


# ----------------------------------------------------------------------------
# Three-way merge of one document of the vault: front matter field by field, body as text.
#
# ============================================
# =====================================================================
# field                                        where both sides changed it
# ============================================
# =====================================================================
# tags, triggers, suppressed_contexts,         union, without what either side took out; a link that
# both sides
# links (by rel and to), confirmed, lists of   changed, field by field
# a project's page, lists nacre does not know
# created                                      the earlier, also where one side changed it
# updated                                      the later, also where one side changed it
# importance                                   that of the later version; of versions of the same
# time, the higher
# trust                                        untrusted, if either is
# scope                                        the narrower
# valid                                        both ends: the earlier
# superseded_by                                the later id: ids tell their time
# retired                                      the earlier, with its reason
# source                                       turns of one session together; of two sessions, that of
# the later version
# kind, project                                as the place of the merged file says
# all others                                   that of the later version; of versions of the same
# time, the greater text
# subject                                      both versions are kept
# body                                         by lines and sentences; else both versions are kept
# ============================================
# =====================================================================
#
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
_UNSAID = {
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


@dataclass(frozen=True, slots=True)
class Document:
    """A document taken apart: its front matter as written and as read, and what follows."""

    front: str
    values: dict[str, Any]
    body: str

    @property
    def updated(self) -> datetime:
        """When it was changed last, as it says."""
        return _time(self.values.get("updated") or self.values.get("created"))


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """A merged document; ``is_whole`` is false where the bodies could not be merged: it has the later one then.

    ``fields`` both sides changed, each in its own way.
    """

    text: str
    is_whole: bool = True
    fields: tuple[str, ...] = ()


def read_document(text: str) -> Document:
    """Take a document apart. Raises MemoryInvalid."""
    front, body = split(text.replace("\r\n", "\n"))
    return Document(front or "", load(front or ""), body)


def merge_document(
    base: Document | None, ours: Document, theirs: Document, place: Mapping[str, str | None]
) -> MergedDocument:
    """Merge two versions of a document; ``place`` holds values that its place in the vault decides."""
    before = _in_full(base) if base else Document("", {}, "")
    sides = _Sides(before, ours, theirs)
    values = sides.merged()
    values = {
        key: place.get(key, value)
        for key, value in values.items()
        if key not in place or place[key]
    }
    front = merge_blocks((before.front, ours.front, theirs.front), values)
    body = merge_text(_ended(before.body), _ended(ours.body), _ended(theirs.body)) if base else None
    fields = sides.chosen
    if body is None and _ended(ours.body) != _ended(theirs.body):
        body = _ended(sides.later(ours.body, theirs.body))
        return MergedDocument(_joined(front, body), is_whole=False, fields=(*fields, "body"))
    return MergedDocument(
        _joined(front, _ended(ours.body) if body is None else body), fields=fields
    )


def with_values(text: str, changes: Mapping[str, Any]) -> str:
    """A document with some values of its front matter changed, taken out where they are ``None``."""
    document = read_document(text)
    values = {**document.values, **changes}
    kept = {key: value for key, value in values.items() if value is not None}
    return _joined(merge_blocks((document.front,) * 3, kept), document.body)


class _Sides:
    """Both versions of the front matter, and what they were made from."""

    def __init__(self, base: Document, ours: Document, theirs: Document) -> None:
        self._base, self._ours, self._theirs = base.values, ours.values, theirs.values
        self._times = (ours.updated, theirs.updated)
        self.chosen: tuple[str, ...] = ()
        self._rules: dict[str, Callable[[Any, Any, Any], Any]] = {
            "importance": self._importance,
            "trust": lambda _, one, other: (
                "untrusted" if "untrusted" in (one, other) else greatest(one, other)
            ),
            "scope": lambda _, one, other: max(one, other, key=_rank_of_scope),
            "valid": self._valid,
            "superseded_by": lambda _, one, other: greatest(one, other),
            "retired": lambda _, one, other: min(one, other, key=_order_of_retirement),
            "source": self._source,
        }

    def merged(self) -> dict[str, Any]:
        """Every key that is left, in order, with its value."""
        fields = {key: self._field(key) for key in {**self._base, **self._ours, **self._theirs}}
        left = {key: value for key, value in fields.items() if value is not None}
        orders = [list(side) for side in (self._ours, self._theirs) if side.keys() == left.keys()]
        new = sorted(
            left.keys() - self._base.keys(), key=lambda key: (_RANKS.get(key, len(_RANKS)), key)
        )
        order = max(orders) if orders else [*(key for key in self._base if key in left), *new]
        return {key: left[key] for key in order}

    def later(self, ours: Any, theirs: Any) -> Any:
        """The value of the later version; of versions of the same time, the greater."""
        if self._times[0] == self._times[1]:
            return greatest(ours, theirs)
        return ours if self._times[0] > self._times[1] else theirs

    def _field(self, key: str) -> Any:
        base, ours, theirs = (side.get(key) for side in (self._base, self._ours, self._theirs))
        if key in _TIMES and isinstance(ours, str) and isinstance(theirs, str):
            return _TIMES[key]((ours, theirs), key=lambda text: (_time(text), text))
        return merge_value(
            base, ours, theirs, lambda one, other: self._chosen(key, base, one, other)
        )

    def _chosen(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        self.chosen = (*self.chosen, key)
        return self._both(key, base, ours, theirs)

    def _both(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        if key in LISTS or (isinstance(ours, list) and isinstance(theirs, list)):
            lists = listed(base), listed(ours), listed(theirs)
            return (
                merge_list(*lists, _link, self._same_link) if key == "links" else merge_list(*lists)
            )
        rule = self._rules.get(key)
        if rule and type(ours) is type(theirs):
            return rule(base, ours, theirs)
        return self._mapping(base, ours, theirs)

    def _same_link(self, base: Any, ours: Any, theirs: Any) -> Any:
        """One link that both sides changed: field by field, as front matter is."""
        return self._mapping(base, ours, theirs, is_front=True)

    def _mapping(self, base: Any, ours: Any, theirs: Any, *, is_front: bool = False) -> Any:
        if not (isinstance(ours, dict) and isinstance(theirs, dict)):
            return self.later(ours, theirs)
        had = base if isinstance(base, dict) else {}
        keys = merge_list(list(had), list(ours), list(theirs), key=str)
        merged = {}
        for key in keys:
            sides = had.get(key), ours.get(key), theirs.get(key)
            merged[key] = merge_value(
                *sides, choose=partial(self._both, key if is_front else "", sides[0])
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
    """A document with what its front matter leaves unsaid: a side that says it has not changed it."""
    heading = _HEADING.match(base.body)
    subject = {"subject": heading.group(1)} if heading else {}
    return Document(base.front, {**_UNSAID, **subject, **base.values}, base.body)


def _joined(front: str, body: str) -> str:
    return f"---\n{front}---\n{body}" if front else body


def _ended(body: str) -> str:
    """A body whose last line has an end."""
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


def _earlier(one: str, other: str) -> str:
    """The earlier of two days; one that is told, before one that is not."""
    return min((text for text in (one, other) if text), default="")


def listed(value: Any) -> list[Any]:
    """Return a value of front matter as a list; a text is split at its commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list) else []


def _link(link: Any) -> tuple[Any, Any] | str:
    return (link.get("rel"), link.get("to")) if isinstance(link, dict) else repr(link)


# ----------------------------------------------------------------------------
# Which file of one side is which file of the other: by id, never by path.


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
    digest = int.from_bytes(
        hashlib.blake2b(memory_id.encode() + b"\n" + seed, digest_size=16).digest()
    )
    known = re.fullmatch(r"[0-9a-f]{32}", memory_id.replace("-", ""))
    time = int(memory_id.replace("-", "")[:12], 16) if known else 0
    value = (
        time << 80
        | 0x7 << 76
        | (digest >> 64 & 0xFFF) << 64
        | 0b10 << 62
        | digest & 0x3FFF_FFFF_FFFF_FFFF
    )
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
    return mine.body.strip() == its.body.strip() and mine.values.get("subject") == its.values.get(
        "subject"
    )


def with_ids(tree: Tree, united: Mapping[str, str]) -> Tree:
    """A side in which every mention of an id that is given up names the one that stays."""
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


def sides_of(
    trees: Sequence[Tree], named: Sequence[Mapping[str, str]], notes: list[Note]
) -> list[dict[str, Version]]:
    """For each side: what a file is → where it lies and what it says; of copies, the second becomes its own."""
    listed: list[dict[str, list[str]]] = [{} for _ in named]
    for found, names in zip(listed, named, strict=True):
        for path in sorted(names):
            found.setdefault(names[path], []).append(path)
    return [_side(number, tree, listed, notes) for number, tree in enumerate(trees)]


def _side(
    number: int, tree: Tree, listed: Sequence[Mapping[str, list[str]]], notes: list[Note]
) -> dict[str, Version]:
    side: dict[str, Version] = {}
    for name, paths in listed[number].items():
        elsewhere = (
            path for other in listed for path in other.get(name, ()) if other is not listed[number]
        )
        first = next((path for path in elsewhere if path in paths), paths[0])
        side[name] = Version(first, tree[first])
        for path in paths:
            if path != first:
                own, data = _as_its_own(name, path, tree[path])
                side[own] = Version(path, data)
                if number:
                    notes.append(
                        Note(MergeOutcome.COPY_KEPT, path, own.partition(":")[2], other=first)
                    )
    return side


def _as_its_own(name: str, path: str, data: bytes) -> tuple[str, bytes]:
    kind, _, memory_id = name.partition(":")
    own = derived_id(memory_id, path.encode())
    try:
        return f"{kind}:{own}", with_values(data.decode(), {"id": own}).encode()
    except (MemoryInvalid, UnicodeDecodeError):
        return f"path:{path}", data


# ----------------------------------------------------------------------------
# Two projects of one name that two machines made apart: other remotes, so other projects; one gets
# another folder.


_PAGE_NAMESAKES = re.compile(r"projects/([^/]+)/project\.md")


def apart(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, Tree]:
    """Both sides, with namesakes in folders of their own: of two, the one with the greater id moves."""
    sides = [dict(ours), dict(theirs)]
    for path in sorted(ours.keys() & theirs.keys() - base.keys()):
        match = _PAGE_NAMESAKES.fullmatch(path)
        ids = [id_in(side[path]) for side in (ours, theirs)]
        if match and all(ids) and ids[0] != ids[1] and _are_others(ours[path], theirs[path]):
            mover = 0 if str(ids[0]) > str(ids[1]) else 1
            stays = sides[1 - mover]
            slug = _known(str(ids[mover]), stays) or _free(match.group(1), sides)
            sides[mover] = _moved(sides[mover], base, match.group(1), slug)
    return sides[0], sides[1]


def _are_others(one: bytes, other: bytes) -> bool:
    """Whether two pages name remotes, and none in common."""
    mine, its = _remotes(one), _remotes(other)
    return bool(mine) and bool(its) and not mine & its


def _remotes(data: bytes) -> set[str]:
    try:
        found = read_document(data.decode("utf-8", "replace")).values.get("remotes")
    except MemoryInvalid:
        return set()
    return {normalise_remote(str(one)) for one in found} if isinstance(found, list) else set()


def _known(page_id: str, side: Tree) -> str | None:
    """The folder that the other side has for a project already."""
    pages = (
        (match.group(1), data)
        for path, data in side.items()
        if (match := _PAGE_NAMESAKES.fullmatch(path))
    )
    return next((slug for slug, data in pages if id_in(data) == page_id), None)


def _free(slug: str, sides: list[dict[str, bytes]]) -> str:
    number = 2
    while any(path.startswith(f"projects/{slug}-{number}/") for side in sides for path in side):
        number += 1
    return f"{slug}-{number}"


def _moved(side: Mapping[str, bytes], base: Tree, slug: str, to: str) -> dict[str, bytes]:
    """A side whose project lies in another folder; what was there before both sides began stays."""
    moved = {}
    for path, data in side.items():
        match = re.fullmatch(rf"((?:retired/)?projects/){re.escape(slug)}(/.*)", path)
        if match and path not in base:
            moved[f"{match.group(1)}{to}{match.group(2)}"] = _renamed(path, data, to)
        else:
            moved[path] = data
    return moved


def _renamed(path: str, data: bytes, project: str) -> bytes:
    try:
        text = data.decode()
        has_project = is_memory_file(path) and "project" in read_document(text).values
        return with_values(text, {"project": project}).encode() if has_project else data
    except (MemoryInvalid, UnicodeDecodeError):
        return data


# ----------------------------------------------------------------------------
# Three-way merge of whole vaults: by memory id, never by path; pure, and the same on both machines.
#
# What one side changed is taken. A memory that one side moved and the other edited is moved and
# edited; retired and
# edited, it stays retired with the edit in it; deleted and edited, it stays. Where two bodies cannot
# be merged, both are
# kept, each as its side wrote it, as two memories that contradict each other. Other files are merged
# as text, or both are
# kept. Nothing else is lost.


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
    placed = [
        one
        for name in names
        for one in _merge_named(name, [side.get(name) for side in sides], notes)
    ]
    known = {name for side in sides for name in side}
    files = _settled([one for one in placed if one.rank != _SECOND or one.name not in known], notes)
    files = _unblocked(files | _merge_others(trees, notes), notes)
    told = (
        note
        for note in notes
        if not (note.outcome is MergeOutcome.KEPT_TWICE and note.other in known)
    )
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
    """Lines of one operation, without those that are there without their words, too."""
    found = [*lines]
    entries = [next(read_ledger(line), None) for line in found] if len(found) > 1 else []
    cut = [
        one
        for one in entries
        if one and one.without_words() != one and one.without_words() in entries
    ]
    return (
        [line for line, entry in zip(found, entries, strict=True) if entry not in cut]
        if cut
        else found
    )


def _operation(line: bytes) -> str:
    try:
        return str(json.parse(line)["op"])
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
        notes.append(
            Note(MergeOutcome.KEPT_EDITED, taken.path, _memory_id(name), _subject(taken.data))
        )
    return [_Placed(name, taken, _rank(taken.path, base))]


def merge_versions(
    base: Version | None, ours: Version, theirs: Version
) -> tuple[str, MergedDocument] | None:
    """Merge two versions of one file: where it is to lie, and what it says. ``None`` when one cannot be read."""
    mine, its = _read(ours.data), _read(theirs.data)
    if mine is None or its is None:
        return None
    before = _read(base.data) if base else None
    path = _merge_path(base.path if base else None, ours, theirs, (mine, its))
    return path, merge_document(before, mine, its, _place(path))


def _merge_both(
    name: str, base: Version | None, ours: Version, theirs: Version, notes: list[Note]
) -> list[_Placed]:
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
            MergeOutcome.KEPT_TWICE,
            version.path,
            memory_id,
            _subject(version.data),
            second.name,
            merged.fields,
        )
        notes.append(told)
        return [_Placed(name, version, _rank(version.path, base)), second]
    subject = _subject(version.data)
    if _is_retired_edit(path, ours, theirs, before, (mine, its)):
        notes.append(Note(MergeOutcome.STAYS_RETIRED, path, memory_id, subject))
    elif ours.data != theirs.data or path not in (ours.path, theirs.path):
        notes.append(Note(MergeOutcome.MERGED, path, memory_id, subject, None, merged.fields))
    return [_Placed(name, version, _rank(path, base))]


def _apart(
    name: str, merged: Version, sides: Iterable[tuple[Version, Document]]
) -> tuple[Version, _Placed]:
    """Two versions whose words cannot be merged, each whole: the later one keeps the id and contradicts the other.

    A project's page keeps the merged front matter.
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
        link = {"rel": _CONTRADICTS, "to": own, "reason": _WHY_APART}
        links = [one for one in listed(document.values.get("links")) if one != link]
        first = _standing_as(merged, first, {**standing, "links": [*links, link]})
    return first, _Placed(
        f"memory:{own}", _standing_as(merged, second, {**standing, "id": own}), _SECOND
    )


def _standing_as(merged: Version, version: Version, values: Mapping[str, Any]) -> Version:
    """A version with some values, in ``retired/`` where the merged one is."""
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
    """Nobody can tell what one of two versions says: the one that can be read stays, the other one lies beside it."""
    order = sorted(
        (ours, theirs), key=lambda side: (side[1] is not None, side[0].data), reverse=True
    )
    first, second = order[0][0], order[1][0]
    path = _beside(first.path, second.data)
    notes.append(Note(MergeOutcome.KEPT_BESIDE, first.path, _memory_id(name), None, path))
    return [
        _Placed(name, first, _rank(first.path, base)),
        _Placed(f"path:{path}", Version(path, second.data), _NEW),
    ]


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
    path: str,
    ours: Version,
    theirs: Version,
    base: Document | None,
    sides: tuple[Document, Document],
) -> bool:
    """Whether one side retired a memory and the other changed what it says."""
    retired = [version.path.startswith(_RETIRED) for version in (ours, theirs)]
    if not path.startswith(_RETIRED) or all(retired) or base is None:
        return False
    edited = sides[retired.index(False)]
    return edited.body != base.body or edited.values.get("subject") != base.values.get("subject")


# Where it lies.


def _merge_path(
    base: str | None, ours: Version, theirs: Version, sides: tuple[Document, Document]
) -> str:
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
        notes.append(
            Note(
                MergeOutcome.RENAMED, path, _memory_id(one.name), _subject(one.version.data), wanted
            )
        )
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
        if (
            ours is None
            or theirs is None
            or ours == theirs
            or (base in (ours, theirs) and path != LEDGER)
        ):
            taken = merge_value(base, ours, theirs, lambda one, other: one or other)
            if taken is not None:
                files[path] = taken
            if taken is not None and base is not None and None in (ours, theirs):
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
