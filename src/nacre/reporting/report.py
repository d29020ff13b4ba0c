"""A page of pictures about a period, as one HTML file."""

from __future__ import annotations

from calendar import monthrange
from datetime import date

from nacre.errors import InvalidInput
from nacre.graph.map import graph_map
from nacre.graph.requests import MapRequest
from nacre.home.home import Home
from nacre.reporting.activity import activity
from nacre.reporting.page import page
from nacre.reporting.requests import ActivityRequest, ReportRequest
from nacre.reporting.values import Report
from nacre.spending.budget import today

_NODES = 120


def report(home: Home, asked: ReportRequest) -> Report:
    """The pictures of a year that ends today, or of a month. Raises InvalidInput for a month that has not begun."""
    since, until = month_of(asked.month, today(home)) if asked.month else (None, None)
    found = activity(home, ActivityRequest(since=since, until=until, project=asked.project))
    drawn = graph_map(
        home, MapRequest(project=asked.project, alike=True, as_of=until if until != today(home) else None, limit=_NODES)
    )
    return Report(found.since, found.until, asked.project, page(found, drawn, home.now()))


def month_of(month: str, today: date) -> tuple[date, date]:
    """The first and the last day of a month as 2026-11; of the present one, today. Raises InvalidInput."""
    year, number = (int(part) for part in month.split("-"))
    if not (date.min.year <= year <= date.max.year) or date(year, number, 1) > today:
        raise InvalidInput(f"{month} has not begun", hint=f"the present month is {today:%Y-%m}")
    return date(year, number, 1), min(today, date(year, number, monthrange(year, number)[1]))
