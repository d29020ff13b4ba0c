"""Requests to look back."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from typing import Annotated

from msgspec import Meta

from nacre.base.request import Request
from nacre.care.health import problems
from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.home.spending import fold_notes
from nacre.home.views import SessionLine
from nacre.memories.edit import catch_up
from nacre.memories.store import fold_usage
from nacre.review.contradictions import ReviewRequest
from nacre.review.queue import listed
from nacre.sessions.find import SessionsRequest
from nacre.sessions.search import list_sessions_answers
from nacre.store.schema import Row
from nacre.store.sessions import Period
from nacre.values.memory import Kind, Memory, Operation, SessionFilter
from nacre.values.models import NOT_SURE, NOTHING_FOUND, TraceKind
from nacre.values.recall import Filter
from nacre.values.reports import Check

Project = Annotated[str | None, Meta(description="Only what belongs to this project.")]


class TodayRequest(Request, frozen=True, kw_only=True):
    """What a day, or several, brought, and what waits now."""

    since: Annotated[
        date | None, Meta(description="The first day; the last one where left out.")
    ] = None
    until: Annotated[date | None, Meta(description="The last day; today where left out.")] = None
    project: Project = None
    limit: Annotated[
        int, Meta(description="Memories, sessions and what waits: of each so many.", ge=0, le=100)
    ] = 5


class ActivityRequest(Request, frozen=True, kw_only=True):
    """Numbers for pictures, by day, week or month."""

    since: Annotated[
        date | None, Meta(description="The first day; a year before the last one where left out.")
    ] = None
    until: Annotated[date | None, Meta(description="The last day; today where left out.")] = None
    project: Project = None


# ----------------------------------------------------------------------------
# What looking back finds.


@dataclass(frozen=True, slots=True)
class Source:
    """Memories by who said them, and with which tool; no tool: by hand, from documents, or imported."""

    speaker: str
    tool: str | None
    memories: int


@dataclass(frozen=True, slots=True)
class ToolSessions:
    """Sessions that began, and turns, with one tool."""

    tool: str
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True)
class Today:
    """What was learned, done and talked about from the first day to the last (both are meant), and what waits now.

    ``learned`` are the latest memories, of ``learned_total``; ``operations`` are the latest ones; ``sessions`` are the
    latest of those that ``tools`` counts; ``conflicts``, ``doubts`` and ``candidates`` wait. ``cost`` is that of models
    today, ``cost_month`` this month, of the whole home, in millionths of a US dollar. ``problems`` are found by checks.
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


@dataclass(frozen=True, slots=True)
class Series:
    """One number for each step of an :class:`Activity`."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day with sessions: how many began, and turns."""

    day: date
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True)
class Age:
    """Memories that were said last so many days ago: from ``least`` days to less than ``most`` (``None``: no end).

    ``stale`` of them may be out of date, as was found last.
    """

    least: int
    most: int | None
    memories: int
    stale: int


