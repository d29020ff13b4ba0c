"""Candidates: what may be worth remembering, and waits. State of the database; the vault knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.platform import json_values
from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Database, Row
from nacre.storage.memories import memory_hash
from nacre.values.candidate import HeldCandidate, Why
from nacre.values.memory import Memory

SECONDS_TO_UNDO = 24 * 3600
"""How long the words of a candidate stay once it was kept or dropped."""


class Candidates:
    """Reads and writes ``candidates``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, found: Iterable[HeldCandidate]) -> int:
        """Let candidates wait; those with words that wait already, or were dropped, do not. Returns how many do."""
        rows = [
            {"id": one.memory.id, "hash": memory_hash(one.memory.content, one.memory.project),
             "session": one.memory.source.session, "why": one.why.value, "detail": one.detail, "score": one.score,
             "found": to_ms(one.found), "memory": json_values.encode(one.memory).decode()}
            for one in found
        ]  # fmt: skip
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
