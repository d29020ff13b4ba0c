"""The error boundary of the command line, the error log, and progress bars."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from nacre.values.reports import Progress

_MESSAGE_CHARACTERS = 200
_STORAGE = str(Path("nacre", "store"))


def describe(run: Run, error: Exception) -> str:
    """Describe an unexpected error in one line, without secrets."""
    message = text.shorten(redactor_of(run).clean(str(error)), _MESSAGE_CHARACTERS)
    return f"unexpected error: {type(error).__name__}{f': {message}' if message else ''}"


def write_log(run: Run, error: Exception) -> Path | None:
    """Append the redacted traceback to ``logs/errors.log``. Return the file, or ``None`` if writing fails."""
    trace = "".join(traceback.format_exception(error))
    try:
        log = Log(run.settings.home, "errors")
        log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{redactor_of(run).clean(trace)}")
    except (OSError, NacreError):
        return None
    return log.path


def damage_behind(run: Run, error: Exception) -> UnusableStoreError | None:
    """Return the error to report if a damaged database caused ``error``, else ``None``.

    The database is damaged if the error was raised while reading or converting rows, or if SQLite finds damage.
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
    """Return a redactor. It includes the user's patterns, unless the settings cannot be read."""
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

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC)


def exit_code_of(error: NacreError) -> int:
    """Return the exit code for an error."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return True if ``--json`` is among the options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def guard(run: Run, work: Callable[[], Any]) -> int:
    """Call ``work``, and write the answer. An error is reported in one line. Return the exit code."""
    _prepare_streams()
    try:
        try:
            code = work()
            run.flush()
            _flush_streams()
            _finish(run)
        finally:
            run.close()
        return code if isinstance(code, int) and code else run.exit_code
    except BrokenPipeError:
        _silence()
        return DONE
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _stopped(run, error)
    except Exception as error:  # noqa: BLE001 - the boundary: every error is reported in one line
        return _fail(run, error)


def _finish(run: Run) -> None:
    for work in run.afterwards:
        with contextlib.suppress(NacreError):
            work()
    with contextlib.suppress(NacreError, OSError):
        run.keep_history()


def _fail(run: Run, error: Exception) -> int:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "nacre"
        return _say(run, USAGE, "usage", _usage_message(error), f"{path} --help")
    if isinstance(error, click.ClickException):
        return _say(run, FAILED, "failed", error.format_message(), None)
    if isinstance(error, NacreError):
        return _say(run, exit_code_of(error), error.code, error.message, error.hint)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        where = f" ({error.filename})" if error.filename else ""
        hint = "free some space and repeat; nothing was lost"
        return _say(run, UNAVAILABLE, "disk_full", f"the disk is full{where}", hint)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        hint = (
            "check the path and its permissions"
            if error.filename
            else "check the disk that holds the file, and repeat; nothing was lost"
        )
        return _say(run, FAILED, "failed", message, hint)
    return _unexpected(run, error)


def _unexpected(run: Run, error: Exception) -> int:
    log = write_log(run, error)
    if damage := damage_behind(run, error):
        hint = f"{damage.hint}; if that does not help, report it with {log}"
        return _say(run, exit_code_of(damage), damage.code, damage.message, hint)
    hint = f"please report it with {log}" if log else "the log could not be written"
    return _say(run, FAILED, "unexpected", describe(run, error), hint)


def _stopped(run: Run, error: BaseException) -> int:
    is_question = isinstance(error, click.exceptions.Abort)
    if is_question and not isinstance(error.__context__, (KeyboardInterrupt, EOFError)):
        if run.as_json:
            return _say(run, FAILED, "interrupted", "nothing was changed", None)
        click.echo("Nothing was changed.", err=True)  # no error message, because the user declined
        return FAILED
    if is_question and not run.as_json:
        click.echo(err=True)  # end the line of the question
    hint = "finished work is kept; run the command again to continue" if run.is_resumable else None
    return _say(run, INTERRUPTED, "interrupted", "interrupted", hint)


def _say(run: Run, exit_code: int, code: str, message: str, hint: str | None) -> int:
    """Write an error, and return the exit code."""
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
            click.echo(
                f"{click.style('error:', fg='red', bold=True) if coloured else 'error:'} {message}",
                err=True,
            )
            if hint:
                click.echo(
                    f"{click.style('hint:', bold=True) if coloured else 'hint:'} {hint}", err=True
                )
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


def _prepare_streams() -> None:
    """Make the streams replace characters that the terminal cannot encode, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _silence() -> None:
    """Discard further output, because the program that reads standard output has ended."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


# ----------------------------------------------------------------------------
# Progress, which is only shown on a terminal.


_BAR = 24
_LEAST_SECONDS = 0.1
"""Minimum time in seconds between two updates of a line."""

_STAGES = {
    "reading": "Reading transcripts",
    "learning": "Extracting memories",
    "archiving": "Archiving; text is searchable",
    "verifying": "Verifying the archive",
    "asking": "Asking",
    "scrubbing": "Scanning stored data",
    "redacting": "Redacting",
    "scanning": "Scanning",
    "exporting": "Writing the export",
    "importing": "Importing",
    "backup": "Backing up",
    "documents": "Copying documents",
    "rows": "Copying rows",
    "words": "Indexing",
    "questions": "Comparing answers",
    "restoring": "Restoring",
    "code": "Reading code",
    "linking": "Linking calls",
    "judging": "Judging",
    "proving": "Rereading transcripts",
    "tenants": "Creating tenants, Ctrl-C is safe",
    "filling": "Filling tenants",
    "measuring": "Querying tenants",
    "hot": "Querying one tenant more often",
    "deleting": "Deleting tenants",
    "weighing": "Measuring tenant sizes",
    "vectors": "Embedding, Ctrl-C is safe",
}


@contextlib.contextmanager
def waiting(run: Run, label: str) -> Iterator[None]:
    """Show a label and the elapsed time on a terminal inside the context."""
    if run.as_json or not sys.stderr.isatty():
        yield
        return

    line = _Line()
    over = threading.Event()
    started = time.monotonic()

    def tick() -> None:
        while not over.wait(_LEAST_SECONDS):
            line.show(f"{label} {_clock(time.monotonic() - started)}")

    ticking = threading.Thread(target=tick, daemon=True, name="nacre-waiting")
    ticking.start()
    try:
        yield
    finally:
        over.set()
        ticking.join()
        line.clear()


@contextlib.contextmanager
def shown(run: Run) -> Iterator[reports.OnProgress | None]:
    """Show a progress bar inside the context. Yield ``None`` if standard error is not a terminal."""
    if run.as_json or not sys.stderr.isatty():
        yield None
        return

    line, bars = _Line(), _Bars()

    def show(progress: Progress) -> None:
        if progress.total:
            line.show(bars.of(progress, time.monotonic()))

    try:
        yield show
    finally:
        line.clear()


@dataclass
class _Line:
    """A status line on a terminal. It is rewritten in place and cleared at the end."""

    _shown: str = ""
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, text: str) -> None:
        """Show text, unless the line changed less than ``_LEAST_SECONDS`` ago."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + _LEAST_SECONDS
            columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1
            self._write(cut(printable(text), columns))

    def clear(self) -> None:
        with self._lock:
            self._write("")

    def _write(self, text: str) -> None:
        blank = " " * (cells(self._shown) - cells(text))
        if text or self._shown:
            back = "\r" if text else f"\r{blank}\r"
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{back}{text}{blank if text else ''}")
                sys.stderr.flush()
        self._shown = text


@dataclass
class _Bars:
    _stage: str = ""
    _started: float = 0.0
    _at_start: int = 0

    def of(self, progress: Progress, now: float) -> str:
        """Return the progress bar as text."""
        if progress.stage != self._stage:
            self._stage, self._started, self._at_start = progress.stage, now, progress.done
        share = min(1.0, progress.done / progress.total)
        full = round(share * _BAR)
        done = progress.done - self._at_start
        left = (now - self._started) * (progress.total - progress.done) / done if done > 0 else None
        words = (
            _STAGES.get(progress.stage, progress.stage),
            "━" * full + "╌" * (_BAR - full),
            f"{share:>4.0%}",
            progress.note,
            "-:--" if left is None else _clock(left),
        )
        return " ".join(word for word in words if word)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
