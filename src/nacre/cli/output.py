"""The error boundary of the command line, the error log, and progress bars."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from nacre.base import text
from nacre.base.log import Log
from nacre.cli.command import PIPED_WIDTH, Run, cells, cut, printable
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    NacreError,
    NotFoundError,
    UnavailableError,
    UnreadableTranscriptError,
    UnusableStoreError,
)
from nacre.redact import redactor
from nacre.store import schema, sqlite
from nacre.values import reports

_STORAGE = str(Path("nacre", "store"))


def describe(run: Run, error: Exception) -> str:
    """Describe an unexpected error in one line, without secrets."""
    message = text.shorten(redactor_of(run).clean(str(error)), 200)
    return f"unexpected error: {type(error).__name__}{f': {message}' if message else ''}"


def write_log(run: Run, error: Exception) -> Path | None:
    """Log the redacted traceback, and return the log's path, or ``None`` if writing fails."""
    trace = "".join(traceback.format_exception(error))
    try:
        log = Log(run.settings.home, "errors")
        log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{redactor_of(run).clean(trace)}")
    except (OSError, NacreError):
        return None
    return log.path


def damage_behind(run: Run, error: Exception) -> UnusableStoreError | None:
    """Return the error to report if a damaged database caused ``error``, otherwise ``None``.

    The database counts as damaged if reading or converting rows failed, or SQLite finds damage.
    """
    in_store = any(
        _STORAGE in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)
    )
    is_damaged = in_store and isinstance(error, schema.UNREADABLE)
    if "home" in run.__dict__ and not is_damaged:
        try:
            is_damaged = bool(run.home.database_file.check())
        except NacreError:
            is_damaged = True
    return sqlite.damaged(run.settings.database, describe(run, error)) if is_damaged else None


def redactor_of(run: Run) -> redactor.Redactor:
    """Return a redactor, with the user's patterns if the settings are readable."""
    try:
        return redactor.Redactor(*run.settings.redaction)
    except NacreError:
        return redactor.Redactor()


# ----------------------------------------------------------------------------
# Exit codes and messages for errors. Users never see a traceback.


DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

EXIT_CODES: dict[type[NacreError], int] = {
    NacreError: FAILED,
    InvalidInputError: USAGE,
    UnreadableTranscriptError: FAILED,
    NotFoundError: NOT_FOUND,
    ConflictError: CONFLICT,
    UnavailableError: UNAVAILABLE,
    UnusableStoreError: FAILED,
}
"""Maps error classes to exit codes. The nearest base class decides."""


def exit_code_of(error: NacreError) -> int:
    """Return the exit code for an error."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return True if ``--json`` is among the options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def guard(run: Run, work: Callable[[], Any]) -> int:
    """Call ``work``, write the command's output or a one-line error, and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Replace characters that the terminal cannot encode.
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        try:
            code = work()
            run.flush()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            with contextlib.suppress(NacreError, OSError):
                run.keep_history()
        finally:
            run.close()
        return code if isinstance(code, int) and code else run.exit_code
    except BrokenPipeError:
        _silence()
        return DONE
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _report_interruption(run, error)
    except Exception as error:  # noqa: BLE001 - the boundary: every error is reported in one line
        return _report_error(run, error)


def _report_error(run: Run, error: Exception) -> int:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "nacre"
        return _report(run, USAGE, "usage", _usage_message(error), f"{path} --help")
    if isinstance(error, click.ClickException):
        return _report(run, FAILED, "failed", error.format_message(), None)
    if isinstance(error, NacreError):
        return _report(run, exit_code_of(error), error.code, error.message, error.hint)
    if isinstance(error, OSError) and errno.errorcode.get(error.errno or 0) in ("ENOSPC", "EDQUOT"):
        where = f" ({error.filename})" if error.filename else ""
        hint = "free some space and repeat; nothing was lost"
        return _report(run, UNAVAILABLE, "disk_full", f"the disk is full{where}", hint)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        hint = "check the path, its permissions and the disk; nothing was lost"
        return _report(run, FAILED, "failed", message, hint)
    log = write_log(run, error)
    if damage := damage_behind(run, error):
        hint = f"{damage.hint}; if that does not help, report it with {log}"
        return _report(run, exit_code_of(damage), damage.code, damage.message, hint)
    hint = f"please report it with {log}" if log else "the log could not be written"
    return _report(run, FAILED, "unexpected", describe(run, error), hint)


