"""The one place where errors become exit codes and words. No traceback reaches a person."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from nacre.cli import crash
from nacre.cli.paper import printable
from nacre.cli.run import Run
from nacre.errors import Conflict, InvalidInput, NacreError, NotFound, StoreUnusable, TranscriptUnreadable, Unavailable

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

EXIT_CODES: dict[type[NacreError], int] = {
    NacreError: FAILED,
    InvalidInput: USAGE,
    TranscriptUnreadable: FAILED,
    NotFound: NOT_FOUND,
    Conflict: CONFLICT,
    Unavailable: UNAVAILABLE,
    StoreUnusable: FAILED,
}
"""The nearest class in an error's ancestry decides."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC)


def exit_code_of(error: NacreError) -> int:
    """The exit code of an error."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether ``--json`` is among the options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def guard(run: Run, work: Callable[[], Any]) -> int:
    """Do the work, write the answer, say in one line what went wrong; returns the exit code."""
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
    except Exception as error:  # noqa: BLE001 - the boundary: whatever happens is said in one line
        return _fail(run, error)


def _finish(run: Run) -> None:
    for work in run.afterwards:
        with contextlib.suppress(NacreError):
            work()
    with contextlib.suppress(NacreError, OSError):
        run.keep_history()


def _fail(run: Run, error: Exception) -> int:
    if isinstance(error, click.UsageError):
        _say(run, "usage", _usage_message(error), _usage_hint(error))
        return USAGE
    if isinstance(error, click.ClickException):
        _say(run, "failed", error.format_message(), None)
        return FAILED
    if isinstance(error, NacreError):
        _say(run, error.code, error.message, error.hint)
        return exit_code_of(error)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        where = f" ({error.filename})" if error.filename else ""
        _say(run, "disk_full", f"the disk is full{where}", "free some space and repeat; nothing was lost")
        return UNAVAILABLE
    if isinstance(error, OSError) and error.strerror:
        if error.filename:
            _say(run, "failed", f"{error.strerror}: {error.filename}", "check the path and its permissions")
        else:  # a write, or waiting for the disk
            _say(run, "failed", error.strerror, "check the disk that holds the file, and repeat; nothing was lost")
        return FAILED
    return _unexpected(run, error)


def _unexpected(run: Run, error: Exception) -> int:
    log = crash.write_log(run, error)
    if behind := crash.damage_behind(run, error):
        _say(run, behind.code, behind.message, f"{behind.hint}; if that does not help, report it with {log}")
        return exit_code_of(behind)
    hint = f"please report it with {log}" if log else "the log could not be written"
    _say(run, "unexpected", crash.describe(run, error), hint)
    return FAILED


def _stopped(run: Run, error: BaseException) -> int:
    is_question = isinstance(error, click.exceptions.Abort)
    if is_question and not isinstance(error.__context__, (KeyboardInterrupt, EOFError)):
        return _declined(run)
    if is_question and not run.as_json:
        click.echo(err=True)  # the question's line is not over
    hint = "what is done is kept: run it again to continue" if run.is_resumable else None
    _say(run, "interrupted", "interrupted", hint)
    return INTERRUPTED


def _declined(run: Run) -> int:
    """A person said no: that is no error, but the command did not do what it is for."""
    if run.as_json:
        _say(run, "interrupted", "nothing was changed", None)
    else:
        click.echo("Nothing was changed.", err=True)
    return FAILED


def _say(run: Run, code: str, message: str, hint: str | None) -> None:
    message, hint = _one_line(message), _one_line(hint) if hint else None
    with contextlib.suppress(OSError):
        if run.as_json:
            click.echo(json.dumps({"error": {"code": code, "message": message, "hint": hint}}, ensure_ascii=True))
        else:
            coloured = bool(sys.stderr and sys.stderr.isatty()) and not run.environ.get("NO_COLOR")
            click.echo(f"{click.style('error:', fg='red', bold=True) if coloured else 'error:'} {message}", err=True)
            if hint:
                click.echo(f"{click.style('hint:', bold=True) if coloured else 'hint:'} {hint}", err=True)
        return
    _silence()


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:] if message[:2].istitle() or message[:1].isupper() else message


def _usage_hint(error: click.UsageError) -> str:
    return f"{error.ctx.command_path if error.ctx else 'nacre'} --help"


def _prepare_streams() -> None:
    """What a terminal cannot show is replaced, never an error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _silence() -> None:
    """Nobody reads any more: what the interpreter flushes at its end goes nowhere."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
