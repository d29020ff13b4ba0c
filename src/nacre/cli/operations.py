"""The door of the command line to operations: one is loaded with its first use, so that help and options need none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, cast

from nacre.cli.run import Run
from nacre.platform.lazy import load

if TYPE_CHECKING:
    from nacre.operation import Operation
    from nacre.views import Place


def operation_called(name: str) -> Operation:
    """An operation of the catalogue."""
    found: Operation = load("nacre.catalogue:CATALOGUE")[name]
    return found


def ask(run: Run, operation: str, /, **fields: Any) -> Any:
    """What an operation answers to a request of these fields: in the daemon where one is up, else in this process.

    Raises InvalidInput where a field is out of bounds, and what the operation raises.
    """
    entry = operation_called(operation)
    request = entry.make(fields)
    found = load("nacre.cli.daemon:ask_daemon")(run, entry, request)
    return entry.run(run.home, request) if found is None else found


def perform(run: Run, operation: str, /, on_progress: Callable[[Any], object] | None = None, **fields: Any) -> Any:
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
    return not ask(run, "list", limit=0).total and bool(load("nacre.home.lookup:is_empty")(run.home))
