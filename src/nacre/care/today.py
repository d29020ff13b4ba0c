"""Reports of a day or period, and series of numbers for charts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import accumulate
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.care.health import problems
from nacre.errors import InvalidInputError
from nacre.home.home import Home
from nacre.home.spending import fold_notes
from nacre.home.views import SessionLine
from nacre.memories.edit import catch_up
from nacre.memories.store import fold_usage
from nacre.operations import operation
from nacre.review.queue import list_items
from nacre.sessions.find import SessionsRequest
from nacre.sessions.search import list_sessions
from nacre.store.schema import Row
from nacre.store.sessions import Period
from nacre.values.fields import OnlyProject
from nacre.values.memory import Kind, Memory, Operation, SessionFilter
from nacre.values.models import UNANSWERED
from nacre.values.recall import Filter
from nacre.values.reports import Check

Until = Annotated[date | None, bounds("The last day; default: today.")]


# -- Results ---------------------------------------------------------------------------------------


@frozen
class Source:
    """The memories from one speaker and tool.

    ``tool``: ``None`` for manual, document and imported memories.
    """

    speaker: str
    tool: str | None
    memories: int


@frozen
class ToolSessions:
    """The numbers of new sessions and new turns of one tool."""

    tool: str
    sessions: int
    turns: int


@frozen
class Today:
    """The activity in a period, and the pending items.

    ``learned``: latest new memories. ``learned_total``: number of new memories. ``operations``,
    ``sessions``: latest operations and sessions. ``tools``: number of sessions for each tool.
    ``conflicts``, ``doubts``, ``candidates``: numbers of pending items. ``cost``, ``cost_month``:
    model costs of the home for today and this month, in millionths of a US dollar. ``problems``:
    failed checks.
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
class Series:
    """A named series with one number for each step of an :class:`Activity`."""

    name: str
    values: tuple[int, ...]


@frozen
class CalendarDay:
    """The numbers of new sessions and new turns on one day."""

    day: date
    sessions: int
    turns: int


@frozen
class Age:
    """The memories in an age range.

    A memory's age is the number of days since someone last stated it. ``least``: minimum age.
    ``most``: minimum age of the next range, or ``None``. ``stale``: number of memories that might
    be outdated according to the last check.
    """

    least: int
    most: int | None
    memories: int
    stale: int


@frozen
class Activity:
    """Numbers for charts of a period.

    ``step``: ``day``, ``week`` (from Monday) or ``month``. ``steps``: first day of each step.
    ``sessions``, ``turns``: numbers of new sessions and of new turns for each tool. ``stored``:
    number of new memories for each kind. ``held``: number of all memories for each kind at the end
    of each step. ``recalls``: number of recalls, counting only the last hundred of each memory.
    ``questions``: numbers of ``answered`` and ``unanswered`` questions that still have traces.
    ``tokens``, ``cost``: tokens, and costs in millionths of a US dollar, for each task in the whole
    home. ``calendar``: days with sessions. ``ages``: current ages of memories. ``never``,
    ``seldom``, ``often``: numbers of memories with no recalls, up to five recalls, and more
    recalls. A single project has no ``questions`` or ``cost``.
    """

    since: date
    until: date
    project: str | None
    step: str
    steps: tuple[date, ...]
    sessions: tuple[Series, ...]
    turns: tuple[Series, ...]
    stored: tuple[Series, ...]
    held: tuple[Series, ...]
    recalls: tuple[int, ...]
    questions: tuple[Series, ...]
    tokens: tuple[Series, ...]
    cost: tuple[Series, ...]
    calendar: tuple[CalendarDay, ...]
    ages: tuple[Age, ...]
    never: int
    seldom: int
    often: int


# -- Series for charts -----------------------------------------------------------------------------


_DEFAULT_SPAN = timedelta(days=364)
"""Default length of a period before its last day: 52 whole weeks."""

_MAX_DAYS = 92
_MAX_WEEKS = 106
"""Maximum number of steps. Longer periods use weeks, and then months."""

_AGE_DAYS = (7, 30, 90, 180, 365)
_FIRST_DAY = date(1970, 1, 1)
_KINDS = tuple(kind.value for kind in Kind)

_Counts = Iterable[tuple[str, str, int]]
"""Rows of (day, name, count)."""


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
    """Return the activity of a period. Raises InvalidInputError if it ends before it begins."""
    catch_up(home)
    fold_usage(home)
    fold_notes(home)
    period = period_of(home, since, until, project, _DEFAULT_SPAN)
    step, steps = _steps(period)
    store = home.activity
    talked, remembered = store.sessions(period), store.memories(period.last, period.project)
    calls = [] if period.project else store.calls(period.first, period.last)
    never, seldom, often = store.use(period.project)
    return Activity(
        period.first,
        period.last,
        period.project,
        step,
        steps,
        sessions=_by_name(steps, ((day, tool, sessions) for day, tool, sessions, _ in talked)),
        turns=_by_name(steps, ((day, tool, turns) for day, tool, _, turns in talked)),
        stored=_by_name(steps, _count_stored(period, remembered), _KINDS),
        held=_totals(steps, remembered),
        recalls=_added_up(steps, store.recalls(period)),
        questions=() if period.project else _questions(home, period, steps),
        tokens=_by_name(steps, ((day, task, tokens) for day, task, tokens, _ in calls)),
        cost=_by_name(steps, ((day, task, cost) for day, task, _, cost in calls)),
        calendar=_calendar(talked),
        ages=_ages(home, period.project),
        never=never,
        seldom=seldom,
        often=often,
    )


