"""The door of the command line to operations: one is loaded with its first use, so that help and."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from nacre.base import ids, lazy, link, times
from nacre.base import json as json_values
from nacre.errors import QueryInvalid
from nacre.serve import operation
from nacre.values.memory import Validity

if TYPE_CHECKING:
    from nacre.home.views import Place
from nacre.cli.command import Run

# ----------------------------------------------------------------------------
# The door of the command line to operations: one is loaded with its first use, so that help and
# options need none.


def operation_called(name: str) -> operation.Operation:
    """An operation of the catalogue."""
    found: operation.Operation = lazy.load("nacre.serve.catalogue:CATALOGUE")[name]
    return found


def ask(run: Run, operation: str, /, **fields: Any) -> Any:
    """What an operation answers to a request of these fields: in the daemon where one is up, else in this process.

    Raises InvalidInput where a field is out of bounds, and what the operation raises.
    """
    entry = operation_called(operation)
    request = entry.make(fields)
    found = lazy.load("nacre.cli.operations:ask_daemon")(run, entry, request)
    return entry.run(run.home, request) if found is None else found


def perform(
    run: Run, operation: str, /, on_progress: Callable[[Any], object] | None = None, **fields: Any
) -> Any:
    """What an operation answers to a request of these fields, in this process.

    Raises InvalidInput where a field is out of bounds, and what the operation raises.
    """
    entry = operation_called(operation)
    opened = run.home if entry.needs == "home" else run.settings
    goes_on = entry.takes_long and entry.writes and entry.needs == "home"
    with resumable(run) if goes_on else nullcontext():
        return entry.run(opened, entry.make(fields), on_progress)


@contextmanager
def resumable(run: Run) -> Iterator[None]:
    """What is interrupted in this block goes on with the next call of the same command, and people are told so."""
    try:
        yield
    except KeyboardInterrupt:
        run.is_resumable = True
        raise


def place_of(run: Run, name: str | None) -> Place:
    """The project that a name, an alias or ``.`` for the folder nacre runs in means; see ``place`` of the catalogue."""
    with suppress(FileNotFoundError):  # the folder was deleted
        return cast("Place", ask(run, "place", name=name, folder=os.getcwd()))
    return cast("Place", ask(run, "place", name=name))


def is_empty(run: Run) -> bool:
    """Whether there is nothing to recall from yet; where there are memories, the daemon can tell."""
    return not ask(run, "list", limit=0).total and bool(
        lazy.load("nacre.home.location:is_empty")(run.home)
    )


# ----------------------------------------------------------------------------
# Answers of the daemon, where one is up: as this process would give them, without what that has to
# load first.


_SECONDS = 1.0
"""A daemon that takes longer hangs, or is slower than this process."""


class _Notes(msgspec.Struct, frozen=True):
    warnings: list[str] = []
    problems: list[str] = []


def ask_daemon(run: Run, operation: operation.Operation, request: object) -> Any:
    """What the daemon answers to an operation; ``None`` where this process has to do it itself.

    So it is where no daemon runs, where it does not answer in time, where it goes by other settings, and where it
    fails: then whoever asks meets the error, if there is one, in full. One that did not answer is not asked again.
    """
    if run.by_itself:
        return None
    settings = run.settings
    try:
        answer = link.ask_whole(
            str(settings.home),
            operation.name,
            json_values.to_plain(request),
            seconds=_SECONDS,
            settings=settings.mark,
            notes=True,
        )
        found = json_values.from_plain(answer.get("result"), operation.result)
        notes = json_values.convert(answer.get("notes", {}), _Notes)
    except link.Away:
        run.by_itself = True
        return None
    except (link.Refused, msgspec.ValidationError):
        return None
    run.warnings += notes.warnings
    run.problems += notes.problems
    return found


# ----------------------------------------------------------------------------
# Dates as people say them, on the command line.


class Moment(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A date as people say it."""

    name = "date"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return times.parse_moment(str(value), ids.utc_now())
        except (OverflowError, ValueError) as error:
            raise QueryInvalid(
                f"{value!r} is out of the calendar", hint="write 2026-11-20, 3d, 2w or march"
            ) from error


class Day(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A day to come, as 2026-12-31; ``""`` stands for none."""

    name = "day"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> date | str:
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
        return times.day_of(MOMENT.convert(value, param, ctx))


class Period(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A time from one day to another, as 2026-01-01..2026-06-30; either may be missing, ``""`` is always."""

    name = "from..to"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Validity:
        if isinstance(value, Validity):
            return value
        since, dots, until = str(value).partition("..")
        try:
            found = Validity(
                *(
                    date.fromisoformat(day.strip()) if day.strip() else None
                    for day in (since, until)
                )
            )
        except ValueError:
            self.fail(
                f"{value!r} is no period; write 2026-01-01..2026-06-30, 2026-01-01.. or ..2026-06-30",
                param,
                ctx,
            )
        if since and not dots:
            self.fail(f"{value!r} is one day; write {value}.. or ..{value}", param, ctx)
        if found.since and found.until and found.since > found.until:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return found


MOMENT = Moment()
SAID_DAY = SaidDay()
DAY = Day()
PERIOD = Period()