@dataclass(frozen=True, slots=True)
class Activity:
    """Numbers for pictures, from the first day to the last, both of them meant.

    ``step`` is ``day``, ``week`` (from Monday) or ``month``, ``steps`` their first days. By tool: ``sessions`` that
    began, ``turns``. By kind: memories ``stored``, and how many there were at the end of each step (``held``).
    ``recalls`` counts the last hundred of each memory, ``questions`` what recall was asked: ``answered`` and
    ``unanswered``, as far as traces are kept. By task: ``tokens`` and ``cost`` in millionths of a US dollar, of the
    whole home; with a project there are no questions and no cost. ``calendar`` has the days with sessions. As it is
    now: ``ages`` of memories, and how many were recalled ``never``, ``seldom`` (up to five times) and ``often``.
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


# ----------------------------------------------------------------------------
# Series of numbers for pictures: what happened when.


_YEAR = timedelta(days=364)
"""With the last day 52 whole weeks."""

_MOST_DAYS = 92
_MOST_WEEKS = 106
"""So many steps are drawn; more become weeks, and these months."""

_AGES = (7, 30, 90, 180, 365)
_FIRST_DAY = date(1970, 1, 1)
_KINDS = tuple(kind.value for kind in Kind)
_UNANSWERED = (NOTHING_FOUND, NOT_SURE)

_Counts = Iterable[tuple[str, str, int]]
"""(day, name, how many)."""


def activity(home: Home, asked: ActivityRequest) -> Activity:
    """What happened in a period. Raises InvalidInput where it ends before it begins."""
    catch_up(home)
    fold_usage(home)
    fold_notes(home)
    period = period_of(home, asked, _YEAR)
    step, steps = _steps(period)
    found = home.activity
    talked, remembered = found.sessions(period), found.memories(period.last, period.project)
    calls = [] if period.project else found.calls(period.first, period.last)
    never, seldom, often = found.use(period.project)
    return Activity(
        period.first,
        period.last,
        period.project,
        step,
        steps,
        sessions=_by_name(steps, ((day, tool, sessions) for day, tool, sessions, _ in talked)),
        turns=_by_name(steps, ((day, tool, turns) for day, tool, _, turns in talked)),
        stored=_by_name(steps, _stored(period, remembered), _KINDS),
        held=_held(steps, remembered),
        recalls=_added_up(steps, found.recalls(period)),
        questions=() if period.project else _questions(home, period, steps),
        tokens=_by_name(steps, ((day, task, tokens) for day, task, tokens, _ in calls)),
        cost=_by_name(steps, ((day, task, cost) for day, task, _, cost in calls)),
        calendar=_calendar(talked),
        ages=_ages(home, period.project),
        never=never,
        seldom=seldom,
        often=often,
    )


def period_of(home: Home, asked: ActivityRequest | TodayRequest, span: timedelta) -> Period:
    """A period that ends today, and lasts so long, where nothing else is asked for. Raises InvalidInput."""
    last = asked.until or home.today()
    first = max(_FIRST_DAY, asked.since or last - span)
    if first > last:
        raise InvalidInput(
            f"{first} is after {last}", hint="name the first day and then the last one"
        )
    return Period(first, last, asked.project)


def _steps(period: Period) -> tuple[str, tuple[date, ...]]:
    days = (period.last - period.first).days + 1
    if days <= _MOST_DAYS:
        return "day", tuple(period.first + timedelta(days=at) for at in range(days))
    monday = period.first - timedelta(days=period.first.weekday())
    weeks = tuple(
        monday + timedelta(weeks=at) for at in range(((period.last - monday).days // 7) + 1)
    )
    if len(weeks) <= _MOST_WEEKS:
        return "week", weeks
    first, last = (one.year * 12 + one.month - 1 for one in (period.first, period.last))
    return "month", tuple(date(month // 12, month % 12 + 1, 1) for month in range(first, last + 1))


def _stored(period: Period, remembered: Sequence[Row]) -> _Counts:
    first = period.first.isoformat()
    return (
        (day, kind, count) for day, kind, change, count in remembered if change > 0 and day >= first
    )


def _held(steps: Sequence[date], remembered: Sequence[Row]) -> tuple[Series, ...]:
    """What there is at the end of each step: what was there before its beginning counts in the first one."""
    first = steps[0].isoformat()
    changes = ((max(day, first), kind, change * count) for day, kind, change, count in remembered)
    added = _by_name(steps, changes, _KINDS)
    return tuple(Series(one.name, tuple(accumulate(one.values))) for one in added)


def _questions(home: Home, period: Period, steps: Sequence[date]) -> tuple[Series, ...]:
    rows = home.activity.questions(period, TraceKind.CASE.value, _UNANSWERED)
    return _by_name(
        steps,
        ((day, "answered" if answered else "unanswered", count) for day, answered, count in rows),
    )


def _by_name(
    steps: Sequence[date], counts: _Counts, order: Sequence[str] = ()
) -> tuple[Series, ...]:
    """A series for each name: in an order that is given, else those with the most first."""
    rows: dict[str, list[tuple[str, int]]] = {}
    for day, name, count in counts:
        rows.setdefault(name, []).append((day, count))
    found = [Series(name, _added_up(steps, rows[name])) for name in sorted(rows)]
    return tuple(
        sorted(found, key=lambda one: order.index(one.name) if order else -sum(one.values))
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
    bounds = [(0, _AGES[0]), *zip(_AGES, (*_AGES[1:], None), strict=True)]
    groups = [
        [row for row in rows if least <= max(0, row[0]) and (most is None or row[0] < most)]
        for least, most in bounds
    ]
    return tuple(
        Age(least, most, sum(row[1] for row in group), sum(row[2] for row in group))
        for (least, most), group in zip(bounds, groups, strict=True)
    )


# ----------------------------------------------------------------------------
# What a day brought, and what waits now.


def today(home: Home, asked: TodayRequest) -> Today:
    """What a day, or several, brought, and what waits now. Raises InvalidInput where they end before they begin."""
    fold_notes(home)
    period = period_of(home, asked, timedelta())
    waiting = listed(
        home, ReviewRequest(project=period.project, limit=1)
    )  # this reads what was edited by hand
    learned, total = _learned(home, period, asked.limit)
    talked = SessionsRequest(
        filter=SessionFilter(project=period.project, since=period.since, until=period.until),
        limit=asked.limit,
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
                project=period.project, since=period.since, until=period.until, limit=asked.limit
            )
        ),
        _by_tool(home.activity.sessions(period)),
        list_sessions_answers(home, talked).lines,
        waiting.conflicts,
        waiting.doubts,
        waiting.candidates,
        sum(cost for called, _, _, cost in calls if called == day.isoformat()),
        sum(row[3] for row in calls),
        tuple(problems(home)),
    )


def _learned(home: Home, period: Period, limit: int) -> tuple[list[Memory], int]:
    wanted = Filter(
        (period.project,) if period.project else (),
        strict=True,
        since=period.since,
        until=period.until,
    )
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
