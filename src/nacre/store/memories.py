"""Memories in the index: rows, tags, links and full text, always changed together."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING

from nacre.base.ids import at_ms, content_hash, from_ms, to_ms
from nacre.base.lazy import Lazy
from nacre.base.text import identifiers, normalise, segment
from nacre.base.times import day_of
from nacre.store.schema import Database, Indexed, Row, Words, fits_index, in_transaction
from nacre.store.sqlite import memory_rows
from nacre.values.memory import USUAL_STRENGTH, Claim, Confirmation, Kind, Link, Memory, Validity
from nacre.values.review import UNSAID, Reason, StepsDue, Usage, as_told

if TYPE_CHECKING:
    from nacre.store.schema import Names

_MANUAL = "manual"
"""The origin of a link in front matter that names none."""

_DERIVED = ("auto", "body")
"""Origins of links that no front matter holds."""

_PORTION = 500


@dataclass(frozen=True, slots=True)
class Known:
    """A memory as the re-extraction guard sees it."""

    id: str
    kind: Kind
    content: str
    turns: frozenset[str]


@dataclass(frozen=True, slots=True)
class News:
    """What is news to a session: stored after the row ``mark``, with an id from ``first_id`` on (ids tell when they
    were made), said after ``said``, at least so important, in none of ``sessions``, of the ``project`` or of none,
    trusted. Where the database was made anew since the mark was taken, everything is after it."""

    mark: int
    first_id: str
    said: datetime
    sessions: tuple[str, ...]
    project: str | None
    least: int
    limit: int


def memory_hash(content: str, project: str | None) -> bytes:
    """What makes two memories the same words: normalised content within a project."""
    return content_hash(f"{project or ''}\n{normalise(content) or content}")


class Memories:
    """Reads and writes memories in the index; the vault is written by intents, not here."""

    names: Lazy[Names] = Lazy("nacre.store.schema:Names")
    """What memories are called."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.has_new_rows = False
        """Whether this process wrote memories since they were last embedded; a new row has no vector."""

    @property
    def database(self) -> Database:
        """The database these memories lie in."""
        return self._db

    def put(self, memory: Memory) -> None:
        """Insert a memory, or replace its row, tags, links, names and full text. Call inside a transaction.

        Where it says something else from then on, it is not taken for out of date any more.
        """
        former = self.names.of(memory.id)
        if self._drop(memory.id) not in (None, memory.content):
            self._db.run("delete_stale_of", memory=memory.id)
            self._db.run(
                "settle_review",
                memory=memory.id,
                reason=Reason.STALE.value,
                at=to_ms(memory.updated),
            )
        values = memory_rows().encode(memory) | {
            "content_hash": memory_hash(memory.content, memory.project)
        }
        number = int(self._db.insert("memories", values, "row"))
        self._db.run_many(
            "insert_tag",
            [{"memory": memory.id, "tag": tag} for tag in memory.tags if fits_index(tag)],
        )
        self._put_links(memory.id, memory.links)
        again: list[dict[str, object]] = [
            {
                "memory": memory.id,
                "ordinal": at,
                "at": to_ms(one.at),
                "session": one.session,
                "turns": json.dumps(one.turns),
            }
            for at, one in enumerate(memory.confirmed)
        ]
        self._db.run_many("insert_confirmation", again)
        if memory.claim:
            self.set_claim(memory.id, memory.claim)
        self._index(number, memory)
        self.names.put(memory, former)
        self.has_new_rows = True

    def _put_links(self, memory_id: str, links: Sequence[Link]) -> None:
        self._db.run("delete_links_of", source=memory_id)
        self._db.run_many("insert_link", [_link_row(memory_id, link) for link in links])

    def _index(self, number: int, memory: Memory) -> None:
        """Full text; how common a word is among memories is counted there, too."""
        texts = (segment(memory.subject), segment(memory.content), " ".join(memory.tags))
        names = " ".join(identifiers(f"{memory.subject}\n{memory.content}"))
        self._db.words.add(Indexed.MEMORIES, [Words(number, texts, names)])

    def index_again(self, memory_ids: Sequence[str]) -> None:
        """Add memories to the full text from which they are missing; they keep their rows."""
        for memory_id in memory_ids:
            row, memory = self._db.one("find_memory_row", id=memory_id), self.find(memory_id)
            if row and memory:
                self._db.words.drop(Indexed.MEMORIES, [row[0]])
                self._index(row[0], memory)

    def set_importance(self, memory_id: str, importance: int) -> None:
        """Change nothing but the importance, so that the memory keeps its row and its vectors."""
        self._db.run("set_importance", id=memory_id, importance=importance)

    def set_claim(self, memory_id: str, claim: Claim) -> None:
        """Change nothing but the claim, so that the memory keeps its row and its vectors."""
        self._db.run(
            "insert_claim",
            memory=memory_id,
            entity=claim.entity,
            attribute=claim.attribute,
            predicate=claim.predicate,
            object=claim.object,
            confidence=claim.confidence,
        )

    def set_links(self, memory: Memory) -> None:
        """Change nothing but the links of its front matter, so that the memory keeps its row and its vectors."""
        self._put_links(memory.id, memory.links)
        self.names.resolve((), memory.id)

    def delete(self, memory_id: str) -> None:
        """Take a memory out of the index; nothing happens when it is not there."""
        former = self.names.of(memory_id)
        self._drop(memory_id)
        self.names.resolve(former)

    def _drop(self, memory_id: str) -> str | None:
        """Take the row of a memory out; returns what that said, if there was one."""
        row = self._db.one("delete_memory", id=memory_id)
        if row is None:
            return None
        self._db.words.drop(Indexed.MEMORIES, [row[0]])
        return str(row[1])

    def find(self, memory_id: str) -> Memory | None:
        """One memory in any state, by id."""
        rows = self._db.all("find_memory", id=memory_id)
        return self._build(rows)[0] if rows else None

    def in_any_state(self, memory_ids: Sequence[str]) -> list[Memory]:
        """Memories by id, whatever their state."""
        return self._build(self._db.all("find_memories_by_id", ids=json.dumps(list(memory_ids))))

    def find_like(self, reference: str) -> list[Memory]:
        """Memories whose id begins or ends with ``reference`` (four characters at least), or with that subject.

        An active one goes before what was superseded or retired. At most three: more than one means that the
        reference is ambiguous.
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
        """Memories by row number, as a filter let them through; retired ones are left out."""
        found = self._db.all("find_memories_by_row", rows=json.dumps(list(rows)))
        return dict(zip((row[0] for row in found), self._build(found), strict=True))

    def former(self) -> dict[int, int]:
        """What was superseded, by row, and the active memory at the end of its chain."""
        return dict(self._db.all("find_former_memories"))

    def rows_of(self, memory_ids: Sequence[str]) -> dict[int, Memory]:
        """Memories by id, keyed by row number; retired ones are left out."""
        found = self._db.all("find_active_memories", ids=json.dumps(list(memory_ids)))
        return dict(zip((row[0] for row in found), self._build(found), strict=True))

    def neighbours(self, memory_ids: Sequence[str], day: date) -> list[tuple[str, str, float]]:
        """Memories one link away that holds on a day, in either direction: (from, to, strength).

        Retired ones are left out.
        """
        found = self._db.all(
            "list_neighbours", ids=json.dumps(list(memory_ids)), day=day.isoformat()
        )
        return [(source, target, strength) for source, _, target, strength in found]

    def same_content(self, content: str, project: str | None) -> str | None:
        """The id of a memory, in any state, that says the same in the same words."""
        row = self._db.one("find_memory_by_content", content_hash=memory_hash(content, project))
        return row[0] if row else None

    def same_key(self, key: str, kind: Kind, project: str | None) -> str | None:
        """The id of the active memory that holds a canonical key."""
        row = self._db.one(
            "find_memory_by_key", canonical_key=key, kind=kind.value, project=project
        )
        return row[0] if row else None

    def of_files(self, files: Collection[str]) -> list[Memory]:
        """What was imported from files and still holds."""
        return (
            self._build(self._db.all("list_memories_of_files", files=json.dumps(list(files))))
            if files
            else []
        )

    def stale(self) -> dict[str, tuple[float, str]]:
        """Memories that may be out of date, as was found last, by id: how sure that is (0 to 1), and why, as told."""
        return {
            memory: (confidence, as_told(detail))
            for memory, confidence, detail in self._db.all("list_stale")
        }

    def set_stale(self, found: Iterable[tuple[str, float, str]]) -> None:
        """Note which memories may be out of date, in place of what was found before; others wait for it no more."""
        rows = [
            {"memory": one, "confidence": confidence, "detail": detail}
            for one, confidence, detail in found
        ]
        ids = json.dumps([row["memory"] for row in rows])
        with self._db.transaction():
            self._db.run("delete_stale_reviews", found=ids, unsaid=UNSAID)
            self._db.run("delete_stale")
            self._db.run_many("insert_stale", rows)

    def known_of(self, session: str) -> list[Known]:
        """What was learned from a session, in any state."""
        return [
            Known(memory_id, Kind(kind), content, frozenset(json.loads(turns)))
            for memory_id, kind, content, turns in self._db.all(
                "list_memories_of_session", session=session
            )
        ]

    def news(self, wanted: News) -> list[tuple[int, Memory]]:
        """Memories that were stored after a row, as (row, memory) in that order; see :class:`News`."""
        rows = self._db.all(
            "list_news",
            mark=wanted.mark,
            least=wanted.least,
            first_id=wanted.first_id,
            said=to_ms(wanted.said),
            sessions=json.dumps(wanted.sessions),
            project=wanted.project,
            today=str(day_of(wanted.said)),
            limit=wanted.limit,
        )
        return [(row[0], memory) for row, memory in zip(rows, self._build(rows), strict=True)]

    def last_row(self) -> int:
        """The row of what was stored last; 0 where nothing was."""
        row = self._db.one("find_last_row")
        return int(row[0] or 0) if row else 0

    def has_stored(self, mark: int, sessions: Sequence[str], project: str | None) -> bool:
        """Whether anything was stored after a row in one of some sessions, or by an agent in a project."""
        return (
            self._db.one("find_stored", mark=mark, sessions=json.dumps(sessions), project=project)
            is not None
        )

    def all_ids(self) -> set[str]:
        """The ids of all memories in the index."""
        return {memory_id for (memory_id,) in self._db.all("list_all_memory_ids")}

    def snapshot(self) -> Row:
        """Values that are others when a memory or a project is another one."""
        row = self._db.one("memory_snapshot")
        return row if row else ()

    def everything(self) -> Iterator[Memory]:
        """Every memory, in any state, in the order of rows."""
        after = 0
        while rows := self._db.all("list_memories_after", after=after, limit=_PORTION):
            yield from self._build(rows)
            after = rows[-1][0]

    def projects(self) -> set[str]:
        """The projects that active memories belong to."""
        return {project for (project,) in self._db.all("list_memory_projects")}

    def replaced_by(self, memory_id: str) -> list[Memory]:
        """The memories that one superseded, in any state, the oldest first."""
        found = (self.find(row[0]) for row in self._db.all("list_superseded_by", id=memory_id))
        return [memory for memory in found if memory]

    def lost(self) -> list[tuple[str, str]]:
        """Ids and subjects of memories that are superseded by nothing that holds, so that no recall finds them."""
        return [(row[0], row[1]) for row in self._db.all("list_lost")]

    def counts(self) -> dict[str, int]:
        """Active memories by kind, and how many are superseded and retired."""
        found = {str(kind): int(count) for kind, count in self._db.all("count_memories")}
        row = self._db.one("count_inactive") or (0, 0)
        return {**found, "superseded": int(row[0]), "retired": int(row[1])}

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
        again = self._confirmations(ids)
        claims = {row[0]: Claim(*row[1:]) for row in self._db.all("list_claims_of", ids=ids)}
        return [
            memory_rows().decode(
                row,
                tags=tuple(tags.get(row[1], ())),
                links=tuple(links.get(row[1], ())),
                confirmed=tuple(again.get(row[1], ())),
                claim=claims.get(row[1]),
            )
            for row in rows
        ]

    def _confirmations(self, ids: str) -> dict[str, list[Confirmation]]:
        found: dict[str, list[Confirmation]] = {}
        for memory_id, at, session, turns in self._db.all("list_confirmations", ids=ids):
            moment = from_ms(at)
            if moment:
                found.setdefault(memory_id, []).append(
                    Confirmation(moment, session, tuple(json.loads(turns)))
                )
        return found


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
    """As the index keeps it: what a file calls ``auto`` or ``body`` is in the file all the same."""
    return _MANUAL if link.origin is None or link.origin in _DERIVED else link.origin


# ----------------------------------------------------------------------------
# Memories that are used together: edges that grow with use and fade by the day (seed facts 1.2.4).


STEP = 0.1
FADE = 0.95
"""What is left of a weight on the next day (UTC)."""

LEAST = 0.05
"""An edge that fades below this is forgotten."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Two memories that were used together: the weight now, 0 to 1, and in how many sessions."""

    memory: str
    other: str
    weight: float
    sessions: int


