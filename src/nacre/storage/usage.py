"""How memories are used."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from nacre.platform.days import day_of
from nacre.platform.ids import at_ms, from_ms, to_ms
from nacre.storage.database import Database
from nacre.values.memory import Kind
from nacre.values.review import StepsDue, Usage

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
            memory: Usage(count, from_ms(last), tuple(json.loads(intervals)), contradictions, quality, accesses)
            for memory, count, last, intervals, contradictions, quality, accesses in rows
        }

    def adopt(self, memory_id: str, usage: Usage) -> None:
        """Begin with how a new memory was used elsewhere; what it earned there is in its importance already."""
        count = usage.recall_count
        self._db.run(
            "insert_usage", memory=memory_id, recall_count=count, last_recalled=to_ms(usage.last_recalled),
            intervals=json.dumps(usage.intervals), contradictions=usage.contradictions, quality=usage.quality,
            access_count=usage.access_count, steps=sum(count >= step for step in _STEPS),
        )  # fmt: skip

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
        return [Idle(Kind(kind), *rest) for kind, *rest in self._db.all("count_idle", now=to_ms(now))]

    def idle_todos(self, before: datetime) -> list[tuple[str, str, datetime]]:
        """Open todos that were last used before a time, the one idle longest first: (id, subject, last use)."""
        return [(memory, subject, at_ms(at)) for memory, subject, at in self._db.all(
            "list_idle_todos", before=to_ms(before)
        )]  # fmt: skip

    def may_end(self, now: datetime, bounds: EndingBounds) -> list[str]:
        """The active memories that the rules of a dream may end, by id; those rules decide."""
        rows = self._db.all(
            "list_ending", now=to_ms(now), today=str(day_of(now)), importance_below=bounds.importance_below,
            temporary_for=_milliseconds(bounds.temporary_for), idle_for=_milliseconds(bounds.idle_for),
            most_recalls=bounds.most_recalls,
        )  # fmt: skip
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

    def record(self, session: str, memory_ids: Sequence[str], at: int, *, recalled: Collection[str]) -> None:
        """Memories were used at a time (epoch milliseconds); ``recalled`` are those whose recall counts."""
        rows = [
            {"session": session, "memory": memory, "at": at, "recalled": at if memory in recalled else None}
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
        self._db.run_many("pair_use", [{"session": session, "memory": memory} for memory in memory_ids])

    def unjudged(self, session: str) -> list[str]:
        """The memories of a session on which no reply was heard since their last use."""
        return [memory for (memory,) in self._db.all("list_unjudged", session=session)]

    def first_unjudged(self, session: str) -> int | None:
        """When the first of these was used last (epoch milliseconds); ``None`` where there are none."""
        row = self._db.one("first_unjudged", session=session)
        return row[0] if row else None

    def judge(self, session: str, memory_ids: Sequence[str]) -> None:
        """A reply was heard on some memories."""
        self._db.run_many("judge_use", [{"session": session, "memory": memory} for memory in memory_ids])

    def forget(self, before: int) -> None:
        """Sessions without a use since a time (epoch milliseconds) are over."""
        self._db.run("delete_old_uses", before=before)
