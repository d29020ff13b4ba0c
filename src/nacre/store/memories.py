"""Memories in the index. Rows, tags, links and full text are changed together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime
from itertools import combinations
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, content_hash
from nacre.base.lazy import Lazy
from nacre.base.text import identifiers, normalise, segment
from nacre.base.times import day_of
from nacre.store.schema import (
    Database,
    Indexed,
    Row,
    Store,
    Words,
    fits_index,
    in_transaction,
    memory_of,
    memory_row,
    records,
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
class LearnedMemory:
    """The fields of a stored memory by which extraction recognizes duplicates."""

    id: str
    kind: Kind
    content: str
    turns: frozenset[str]


@frozen
class News:
    """Criteria for trusted memories that are new to a session, from ``project`` or from none.

    Rows up to ``mark`` (unless the database was rebuilt) and ``sessions`` are excluded.
    ``first_id`` is the smallest id, ``since`` the earliest creation time, and ``least`` the lowest
    importance.
    """

    mark: int
    first_id: str
    since: datetime
    sessions: tuple[str, ...]
    project: str | None
    least: int
    limit: int


def memory_hash(content: str, project: str | None) -> bytes:
    """Hash a memory's project and normalised content."""
    return content_hash(f"{project or ''}\n{normalise(content) or content}")


