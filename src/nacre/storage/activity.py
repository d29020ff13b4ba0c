"""What happened when: sessions, memories, recalls, operations and calls of models, counted by day.

Days are those of the owner's clock. ``since`` and ``until`` are half open, ``first`` and ``last`` days are not.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

from nacre.platform.days import day_interval
from nacre.platform.ids import to_ms
from nacre.storage.database import Database, Row


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last, of a project or of everything."""

    first: date
    last: date
    project: str | None = None

    @property
    def since(self) -> datetime:
        """Its beginning, as the owner's clock has it."""
        return day_interval(self.first)[0]

    @property
    def until(self) -> datetime:
        """The midnight after its last day."""
        return day_interval(self.last)[1]

    @property
    def _moments(self) -> dict[str, int | str | None]:
        return {"since": to_ms(self.since), "until": to_ms(self.until), "project": self.project}


class Activity:
    """Counts what is in the database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self, period: Period) -> list[Row]:
        """(day, tool, sessions that began, turns), without those of sub-agents and schedulers."""
        days = {"first": period.first.isoformat(), "last": period.last.isoformat()}
        return self._db.all("count_sessions_by_day", **period._moments, **days)

    def memories(self, last: date, project: str | None) -> list[Row]:
        """(day, kind, 1 for recorded and -1 for ended, memories), from the first one on."""
        return self._db.all("count_memories_by_day", last=last.isoformat(), project=project)

    def sources(self, period: Period) -> list[Row]:
        """(speaker, tool or ``None``, memories) of what was recorded and holds, the most first."""
        return self._db.all("count_memories_by_source", **period._moments)

    def ages(self, now: datetime, project: str | None) -> list[Row]:
        """(days since it was said last, memories, how many of them may be out of date) of what holds."""
        return self._db.all("count_memories_by_age", now=to_ms(now), project=project)

    def use(self, project: str | None) -> tuple[int, int, int]:
        """Memories that hold and were never recalled, up to five times, more often."""
        row = self._db.one("count_memories_by_use", project=project) or (0, 0, 0)
        return row[0], row[1], row[2]

    def recalls(self, period: Period) -> list[Row]:
        """(day, recalls)."""
        return self._db.all("count_recalls_by_day", **period._moments)

    def questions(self, period: Period, kind: str, unanswered: Collection[str]) -> list[Row]:
        """(day, whether answered, questions) of traces of a kind; some outcomes mean that there was no answer."""
        moments = {"since": to_ms(period.since), "until": to_ms(period.until)}
        return self._db.all("count_questions_by_day", kind=kind, unanswered=json.dumps(list(unanswered)), **moments)

    def calls(self, first: date, last: date) -> list[Row]:
        """(day, task, tokens, millionths of a US dollar)."""
        return self._db.all("count_calls_by_day", first=first.isoformat(), last=last.isoformat())
