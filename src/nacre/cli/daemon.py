"""Answers of the daemon, where one is up: as this process would give them, without what that has to load first."""

from __future__ import annotations

from typing import Any

import msgspec

from nacre.cli.run import Run
from nacre.link.client import Away, Refused, ask_whole
from nacre.operation import Operation
from nacre.platform import json_values

_SECONDS = 1.0
"""A daemon that takes longer hangs, or is slower than this process."""


class _Notes(msgspec.Struct, frozen=True):
    warnings: list[str] = []
    problems: list[str] = []


def ask_daemon(run: Run, operation: Operation, request: object) -> Any:
    """What the daemon answers to an operation; ``None`` where this process has to do it itself.

    So it is where no daemon runs, where it does not answer in time, where it goes by other settings, and where it
    fails: then whoever asks meets the error, if there is one, in full. One that did not answer is not asked again.
    """
    if run.by_itself:
        return None
    settings = run.settings
    try:
        answer = ask_whole(
            str(settings.home), operation.name, json_values.to_plain(request), seconds=_SECONDS,
            settings=settings.mark, notes=True,
        )  # fmt: skip
        found = json_values.from_plain(answer.get("result"), operation.result)
        notes = json_values.convert(answer.get("notes", {}), _Notes)
    except Away:
        run.by_itself = True
        return None
    except (Refused, msgspec.ValidationError):
        return None
    run.warnings += notes.warnings
    run.problems += notes.problems
    return found