def period_of(
    home: Home, since: date | None, until: date | None, project: str | None, span: timedelta
) -> Period:
    """Return the requested period. The default period has length ``span`` and ends today. Raises InvalidInputError."""
    last = until or home.today()
    first = max(_FIRST_DAY, since or last - span)
    if first > last:
        raise InvalidInputError(
            f"{first} is after {last}", hint="give the first day before the last"
        )
    return Period(first, last, project)


def _steps(period: Period) -> tuple[str, tuple[date, ...]]:
    days = (period.last - period.first).days + 1
    if days <= _MAX_DAYS:
        return "day", tuple(period.first + timedelta(days=at) for at in range(days))
    monday = period.first - timedelta(days=period.first.weekday())
    weeks = tuple(
        monday + timedelta(weeks=at) for at in range(((period.last - monday).days // 7) + 1)
    )
    if len(weeks) <= _MAX_WEEKS:
        return "week", weeks
    first, last = (day.year * 12 + day.month - 1 for day in (period.first, period.last))
    return "month", tuple(date(month // 12, month % 12 + 1, 1) for month in range(first, last + 1))


def _count_stored(period: Period, remembered: Sequence[Row]) -> _Counts:
    first = period.first.isoformat()
    return (
        (day, kind, count) for day, kind, change, count in remembered if change > 0 and day >= first
    )


def _totals(steps: Sequence[date], remembered: Sequence[Row]) -> tuple[Series, ...]:
    first = steps[0].isoformat()
    changes = ((max(day, first), kind, change * count) for day, kind, change, count in remembered)
    added = _by_name(steps, changes, _KINDS)
    return tuple(Series(series.name, tuple(accumulate(series.values))) for series in added)


def _questions(home: Home, period: Period, steps: Sequence[date]) -> tuple[Series, ...]:
    rows = home.activity.questions(period, UNANSWERED)
    return _by_name(
        steps,
        (
            (day, "answered" if is_answered else "unanswered", count)
            for day, is_answered, count in rows
        ),
    )


def _by_name(
    steps: Sequence[date], counts: _Counts, order: Sequence[str] = ()
) -> tuple[Series, ...]:
    """Return a series for each name, in the given order or by decreasing sum."""
    rows: dict[str, list[tuple[str, int]]] = {}
    for day, name, count in counts:
        rows.setdefault(name, []).append((day, count))
    series = [Series(name, _added_up(steps, rows[name])) for name in sorted(rows)]
    return tuple(
        sorted(series, key=lambda item: order.index(item.name) if order else -sum(item.values))
    )


def _added_up(steps: Sequence[date], counts: Iterable[tuple[str, int]]) -> tuple[int, ...]:
    values = [0] * len(steps)
    for day, count in counts:
        values[max(0, bisect_right(steps, date.fromisoformat(day)) - 1)] += count
    return tuple(values)


def _calendar(talked: Sequence[Row]) -> tuple[CalendarDay, ...]:
    days: dict[str, tuple[int, int]] = {}
    for day, _, sessions, turns in talked:
        before = days.get(day, (0, 0))
        days[day] = (before[0] + sessions, before[1] + turns)
    return tuple(CalendarDay(date.fromisoformat(day), *counts) for day, counts in days.items())


def _ages(home: Home, project: str | None) -> tuple[Age, ...]:
    rows = home.activity.ages(home.now(), project)
    limits = [(0, _AGE_DAYS[0]), *zip(_AGE_DAYS, (*_AGE_DAYS[1:], None), strict=True)]
    groups = [
        [row for row in rows if least <= max(0, row[0]) and (most is None or row[0] < most)]
        for least, most in limits
    ]
    return tuple(
        Age(least, most, sum(row[1] for row in group), sum(row[2] for row in group))
        for (least, most), group in zip(limits, groups, strict=True)
    )


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
    waiting = list_items(home, project=period.project, limit=1)
    learned, total = _learned_memories(home, period, limit)
    sessions_request = SessionsRequest(
        filter=SessionFilter(project=period.project, since=period.since, until=period.until),
        limit=limit,
    )
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
        _by_tool(home.activity.sessions(period)),
        list_sessions(home, sessions_request).lines,
        waiting.conflicts,
        waiting.doubts,
        min(waiting.candidates, home.reviews.waiting(home.now_ms())[0]),
        sum(cost for called, _, _, cost in calls if called == day.isoformat()),
        sum(row[3] for row in calls),
        tuple(problems(home)),
    )


def _learned_memories(home: Home, period: Period, limit: int) -> tuple[list[Memory], int]:
    selection = Filter(
        (period.project,) if period.project else (),
        strict=True,
        since=period.since,
        until=period.until,
    )
    rows, total = home.selection.list_memories(selection, limit=limit, offset=0, today=home.today())
    memories = home.memories.by_rows(rows)
    return [memories[row] for row in rows if row in memories], total


def _by_tool(rows: Sequence[Row]) -> tuple[ToolSessions, ...]:
    sessions: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for _, tool, began, turn_count in rows:
        sessions[tool] += began
        turns[tool] += turn_count
    return tuple(ToolSessions(tool, sessions[tool], count) for tool, count in turns.most_common())
