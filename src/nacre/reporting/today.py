"""What a day brought, and what waits now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from nacre.health.checks import problems
from nacre.home.home import Home
from nacre.reporting.activity import period_of
from nacre.reporting.requests import TodayRequest
from nacre.reporting.values import Count, Decisions, Source, TaskCost, Today, ToolSessions
from nacre.review.answers import list_candidates, waiting
from nacre.review.requests import CandidatesRequest
from nacre.sessions.answers import list_sessions
from nacre.sessions.requests import SessionsRequest
from nacre.spending.budget import today as day_of
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
    decisions = _waiting(home, period.project, asked.limit)  # this reads what was edited by hand
    learned, total = _learned(home, period, asked.limit)
    talked = SessionsRequest(
        filter=SessionFilter(project=period.project, since=period.since, until=period.until), limit=asked.limit
    )
    return Today(
        period.first, period.last, period.project, tuple(learned), total,
        tuple(Source(*row) for row in home.activity.sources(period)),
        tuple(Count(*row) for row in home.activity.operations(period)),
        tuple(home.journal.operations(
            project=period.project, since=period.since, until=period.until, limit=asked.limit
        )),
        _by_tool(home.activity.sessions(period)), list_sessions(home, talked).lines,
        decisions, _costs(home), tuple(problems(home)),
    )  # fmt: skip


def _learned(home: Home, period: Period, limit: int) -> tuple[list[Memory], int]:
    wanted = Filter(
        (period.project,) if period.project else (), strict=True, since=period.since, until=period.until
    )  # fmt: skip
    rows, total = home.selection.list_memories(wanted, limit=limit, offset=0, today=home.now().date())
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found], total


def _by_tool(rows: Sequence[Row]) -> tuple[ToolSessions, ...]:
    sessions: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for _, tool, began, said in rows:
        sessions[tool] += began
        turns[tool] += said
    return tuple(ToolSessions(tool, sessions[tool], count) for tool, count in turns.most_common())


def _waiting(home: Home, project: str | None, limit: int) -> Decisions:
    found = waiting(home)
    candidates = list_candidates(home, CandidatesRequest(project=project, limit=max(1, limit)))
    conflicts = [one for one in found.conflicts if project in (None, one.newer.project)]
    reviews = [one for one in found.reviews if project in (None, one.memory.project)]
    reasons = Counter(one.entry.reason.value for one in reviews)
    return Decisions(
        candidates.total, len(conflicts), tuple(Count(*one) for one in reasons.most_common()),
        candidates.candidates[:limit], tuple(conflicts[:limit]), tuple(reviews[:limit]),
    )  # fmt: skip


def _costs(home: Home) -> tuple[TaskCost, ...]:
    """Of today and of the month that it is in, the dearest first."""
    day = day_of(home)
    rows = home.activity.calls(day.replace(day=1), day)
    found = {}
    for task in dict.fromkeys(row[1] for row in rows):
        month, now = ([row for row in rows if row[1] == task and row[0] >= since] for since in ("", day.isoformat()))
        found[task] = TaskCost(
            task, sum(row[3] for row in now), sum(row[3] for row in month), sum(row[2] for row in now),
            sum(row[2] for row in month),
        )  # fmt: skip
    return tuple(sorted(found.values(), key=lambda one: (-one.month, -one.tokens_month, one.task)))
