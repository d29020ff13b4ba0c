"""Memories and turns that a filter lets through, by their rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import date

from nacre.storage.database import Database
from nacre.storage.filters import Clause, memory_clause, turn_clause, with_words
from nacre.values.recall import Filter

_SESSIONS_A_PORTION = 100

# The statements are fixed; {where} takes a Clause, whose SQL is fixed fragments too.
_TURNS_OF_SESSIONS = """
SELECT t.row FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.session IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {where}
ORDER BY coalesce(t.time, s.ended, s.started, 0) DESC, t.session DESC, t.seq DESC
"""
_ADMITTED_MEMORIES = "SELECT m.row FROM {source} m WHERE {where}"
_LIST_MEMORIES = """
SELECT m.row, count(*) OVER () FROM {source} m WHERE {where} ORDER BY m.created DESC, m.id DESC LIMIT ? OFFSET ?
"""
_LATEST_MEMORIES = """
SELECT m.row FROM {source} m WHERE {where} ORDER BY m.updated DESC, m.id DESC LIMIT ?
"""
_TRIGGERED_MEMORIES = """
SELECT m.row FROM {source} m WHERE m.triggers != '[]' AND {where} ORDER BY m.importance DESC, m.updated DESC, m.id DESC
"""
_PROJECTS = """
SELECT m.project FROM {source} m WHERE m.project IS NOT NULL AND {where}
GROUP BY m.project ORDER BY max(m.updated) DESC, m.project
"""
_BROWSE_MEMORIES = """
SELECT m.row FROM {source} m WHERE {where} ORDER BY m.importance DESC, m.created DESC, m.id LIMIT ?
"""
_FEW_TURNS = """
SELECT t.row FROM sessions s CROSS JOIN turns t WHERE t.session = s.row AND {where} LIMIT ?
"""
_CHECK_TURNS = """
SELECT t.row FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {where}
"""


class Admission:
    """The turns that a filter lets through, without listing them: there may be a million."""

    def __init__(self, database: Database, where: Clause) -> None:
        self._db = database
        self._where = where

    def few(self, most: int) -> list[int] | None:
        """All of them, where they are no more than so many."""
        found = self._db.rows(self._where.into(_FEW_TURNS), (*self._where.values, most + 1))
        return [row for (row,) in found] if len(found) <= most else None

    def among(self, rows: Collection[int]) -> set[int]:
        """Those of some turns."""
        encoded = json.dumps(list(rows))
        return {row for (row,) in self._db.rows(self._where.into(_CHECK_TURNS), (encoded, *self._where.values))}


class Selection:
    """What filters let through."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def admitted_turns(self, wanted: Filter) -> Admission | None:
        """The turns a filter lets through; ``None`` when it lets all through."""
        where = turn_clause(wanted)
        return None if where.is_open else Admission(self._db, where)

    def newest_turns(self, wanted: Filter) -> Iterator[list[int]]:
        """The turns a filter lets through, a hundred sessions at a time, the latest session first."""
        where = turn_clause(wanted)
        sessions = [row for (row,) in self._db.all("list_session_rows")]
        for start in range(0, len(sessions), _SESSIONS_A_PORTION):
            portion = json.dumps(sessions[start : start + _SESSIONS_A_PORTION])
            yield [row for (row,) in self._db.rows(where.into(_TURNS_OF_SESSIONS), (portion, *where.values))]

    def admitted_memories(self, wanted: Filter, *, today: date | None = None) -> set[int]:
        """The active memories a filter lets through; with ``today``, those that still hold."""
        where = memory_clause(wanted, today)
        return {row for (row,) in self._db.rows(where.into(_ADMITTED_MEMORIES), where.values)}

    def browse_memories(self, wanted: Filter, *, limit: int, today: date | None = None) -> list[int]:
        """Active memories by importance, then date, without a query; with ``today``, those that still hold."""
        where = memory_clause(wanted, today)
        rows = self._db.rows(where.into(_BROWSE_MEMORIES), (*where.values, limit))
        return [row for (row,) in rows]

    def list_memories(
        self, wanted: Filter, *, limit: int, offset: int, today: date | None = None, words: Sequence[str] = ()
    ) -> tuple[list[int], int]:  # fmt: skip
        """A page of active memories, the newest first, and how many there are; with ``today``, those that hold.

        With ``words``, those whose subject, content or tags contain each of them, in any case of letters.
        """
        where = with_words(memory_clause(wanted, today, for_list=True), words)
        rows = self._db.rows(where.into(_LIST_MEMORIES), (*where.values, limit, offset))
        return [row for row, _ in rows], int(rows[0][1]) if rows else 0

    def latest_memories(self, wanted: Filter, *, limit: int, today: date) -> list[int]:
        """The active memories that hold, what changed last first."""
        where = memory_clause(wanted, today)
        return [row for (row,) in self._db.rows(where.into(_LATEST_MEMORIES), (*where.values, limit))]

    def with_triggers(self, wanted: Filter, *, today: date) -> list[int]:
        """The active memories that hold and have triggers, the most important first."""
        where = memory_clause(wanted, today)
        return [row for (row,) in self._db.rows(where.into(_TRIGGERED_MEMORIES), where.values)]

    def projects_of_memories(self, wanted: Filter, *, today: date) -> list[str]:
        """The projects of the memories that a filter lets through, the one that changed last first."""
        where = memory_clause(wanted, today)
        return [project for (project,) in self._db.rows(where.into(_PROJECTS), where.values)]

    def names_known(self) -> tuple[set[str], set[str]]:
        """People named as authors of turns, and projects of sessions or of memories."""
        projects = {project for (project,) in self._db.all("list_projects_named")}
        return {author for (author,) in self._db.all("list_authors")}, projects
