"""Three-way merge of one document of the vault: front matter field by field, body as text.

============================================ =====================================================================
field                                        where both sides changed it
============================================ =====================================================================
tags, triggers, suppressed_contexts,         union, without what either side took out; a link that both sides
links (by rel and to), confirmed, lists of   changed, field by field
a project's page, lists nacre does not know
created                                      the earlier, also where one side changed it
updated                                      the later, also where one side changed it
importance                                   that of the later version; of versions of the same time, the higher
trust                                        untrusted, if either is
scope                                        the narrower
valid                                        both ends: the earlier
superseded_by                                the later id: ids tell their time
retired                                      the earlier, with its reason
source                                       turns of one session together; of two sessions, that of the later version
kind, project                                as the place of the merged file says
all others                                   that of the later version; of versions of the same time, the greater text
subject                                      both versions are kept
body                                         by lines and sentences; else both versions are kept
============================================ =====================================================================

The later version is the one with the later ``updated``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from nacre.platform.days import in_utc
from nacre.vault.blocks import merge_blocks
from nacre.vault.document import MANAGED
from nacre.vault.front_matter import load, split
from nacre.vault.threeway import greatest, merge_list, merge_text, merge_value

LISTS = frozenset(
    {"tags", "triggers", "suppressed_contexts", "links", "confirmed", "remotes", "roots", "labels", "aliases"}
)
_SCOPES = ("public", "personal", "private")
_TIMES: Mapping[str, Callable[..., str]] = {"created": min, "updated": max}
_UNSAID = {
    "importance": "7", "expiry": "permanent", "scope": "private", "speaker": "owner", "trust": "trusted",
    "confidence": "extracted",
}  # fmt: skip
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
    values = {key: place.get(key, value) for key, value in values.items() if key not in place or place[key]}
    front = merge_blocks((before.front, ours.front, theirs.front), values)
    body = merge_text(_ended(before.body), _ended(ours.body), _ended(theirs.body)) if base else None
    fields = sides.chosen
    if body is None and _ended(ours.body) != _ended(theirs.body):
        body = _ended(sides.later(ours.body, theirs.body))
        return MergedDocument(_joined(front, body), is_whole=False, fields=(*fields, "body"))
    return MergedDocument(_joined(front, _ended(ours.body) if body is None else body), fields=fields)


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
            "trust": lambda _, one, other: "untrusted" if "untrusted" in (one, other) else greatest(one, other),
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
        new = sorted(left.keys() - self._base.keys(), key=lambda key: (_RANKS.get(key, len(_RANKS)), key))
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
        return merge_value(base, ours, theirs, lambda one, other: self._chosen(key, base, one, other))

    def _chosen(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        self.chosen = (*self.chosen, key)
        return self._both(key, base, ours, theirs)

    def _both(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        if key in LISTS or (isinstance(ours, list) and isinstance(theirs, list)):
            lists = listed(base), listed(ours), listed(theirs)
            return merge_list(*lists, _link, self._same_link) if key == "links" else merge_list(*lists)
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
            merged[key] = merge_value(*sides, choose=partial(self._both, key if is_front else "", sides[0]))
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
