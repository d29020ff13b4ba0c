"""Reports on the activity in a period, and on the days with sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.care.health import problems
from nacre.care.story import latest_memories
from nacre.errors import InvalidInputError
from nacre.home.home import Home
from nacre.home.spending import fold_notes
from nacre.home.views import SessionLine
from nacre.operations import operation
from nacre.review.queue import list_items
from nacre.sessions.find import SessionsRequest
from nacre.sessions.search import list_sessions
from nacre.store.schema import Row
from nacre.store.sessions import Period
from nacre.values.fields import OnlyProject
from nacre.values.memory import Memory, Operation, SessionFilter
from nacre.values.recall import Filter
from nacre.values.reports import Check

Until = Annotated[date | None, bounds("The last day; default: today.")]


# -- Results ---------------------------------------------------------------------------------------


@frozen
class Source:
    """The number of memories from one speaker and one tool.

    ``tool`` is ``None`` for memories that were added manually, imported or taken from documents.
    """

    speaker: str
    tool: str | None
    memories: int


@frozen
class ToolSessions:
    """The numbers of new sessions and turns from one tool."""

    tool: str
    sessions: int
    turns: int


@frozen
class Today:
    """The activity in a period, and the reviews that wait for the owner.

    ``learned``, ``operations``, ``sessions``: the latest of each. ``learned_total``: number of new
    memories. ``tools``: number of sessions per tool. ``conflicts``, ``doubts``, ``candidates``:
    numbers of pending reviews. ``cost``, ``cost_month``: the home's model costs today and this
    month, in millionths of a US dollar. ``problems``: failed checks.
    """

    since: date
    until: date
    project: str | None
    learned: tuple[Memory, ...]
    learned_total: int
    sources: tuple[Source, ...]
    operations: tuple[Operation, ...]
    tools: tuple[ToolSessions, ...]
    sessions: tuple[SessionLine, ...]
    conflicts: int
    doubts: int
    candidates: int
    cost: int
    cost_month: int
    problems: tuple[Check, ...]


@frozen
class CalendarDay:
    """The numbers of new sessions and turns on one day."""

    day: date
    sessions: int
    turns: int


@frozen
class Activity:
    """The days in a period that have sessions."""

    since: date
    until: date
    calendar: tuple[CalendarDay, ...]


# -- Days with sessions ----------------------------------------------------------------------------


_DEFAULT_SPAN = timedelta(days=364)
"""Default length of a period before its last day: 52 whole weeks."""

_FIRST_DAY = date(1970, 1, 1)


@operation("activity")
def activity(
    home: Home,
    *,
    since: Annotated[
        date | None, bounds("The first day; default: a year before the last day.")
    ] = None,
    until: Until = None,
    project: OnlyProject = None,
) -> Activity:
    """Return the days of a period with sessions. Raises InvalidInputError if it ends before it begins."""
    period = period_of(home, since, until, project, _DEFAULT_SPAN)
    days = _sum_by(0, home.activity.sessions(period))
    calendar = (CalendarDay(date.fromisoformat(day), *counts) for day, counts in days.items())
    return Activity(period.first, period.last, tuple(calendar))


def _sum_by(column: int, rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    # Each row has a day, a tool, and the numbers of sessions and turns.
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        sessions, turns = sums.get(row[column], (0, 0))
        sums[row[column]] = (sessions + row[2], turns + row[3])
    return sums


def period_of(
    home: Home, since: date | None, until: date | None, project: str | None, span: timedelta
) -> Period:
    """Return the requested period. By default, it ends today and has the length ``span``.

    Raises InvalidInputError if it would end before it begins.
    """
    last = until or home.today()
    first = max(_FIRST_DAY, since or last - span)
    if first > last:
        raise InvalidInputError(
            f"{first} is after {last}", hint="give the first day before the last"
        )
    return Period(first, last, project)


# -- Report of a day -------------------------------------------------------------------------------


@operation("today")
def today(
    home: Home,
    *,
    since: Annotated[date | None, bounds("The first day; default: the last day.")] = None,
    until: Until = None,
    project: OnlyProject = None,
    limit: Annotated[
        int,
        bounds(
            "Maximum number of memories, of sessions and of pending items.",
            ge=0,
            le=100,
        ),
    ] = 5,
) -> Today:
    """Return the new memories, operations and sessions of a period, and the number of pending items.

    Raises InvalidInputError if the period ends before it begins.
    """
    fold_notes(home)
    period = period_of(home, since, until, project, timedelta())
    # Also reads manual edits.
    pending = list_items(home, project=period.project, limit=1)
    projects = (period.project,) if period.project else ()
    selection = Filter(projects, strict=True, since=period.since, until=period.until)
    learned, total = latest_memories(home, selection, limit)
    sessions_request = SessionsRequest(
        filter=SessionFilter(project=period.project, since=period.since, until=period.until),
        limit=limit,
    )
    sums = _sum_by(1, home.activity.sessions(period))
    tools = [ToolSessions(tool, *counts) for tool, counts in sums.items()]
    day = home.today()
    calls = home.activity.calls(day.replace(day=1), day)
    return Today(
        period.first,
        period.last,
        period.project,
        tuple(learned),
        total,
        tuple(Source(*row) for row in home.activity.sources(period)),
        tuple(
            home.journal.operations(
                project=period.project, since=period.since, until=period.until, limit=limit
            )
        ),
        tuple(sorted(tools, key=lambda tool: -tool.turns)),
        list_sessions(home, sessions_request).lines,
        pending.conflicts,
        pending.doubts,
        pending.candidates,
        sum(cost for called, _, _, cost in calls if called == day.isoformat()),
        sum(row[3] for row in calls),
        tuple(problems(home)),
    )
