"""Candidates: what may be worth remembering, and waits. State of the database; the vault knows nothing of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.base import json as json_values
from nacre.base.ids import from_ms, to_ms
from nacre.base.text import STOP_WORDS, words
from nacre.store.memories import memory_hash
from nacre.store.schema import Clause, Database, Indexed, Row
from nacre.values.memory import HeldCandidate, Memory, Why
from nacre.values.review import JudgedPair, QueuedReview, Reason

SECONDS_TO_UNDO = 24 * 3600
"""How long the words of a candidate stay once it was kept or dropped."""


class Candidates:
    """Reads and writes ``candidates``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, found: Iterable[HeldCandidate]) -> int:
        """Let candidates wait; those with words that wait already, or were dropped, do not. Returns how many do."""
        rows = [
            {
                "id": one.memory.id,
                "hash": memory_hash(one.memory.content, one.memory.project),
                "session": one.memory.source.session,
                "why": one.why.value,
                "detail": one.detail,
                "score": one.score,
                "found": to_ms(one.found),
                "memory": json_values.encode(one.memory).decode(),
            }
            for one in found
        ]
        return sum(self._db.run("insert_candidate", **row) for row in rows)

    def waiting(self) -> list[HeldCandidate]:
        """Those that wait, the likeliest first."""
        return [_held(row) for row in self._db.all("list_candidates")]

    def count(self) -> int:
        """How many wait."""
        row = self._db.one("count_candidates")
        return int(row[0]) if row else 0

    def find(self, reference: str) -> list[HeldCandidate]:
        """Those whose id begins or ends with a reference, three at most."""
        return [_held(row) for row in self._db.all("find_candidates", reference=reference)]

    def with_words(self) -> list[HeldCandidate]:
        """Those that wait, and those that were kept or dropped and can still be brought back."""
        return [_held(row) for row in self._db.all("list_worded_candidates")]

    def settle(self, candidate_id: str, at: int) -> None:
        """The owner kept it or does not want it, and is not to be asked again (epoch milliseconds).

        Its words stay until :meth:`blank`.
        """
        self._db.run("settle_candidate", id=candidate_id, at=at)

    def blank(self, now: int) -> None:
        """Delete the words of those that were settled more than :data:`SECONDS_TO_UNDO` ago."""
        self._db.run("blank_settled_candidates", before=now - SECONDS_TO_UNDO * 1000)

    def settled(self, reference: str) -> list[HeldCandidate]:
        """Those that were kept or dropped, and still have their words, by the beginning or end of their ids."""
        return [_held(row) for row in self._db.all("find_settled_candidates", reference=reference)]

    def settled_at(self, at: int) -> list[HeldCandidate]:
        """Those that were kept or dropped at a time (epoch milliseconds), and still have their words."""
        return [_held(row) for row in self._db.all("list_candidates_settled_at", at=at)]

    def unsettle(self, candidate_id: str) -> None:
        """It waits again."""
        self._db.run("unsettle_candidate", id=candidate_id)

    def delete(self, candidate_ids: Iterable[str]) -> None:
        """They wait no longer."""
        self._db.run_many("delete_candidate", [{"id": one} for one in candidate_ids])

    def settle_session(self, session: str) -> None:
        """What rules found in a session waits no longer: a writer has read it."""
        self._db.run("delete_candidates_of_session", session=session, why=Why.FOUND.value)

    def expire(self, before: int) -> int:
        """Let go of those that were found before a time (epoch milliseconds); returns how many."""
        return self._db.run("delete_old_candidates", before=before)


def _held(row: Row) -> HeldCandidate:
    memory, why, detail, score, found = row
    at = from_ms(found)
    assert at is not None  # noqa: S101 - the column is never empty
    return HeldCandidate(json_values.decode(memory.encode(), Memory), Why(why), detail, score, at)


# ----------------------------------------------------------------------------
# What memories claim, which of them wait to be judged, and how pairs that wait for a person were
# judged.


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many memories wait for a model, since when, and why the last one failed."""

    count: int = 0
    since: datetime | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A memory that may be tried now, how often it was, and whether it has other words than its claim was told of."""

    memory: str
    tries: int = 0
    reworded: bool = False


