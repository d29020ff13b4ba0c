"""Calls of operations from the command line, in this process or the daemon, and parameter types for dates."""

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
from nacre.home import location, views
from nacre.operations import operation_of
from nacre.serve import catalogue
from nacre.values.memory import Validity

Result = TypeVar("Result")


def ask(run: Run, result: type[Result], operation: str, /, **fields: Any) -> Result:
    """Run an operation with these request fields, in the daemon if possible, else in this process. Return its result.

    The operation is given by name, so that its module is not loaded if the daemon answers. Raises InvalidInputError
    if a field is out of bounds, and the operation's errors.
    """
    answer = ask_daemon(run, operation, fields, result)
    if answer is None:
        entry = catalogue.CATALOGUE[operation]
        answer = entry.run(run.home, entry.make(fields))
    return cast("Result", answer)


def perform(run: Run, function: Callable[..., Result], /, **fields: Any) -> Result:
    """Run an operation in this process with these request fields, and return its result.

    On a terminal, progress is shown. Raises InvalidInputError if a field is out of bounds, and the
    operation's errors.
    """
    entry = operation_of(function)
    opened = run.home if entry.needs_home else run.settings
    goes_on = entry.takes_long and entry.writes and entry.needs_home
    with resumable(run) if goes_on else nullcontext(), output.shown(run) as notify:
        return cast("Result", entry.run(opened, entry.make(fields), notify))


@contextmanager
def resumable(run: Run) -> Iterator[None]:
    """Mark the run as resumable if the user interrupts the block. nacre then says how to resume the command."""
    try:
        yield
    except KeyboardInterrupt:
        run.is_resumable = True
        raise


def place_of(run: Run, name: str | None) -> views.Place:
    """Return the project for a name, an alias or ``.`` (current folder). See the operation ``place``."""
    with suppress(FileNotFoundError):  # the folder was deleted
        return ask(run, views.Place, "place", name=name, folder=os.getcwd())
    return ask(run, views.Place, "place", name=name)


def is_empty(run: Run) -> bool:
    """Return True if the home contains nothing to recall."""
    return not ask(run, views.Listing, "list", limit=0).total and location.is_empty(run.home)


# ----------------------------------------------------------------------------
# Answers from the daemon. They equal the answers of this process, but the home is not loaded.


_SECONDS = 1.0
"""Time in seconds to wait for the daemon. A daemon that takes longer hangs, or is slower than this process."""


class _Notes(msgspec.Struct, frozen=True):
    warnings: list[str] = []
    problems: list[str] = []


def ask_daemon(run: Run, operation: str, request: object, result: Any) -> Any:
    """Return the daemon's result of an operation, or ``None`` if this process must run the operation.

    The result is ``None`` if the daemon does not run, has different settings, does not answer in time, or fails. A
    daemon that did not answer is not asked again.
    """
    if run.by_itself:
        return None
    settings = run.settings
    try:
        answer = link.ask_whole(
            str(settings.home),
            operation,
            json_values.to_plain(request),
            seconds=_SECONDS,
            settings=settings.mark,
            notes=True,
        )
        found = json_values.from_plain(answer.get("result"), result)
        notes = json_values.convert(answer.get("notes", {}), _Notes)
    except link.DaemonAwayError:
        run.by_itself = True
        return None
    except (link.DaemonRefusedError, msgspec.ValidationError):
        return None
    run.warnings += notes.warnings
    run.problems += notes.problems
    return found


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

SAID_DAY = Parsed("day", lambda value: times.day_of(_moment(value)))
"""A day, absolute or relative: 2026-11-20, 3d, yesterday."""

DAY = Parsed("day", _day)
"""A future day, such as 2026-12-31, or ``""`` for no day."""

PERIOD = Parsed("from..to", _period)
"""A period, such as 2026-01-01..2026-06-30. Either day can be missing. ``""`` means always."""
