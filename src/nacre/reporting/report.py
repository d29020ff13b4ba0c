"""A page of pictures about a period, as one HTML file."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta

from nacre.errors import InvalidInput
from nacre.graph.map import graph_map
from nacre.graph.requests import MapRequest
from nacre.home.home import Home
from nacre.reporting.activity import activity
from nacre.reporting.page import page
from nacre.reporting.requests import ActivityRequest, ReportRequest
from nacre.reporting.values import Activity, Report
from nacre.spending.budget import today

_NODES = 5_000
_SHORTEST = timedelta(days=27)


def report(home: Home, asked: ReportRequest) -> Report:
    """The pictures of a year that ends today, or of a month. Raises InvalidInput for a month that has not begun."""
    since, until = month_of(asked.month, today(home)) if asked.month else (None, None)
    found = activity(home, ActivityRequest(since=since, until=until, project=asked.project))
    if (begun := _beginning(found)) > found.since and not asked.month:
        found = activity(home, ActivityRequest(since=begun, project=asked.project))
    drawn = graph_map(
        home, MapRequest(project=asked.project, alike=True, as_of=until if until != today(home) else None, limit=_NODES)
    )
    return Report(found, page(found, drawn, home.now()))


def _beginning(found: Activity) -> date:
    """Where there is anything first, four weeks before the end at least: a year that is nearly empty says little."""
    series = (*found.turns, *found.stored)
    days = (day for at, day in enumerate(found.steps) if any(one.values[at] for one in series))
    return min(next(days, found.since), found.until - _SHORTEST)


def month_of(month: str, today: date) -> tuple[date, date]:
    """The first and the last day of a month as 2026-11; of the present one, today. Raises InvalidInput."""
    try:
        first = date.fromisoformat(f"{month}-01")
    except ValueError as error:
        raise InvalidInput(f"{month!r} is no month", hint=f"write it as {today:%Y-%m}") from error
    if first > today:
        raise InvalidInput(f"{month} has not begun", hint=f"the present month is {today:%Y-%m}")
    return first, min(today, first.replace(day=monthrange(first.year, first.month)[1]))