class Claims:
    """Reads claims, keeps the queue of memories to be judged, and the judgements of pairs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def entities(self, limit: int) -> list[str]:
        """The entities that are known best."""
        return [entity for (entity,) in self._db.all("list_entities", limit=limit)]

    def of_entity(self, entity: str, project: str | None, *, limit: int) -> list[tuple[int, str]]:
        """Active memories about an entity: (row, attribute), the latest first."""
        rows = self._db.all("list_claims_of_entity", entity=entity, project=project, limit=limit)
        return [(row, attribute) for row, attribute in rows]

    def of_attribute(
        self, attribute: str, entity: str, project: str | None, *, limit: int
    ) -> list[int]:
        """Rows of active memories about the same attribute of other entities, the latest first."""
        found = self._db.all(
            "list_claims_of_attribute",
            attribute=attribute,
            entity=entity,
            project=project,
            limit=limit,
        )
        return [row for (row,) in found]

    def unclaimed(self, limit: int | None = None) -> list[str]:
        """Active memories without a claim, the latest first."""
        return [
            memory
            for (memory,) in self._db.all("list_unclaimed", limit=-1 if limit is None else limit)
        ]

    def claimless(self, memory_id: str) -> None:
        """A model said that a memory claims nothing: it is not asked again."""
        self._db.run("insert_claimless", memory=memory_id)

    def wait(self, memory_id: str, at: int, *, reworded: bool = False) -> None:
        """A memory waits for a model, from a time (epoch milliseconds) on.

        ``reworded``: it has other words than those of which its claim was told.
        """
        self._db.run("insert_claims_waiting", memory=memory_id, at=at, reworded=reworded)

    def due(self, at: int, limit: int) -> list[Due]:
        """What may be tried at a time (epoch milliseconds), the longest waiting first."""
        rows = self._db.all("list_claims_due", at=at, limit=limit)
        return [Due(memory, tries, bool(reworded)) for memory, tries, reworded in rows]

    def done(self, memory_id: str) -> None:
        """It waits no more."""
        self._db.run("delete_claims_waiting", id=memory_id)

    def postpone(self, memory_id: str, due: int, note: str) -> None:
        """A try failed, and why; the next one is at another time (epoch milliseconds)."""
        self._db.run("postpone_claims_waiting", memory=memory_id, due=due, note=note)

    def postpone_all(self, due: int, note: str) -> None:
        """Nothing can be tried before a time (epoch milliseconds), and why."""
        self._db.run("postpone_all_claims_waiting", due=due, note=note)

    def hurry(self) -> None:
        """Everything that waits may be tried now."""
        self._db.run("hurry_claims_waiting")

    def waiting(self) -> Waiting:
        """What waits, in brief."""
        count, since, note = self._db.one("count_claims_waiting") or (0, None, None)
        return Waiting(int(count), from_ms(since), note)

    def judged(self) -> dict[tuple[str, str], JudgedPair]:
        """How pairs that wait for a person were judged, by (older, newer)."""
        return {
            (older, newer): JudgedPair(relation, confidence, model, from_ms(at))
            for older, newer, relation, confidence, model, at in self._db.all("list_conflicts")
        }

    def keep(self, older: str, newer: str, judged: JudgedPair, at: int) -> None:
        """A pair waits for a person; it was judged once, whichever is the newer one by now."""
        self.settled(older, newer)
        self._db.run(
            "insert_conflict",
            older=older,
            newer=newer,
            relation=judged.relation,
            confidence=judged.confidence,
            model=judged.model,
            at=at,
        )

    def settled(self, older: str, newer: str) -> None:
        """It does not any more."""
        self._db.run("delete_conflict", older=older, newer=newer)

    def uncontradict(self, memory_id: str) -> None:
        """A person said that one of the contradictions is none."""
        self._db.run("uncontradict_memory", memory=memory_id)

    def contradict(self, memory_id: str) -> None:
        """Something was said that contradicts a memory; twice, and it ranks lower."""
        self._db.run("contradict_memory", memory=memory_id)


# ----------------------------------------------------------------------------
# The review queue: memories that a person should look at.


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory that is likely to be outdated, the newer one that says otherwise, and in what."""

    older: str
    newer: str
    reason: str | None