class Memories(Store):
    """The memories in the index, without their files in the vault."""

    names: Lazy[Names] = Lazy("nacre.store.schema:Names")
    """Index of memory names."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.has_new_rows = False
        """True if this process has stored memories that have no vectors yet."""

    def put(self, memory: Memory) -> None:
        """Insert or replace a memory with its tags, links, names and full text, within a
        transaction.

        A memory whose content has changed is no longer marked as outdated.
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
        self._db.run_each("insert_tag", "tag", filter(fits_index, memory.tags), memory=memory.id)
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
        """Add memories that are missing from the full-text index."""
        for memory_id in memory_ids:
            row, memory = self._db.one("find_memory_row", id=memory_id), self.find(memory_id)
            if row and memory:
                self._db.words.drop(Indexed.MEMORIES, [row[0]])
                self._index(row[0], memory)

    @runs("set_importance")
    def set_importance(self, memory: str, importance: int) -> None:
        """Change a memory's importance, but keep its row and vectors."""

    def set_links(self, memory: Memory) -> None:
        """Change a memory's front matter links, but keep its row and vectors."""
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
        """Return the memories with these ids, including superseded and retired ones."""
        return self._build(self._db.all("find_memories_by_id", ids=memory_ids))

    def find_like(self, reference: str) -> list[Memory]:
        """Find up to three memories by subject, id, or four or more characters at either end of an
        id.

        Active memories take precedence over superseded and retired ones.
        """
        rows = self._db.all("find_memory", id=reference)
        if not rows and len(reference) >= 4 and set(reference) <= set("0123456789abcdef-"):
            rows = self._db.all("find_memories_by_prefix", prefix=reference)
            rows = rows or self._db.all("find_memories_by_suffix", suffix=reference)
        if not rows:
            rows = self._db.all("find_memories_by_subject", subject=reference)
            rows = rows or self._db.all("find_past_memories_by_subject", subject=reference)
        return self._build(rows)

    def by_rows(self, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories in the given rows, keyed by row and in this order, except retired
        ones.
        """
        memories = self._by_row(self._db.all("find_memories_by_row", rows=rows))
        return {row: memories[row] for row in rows if row in memories}

    def _by_row(self, rows: list[Row]) -> dict[int, Memory]:
        return dict(zip((row[0] for row in rows), self._build(rows), strict=True))

    def former(self) -> dict[int, int]:
        """Map the row of each superseded memory to the row of its active successor."""
        return dict(self._db.all("find_former_memories"))

    def rows_of(self, memory_ids: Sequence[str]) -> dict[int, Memory]:
        """Return the memories with the given ids, keyed by row, except retired ones."""
        return self._by_row(self._db.all("find_active_memories", ids=memory_ids))

    def neighbours(self, memory_ids: Sequence[str], day: date) -> list[tuple[str, str, float]]:
        """Return (given memory, linked memory, strength) for each link that is valid on ``day``.

        Retired memories are left out.
        """
        rows = self._db.all("list_neighbours", ids=memory_ids, day=day)
        return [(source, target, strength) for source, _, target, strength in rows]

    def same_content(self, content: str, project: str | None) -> str | None:
        """Return the id of any memory, active or not, with the same normalised content."""
        return self._db.value("find_memory_by_content", content_hash=memory_hash(content, project))

    def of_files(self, files: Collection[str]) -> list[Memory]:
        """Return the active memories that were imported from these files."""
        return self._build(self._db.all("list_memories_of_files", files=[*files])) if files else []

    def stale(self) -> dict[str, tuple[float, str]]:
        """Map each possibly outdated memory to a confidence (0 to 1) and a reason."""
        return {
            memory: (confidence, as_told(detail))
            for memory, confidence, detail in self._db.all("list_stale")
        }

    @in_transaction
    def set_stale(self, stale: Iterable[tuple[str, float, str]]) -> None:
        """Replace the list of possibly outdated memories, and delete pending reviews of all others."""
        rows = [
            {"memory": memory, "confidence": confidence, "detail": detail}
            for memory, confidence, detail in stale
        ]
        ids = [row["memory"] for row in rows]
        self._db.run("delete_stale_reviews", found=ids, unsaid=UNSAID)
        self._db.run("delete_stale")
        self._db.run_many("insert_stale", rows)

    def known_of(self, session: str) -> list[LearnedMemory]:
        """Return all memories learned from a session, including superseded and retired ones."""
        return self._records(LearnedMemory, "list_memories_of_session", session=session)

    def news(self, criteria: News) -> list[tuple[int, Memory]]:
        """Return the matching memories, each with its row, in row order."""
        rows = self._db.all("list_news", **asdict(criteria), today=day_of(criteria.since))
        return [*self._by_row(rows).items()]

    def last_row(self) -> int:
        """Return the highest row number, or 0 if there are no memories."""
        return self._db.value("find_last_row") or 0

    def has_stored(self, mark: int, sessions: Sequence[str], project: str | None) -> bool:
        """Return True if a session, or any agent in the project, stored a memory after row
        ``mark``.
        """
        return (
            self._db.one("find_stored", mark=mark, sessions=sessions, project=project) is not None
        )

    def all_ids(self) -> set[str]:
        return set(self._db.column("list_all_memory_ids"))

    def everything(self) -> Iterator[Memory]:
        """Yield all memories, including superseded and retired ones."""
        after = 0
        while rows := self._db.all("list_memories_after", after=after, limit=_ROWS_PER_PAGE):
            yield from self._build(rows)
            after = rows[-1][0]

    def projects(self) -> set[str]:
        return set(self._db.column("list_memory_projects"))

    def replaced_by(self, memory_id: str) -> list[Memory]:
        """Return the memories that this one superseded, including retired ones, oldest first."""
        memories = (self.find(row[0]) for row in self._db.all("list_superseded_by", id=memory_id))
        return [memory for memory in memories if memory]

    def lost(self) -> list[tuple[str, str]]:
        """Return (id, subject) of superseded memories that recall misses, because their successor
        is not valid.
        """
        return [(row[0], row[1]) for row in self._db.all("list_lost")]

    def counts(self) -> dict[str, int]:
        """Count the active memories of each kind, and all superseded and retired ones."""
        counts = {str(kind): int(count) for kind, count in self._db.all("count_memories")}
        row = self._db.one("count_inactive") or (0, 0)
        return {**counts, "superseded": int(row[0]), "retired": int(row[1])}

    def _build(self, rows: list[Row]) -> list[Memory]:
        ids = [row[1] for row in rows]
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
        for memory_id, *values in self._db.all("list_confirmations", ids=ids):
            confirmations.setdefault(memory_id, []).extend(records(Confirmation, [tuple(values)]))
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
        "origin": _MANUAL if link.origin in (None, *_DERIVED) else link.origin,
        "reason": link.reason,
        "strength": link.strength,
        "since": link.valid.since and link.valid.since.isoformat(),
        "until": link.valid.until and link.valid.until.isoformat(),
    }


# -- Memories that are used together ------------------------------------------
# An edge's weight grows with use and fades daily.


STEP = 0.1
FADE = 0.95
"""Factor applied to a weight each day (UTC)."""

LEAST = 0.05
"""Weight below which an edge is deleted."""


@frozen
class Edge:
    """A pair of memories that sessions used together, with a weight from 0 to 1."""

    memory: str
    other: str
    weight: float
    sessions: int


class CoRecall(Store):
    """Weighted pairs of memories used together. Days are counted from 1970-01-01 (UTC)."""

    @in_transaction
    def join(self, newcomers: Sequence[str], present: Sequence[str], day: int) -> list[str]:
        """Strengthen the pair of each newcomer and every other memory by ``STEP``, up to 1.

        Return the active newcomers.
        """
        active = set(self._db.column("list_active_ids", ids=[*newcomers, *present]))
        fresh = [memory for memory in newcomers if memory in active]
        previous = [memory for memory in present if memory in active and memory not in newcomers]
        pairs = set(combinations(sorted(fresh), 2))
        pairs |= {
            (min(memory, other), max(memory, other)) for memory in fresh for other in previous
        }
        before = self._among([*fresh, *previous])
        rows: list[dict[str, object]] = []
        for a, b in sorted(pairs):
            weight, since, sessions = before.get((a, b), (0.0, day, 0))
            weight = min(1.0, faded(weight, day - since) + STEP)
            since = max(since, day)
            until = since + math.floor(math.log(weight / LEAST) / -math.log(FADE)) + 1
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
        """Delete the pairs whose weight is too low on a given day."""

    def of(self, memory_ids: Sequence[str], day: int) -> list[Edge]:
        """Return the pairs of the given memories with active memories, strongest first."""
        return _edges(self._db.all("list_edges_of", ids=memory_ids, day=day), day)

    def _among(self, memory_ids: Sequence[str]) -> dict[tuple[str, str], tuple[float, int, int]]:
        rows = self._db.all("list_edges_among", ids=memory_ids)
        return {(a, b): (weight, day, sessions) for a, b, weight, day, sessions in rows}


def faded(weight: float, days: int) -> float:
    """Return a weight after ``days`` of decay."""
    return weight * FADE ** max(0, days)


def _edges(rows: Sequence[Row], day: int) -> list[Edge]:
    edges = [Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in rows]
    return sorted(edges, key=lambda edge: (-edge.weight, edge.memory, edge.other))


# -- Links in front matter, names in bodies, and similarity -------------------


ALIKE = "auto"
"""Origin of similarity links, which are recomputed whenever a memory changes."""

IN_BODY = "body"
"""Origin of links written as ``[[Name]]`` in a memory's body."""


_ALWAYS = Validity()


@frozen
class StoredLink:
    """A link between memories in the index.

    ``strength`` ranges from 0 to 1. ``valid`` is the period of the link, without its end day.
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
    """Criteria for links between memories.

    ``memory`` is one end of the links; if ``None``, both ends must be active. ``origins`` are the
    allowed origins, by default all except similarity. Links must be valid on ``day``, unless it is
    ``None``. At least one end must belong to ``project``.
    """

    memory: str | None = None
    relations: Sequence[str] = ()
    origins: Sequence[str] = ()
    day: date | None = None
    project: str | None = None


class Links(Store):
    """Links between the memories in the index."""

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
        """Return these memories' links that are valid on ``day``, except similarity links.

        Links of memories in ``without`` are left out. The other end must be in ``among``, if given.
        """
        ends = None if among is None else [*among]
        rows = self._db.all("list_links_at", ids=[*memory_ids], day=day, among=ends)
        return [as_edge(row) for row in rows if row[0] not in without and row[2] not in without]

    def page(
        self, criteria: EdgeFilter, *, limit: int, offset: int = 0
    ) -> tuple[list[StoredLink], int]:
        """Return a page of links, newest memory first, and their total number."""
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
        """Count the links between active memories that are valid on a day, within ``project`` if
        given.

        Links derived from similarity or shared use do not count.
        """
        return self._db.value("count_links", day=day, project=project) or 0

    def count_alike(self, project: str | None = None) -> int:
        """Count the similarity links between active memories."""
        return self._db.value("count_alike", project=project) or 0

    def between(self, day: date, project: str | None) -> list[tuple[str, str, float]]:
        """Return (source, target, strength) of each link that :meth:`count` counts."""
        return [
            (row[0], row[1], row[2])
            for row in self._db.all("list_links_between", day=day, project=project)
        ]

    def nodes(self, project: str | None) -> list[str]:
        """Return the ids of active memories, in one project or all, in a stable order."""
        return self._db.column("list_nodes", project=project)

    def ends(self, memory_ids: Collection[str]) -> list[Row]:
        """Return (id, subject, kind, project, is superseded, is retired, trust) for each memory."""
        return self._db.all("list_ends", ids=[*memory_ids])

    def map_nodes(self, project: str | None) -> list[Row]:
        """Return (id, subject, kind, project, importance, is trusted, content) for each active
        memory.
        """
        return self._db.all("list_map_nodes", project=project)

    def map_links(self, day: date) -> list[Row]:
        """Return (source, target, relation) for each link that is valid on a day."""
        return self._db.all("list_map_links", day=day)

    def map_groups(self) -> list[Row]:
        """Return each memory's session and tags as (``session`` or ``tag``, value, memory)."""
        return self._db.all("list_map_groups")

    def known_files(self, names: Collection[str]) -> list[str]:
        """Return the names that belong to files used in a session."""
        return self._db.column("list_known_files", names=[*names])

    def alike(self) -> list[StoredLink]:
        """Return all similarity links."""
        return [as_edge(row) for row in self._db.all("list_derived_links")]


def as_edge(row: Row) -> StoredLink:
    """Build a link from its row."""
    source, rel, target, origin, reason, strength, since, until = row[:8]
    valid = _ALWAYS
    if since or until:
        valid = Validity(since and date.fromisoformat(since), until and date.fromisoformat(until))
    return StoredLink(
        source, rel, target, origin, reason, USUAL_STRENGTH if strength is None else strength, valid
    )


_STEPS = (3, 10, 25)
"""Recall counts at which a memory's importance increases by one step."""


@frozen
class Buckets:
    """The numbers of active memories recalled ``never``, 1 to 5 times (``some``), or more
    (``often``).
    """

    never: int
    some: int
    often: int


class UsageById(dict[str, Usage]):
    """A mapping from memory ids to usage, with a default for unused memories."""

    def __missing__(self, _: str) -> Usage:
        return Usage()


class UsageLog(Store):
    """A record of how often and when memories were used."""

    def of(self, memory_ids: Sequence[str]) -> UsageById:
        """Return the usage of these memories."""
        rows = self._db.all("find_usage", ids=memory_ids)
        return UsageById({row[0]: records(Usage, [row[1:]])[0] for row in rows})

    def adopt(self, memory_id: str, usage: Usage) -> None:
        """Store an imported memory's usage. Its past recalls do not raise its importance again."""
        count = usage.recall_count
        self._db.run(
            "insert_usage",
            memory=memory_id,
            **asdict(usage),
            steps=sum(count >= step for step in _STEPS),
        )

    def record(self, memory_ids: Sequence[str], at: int, *, first: Collection[str]) -> None:
        """Record that memories were recalled at a time (epoch milliseconds).

        The recall count increases only for memories in ``first``, which are new to the session.
        """
        rows = [{"memory": memory, "at": at, "first": memory in first} for memory in memory_ids]
        self._db.run_many("record_recall", rows)

    def look(self, memory_ids: Sequence[str]) -> None:
        """Record that memories were viewed, which is an access but not a recall."""
        self._db.run_each("record_look", "memory", memory_ids)

    @runs("record_effect")
    def record_effect(
        self, item: str, session: str, outcome: str, at: int, *, project: str = ""
    ) -> None:
        """Record how a session used a memory, or a pointer to an earlier session."""

    def outcomes(self, session: str) -> dict[str, str]:
        """Return how a session used each memory that it received, by memory id."""
        return dict(self._db.all("list_given", session=session))

    def effects(self, since: int) -> dict[tuple[str, bool], int]:
        """Count outcomes since a time (epoch milliseconds), keyed by (outcome, is a pointer)."""
        rows = self._db.all("count_effects", since=since)
        return {(outcome, bool(is_pointer)): count for outcome, is_pointer, count in rows}

    def pointer_outcomes(self, project: str, limit: int) -> list[str]:
        """Return how sessions used a project's latest pointers."""
        return self._db.column("list_pointer_outcomes", project=project, limit=limit)

    def pointer_projects(self) -> list[str]:
        """Return the projects in which sessions received pointers to earlier sessions."""
        return self._db.column("list_pointer_projects")

    @runs("forget_pointers")
    def forget_pointers(self, project: str) -> None:
        """Delete the outcomes of pointers in a project."""

    @runs("confirm_memory")
    def confirm(self, memory: str) -> None:
        """Record that a memory was stated again."""

    @runs("set_quality")
    def set_quality(self, memory: str, quality: float) -> None:
        """Store a memory's observed quality, from 0 to 1."""

    def steps_due(self) -> list[StepsDue]:
        """Return active memories that were recalled often enough to become more important."""
        return self._records(StepsDue, "list_steps_due")

    @runs("set_steps")
    def set_steps(self, memory: str, steps: int) -> None:
        """Record how often a memory's importance has been raised."""

    def buckets(self) -> Buckets:
        """Count active memories by number of recalls."""
        row = self._db.one("count_usage") or (0,) * 3
        return Buckets(*(int(count) for count in row))

    def idle_todos(self, before: datetime) -> list[tuple[str, str, datetime]]:
        """Return (id, subject, last use) of open todos unused since a given time, longest idle
        first.
        """
        return [
            (memory, subject, at_ms(at))
            for memory, subject, at in self._db.all("list_idle_todos", before=before)
        ]

    def value(self, key: str) -> str | None:
        """Return the value that an earlier run stored, if any."""
        return self._db.value("get_usage_value", key=key)

    @runs("set_usage_value")
    def set_value(self, key: str, value: str) -> None:
        """Store a value for later runs."""

    @runs("delete_usage_value")
    def drop_value(self, key: str) -> None:
        """Delete a stored value."""


class SessionUses(Store):
    """A record of memories used in each session or, outside sessions, at about the same time."""

    def record(
        self, session: str, memory_ids: Sequence[str], at: int, *, recalled: Collection[str]
    ) -> None:
        """Record that a session used memories at a time (epoch milliseconds).

        ``recalled`` contains the memories whose use counts as a recall.
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
        """Return the memories that a session recalled since a time (epoch milliseconds)."""
        return set(self._db.column("list_recalled", session=session, since=since))

    def paired(self, session: str) -> list[str]:
        """Return the memories that are already paired with the session's other memories."""
        return self._db.column("list_paired", session=session)

    def pair(self, session: str, memory_ids: Sequence[str]) -> None:
        """Record that memories were paired with the other memories of a session."""
        self._db.run_each("pair_use", "memory", memory_ids, session=session)

    def unjudged(self, session: str) -> list[str]:
        """Return memories whose last use in a session has not been judged."""
        return self._db.column("list_unjudged", session=session)

    def first_unjudged(self, session: str) -> int | None:
        """Return the time of the oldest unjudged use in a session (epoch milliseconds)."""
        return self._db.value("first_unjudged", session=session)

    def judge(self, session: str, memory_ids: Sequence[str]) -> None:
        """Mark the last uses of memories in a session as judged."""
        self._db.run_each("judge_use", "memory", memory_ids, session=session)

    @runs("delete_old_uses")
    def forget(self, before: int) -> None:
        """Delete uses older than a time (epoch milliseconds)."""