class CoRecall:
    """Reads and writes the edges. Days count from 1970, UTC."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @in_transaction
    def join(self, newcomers: Sequence[str], others: Sequence[str], day: int) -> list[str]:
        """Pair newcomers with each other and with the others; returns the newcomers that are active.

        Each pair gets a step, up to 1.
        """
        active = self._active([*newcomers, *others])
        fresh = [memory for memory in newcomers if memory in active]
        known = [memory for memory in others if memory in active and memory not in newcomers]
        pairs = {_ordered(*pair) for pair in combinations(fresh, 2)}
        pairs |= {_ordered(one, other) for one in fresh for other in known}
        before = self._among([*fresh, *known])
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

    def forget_faded(self, day: int) -> None:
        """Take out the edges that have faded by a day."""
        self._db.run("delete_faded_edges", day=day)

    def of(self, memory_ids: Sequence[str], day: int) -> list[Edge]:
        """The edges at some memories, from their side, to active ones; the strongest first."""
        found = self._db.all("list_edges_of", ids=json.dumps(list(memory_ids)), day=day)
        return _sorted(
            [Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in found]
        )

    def strongest(self, day: int, limit: int) -> list[Edge]:
        """The strongest edges of all."""
        found = self._db.all("list_all_edges", day=day)
        return _sorted(
            [Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in found]
        )[:limit]

    def _active(self, memory_ids: Sequence[str]) -> set[str]:
        return {
            memory
            for (memory,) in self._db.all("list_active_ids", ids=json.dumps(list(memory_ids)))
        }

    def _among(self, memory_ids: Sequence[str]) -> dict[tuple[str, str], tuple[float, int, int]]:
        found = self._db.all("list_edges_among", ids=json.dumps(list(memory_ids)))
        return {(a, b): (weight, day, sessions) for a, b, weight, day, sessions in found}


def faded(weight: float, days: int) -> float:
    """A weight after so many days."""
    return weight * FADE ** max(0, days)


def _days_left(weight: float) -> int:
    """The days after which a weight has fallen below the least."""
    return math.floor(math.log(weight / LEAST) / -math.log(FADE)) + 1


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _sorted(edges: list[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: (-edge.weight, edge.memory, edge.other))


# ----------------------------------------------------------------------------
# How memories are linked: the edges of front matter, of names in bodies, and of likeness.


ALIKE = "auto"
"""The origin of likeness: it is computed, and made anew whenever a memory changes."""

IN_BODY = "body"
"""The origin of a name in a text: ``[[Name]]``."""


_ALWAYS = Validity()


@dataclass(frozen=True, slots=True)
class LinksEdge:
    """One link of the index: ``strength`` is 0 to 1, ``valid`` says when it holds, its last day excluded."""

    source: str
    rel: str
    target: str
    origin: str
    reason: str | None
    strength: float
    valid: Validity


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Which links: those at one memory, in whatever state its other end is, or those between memories that hold.

    Without ``origins`` those that somebody made or wrote: no likeness. ``day``: those that hold on it; none: also those
    that ended. ``project``: those with an end in it.
    """

    memory: str | None = None
    relations: Sequence[str] = ()
    origins: Sequence[str] = ()
    day: date | None = None
    project: str | None = None


