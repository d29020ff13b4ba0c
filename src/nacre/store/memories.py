"""Memories in the index. Rows, tags, links and full text are changed together."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, content_hash
from nacre.base.lazy import Lazy
from nacre.base.text import identifiers, normalise, segment
from nacre.base.times import day_of
from nacre.store.rows import memory_of, memory_row, records
from nacre.store.schema import (
    Database,
    Indexed,
    Row,
    Store,
    Words,
    fits_index,
    in_transaction,
    runs,
)
from nacre.values.memory import USUAL_STRENGTH, Confirmation, Kind, Link, Memory, Validity
from nacre.values.review import UNSAID, Reason, StepsDue, Usage, as_told

if TYPE_CHECKING:
    from nacre.store.schema import Names

_MANUAL = "manual"
"""Origin of links whose front matter states no origin."""

_DERIVED = ("auto", "body")
"""Origins of links that nacre derives. Front matter does not contain these links."""

_ROWS_PER_PAGE = 500


@frozen
class Known:
    """Fields of a stored memory that help extraction to avoid duplicates."""

    id: str
    kind: Kind
    content: str
    turns: frozenset[str]


@frozen
class News:
    """Criteria for memories that are new to a session.

    Memories must be trusted and belong to ``project`` or to no project. ``mark``: the row number
    must be larger, unless the database was rebuilt. ``first_id``: smallest id. ``said``: earliest
    time. ``sessions``: sessions to leave out. ``least``: lowest importance.
    """

    mark: int
    first_id: str
    said: datetime
    sessions: tuple[str, ...]
    project: str | None
    least: int
    limit: int


def memory_hash(content: str, project: str | None) -> bytes:
    """Return a hash of the project and the normalised content."""
    return content_hash(f"{project or ''}\n{normalise(content) or content}")


class Memories(Store):
    """Store of memories in the index. It does not change the vault."""

    names: Lazy[Names] = Lazy("nacre.store.schema:Names")
    """Index of memory names."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.has_new_rows = False
        """True if this process has stored memories that have no vectors yet."""

    def put(self, memory: Memory) -> None:
        """Insert a memory, or replace its row, tags, links, names and full text. Call this in a transaction.

        If the content changed, the memory is no longer marked as outdated.
        """
        former = self.names.of(memory.id)
        if self._drop(memory.id) not in (None, memory.content):
            self._db.run("delete_stale_of", memory=memory.id)
            self._db.run(
                "settle_review",
                memory=memory.id,
                reason=Reason.STALE.value,
                at=memory.updated,
            )
        values = memory_row(memory) | {"content_hash": memory_hash(memory.content, memory.project)}
        number = int(self._db.insert("memories", values, "row"))
        self._db.run_many(
            "insert_tag",
            [{"memory": memory.id, "tag": tag} for tag in memory.tags if fits_index(tag)],
        )
        self._put_links(memory.id, memory.links)
        confirmations = [
            {"memory": memory.id, "ordinal": at, **asdict(confirmation)}
            for at, confirmation in enumerate(memory.confirmed)
        ]
        self._db.run_many("insert_confirmation", confirmations)
        self._index(number, memory)
        self.names.put(memory, former)
        self.has_new_rows = True

    def _put_links(self, memory_id: str, links: Sequence[Link]) -> None:
        self._db.run("delete_links_of", source=memory_id)
        self._db.run_many("insert_link", [_link_row(memory_id, link) for link in links])

    def _index(self, number: int, memory: Memory) -> None:
        texts = (segment(memory.subject), segment(memory.content), " ".join(memory.tags))
        names = " ".join(identifiers(f"{memory.subject}\n{memory.content}"))
        self._db.words.add(Indexed.MEMORIES, [Words(number, texts, names)])

    def index_again(self, memory_ids: Sequence[str]) -> None:
        """Index memories that are missing from the full-text index, without changing their rows."""
        for memory_id in memory_ids:
            row, memory = self._db.one("find_memory_row", id=memory_id), self.find(memory_id)
            if row and memory:
                self._db.words.drop(Indexed.MEMORIES, [row[0]])
                self._index(row[0], memory)

    @runs("set_importance")
    def set_importance(self, memory: str, importance: int) -> None:
        """Change only the importance. The memory keeps its row and vectors."""

    def set_links(self, memory: Memory) -> None:
        """Change only the front matter links. The memory keeps its row and vectors."""
        self._put_links(memory.id, memory.links)
        self.names.resolve((), memory.id)

    def delete(self, memory_id: str) -> None:
        former = self.names.of(memory_id)
        self._drop(memory_id)
        self.names.resolve(former)

    def _drop(self, memory_id: str) -> str | None:
        row = self._db.one("delete_memory", id=memory_id)
        if row is None:
            return None
        self._db.words.drop(Indexed.MEMORIES, [row[0]])
        return str(row[1])

    def find(self, memory_id: str) -> Memory | None:
        rows = self._db.all("find_memory", id=memory_id)
        return self._build(rows)[0] if rows else None

    def in_any_state(self, memory_ids: Sequence[str]) -> list[Memory]:
        """Return the memories with given ids, in any state."""
        return self._build(self._db.all("find_memories_by_id", ids=memory_ids))

    def find_like(self, reference: str) -> list[Memory]:
        """Find up to three memories by the start or end of the id, or by the subject.

        A partial id needs at least four characters. Active memories are preferred over superseded
        and retired ones. If several memories are returned, the reference is ambiguous.
        """
        rows = self._db.all("find_memory", id=reference)
        if (
            not rows
            and len(reference) >= 4
            and all(character in "0123456789abcdef-" for character in reference)
        ):
            rows = self._db.all("find_memories_by_prefix", prefix=reference)
            rows = rows or self._db.all("find_memories_by_suffix", suffix=reference)
        if not rows:
            rows = self._db.all("find_memories_by_subject", subject=reference)
            rows = rows or self._db.all("find_past_memories_by_subject", subject=reference)
        return self._build(rows)

    def by_rows(self, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories in the given rows, keyed by row. Retired memories are left out."""
        return self._by_row(self._db.all("find_memories_by_row", rows=rows))

    def _by_row(self, rows: list[Row]) -> dict[int, Memory]:
        return dict(zip((row[0] for row in rows), self._build(rows), strict=True))

    def former(self) -> dict[int, int]:
        """Map each superseded memory's row to its active successor's row."""
        return dict(self._db.all("find_former_memories"))

    def rows_of(self, memory_ids: Sequence[str]) -> dict[int, Memory]:
        """Return the memories with given ids, keyed by row, without retired memories."""
        return self._by_row(self._db.all("find_active_memories", ids=memory_ids))

    def neighbours(self, memory_ids: Sequence[str], day: date) -> list[tuple[str, str, float]]:
        """Return the links of the given memories as (given memory, linked memory, strength).

        Links that are not valid on ``day`` and links to retired memories are left out.
        """
        rows = self._db.all("list_neighbours", ids=memory_ids, day=day)
        return [(source, target, strength) for source, _, target, strength in rows]

    def same_content(self, content: str, project: str | None) -> str | None:
        """Return the id of a memory in any state with the same normalised content."""
        return self._db.value("find_memory_by_content", content_hash=memory_hash(content, project))

    def same_key(self, key: str, kind: Kind, project: str | None) -> str | None:
        """Return the id of the active memory with a given canonical key."""
        return self._db.value(
            "find_memory_by_key", canonical_key=key, kind=kind.value, project=project
        )

    def of_files(self, files: Collection[str]) -> list[Memory]:
        """Return the active memories imported from given files."""
        return self._build(self._db.all("list_memories_of_files", files=[*files])) if files else []

    def stale(self) -> dict[str, tuple[float, str]]:
        """Return (last confidence from 0 to 1, reason) for each possibly outdated memory, keyed by id."""
        return {
            memory: (confidence, as_told(detail))
            for memory, confidence, detail in self._db.all("list_stale")
        }

    def set_stale(self, stale: Iterable[tuple[str, float, str]]) -> None:
        """Replace the list of possibly outdated memories.

        Pending reviews of memories that are no longer listed are deleted.
        """
        rows = [
            {"memory": memory, "confidence": confidence, "detail": detail}
            for memory, confidence, detail in stale
        ]
        ids = json.dumps([row["memory"] for row in rows])
        with self._db.transaction():
            self._db.run("delete_stale_reviews", found=ids, unsaid=UNSAID)
            self._db.run("delete_stale")
            self._db.run_many("insert_stale", rows)

    def known_of(self, session: str) -> list[Known]:
        """Return the memories learned from a session, in any state."""
        return records(Known, self._db.all("list_memories_of_session", session=session))

    def news(self, criteria: News) -> list[tuple[int, Memory]]:
        """Return (row, memory) of memories that match criteria, in row order."""
        rows = self._db.all("list_news", **asdict(criteria), today=day_of(criteria.said))
        return [*self._by_row(rows).items()]

    def last_row(self) -> int:
        """Return the highest row number, or 0 if the index is empty."""
        return self._db.value("find_last_row") or 0

    def has_stored(self, mark: int, sessions: Sequence[str], project: str | None) -> bool:
        """Return True if a session or an agent in the project stored a memory after row ``mark``."""
        return (
            self._db.one("find_stored", mark=mark, sessions=sessions, project=project) is not None
        )

    def all_ids(self) -> set[str]:
        return set(self._db.column("list_all_memory_ids"))

    def snapshot(self) -> Row:
        """Return values that change whenever a memory or project changes."""
        row = self._db.one("memory_snapshot")
        return row if row else ()

    def everything(self) -> Iterator[Memory]:
        """Yield all memories, in any state, in row order."""
        after = 0
        while rows := self._db.all("list_memories_after", after=after, limit=_ROWS_PER_PAGE):
            yield from self._build(rows)
            after = rows[-1][0]

    def projects(self) -> set[str]:
        return set(self._db.column("list_memory_projects"))

    def replaced_by(self, memory_id: str) -> list[Memory]:
        """Return the memories that a memory superseded, in any state, oldest first."""
        memories = (self.find(row[0]) for row in self._db.all("list_superseded_by", id=memory_id))
        return [memory for memory in memories if memory]

    def lost(self) -> list[tuple[str, str]]:
        """Return (id, subject) of superseded memories without a valid successor.

        Recall cannot find them.
        """
        return [(row[0], row[1]) for row in self._db.all("list_lost")]

    def counts(self) -> dict[str, int]:
        """Count active memories by kind, and superseded and retired memories."""
        counts = {str(kind): int(count) for kind, count in self._db.all("count_memories")}
        row = self._db.one("count_inactive") or (0, 0)
        return {**counts, "superseded": int(row[0]), "retired": int(row[1])}

    def _build(self, rows: list[Row]) -> list[Memory]:
        ids = json.dumps([row[1] for row in rows])
        tags: dict[str, list[str]] = {}
        for memory_id, tag in self._db.all("list_tags", ids=ids):
            tags.setdefault(memory_id, []).append(tag)
        links: dict[str, list[Link]] = {}
        for source, rel, target, reason, origin, strength, *ends in self._db.all(
            "list_links_from", ids=ids
        ):
            own = None if origin == _MANUAL else origin
            valid = Validity(*(date.fromisoformat(day) if day else None for day in ends))
            links.setdefault(source, []).append(Link(rel, target, reason, own, strength, valid))
        confirmations: dict[str, list[Confirmation]] = {}
        for memory_id, *rest in self._db.all("list_confirmations", ids=ids):
            confirmations.setdefault(memory_id, []).extend(records(Confirmation, [tuple(rest)]))
        return [
            memory_of(
                row,
                tags=tuple(tags.get(row[1], ())),
                links=tuple(links.get(row[1], ())),
                confirmed=tuple(confirmations.get(row[1], ())),
            )
            for row in rows
        ]


def _link_row(source: str, link: Link) -> dict[str, object]:
    return {
        "source": source,
        "rel": link.rel,
        "target": link.to,
        "origin": _origin_of(link),
        "reason": link.reason,
        "strength": link.strength,
        "since": link.valid.since and link.valid.since.isoformat(),
        "until": link.valid.until and link.valid.until.isoformat(),
    }


def _origin_of(link: Link) -> str:
    """Return a link's origin for the index. Derived origins become ``manual``."""
    return _MANUAL if link.origin is None or link.origin in _DERIVED else link.origin


# -- Memories that are used together ------------------------------------------
# An edge's weight grows with use and fades daily.


STEP = 0.1
FADE = 0.95
"""Factor applied to a weight each day (UTC)."""

LEAST = 0.05
"""Weight below which an edge is deleted."""


@frozen
class Edge:
    """Two memories that were used together in some sessions. The weight is 0 to 1."""

    memory: str
    other: str
    weight: float
    sessions: int


class CoRecall(Store):
    """Store of edges between memories used together. Days are counted from 1970-01-01 (UTC)."""

    @in_transaction
    def join(self, newcomers: Sequence[str], others: Sequence[str], day: int) -> list[str]:
        """Add ``STEP`` to the weights between memories that were used together. The maximum is 1.

        Each of ``newcomers`` is paired with all other memories. Return the active newcomers.
        """
        active = self._active([*newcomers, *others])
        fresh = [memory for memory in newcomers if memory in active]
        previous = [memory for memory in others if memory in active and memory not in newcomers]
        pairs = {_order_pair(*pair) for pair in combinations(fresh, 2)}
        pairs |= {_order_pair(memory, other) for memory in fresh for other in previous}
        before = self._among([*fresh, *previous])
        rows: list[dict[str, object]] = []
        for a, b in sorted(pairs):
            weight, since, sessions = before.get((a, b), (0.0, day, 0))
            weight = min(1.0, faded(weight, day - since) + STEP)
            since = max(since, day)
            until = since + _days_left(weight)
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "weight": weight,
                    "day": since,
                    "until": until,
                    "sessions": sessions + 1,
                }
            )
        self._db.run_many("upsert_edge", rows)
        return fresh

    @runs("delete_faded_edges")
    def forget_faded(self, day: int) -> None:
        """Delete edges that are too weak on a given day."""

    def of(self, memory_ids: Sequence[str], day: int) -> list[Edge]:
        """Return edges from some memories to active memories, strongest first."""
        rows = self._db.all("list_edges_of", ids=memory_ids, day=day)
        return _sort_edges(
            [Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in rows]
        )

    def strongest(self, day: int, limit: int) -> list[Edge]:
        """Return the strongest edges between memories."""
        rows = self._db.all("list_all_edges", day=day)
        return _sort_edges(
            [Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in rows]
        )[:limit]

    def _active(self, memory_ids: Sequence[str]) -> set[str]:
        return set(self._db.column("list_active_ids", ids=memory_ids))

    def _among(self, memory_ids: Sequence[str]) -> dict[tuple[str, str], tuple[float, int, int]]:
        rows = self._db.all("list_edges_among", ids=memory_ids)
        return {(a, b): (weight, day, sessions) for a, b, weight, day, sessions in rows}


