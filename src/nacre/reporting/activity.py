"""Series of numbers for pictures: what happened when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import accumulate

from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.reporting.requests import ActivityRequest, TodayRequest
from nacre.reporting.values import Activity, Age, CalendarDay, Series
from nacre.spending.spool import fold_notes
from nacre.storage.activity import Period
from nacre.storage.database import Row
from nacre.values.memory import Kind
from nacre.values.trace import NOT_SURE, NOTHING_FOUND, TraceKind

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
        period.first, period.last, period.project, step, steps,
        sessions=_by_name(steps, ((day, tool, sessions) for day, tool, sessions, _ in talked)),
        turns=_by_name(steps, ((day, tool, turns) for day, tool, _, turns in talked)),
        stored=_by_name(steps, _stored(period, remembered), _KINDS), held=_held(steps, remembered),
        recalls=_added_up(steps, found.recalls(period)),
        questions=() if period.project else _questions(home, period, steps),
        tokens=_by_name(steps, ((day, task, tokens) for day, task, tokens, _ in calls)),
        cost=_by_name(steps, ((day, task, cost) for day, task, _, cost in calls)),
        calendar=_calendar(talked), ages=_ages(home, period.project), never=never, seldom=seldom, often=often,
    )  # fmt: skip


def period_of(home: Home, asked: ActivityRequest | TodayRequest, span: timedelta) -> Period:
    """A period that ends today, and lasts so long, where nothing else is asked for. Raises InvalidInput."""
    last = asked.until or home.today()
    first = max(_FIRST_DAY, asked.since or last - span)
    if first > last:
        raise InvalidInput(f"{first} is after {last}", hint="name the first day and then the last one")
    return Period(first, last, asked.project)


def _steps(period: Period) -> tuple[str, tuple[date, ...]]:
    days = (period.last - period.first).days + 1
    if days <= _MOST_DAYS:
        return "day", tuple(period.first + timedelta(days=at) for at in range(days))
    monday = period.first - timedelta(days=period.first.weekday())
    weeks = tuple(monday + timedelta(weeks=at) for at in range(((period.last - monday).days // 7) + 1))
    if len(weeks) <= _MOST_WEEKS:
        return "week", weeks
    first, last = (one.year * 12 + one.month - 1 for one in (period.first, period.last))
    return "month", tuple(date(month // 12, month % 12 + 1, 1) for month in range(first, last + 1))


def _stored(period: Period, remembered: Sequence[Row]) -> _Counts:
    first = period.first.isoformat()
    return ((day, kind, count) for day, kind, change, count in remembered if change > 0 and day >= first)


def _held(steps: Sequence[date], remembered: Sequence[Row]) -> tuple[Series, ...]:
    """What there is at the end of each step: what was there before its beginning counts in the first one."""
    first = steps[0].isoformat()
    changes = ((max(day, first), kind, change * count) for day, kind, change, count in remembered)
    added = _by_name(steps, changes, _KINDS)
    return tuple(Series(one.name, tuple(accumulate(one.values))) for one in added)


def _questions(home: Home, period: Period, steps: Sequence[date]) -> tuple[Series, ...]:
    rows = home.activity.questions(period, TraceKind.CASE.value, _UNANSWERED)
    return _by_name(steps, ((day, "answered" if answered else "unanswered", count) for day, answered, count in rows))


def _by_name(steps: Sequence[date], counts: _Counts, order: Sequence[str] = ()) -> tuple[Series, ...]:
    """A series for each name: in an order that is given, else those with the most first."""
    rows: dict[str, list[tuple[str, int]]] = {}
    for day, name, count in counts:
        rows.setdefault(name, []).append((day, count))
    found = [Series(name, _added_up(steps, rows[name])) for name in sorted(rows)]
    return tuple(sorted(found, key=lambda one: order.index(one.name) if order else -sum(one.values)))


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
        [row for row in rows if least <= max(0, row[0]) and (most is None or row[0] < most)] for least, most in bounds
    ]
    return tuple(
        Age(least, most, sum(row[1] for row in group), sum(row[2] for row in group))
        for (least, most), group in zip(bounds, groups, strict=True)
    )