class Reviews:
    """Reads and writes the queue."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, memory_id: str, reason: Reason, detail: str, at: int, *, once: bool) -> None:
        """Put a memory into the queue, unless it waits there for that reason.

        ``once``: not again with a detail that was settled before.
        """
        about = {"memory": memory_id, "reason": reason.value, "detail": detail}
        with self._db.transaction():
            if not self._db.one("find_review", **about, once=once):
                self._db.run("insert_review", **about, at=at, shown_by="[]")

    def doubt(self, memory_id: str, detail: str, at: int, shown_by: Iterable[str]) -> bool:
        """Have a memory wait as out of date, for what some sessions show; what it waited for before gives way.

        Returns whether it waits for that now, and did not before: what somebody settled is not brought up again.
        """
        about = {"memory": memory_id, "reason": Reason.STALE.value, "detail": detail}
        more = {"at": at, "shown_by": json.dumps(sorted(set(shown_by)))}
        with self._db.transaction():
            if self._db.one("find_review_detail", **about):
                return False
            if not self._db.run("renew_review", **about, **more):
                self._db.run("insert_review", **about, **more)
        return True

    def delete_where(self, tells: Callable[[str], bool]) -> None:
        """Delete entries that tell something, or whose sessions do. Call it in a transaction."""
        texts = self._db.all("list_review_texts")
        gone = [{"id": row} for row, detail, shown_by in texts if tells(f"{detail}\n{shown_by}")]
        self._db.run_many("delete_review", gone)

    def pending(self) -> list[QueuedReview]:
        """What waits, the oldest first."""
        return [
            QueuedReview(memory, Reason(reason), detail, from_ms(created))
            for memory, reason, detail, created in self._db.all("list_reviews")
        ]

    def waiting(self) -> tuple[int, int, int]:
        """How many candidates, memories in doubt and conflicts wait."""
        candidates, doubts, conflicts = self._db.one("count_waiting") or (0, 0, 0)
        return candidates, doubts, conflicts

    def dismiss(self, memory_id: str, at: int) -> int:
        """The memory is kept; returns how many entries that settled."""
        return self._db.run("dismiss_reviews", memory=memory_id, at=at)

    def settled(self, memory_id: str) -> tuple[int, int] | None:
        """When a memory began to wait, and when that was settled (epoch milliseconds); ``None`` while it waits."""
        row = self._db.one("find_settled_review", memory=memory_id)
        return (row[0], row[1]) if row else None

    def settled_at(self, at: int) -> list[str]:
        """The memories that wait no more since a time (epoch milliseconds)."""
        return [row[0] for row in self._db.all("list_settled_reviews", at=at)]

    def reopen(self, memory_id: str, at: int) -> None:
        """What was settled at a time (epoch milliseconds) waits again."""
        self._db.run("reopen_reviews", memory=memory_id, at=at)

    def settle(self, memory_id: str, reason: Reason, at: int) -> None:
        """A memory waits for a reason no more; what else it waits for stays."""
        self._db.run("settle_review", memory=memory_id, reason=reason.value, at=at)

    def stale_kept(self) -> dict[str, datetime | None]:
        """When a person last kept each memory that had seemed out of date."""
        return {memory: from_ms(at) for memory, at in self._db.all("list_stale_kept")}

    def low_quality(self) -> list[tuple[str, float, int]]:
        """Active memories below the border: (memory, quality, recall count)."""
        return [(row[0], row[1], row[2]) for row in self._db.all("list_low_quality")]

    def doubts(
        self, memory_ids: Sequence[str] | None = None, *, both_ways: bool = False
    ) -> list[Doubt]:
        """Which memories are likely to be outdated by which, the oldest doubt first; of some memories, or of all.

        A pair counts once, also where each of the two doubts the other: the later memory is the newer one. With
        ``both_ways`` it counts twice then.
        """
        ids = None if memory_ids is None else json.dumps(list(memory_ids))
        return [Doubt(*row) for row in self._db.all("list_doubts", ids=ids, both_ways=both_ways)]

    def proposed(self) -> list[str]:
        """Active memories that agents proposed, the oldest first."""
        return [row[0] for row in self._db.all("list_proposed")]

    def unfounded(self, tools: Iterable[str]) -> list[str]:
        """Active memories read in documents, as these tools read, that do not say them any more."""
        return [row[0] for row in self._db.all("list_unfounded", tools=json.dumps(sorted(tools)))]

    def contradicted(self) -> list[tuple[str, int]]:
        """Active memories that were contradicted more than once: (memory, how often)."""
        return [(row[0], row[1]) for row in self._db.all("list_contradicted")]


# ----------------------------------------------------------------------------
# What comparing memories needs: candidates by words, what waits to be compared by meaning, evidence.


MOST_ROWS = 2_000
"""Rows that the words looked for may have together: rare words come first, common ones only where memories are few."""

MOST_WORDS = 16


class Comparisons:
    """Reads candidates; keeps what is derived for comparing."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def alike(self, memory: Memory, *, limit: int) -> list[int]:
        """Rows of active memories of the same project that share rare words, a title or a key with a memory."""
        titled = self._db.all(
            "list_memories_titled",
            project=memory.project,
            subject=memory.subject,
            canonical_key=memory.canonical_key,
            limit=limit,
        )
        found = dict.fromkeys(row for (row,) in titled)
        telling = self._telling(words(f"{memory.subject} {memory.content}"))
        if telling:
            same = Clause("m.project IS NOT DISTINCT FROM ?", (memory.project,))
            found |= dict.fromkeys(self._db.words.best(Indexed.MEMORIES, telling, same, limit))
        return list(found)

    def _telling(self, said: Sequence[str]) -> list[str]:
        """The rarest words, as many as do not bring too many rows."""
        stems = {
            word: self._db.stems(word)[:1] for word in dict.fromkeys(said) if word not in STOP_WORDS
        }
        wanted = sorted({stem[0] for stem in stems.values() if stem})
        counted = self._db.words.frequencies(Indexed.MEMORIES, wanted)
        ranked = sorted((counted.get(stem[0], 0), word) for word, stem in stems.items() if stem)
        telling: list[str] = []
        rows = 0
        for count, word in ranked:
            rows += count
            if telling and (rows > MOST_ROWS or len(telling) == MOST_WORDS):
                break
            if count:
                telling.append(word)
        return telling

    def wait(self, memory_id: str) -> None:
        """A new memory is to be compared by meaning when it has a vector."""
        self._db.run("insert_unsettled", memory=memory_id)

    def settled(self, memory_id: str) -> None:
        """It was compared."""
        self._db.run("delete_unsettled", memory=memory_id)

    def waiting(self, rows: Sequence[int]) -> list[str]:
        """Which memories of some rows wait to be compared, the oldest first."""
        return [memory for (memory,) in self._db.all("list_unsettled", rows=json.dumps(list(rows)))]

    def row_of(self, memory_id: str) -> int | None:
        """The row of a memory."""
        row = self._db.one("find_memory_row", id=memory_id)
        return int(row[0]) if row else None

    def link_alike(self, memory_id: str, near: Mapping[str, float]) -> None:
        """Replace a memory's links of similarity: id → cosine."""
        self._db.run("delete_auto_links", source=memory_id)
        links: list[dict[str, object]] = [
            {"source": memory_id, "target": other, "strength": round(cosine, 4)}
            for other, cosine in near.items()
        ]
        self._db.run_many("insert_auto_link", links)

    def stated_in(self, session: str, turn: str) -> list[tuple[str, bool]]:
        """What a turn is evidence of: the words of each memory, and whether it is superseded."""
        found = self._db.all("list_stated", session=session)
        return [(text, bool(gone)) for turns, text, gone in found if turn in json.loads(turns)]
