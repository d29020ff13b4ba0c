"""Dates as people say them, on the command line."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import click

from nacre.errors import QueryInvalid
from nacre.platform import ids
from nacre.platform.days import day_of
from nacre.text import time_expressions
from nacre.values.memory import Validity


class Moment(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A date as people say it."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:  # noqa: ARG002
        if isinstance(value, datetime):
            return value
        try:
            return time_expressions.parse_moment(str(value), ids.utc_now())
        except (OverflowError, ValueError) as error:
            raise QueryInvalid(f"{value!r} is out of the calendar", hint="write 2026-11-20, 3d, 2w or march") from error


class Day(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A day to come, as 2026-12-31; ``""`` stands for none."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date | str:
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(str(value)) if value else ""
        except ValueError:
            self.fail(f"{value!r} is no day; write 2026-12-31", param, ctx)


class SaidDay(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A day as people say it: 2026-11-20, 3d, yesterday."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        if isinstance(value, date):
            return value
        return day_of(MOMENT.convert(value, param, ctx))


class Period(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A time from one day to another, as 2026-01-01..2026-06-30; either may be missing, ``""`` is always."""

    name = "from..to"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Validity:
        if isinstance(value, Validity):
            return value
        since, dots, until = str(value).partition("..")
        try:
            found = Validity(*(date.fromisoformat(day.strip()) if day.strip() else None for day in (since, until)))
        except ValueError:
            self.fail(f"{value!r} is no period; write 2026-01-01..2026-06-30, 2026-01-01.. or ..2026-06-30", param, ctx)
        if since and not dots:
            self.fail(f"{value!r} is one day; write {value}.. or ..{value}", param, ctx)
        if found.since and found.until and found.since > found.until:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return found


MOMENT = Moment()
SAID_DAY = SaidDay()
DAY = Day()
PERIOD = Period()