def faded(weight: float, days: int) -> float:
    """Return a weight after it has decayed for some days."""
    return weight * FADE ** max(0, days)


def _days_left(weight: float) -> int:
    return math.floor(math.log(weight / LEAST) / -math.log(FADE)) + 1


def _order_pair(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _sort_edges(edges: list[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: (-edge.weight, edge.memory, edge.other))


# -- Links in front matter, names in bodies, and similarity -------------------


ALIKE = "auto"
"""Origin of similarity links, which are recomputed whenever a memory changes."""

IN_BODY = "body"
"""Origin of links written as ``[[Name]]`` in a text."""


_ALWAYS = Validity()


@frozen
class StoredLink:
    """A link in the index.

    ``strength``: 0 to 1. ``valid``: the days on which the link holds. The end day is excluded.
    """

    source: str
    rel: str
    target: str
    origin: str
    reason: str | None
    strength: float
    valid: Validity


@frozen
class EdgeFilter:
    """Filter for links between memories.

    ``memory``: one end of the links. If ``None``, both ends must be active memories. ``origins``:
    allowed origins. If empty, all origins except similarity are allowed. ``day``: day on which
    links must be valid, or ``None`` to include ended links. ``project``: project of at least one
    end.
    """

    memory: str | None = None
    relations: Sequence[str] = ()
    origins: Sequence[str] = ()
    day: date | None = None
    project: str | None = None


class Links(Store):
    """Links in the index."""

    def of(self, memory_id: str) -> list[StoredLink]:
        """Return all links from or to a memory."""
        return [as_edge(row) for row in self._db.all("list_links", id=memory_id)]

    def at(
        self,
        memory_ids: Collection[str],
        day: date | None,
        without: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> list[StoredLink]:
        """Return the links that start or end at the given memories, except similarity links.

        ``day``: day on which the links must be valid. ``without``: memories that must not be an end
        of a link. ``among``: memories that the other end must belong to.
        """
        ends = None if among is None else [*among]
        rows = self._db.all("list_links_at", ids=[*memory_ids], day=day, among=ends)
        return [as_edge(row) for row in rows if row[0] not in without and row[2] not in without]

    def page(
        self, criteria: EdgeFilter, *, limit: int, offset: int = 0
    ) -> tuple[list[StoredLink], int]:
        """Return a page of links, newest memory first, and the total number of links."""
        rows = self._db.all(
            "page_links",
            **asdict(criteria),
            limit=limit,
            offset=offset,
        )
        if rows:
            return [as_edge(row) for row in rows], rows[0][-1]
        # Rows contain the total. A page beyond the last has no rows, so the first page is read.
        return [], self.page(criteria, limit=1)[1] if offset else 0

    def count(self, day: date, project: str | None = None) -> int:
        """Count the links that users see between active memories on a day.

        Links that come from similarity or shared use are not counted. With ``project``, both
        memories must belong to the project.
        """
        return self._db.value("count_links", day=day, project=project) or 0

    def count_alike(self, project: str | None = None) -> int:
        """Count the similarity links between active memories."""
        return self._db.value("count_alike", project=project) or 0

    def between(self, day: date, project: str | None) -> list[tuple[str, str, float]]:
        """Return (source, target, strength) of the links that :meth:`count` counts."""
        return [
            (row[0], row[1], row[2])
            for row in self._db.all("list_links_between", day=day, project=project)
        ]

    def nodes(self, project: str | None) -> list[str]:
        """Return the ids of active memories in a project or all projects, in a stable order."""
        return self._db.column("list_nodes", project=project)

    def ends(self, memory_ids: Collection[str]) -> list[Row]:
        """Return (id, subject, kind, project, is superseded, is retired, trust) of memories."""
        return self._db.all("list_ends", ids=[*memory_ids])

    def map_nodes(self, project: str | None, kinds: Collection[str], day: date | None) -> list[Row]:
        """Return active memories or, with ``day``, memories valid on that day, in a stable order.

        Columns: id, subject, kind, project, importance, is superseded, is trusted, start of
        validity.
        """
        return self._db.all("list_map_nodes", project=project, kinds=[*kinds], day=day)

    def map_links(
        self, day: date, relations: Collection[str] = (), *, alike: bool = False
    ) -> list[Row]:
        """Return the links that are valid on a day, as rows for :func:`as_edge`.

        The order is stable. With ``alike``, similarity links are included.
        """
        return self._db.all("list_map_links", day=day, rels=[*relations], alike=alike)

    def of_origin(self, origin: str, project: str | None) -> list[str]:
        """Return the ids of memories that have links with a given origin in their front matter."""
        return self._db.column("list_sources_of_origin", origin=origin, project=project)

    def alike(self) -> list[StoredLink]:
        """Return all similarity links."""
        return [as_edge(row) for row in self._db.all("list_derived_links")]

    def connected(self) -> set[tuple[str, str]]:
        """Return the pairs of memories connected by a link other than similarity."""
        return set(self._db.all("list_connected"))

    def state(self) -> Row:
        """Return values that change whenever a link changes."""
        return self._db.one("link_state") or ()


def as_edge(row: Row) -> StoredLink:
    """Convert a row to a link."""
    source, rel, target, origin, reason, strength, since, until = row[:8]
    valid = _ALWAYS
    if since or until:
        valid = Validity(since and date.fromisoformat(since), until and date.fromisoformat(until))
    return StoredLink(
        source, rel, target, origin, reason, USUAL_STRENGTH if strength is None else strength, valid
    )


_STEPS = (3, 10, 25)
"""Numbers of recalls at which a memory's importance increases by one step."""


@frozen
class Buckets:
    """Counts of active memories by recalls.

    ``never``: no recall. ``some``: 1 to 5 recalls. ``often``: more than 5 recalls.
    """

    never: int
    some: int
    often: int


@frozen
class EndingBounds:
    """Limits that decide which memories consolidation can retire.

    Temporary memories can retire after ``temporary_for`` without use. Other memories can retire
    after ``idle_for`` without use, if their importance is below ``importance_below`` and they have
    at most ``most_recalls`` recalls.
    """

    temporary_for: timedelta
    idle_for: timedelta
    importance_below: int
    most_recalls: int


class UsageById(dict[str, Usage]):
    """A mapping from memory ids to usage. An unused memory has default values."""

    def __missing__(self, _: str) -> Usage:
        return Usage()


class UsageLog(Store):
    """Store of how often and when memories were used."""

    def of(self, memory_ids: Sequence[str]) -> UsageById:
        """Return the usage of memories."""
        rows = self._db.all("find_usage", ids=memory_ids)
        return UsageById({row[0]: records(Usage, [row[1:]])[0] for row in rows})

    def adopt(self, memory_id: str, usage: Usage) -> None:
        """Store an imported memory's usage. Its past recalls do not raise the importance again."""
        count = usage.recall_count
        self._db.run(
            "insert_usage",
            memory=memory_id,
            **asdict(usage),
            steps=sum(count >= step for step in _STEPS),
        )

    def record(self, memory_ids: Sequence[str], at: int, *, first: Collection[str]) -> None:
        """Record that memories were recalled at a given time (epoch milliseconds).

        The number of recalls increases only for the memories in ``first``, which were recalled for
        the first time in a session.
        """
        rows = [{"memory": memory, "at": at, "first": memory in first} for memory in memory_ids]
        self._db.run_many("record_recall", rows)

    def look(self, memory_ids: Sequence[str]) -> None:
        """Record that memories were viewed. Views count as accesses, not as recalls."""
        self._db.run_many("record_look", [{"memory": memory} for memory in memory_ids])

    @runs("record_effect")
    def record_effect(
        self, item: str, session: str, outcome: str, at: int, *, project: str = ""
    ) -> None:
        """Record how a session used a memory or a pointer that it received."""

    def effects(self, since: int) -> dict[tuple[str, bool], int]:
        """Count outcomes since a time (epoch milliseconds), separately for memories and pointers."""
        rows = self._db.all("count_effects", since=since)
        return {(outcome, bool(is_pointer)): count for outcome, is_pointer, count in rows}

    def pointer_outcomes(self, project: str, limit: int) -> list[str]:
        """Return the outcomes of a project's latest pointers."""
        return self._db.column("list_pointer_outcomes", project=project, limit=limit)

    def pointer_projects(self) -> list[str]:
        """Return the projects whose sessions received pointers to earlier sessions."""
        return self._db.column("list_pointer_projects")

    @runs("forget_pointers")
    def forget_pointers(self, project: str) -> None:
        """Delete the outcomes of a project's pointers."""

    @runs("confirm_memory")
    def confirm(self, memory: str) -> None:
        """Record that a memory was stated again."""

    @runs("set_quality")
    def set_quality(self, memory: str, quality: float) -> None:
        """Set a memory's observed quality, 0 to 1."""

    def steps_due(self) -> list[StepsDue]:
        """Return active memories whose importance must be raised because they were recalled often."""
        return records(StepsDue, self._db.all("list_steps_due"))

    @runs("set_steps")
    def set_steps(self, memory: str, steps: int) -> None:
        """Record how often a memory's importance was raised."""

    def buckets(self) -> Buckets:
        """Count active memories by recalls."""
        row = self._db.one("count_usage") or (0,) * 3
        return Buckets(*(int(count) for count in row))

    def idle_todos(self, before: datetime) -> list[tuple[str, str, datetime]]:
        """Return (id, subject, last use) of open todos unused since a given time, longest idle first."""
        return [
            (memory, subject, at_ms(at))
            for memory, subject, at in self._db.all("list_idle_todos", before=before)
        ]

    def may_end(self, now: datetime, bounds: EndingBounds) -> list[str]:
        """Return the ids of active memories that consolidation can retire."""
        return self._db.column("list_ending", now=now, today=day_of(now), **asdict(bounds))

    def value(self, key: str) -> str | None:
        """Return the value that an earlier run stored under a key, if any."""
        return self._db.value("get_usage_value", key=key)

    @runs("set_usage_value")
    def set_value(self, key: str, value: str) -> None:
        """Store a value for later runs."""

    @runs("delete_usage_value")
    def drop_value(self, key: str) -> None:
        """Delete a stored value."""


class SessionUses(Store):
    """Store of the memories used in each session. Uses without a session id are grouped by time."""

    def record(
        self, session: str, memory_ids: Sequence[str], at: int, *, recalled: Collection[str]
    ) -> None:
        """Record that a session used memories at a given time (epoch milliseconds).

        ``recalled``: memories for which the use counts as a recall.
        """
        rows = [
            {
                "session": session,
                "memory": memory,
                "at": at,
                "recalled": at if memory in recalled else None,
            }
            for memory in memory_ids
        ]
        self._db.run_many("record_use", rows)

    def recalled(self, session: str, since: int) -> set[str]:
        """Return the memories that a session has recalled since a given time (epoch milliseconds)."""
        return set(self._db.column("list_recalled", session=session, since=since))

    def paired(self, session: str) -> list[str]:
        """Return the memories of a session that were paired with each other."""
        return self._db.column("list_paired", session=session)

    def pair(self, session: str, memory_ids: Sequence[str]) -> None:
        """Record that memories were paired with the other memories of a session."""
        self._db.run_many(
            "pair_use", [{"session": session, "memory": memory} for memory in memory_ids]
        )

    def unjudged(self, session: str) -> list[str]:
        """Return a session's memories whose last use has not been judged."""
        return self._db.column("list_unjudged", session=session)

    def first_unjudged(self, session: str) -> int | None:
        """Return when the earliest :meth:`unjudged` memory was last used (epoch ms), or ``None``."""
        return self._db.value("first_unjudged", session=session)

    def judge(self, session: str, memory_ids: Sequence[str]) -> None:
        """Record that the last uses of memories in a session were judged."""
        self._db.run_many(
            "judge_use", [{"session": session, "memory": memory} for memory in memory_ids]
        )

    @runs("delete_old_uses")
    def forget(self, before: int) -> None:
        """Delete the records of uses before a given time (epoch milliseconds)."""
