"""What a day brought, and what waits now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from nacre.health.checks import problems
from nacre.home.home import Home
from nacre.reporting.activity import period_of
from nacre.reporting.requests import TodayRequest
from nacre.reporting.values import Source, Today, ToolSessions
from nacre.review.queue import listed
from nacre.review.requests import ReviewRequest
from nacre.sessions.answers import list_sessions
from nacre.sessions.requests import SessionsRequest
from nacre.spending.spool import fold_notes
from nacre.storage.activity import Period
from nacre.storage.database import Row
from nacre.values.filters import SessionFilter
from nacre.values.memory import Memory
from nacre.values.recall import Filter


def today(home: Home, asked: TodayRequest) -> Today:
    """What a day, or several, brought, and what waits now. Raises InvalidInput where they end before they begin."""
    fold_notes(home)
    period = period_of(home, asked, timedelta())
    waiting = listed(home, ReviewRequest(project=period.project, limit=1))  # this reads what was edited by hand
    learned, total = _learned(home, period, asked.limit)
    talked = SessionsRequest(
        filter=SessionFilter(project=period.project, since=period.since, until=period.until), limit=asked.limit
    )
    day = home.today()
    calls = home.activity.calls(day.replace(day=1), day)
    return Today(
        period.first, period.last, period.project, tuple(learned), total,
        tuple(Source(*row) for row in home.activity.sources(period)),
        tuple(home.journal.operations(
            project=period.project, since=period.since, until=period.until, limit=asked.limit
        )),
        _by_tool(home.activity.sessions(period)), list_sessions(home, talked).lines,
        waiting.conflicts, waiting.doubts, waiting.candidates,
        sum(cost for called, _, _, cost in calls if called == day.isoformat()), sum(row[3] for row in calls),
        tuple(problems(home)),
    )  # fmt: skip


def _learned(home: Home, period: Period, limit: int) -> tuple[list[Memory], int]:
    wanted = Filter(
        (period.project,) if period.project else (), strict=True, since=period.since, until=period.until
    )  # fmt: skip
    rows, total = home.selection.list_memories(wanted, limit=limit, offset=0, today=home.today())
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found], total


def _by_tool(rows: Sequence[Row]) -> tuple[ToolSessions, ...]:
    sessions: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for _, tool, began, said in rows:
        sessions[tool] += began
        turns[tool] += said
    return tuple(ToolSessions(tool, sessions[tool], count) for tool, count in turns.most_common())
