"""What memories claim, which of them wait to be judged, and how pairs that wait for a person were judged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.platform.ids import from_ms
from nacre.storage.database import Database
from nacre.values.review import JudgedPair


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

    def of_attribute(self, attribute: str, entity: str, project: str | None, *, limit: int) -> list[int]:
        """Rows of active memories about the same attribute of other entities, the latest first."""
        found = self._db.all(
            "list_claims_of_attribute", attribute=attribute, entity=entity, project=project, limit=limit
        )
        return [row for (row,) in found]

    def unclaimed(self, limit: int | None = None) -> list[str]:
        """Active memories without a claim, the latest first."""
        return [memory for (memory,) in self._db.all("list_unclaimed", limit=-1 if limit is None else limit)]

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
            "insert_conflict", older=older, newer=newer, relation=judged.relation, confidence=judged.confidence,
            model=judged.model, at=at,
        )  # fmt: skip

    def settled(self, older: str, newer: str) -> None:
        """It does not any more."""
        self._db.run("delete_conflict", older=older, newer=newer)

    def uncontradict(self, memory_id: str) -> None:
        """A person said that one of the contradictions is none."""
        self._db.run("uncontradict_memory", memory=memory_id)

    def contradict(self, memory_id: str) -> None:
        """Something was said that contradicts a memory; twice, and it ranks lower."""
        self._db.run("contradict_memory", memory=memory_id)
