"""What a person and a developer get to see of an error that nobody foresaw."""

from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nacre import private
from nacre.errors import NacreError
from nacre.redact.redactor import Redactor
from nacre.text import shorten

if TYPE_CHECKING:
    from nacre.cli.run import Run

_MESSAGE_CHARACTERS = 200


def describe(run: Run, error: Exception) -> str:
    """The error in one line, without secrets."""
    said = shorten(redactor_of(run).clean(str(error)), _MESSAGE_CHARACTERS)
    return f"something nacre did not expect: {type(error).__name__}{f': {said}' if said else ''}"


def write_log(run: Run, error: Exception) -> Path | None:
    """Append the traceback, redacted, to ``logs/errors.log``; returns the file, ``None`` if it cannot be written."""
    try:
        folder = run.settings.home / "logs"
        private.make_folder(folder)
        log = folder / "errors.log"
        trace = "".join(traceback.format_exception(error))
        descriptor = private.open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{redactor_of(run).clean(trace)}\n")
    except (OSError, NacreError):
        return None
    return log


def redactor_of(run: Run) -> Redactor:
    """With the owner's patterns, where the settings can be read."""
    try:
        return Redactor(run.settings["redaction.patterns"], run.settings["redaction.allow"])
    except NacreError:
        return Redactor()
