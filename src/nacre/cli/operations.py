"""Run operations in this process or the daemon, and parse dates of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import date, datetime
from typing import Any, TypeVar, cast

import click
import msgspec

from nacre.base import ids, link, times
from nacre.base import json as json_values
from nacre.cli import output
from nacre.cli.command import Parsed, Run
from nacre.errors import InvalidQueryError
from nacre.home import views
from nacre.operations import operation_of
from nacre.serve import catalogue
from nacre.values.memory import Validity

Result = TypeVar("Result")

_DAEMON_SECONDS = 1.0
"""Time in seconds to wait for the daemon, which hangs or saves no time if it takes longer."""


def ask(run: Run, result: type[Result], operation: str, /, **fields: Any) -> Result:
    """Run an operation in the daemon if possible, else in this process, and return its result.

    The operation is passed by name, so that its module is loaded only if the daemon does not
    answer. Raises InvalidInputError for out-of-bounds fields, and the operation's own errors.
    """
    if not run.by_itself:
        try:
            answer = link.ask_whole(
                run.settings.home,
                operation,
                json_values.to_plain(fields),
                seconds=_DAEMON_SECONDS,
                settings=run.settings.mark,
                notes=True,
            )
            value = json_values.convert(answer.get("result"), result)
            notes = answer.get("notes", {})
            run.warnings += notes.get("warnings", ())
            run.problems += notes.get("problems", ())
            return value
        except link.DaemonAwayError:
            run.by_itself = True
        except (link.DaemonRefusedError, msgspec.ValidationError):
            pass  # this process reports the error
    entry = catalogue.CATALOGUE[operation]
    return cast("Result", entry.run(run.home, entry.make(fields)))


def perform(run: Run, function: Callable[..., Result], /, **fields: Any) -> Result:
    """Run an operation in this process, with a progress bar on a terminal, and return its result.

    Raises InvalidInputError for out-of-bounds fields, and the operation's own errors.
    """
    entry = operation_of(function)
    opened = run.home if entry.needs_home else run.settings
    is_resumable = entry.takes_long and entry.writes and entry.needs_home
    with resumable(run) if is_resumable else nullcontext(), output.progress_bar(run) as notify:
        return cast("Result", entry.run(opened, entry.make(fields), notify))


@contextmanager
def resumable(run: Run) -> Iterator[None]:
    """Mark the command as resumable if the user interrupts the block."""
    try:
        yield
    except KeyboardInterrupt:
        run.is_resumable = True
        raise


def place_of(run: Run, name: str | None) -> views.Place:
    """Return the project with this name or alias or, for ``.``, of the current folder."""
    with suppress(FileNotFoundError):  # the folder was deleted
        return ask(run, views.Place, "place", name=name, folder=os.getcwd())
    return ask(run, views.Place, "place", name=name)


# ----------------------------------------------------------------------------
# Dates on the command line.


def _moment(value: str) -> datetime:
    try:
        return times.parse_moment(value, ids.utc_now())
    except (OverflowError, ValueError) as error:
        raise InvalidQueryError(
            f"{value!r} is out of range", hint="write 2026-11-20, 3d, 2w or march"
        ) from error


def _day(value: str) -> date | str:
    try:
        return date.fromisoformat(value) if value else ""
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a day; write 2026-12-31") from error


def _period(value: str) -> Validity:
    since, dots, until = value.partition("..")
    try:
        days = [date.fromisoformat(day.strip()) if day.strip() else None for day in (since, until)]
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not a period; write 2026-01-01..2026-06-30, 2026-01-01.. or ..2026-06-30"
        ) from error
    if since and not dots:
        raise click.BadParameter(f"{value!r} is a single day; write {value}.. or ..{value}")
    period = Validity(*days)
    if period.since and period.until and period.since > period.until:
        raise click.BadParameter(f"{value!r} ends before it starts")
    return period


MOMENT = Parsed("date", _moment)
"""A date, absolute or relative."""

PAST_DAY = Parsed("day", lambda value: times.day_of(_moment(value)))
"""A day, absolute or relative: 2026-11-20, 3d, yesterday."""

DAY = Parsed("day", _day)
"""A future day, such as 2026-12-31, or ``""`` for no day."""

PERIOD = Parsed("from..to", _period)
"""A period, such as 2026-01-01..2026-06-30 or ..2026-06-30. ``""`` means always."""