def _report_interruption(run: Run, error: BaseException) -> int:
    is_question = isinstance(error, click.exceptions.Abort)
    if is_question and not isinstance(error.__context__, (KeyboardInterrupt, EOFError)):
        if run.as_json:
            return _report(run, FAILED, "interrupted", "nothing was changed", None)
        click.echo("Nothing was changed.", err=True)  # no error message, because the user declined
        return FAILED
    if is_question and not run.as_json:
        click.echo(err=True)  # end the line of the question
    hint = "finished work is kept; run the command again to continue" if run.is_resumable else None
    return _report(run, INTERRUPTED, "interrupted", "interrupted", hint)


def _report(run: Run, exit_code: int, code: str, message: str, hint: str | None) -> int:
    message, hint = _one_line(message), _one_line(hint) if hint else None
    with contextlib.suppress(OSError):
        if run.as_json:
            click.echo(
                json.dumps(
                    {"error": {"code": code, "message": message, "hint": hint}}, ensure_ascii=True
                )
            )
        else:
            coloured = bool(sys.stderr and sys.stderr.isatty()) and not run.environ.get("NO_COLOR")
            for label, colour, line in (("error:", "red", message), ("hint:", None, hint)):
                if line:
                    styled = click.style(label, fg=colour, bold=True) if coloured else label
                    click.echo(f"{styled} {line}", err=True)
        return exit_code
    _silence()
    return exit_code


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return (
        message[:1].lower() + message[1:]
        if message[:2].istitle() or message[:1].isupper()
        else message
    )


def _silence() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        # The program that reads standard output has ended.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


# ----------------------------------------------------------------------------
# Progress, which is only shown on a terminal.


_BAR = 24
_LEAST_SECONDS = 0.1
"""Minimum time in seconds between two updates of a line."""

_STAGES = {
    "reading": "Reading transcripts",
    "archiving": "Archiving; text is searchable",
    "backup": "Backing up",
    "documents": "Copying documents",
    "rows": "Copying rows",
    "words": "Indexing",
    "questions": "Comparing answers",
    "code": "Reading code",
    "linking": "Linking calls",
    "proving": "Rereading transcripts",
    "vectors": "Embedding, Ctrl-C is safe",
}


@contextlib.contextmanager
def progress_bar(run: Run) -> Iterator[reports.OnProgress]:
    """Show a progress bar during the block, if standard error is a terminal."""
    if run.as_json or not sys.stderr.isatty():
        yield lambda _: None
        return

    bar = _ProgressBar()
    try:
        yield bar.show
    finally:
        bar.clear()


@dataclass
class _ProgressBar:
    _text: str = ""
    _next: float = 0.0
    _stage: str = ""
    _started: float = 0.0
    _at_start: int = 0

    def show(self, progress: reports.Progress) -> None:
        now = time.monotonic()
        if not progress.total or now < self._next:
            return
        self._next = now + _LEAST_SECONDS
        if progress.stage != self._stage:
            self._stage, self._started, self._at_start = progress.stage, now, progress.done
        share = min(1.0, progress.done / progress.total)
        full = round(share * _BAR)
        steps = progress.done - self._at_start
        seconds_left = (
            (now - self._started) * (progress.total - progress.done) / steps if steps > 0 else None
        )
        words = (
            _STAGES.get(progress.stage, progress.stage.capitalize()),
            "━" * full + "╌" * (_BAR - full),
            f"{share:>4.0%}",
            progress.note,
            "-:--" if seconds_left is None else _clock(seconds_left),
        )
        columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1
        self._write(cut(printable(" ".join(filter(None, words))), columns))

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        blank = " " * (cells(self._text) - cells(text))
        if text or self._text:
            back = "\r" if text else f"\r{blank}\r"
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{back}{text}{blank if text else ''}")
                sys.stderr.flush()
        self._text = text


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
