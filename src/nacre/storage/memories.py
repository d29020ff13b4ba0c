"""Memories in the index: rows, tags, links and full text, always changed together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from nacre.platform.days import day_of
from nacre.platform.ids import content_hash, from_ms, to_ms
from nacre.platform.lazy import Lazy
from nacre.storage.database import Database, Indexed, Row, Words, fits_index
from nacre.storage.sqlite.rows import memory_rows
from nacre.text.passages import identifiers, normalise, segment
from nacre.values.memory import Claim, Confirmation, Kind, Link, Memory, Validity
from nacre.values.review import UNSAID, Reason, as_told

if TYPE_CHECKING:
    from nacre.storage.names import Names

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

    names: Lazy[Names] = Lazy("nacre.storage.names:Names")
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
            self._db.run("settle_review", memory=memory.id, reason=Reason.STALE.value, at=to_ms(memory.updated))
        values = memory_rows().encode(memory) | {"content_hash": memory_hash(memory.content, memory.project)}
        number = int(self._db.insert("memories", values, "row"))
        self._db.run_many("insert_tag", [{"memory": memory.id, "tag": tag} for tag in memory.tags if fits_index(tag)])
        self._put_links(memory.id, memory.links)
        again: list[dict[str, object]] = [
            {"memory": memory.id, "ordinal": at, "at": to_ms(one.at), "session": one.session,
             "turns": json.dumps(one.turns)}
            for at, one in enumerate(memory.confirmed)
        ]  # fmt: skip
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
            "insert_claim", memory=memory_id, entity=claim.entity, attribute=claim.attribute,
            predicate=claim.predicate, object=claim.object, confidence=claim.confidence,
        )  # fmt: skip

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
        if not rows and len(reference) >= 4 and all(character in "0123456789abcdef-" for character in reference):
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
        found = self._db.all("list_neighbours", ids=json.dumps(list(memory_ids)), day=day.isoformat())
        return [(source, target, strength) for source, _, target, strength in found]

    def same_content(self, content: str, project: str | None) -> str | None:
        """The id of a memory, in any state, that says the same in the same words."""
        row = self._db.one("find_memory_by_content", content_hash=memory_hash(content, project))
        return row[0] if row else None

    def same_key(self, key: str, kind: Kind, project: str | None) -> str | None:
        """The id of the active memory that holds a canonical key."""
        row = self._db.one("find_memory_by_key", canonical_key=key, kind=kind.value, project=project)
        return row[0] if row else None

    def of_files(self, files: Collection[str]) -> list[Memory]:
        """What was imported from files and still holds."""
        return self._build(self._db.all("list_memories_of_files", files=json.dumps(list(files)))) if files else []

    def stale(self) -> dict[str, tuple[float, str]]:
        """Memories that may be out of date, as was found last, by id: how sure that is (0 to 1), and why, as told."""
        return {memory: (confidence, as_told(detail)) for memory, confidence, detail in self._db.all("list_stale")}

    def set_stale(self, found: Iterable[tuple[str, float, str]]) -> None:
        """Note which memories may be out of date, in place of what was found before; others wait for it no more."""
        rows = [{"memory": one, "confidence": confidence, "detail": detail} for one, confidence, detail in found]
        ids = json.dumps([row["memory"] for row in rows])
        with self._db.transaction():
            self._db.run("delete_stale_reviews", found=ids, unsaid=UNSAID)
            self._db.run("delete_stale")
            self._db.run_many("insert_stale", rows)

    def known_of(self, session: str) -> list[Known]:
        """What was learned from a session, in any state."""
        return [
            Known(memory_id, Kind(kind), content, frozenset(json.loads(turns)))
            for memory_id, kind, content, turns in self._db.all("list_memories_of_session", session=session)
        ]

    def news(self, wanted: News) -> list[tuple[int, Memory]]:
        """Memories that were stored after a row, as (row, memory) in that order; see :class:`News`."""
        rows = self._db.all(
            "list_news", mark=wanted.mark, least=wanted.least, first_id=wanted.first_id, said=to_ms(wanted.said),
            sessions=json.dumps(wanted.sessions), project=wanted.project, today=str(day_of(wanted.said)),
            limit=wanted.limit,
        )  # fmt: skip
        return [(row[0], memory) for row, memory in zip(rows, self._build(rows), strict=True)]

    def last_row(self) -> int:
        """The row of what was stored last; 0 where nothing was."""
        row = self._db.one("find_last_row")
        return int(row[0] or 0) if row else 0

    def has_stored(self, mark: int, sessions: Sequence[str], project: str | None) -> bool:
        """Whether anything was stored after a row in one of some sessions, or by an agent in a project."""
        return self._db.one("find_stored", mark=mark, sessions=json.dumps(sessions), project=project) is not None

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
        for source, rel, target, reason, origin, strength, *ends in self._db.all("list_links_from", ids=ids):
            own = None if origin == _MANUAL else origin
            valid = Validity(*(date.fromisoformat(day) if day else None for day in ends))
            links.setdefault(source, []).append(Link(rel, target, reason, own, strength, valid))
        again = self._confirmations(ids)
        claims = {row[0]: Claim(*row[1:]) for row in self._db.all("list_claims_of", ids=ids)}
        return [
            memory_rows().decode(
                row, tags=tuple(tags.get(row[1], ())), links=tuple(links.get(row[1], ())),
                confirmed=tuple(again.get(row[1], ())), claim=claims.get(row[1]),
            )
            for row in rows
        ]  # fmt: skip

    def _confirmations(self, ids: str) -> dict[str, list[Confirmation]]:
        found: dict[str, list[Confirmation]] = {}
        for memory_id, at, session, turns in self._db.all("list_confirmations", ids=ids):
            moment = from_ms(at)
            if moment:
                found.setdefault(memory_id, []).append(Confirmation(moment, session, tuple(json.loads(turns))))
        return found


def _link_row(source: str, link: Link) -> dict[str, object]:
    return {
        "source": source, "rel": link.rel, "target": link.to, "origin": _origin_of(link), "reason": link.reason,
        "strength": link.strength, "since": link.valid.since and link.valid.since.isoformat(),
        "until": link.valid.until and link.valid.until.isoformat(),
    }  # fmt: skip


def _origin_of(link: Link) -> str:
    """As the index keeps it: what a file calls ``auto`` or ``body`` is in the file all the same."""
    return _MANUAL if link.origin is None or link.origin in _DERIVED else link.origin
