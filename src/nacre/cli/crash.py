"""What a person and a developer get to see of an error that nobody foresaw."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import NacreError, StoreUnusable
from nacre.redact.redactor import Redactor
from nacre.storage.database import UNREADABLE
from nacre.storage.sqlite.database import damaged
from nacre.text.passages import shorten
from nacre.watching.log import Log

if TYPE_CHECKING:
    from nacre.cli.run import Run

_MESSAGE_CHARACTERS = 200
_STORAGE = str(Path("nacre", "storage"))


def describe(run: Run, error: Exception) -> str:
    """The error in one line, without secrets."""
    said = shorten(redactor_of(run).clean(str(error)), _MESSAGE_CHARACTERS)
    return f"something nacre did not expect: {type(error).__name__}{f': {said}' if said else ''}"


def write_log(run: Run, error: Exception) -> Path | None:
    """Add the traceback, redacted, to ``logs/errors.log``; returns the file, ``None`` if it cannot be written."""
    trace = "".join(traceback.format_exception(error))
    try:
        log = Log(run.settings.home, "errors")
        log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{redactor_of(run).clean(trace)}")
    except (OSError, NacreError):
        return None
    return log.path


def damage_behind(run: Run, error: Exception) -> StoreUnusable | None:
    """That the database holds what no nacre wrote, where an error nobody foresaw comes of it.

    It does where it was raised while rows were read or made into values, and where SQLite finds something wrong.
    """
    within = any(_STORAGE in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    is_damaged = within and isinstance(error, UNREADABLE)
    if "home" in run.__dict__ and not is_damaged:
        try:
            is_damaged = bool(run.home.database_file.check())
        except NacreError:
            is_damaged = True
    return damaged(run.settings.database, describe(run, error)) if is_damaged else None


def redactor_of(run: Run) -> Redactor:
    """With the owner's patterns, where the settings can be read."""
    try:
        return Redactor(*run.settings.redaction)
    except NacreError:
        return Redactor()
