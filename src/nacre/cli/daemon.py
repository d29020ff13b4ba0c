"""Answers of the daemon, where one is up: as this process would give them, without what that has to load first."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from nacre.cli.run import Run
from nacre.link.client import Away, Refused, ask_whole
from nacre.platform import json_values

if TYPE_CHECKING:
    from nacre.views import Place

_SECONDS = 5.0

Result = TypeVar("Result")


class _Notes(msgspec.Struct, frozen=True):
    warnings: list[str] = []
    problems: list[str] = []


def ask_daemon(run: Run, operation: str, request: object, result: type[Result]) -> Result | None:
    """What the daemon answers to an operation of the catalogue; ``None`` where this process has to do it itself.

    So it is where no daemon runs, where it does not answer in time, where it goes by other settings, and where it
    fails: then whoever asks meets the error, if there is one, in full.
    """
    if run.by_itself:
        return None
    settings = run.settings
    try:
        answer = ask_whole(
            str(settings.home), operation, json_values.to_plain(request), seconds=_SECONDS, settings=settings.mark,
            notes=True,
        )  # fmt: skip
        found: Result = json_values.from_plain(answer.get("result"), result)
        notes = msgspec.convert(answer.get("notes", {}), _Notes)
    except (Away, Refused, msgspec.ValidationError):
        return None
    run.warnings += notes.warnings
    run.problems += notes.problems
    return found


def ask(run: Run, operation: str, request: object) -> Any:
    """What an operation of the catalogue answers to its request: in the daemon where one is up, else in this process.

    Raises what the operation raises.
    """
    from nacre.catalogue import CATALOGUE  # msgspec and the values: commands that ask nothing go without

    entry = CATALOGUE[operation]
    found = ask_daemon(run, operation, request, entry.result)
    return entry.run(run.home, request) if found is None else found


def place_of(run: Run, name: str | None) -> Place:
    """The project that a name, an alias or ``.`` for the folder nacre runs in means; see ``place`` of the catalogue."""
    from nacre.home.requests import PlaceRequest

    with suppress(FileNotFoundError):  # the folder was deleted
        return cast("Place", ask(run, "place", PlaceRequest(name=name, folder=str(Path.cwd()))))
    return cast("Place", ask(run, "place", PlaceRequest(name=name)))


def is_empty(run: Run) -> bool:
    """Whether there is nothing to recall from yet; where there are memories, the daemon can tell."""
    from nacre.memories.requests import ListRequest

    if ask(run, "list", ListRequest(limit=0)).total:
        return False
    from nacre.home.lookup import is_empty as is_home_empty

    return is_home_empty(run.home)