class Links:
    """Reads links."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_id: str) -> list[LinksEdge]:
        """Every edge that starts or ends at a memory."""
        return [as_edge(row) for row in self._db.all("list_links", id=memory_id)]

    def at(
        self,
        memory_ids: Collection[str],
        day: date | None,
        without: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> list[LinksEdge]:
        """The edges that start or end at some memories and hold on a day, or at any time, in no order; no likeness.

        None leads to a memory of ``without``, and all lead to one of ``among``, where that is said.
        """
        wanted = None if among is None else json.dumps(list(among))
        rows = self._db.all(
            "list_links_at", ids=json.dumps(list(memory_ids)), day=_text(day), among=wanted
        )
        return [as_edge(row) for row in rows if row[0] not in without and row[2] not in without]

    def page(
        self, wanted: EdgeFilter, *, limit: int, offset: int = 0
    ) -> tuple[list[LinksEdge], int]:
        """Some links, those of the newest memories first, and how many there are in all."""
        rows = self._db.all(
            "page_links",
            id=wanted.memory,
            rels=json.dumps(list(wanted.relations)),
            day=_text(wanted.day),
            origins=json.dumps(list(wanted.origins)),
            project=wanted.project,
            limit=limit,
            offset=offset,
        )
        return [as_edge(row) for row in rows], rows[0][-1] if rows else self._count(
            wanted
        ) if offset else 0

    def _count(self, wanted: EdgeFilter) -> int:
        return self.page(wanted, limit=1)[1]

    def count(self, day: date, project: str | None = None) -> int:
        """How many links there are: what every face shows.

        A link is an edge between two memories that hold, made by somebody (in front matter) or written (a name in a
        text), and holding on the day. Likeness and use together are none. With a project: both ends in it.
        """
        row = self._db.one("count_links", day=_text(day), project=project)
        return int(row[0]) if row else 0

    def count_alike(self, project: str | None = None) -> int:
        """How many pairs of memories that hold are alike: edges that were computed."""
        row = self._db.one("count_alike", project=project)
        return int(row[0]) if row else 0

    def between(self, day: date, project: str | None) -> list[tuple[str, str, float]]:
        """The same links as (source, target, strength), in a stable order."""
        return [
            (row[0], row[1], row[2])
            for row in self._db.all("list_links_between", day=_text(day), project=project)
        ]

    def nodes(self, project: str | None) -> list[str]:
        """The ids of memories that hold, of a project or of all, in a stable order."""
        return [memory for (memory,) in self._db.all("list_nodes", project=project)]

    def ends(self, memory_ids: Collection[str]) -> list[Row]:
        """What is at ends of links: (id, subject, kind, project, whether superseded, whether retired, trust)."""
        return self._db.all("list_ends", ids=json.dumps(list(memory_ids)))

    def map_nodes(self, project: str | None, kinds: Collection[str], day: date | None) -> list[Row]:
        """Memories that are active, or held on a day: (id, subject, kind, project, importance, whether superseded,
        whether trusted, when it began to hold), in a stable order."""
        return self._db.all(
            "list_map_nodes", project=project, kinds=json.dumps(list(kinds)), day=_text(day)
        )

    def map_links(
        self, day: date, relations: Collection[str] = (), *, alike: bool = False
    ) -> list[Row]:
        """All links that hold on a day, in a stable order; with ``alike`` likeness, too. :func:`as_edge` reads one."""
        return self._db.all(
            "list_map_links", day=_text(day), rels=json.dumps(list(relations)), alike=alike
        )

    def of_origin(self, origin: str, project: str | None) -> list[str]:
        """The memories whose front matter has links of an origin."""
        return [
            memory
            for (memory,) in self._db.all("list_sources_of_origin", origin=origin, project=project)
        ]

    def alike(self) -> list[LinksEdge]:
        """The edges of likeness, which no file holds."""
        return [as_edge(row) for row in self._db.all("list_derived_links")]

    def connected(self) -> set[tuple[str, str]]:
        """Pairs of memories between which a link leads that somebody made or wrote, in whichever direction."""
        return {(source, target) for source, target in self._db.all("list_connected")}

    def state(self) -> Row:
        """Values that are others when a link is another one."""
        return self._db.one("link_state") or ()


def as_edge(row: Row) -> LinksEdge:
    """A link from its row."""
    source, rel, target, origin, reason, strength, since, until = row[:8]
    valid = _ALWAYS
    if since or until:
        valid = Validity(since and date.fromisoformat(since), until and date.fromisoformat(until))
    return LinksEdge(
        source, rel, target, origin, reason, USUAL_STRENGTH if strength is None else strength, valid
    )


def _text(day: date | None) -> str | None:
    return day.isoformat() if day else None


# ----------------------------------------------------------------------------
# How memories are used.


_STEPS = (3, 10, 25)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Active memories by how often they were recalled (never, up to 5 times, more) and by quality (.7, .3, below)."""

    never: int
    some: int
    often: int
    good: int
    fair: int
    poor: int


@dataclass(frozen=True, slots=True)
class Idle:
    """Active memories of a kind by the days since they were last said, written down or recalled.

    ``days`` are full, ``begun`` counts the one that has begun, too.
    """

    kind: Kind
    days: int
    begun: int
    count: int


@dataclass(frozen=True, slots=True)
class EndingBounds:
    """What the rules of a dream never end: temporary memories used within ``temporary_for``; others used within
    ``idle_for``, of that importance or above, or recalled more often."""

    temporary_for: timedelta
    idle_for: timedelta
    importance_below: int
    most_recalls: int


class UsageLog:
    """Reads usage, and folds in what was spooled."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_ids: Sequence[str]) -> dict[str, Usage]:
        """Usage by memory id; memories never used are left out."""
        rows = self._db.all("find_usage", ids=json.dumps(list(memory_ids)))
        return {
            memory: Usage(
                count,
                from_ms(last),
                tuple(json.loads(intervals)),
                contradictions,
                quality,
                accesses,
            )
            for memory, count, last, intervals, contradictions, quality, accesses in rows
        }

    def adopt(self, memory_id: str, usage: Usage) -> None:
        """Begin with how a new memory was used elsewhere; what it earned there is in its importance already."""
        count = usage.recall_count
        self._db.run(
            "insert_usage",
            memory=memory_id,
            recall_count=count,
            last_recalled=to_ms(usage.last_recalled),
            intervals=json.dumps(usage.intervals),
            contradictions=usage.contradictions,
            quality=usage.quality,
            access_count=usage.access_count,
            steps=sum(count >= step for step in _STEPS),
        )

    def record(self, memory_ids: Sequence[str], at: int, *, first: Collection[str]) -> None:
        """Fold in one recall (epoch milliseconds); it counts for those memories whose ``first`` of a sitting it is."""
        rows = [{"memory": memory, "at": at, "first": memory in first} for memory in memory_ids]
        self._db.run_many("record_recall", rows)

    def look(self, memory_ids: Sequence[str]) -> None:
        """Fold in looks at single memories: accesses, no recalls."""
        self._db.run_many("record_look", [{"memory": memory} for memory in memory_ids])

    def confirm(self, memory_id: str) -> None:
        """The same thing was said again."""
        self._db.run("confirm_memory", memory=memory_id)

    def set_quality(self, memory_id: str, quality: float) -> None:
        """How good a memory has turned out to be, 0 to 1."""
        self._db.run("set_quality", memory=memory_id, quality=quality)

    def steps_due(self) -> list[StepsDue]:
        """Active memories whose recalls have earned more importance than they were given."""
        return [StepsDue(*row) for row in self._db.all("list_steps_due")]

    def set_steps(self, memory_id: str, steps: int) -> None:
        """How many steps of importance a memory has taken."""
        self._db.run("set_steps", memory=memory_id, steps=steps)

    def buckets(self) -> Buckets:
        """How much of what is remembered is used, and how good it is."""
        row = self._db.one("count_usage") or (0,) * 6
        return Buckets(*(int(count) for count in row))

    def idle(self, now: datetime) -> list[Idle]:
        """How long active memories were not used."""
        return [
            Idle(Kind(kind), *rest) for kind, *rest in self._db.all("count_idle", now=to_ms(now))
        ]

    def idle_todos(self, before: datetime) -> list[tuple[str, str, datetime]]:
        """Open todos that were last used before a time, the one idle longest first: (id, subject, last use)."""
        return [
            (memory, subject, at_ms(at))
            for memory, subject, at in self._db.all("list_idle_todos", before=to_ms(before))
        ]

    def may_end(self, now: datetime, bounds: EndingBounds) -> list[str]:
        """The active memories that the rules of a dream may end, by id; those rules decide."""
        rows = self._db.all(
            "list_ending",
            now=to_ms(now),
            today=str(day_of(now)),
            importance_below=bounds.importance_below,
            temporary_for=_milliseconds(bounds.temporary_for),
            idle_for=_milliseconds(bounds.idle_for),
            most_recalls=bounds.most_recalls,
        )
        return [memory for (memory,) in rows]

    def value(self, key: str) -> str | None:
        """What the last folding noted under a key."""
        row = self._db.one("get_usage_value", key=key)
        return row[0] if row else None

    def set_value(self, key: str, value: str) -> None:
        """Note something for the next folding."""
        self._db.run("set_usage_value", key=key, value=value)

    def drop_value(self, key: str) -> None:
        """It is noted no more."""
        self._db.run("delete_usage_value", key=key)


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


class SessionUses:
    """Which memories were used in which session or sitting, for as long as anyone may still ask."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(
        self, session: str, memory_ids: Sequence[str], at: int, *, recalled: Collection[str]
    ) -> None:
        """Memories were used at a time (epoch milliseconds); ``recalled`` are those whose recall counts."""
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
        """The memories of a session whose recall counted after a time (epoch milliseconds)."""
        return {memory for (memory,) in self._db.all("list_recalled", session=session, since=since)}

    def paired(self, session: str) -> list[str]:
        """The memories of a session that were paired with each other."""
        return [memory for (memory,) in self._db.all("list_paired", session=session)]

    def pair(self, session: str, memory_ids: Sequence[str]) -> None:
        """Memories were paired with the others of their session."""
        self._db.run_many(
            "pair_use", [{"session": session, "memory": memory} for memory in memory_ids]
        )

    def unjudged(self, session: str) -> list[str]:
        """The memories of a session on which no reply was heard since their last use."""
        return [memory for (memory,) in self._db.all("list_unjudged", session=session)]

    def first_unjudged(self, session: str) -> int | None:
        """When the first of these was used last (epoch milliseconds); ``None`` where there are none."""
        row = self._db.one("first_unjudged", session=session)
        return row[0] if row else None

    def judge(self, session: str, memory_ids: Sequence[str]) -> None:
        """A reply was heard on some memories."""
        self._db.run_many(
            "judge_use", [{"session": session, "memory": memory} for memory in memory_ids]
        )

    def forget(self, before: int) -> None:
        """Sessions without a use since a time (epoch milliseconds) are over."""
        self._db.run("delete_old_uses", before=before)
