"""What a person and a developer get to see of an error that nobody foresaw."""

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

from nacre.base import ids, text
from nacre.base.text import shorten
from nacre.base.times import day_of
from nacre.care.watcher import Log
from nacre.cli.command import (
    PIPED_WIDTH,
    Paper,
    Part,
    Run,
    Span,
    bold,
    cells,
    command,
    cut,
    dim,
    joined,
    perform,
    printable,
)
from nacre.cli.options import (
    SHORT_ID,
    Record,
    argument,
    count,
    day,
    kind_span,
    option,
    place_name,
    read_content,
    says_the_same,
    short_id,
    short_session,
    speaker_name,
    split_session,
    stamp,
    when,
)
from nacre.errors import (
    Conflict,
    InvalidInput,
    NacreError,
    NotFound,
    StoreUnusable,
    TranscriptUnreadable,
    Unavailable,
)
from nacre.redact.redactor import Redactor
from nacre.store.schema import UNREADABLE
from nacre.store.sqlite import damaged
from nacre.values import session as session_module
from nacre.values.codec import keys_of, plain, plain_fields
from nacre.values.memory import USUAL_STRENGTH, Memory, Validity
from nacre.values.reports import OnProgress

if TYPE_CHECKING:
    from nacre.context.build import OwnPage
    from nacre.home.views import LinkView
    from nacre.memories.graph import Hop, LinkLine
    from nacre.values.recall import Evidence, Lane, MemoryHit, RecallResult, TurnHit
    from nacre.values.reports import Progress

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
    within = any(
        _STORAGE in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)
    )
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


# ----------------------------------------------------------------------------
# The one place where errors become exit codes and words. No traceback reaches a person.


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
        _say(
            run,
            "disk_full",
            f"the disk is full{where}",
            "free some space and repeat; nothing was lost",
        )
        return UNAVAILABLE
    if isinstance(error, OSError) and error.strerror:
        if error.filename:
            _say(
                run,
                "failed",
                f"{error.strerror}: {error.filename}",
                "check the path and its permissions",
            )
        else:  # a write, or waiting for the disk
            _say(
                run,
                "failed",
                error.strerror,
                "check the disk that holds the file, and repeat; nothing was lost",
            )
        return FAILED
    return _unexpected(run, error)


def _unexpected(run: Run, error: Exception) -> int:
    log = write_log(run, error)
    if behind := damage_behind(run, error):
        _say(
            run,
            behind.code,
            behind.message,
            f"{behind.hint}; if that does not help, report it with {log}",
        )
        return exit_code_of(behind)
    hint = f"please report it with {log}" if log else "the log could not be written"
    _say(run, "unexpected", describe(run, error), hint)
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
        return
    _silence()


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return (
        message[:1].lower() + message[1:]
        if message[:2].istitle() or message[:1].isupper()
        else message
    )


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


# ----------------------------------------------------------------------------
# Progress on a terminal; silence elsewhere.


_BAR = 24
_LEAST_SECONDS = 0.1
"""Between two looks of a line."""

_STAGES = {
    "reading": "Reading transcripts",
    "learning": "Learning from them",
    "archiving": "Archiving; text is searchable",
    "verifying": "Verifying the archive",
    "asking": "Asking",
    "scrubbing": "Looking through what is stored",
    "redacting": "Redacting",
    "scanning": "Scanning",
    "exporting": "Writing the export",
    "importing": "Importing",
    "backup": "Backing up",
    "documents": "Carrying documents",
    "rows": "Carrying rows",
    "words": "Indexing",
    "questions": "Comparing answers",
    "restoring": "Restoring",
    "code": "Reading code",
    "linking": "Finding who calls what",
    "claims": "Telling claims, Ctrl-C is fine",
    "judging": "Judging",
    "proving": "Reading transcripts again",
    "tenants": "Making tenants, Ctrl-C is fine",
    "filling": "Filling them",
    "measuring": "Having them asked",
    "hot": "Having one asked more than the others",
    "deleting": "Deleting the tenants",
    "weighing": "Weighing tenants",
    "vectors": "Making vectors, Ctrl-C is fine",
}


@contextlib.contextmanager
def waiting(run: Run, told: str) -> Iterator[None]:
    """What is waited for, and how long already, on a terminal while the block runs."""
    if run.as_json or not sys.stderr.isatty():
        yield
        return

    line = _Line()
    over = threading.Event()
    started = time.monotonic()

    def tick() -> None:
        while not over.wait(_LEAST_SECONDS):
            line.show(f"{told} {_clock(time.monotonic() - started)}")

    ticking = threading.Thread(target=tick, daemon=True, name="nacre-waiting")
    ticking.start()
    try:
        yield
    finally:
        over.set()
        ticking.join()
        line.clear()


@contextlib.contextmanager
def shown(run: Run) -> Iterator[OnProgress | None]:
    """A bar on standard error while the block runs; ``None`` where nobody watches."""
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
    """The last line of a terminal, written over and over, and gone in the end."""

    _shown: str = ""
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, text: str) -> None:
        """Have the line say this, unless it changed just now."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + _LEAST_SECONDS
            columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1
            self._write(cut(printable(text), columns))

    def clear(self) -> None:
        """Leave nothing of it."""
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
    """How far the stage that runs is, and about how long it goes on."""

    _stage: str = ""
    _started: float = 0.0
    _at_start: int = 0

    def of(self, progress: Progress, now: float) -> str:
        """A bar in a line."""
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


# ----------------------------------------------------------------------------
# ``nacre page``.


@command(
    "page",
    examples=[
        "nacre page identity",
        'nacre page identity "You work for Ada, who keeps bees and writes Python."',
        "nacre page profile --edit",
    ],
)
@argument("page-write", "name", metavar="NAME")
@argument("page-write", "text", required=False)
@option("page-write", "project")
@click.option("--edit", is_flag=True, help="Open it in your editor.")
@click.option("--remove", is_flag=True, help="Take it away.")
@click.pass_obj
def page(
    run: Run, name: str, text: str | None, project: str | None, edit: bool, remove: bool
) -> None:
    """Show or write what agents are told of you at the start of every session.

    NAME is identity (who they work for), profile (how you want things done: "Always …", "Prefer …", "Never …") or
    project (what --project is about, front matter and all). TEXT takes the place of what the page says; - reads it from
    standard input. All are files in the vault, which any editor may change.
    """
    if (text is not None) + edit + remove > 1:
        raise click.UsageError(
            "a text, --edit or --remove: one of them", click.get_current_context()
        )
    if text is not None and not text.strip():
        raise click.UsageError(
            "the text is empty; --remove takes the page away", click.get_current_context()
        )
    before: OwnPage = perform(run, "page-own", name=name, project=project)
    if edit:
        text = _edited(run, before)
    elif text is not None:
        text = read_content(text)
    found: OwnPage = (
        before
        if text is None and not remove
        else perform(
            run,
            "page-write",
            name=name,
            project=project,
            text=text or "",
            expected=before.etag if edit else None,
        )
    )
    did_change = found.text != before.text
    if found.tokens > found.told_tokens:
        run.warnings.append(
            f"{found.tokens} tokens: a session is told some {found.told_tokens}, from the top on"
        )
    record = {
        "page": name,
        "path": str(run.settings.shown_vault / found.path),
        "text": found.text,
        "tokens": found.tokens,
        "told_tokens": found.told_tokens,
        "changed": did_change,
        "etag": found.etag,
    }
    run.answer(
        record,
        lambda paper: _show(
            paper, found, did_change=did_change, is_asked=text is None and not remove
        ),
    )


def _edited(run: Run, before: OwnPage) -> str | None:
    """What the person wrote; ``None`` where they saved nothing."""
    if not run.is_interactive:
        raise click.UsageError(
            "there is no terminal to open an editor in", click.get_current_context()
        )
    return click.edit(before.text, extension=".md")


def _show(paper: Paper, found: OwnPage, *, did_change: bool, is_asked: bool) -> None:
    if not is_asked:
        gone = "Taken away" if not found.text else "Saved"
        paper.line(f"{gone}: {found.path}" if did_change else "Nothing changed.")
        return
    if not found.text:
        paper.line(
            f"There is no {found.name} yet.", dim(f'  nacre page {found.name} "…" writes it')
        )
    for line in found.text.splitlines():
        paper.verbatim(line)


# ----------------------------------------------------------------------------
# One memory, as JSON and as lines: what every command shows of it.


HIT_CHARACTERS = 420
LINE_CHARACTERS = 160
_COLUMNS = ("id", "date", "kind", "imp.", "project", "memory")
_PROJECT = 24


_IN_DETAIL = frozenset(
    {
        "valid",
        "confidence_score",
        "claim",
        "evergreen",
        "author",
        "triggers",
        "suppressed_contexts",
        "source",
        "confirmed",
        "links",
        "retired",
        "extra",
    }
)
"""Fields that ``show`` alone prints, or that have another form in a record."""


def memory_record(memory: Memory) -> Record:
    """One memory: its fields but for those of detail, its session and turns, and when it was retired."""
    tool, session_id = split_session(memory.source.session)
    return {
        **plain_fields(memory, (name for name in keys_of(Memory) if name not in _IN_DETAIL)),
        "session": memory.source.session,
        "session_id": session_id,
        "tool": tool,
        "turn_ids": list(memory.source.turns),
        "retired": plain(memory.retired.at) if memory.retired else None,
    }


def evidence_record(evidence: Evidence) -> Record:
    """Where a memory was said."""
    tool, session_id = split_session(evidence.session_id)
    return {
        "session_id": session_id,
        "turn_id": evidence.turn_id,
        "tool": tool,
        "speaker": evidence.speaker.value,
        "time": stamp(evidence.time),
        "excerpt": evidence.excerpt,
    }


def render_table(paper: Paper, memories: Sequence[Memory], *, indent: int = 0) -> None:
    """One line a memory: id, day, kind, importance, project, subject. Date, project and subject go last."""
    rows = [
        (
            dim(short_id(memory)),
            dim(day(memory.created)),
            kind_span(memory.kind),
            Span(f"{memory.importance:>4}", "bold" if memory.importance >= 8 else ""),
            text.shorten(place_name(memory), _PROJECT),
            subject_and_content(memory),
        )
        for memory in memories
    ]
    paper.table(rows, header=_COLUMNS, drop=(3, 2, 1, 4), indent=indent)


def subject_and_content(memory: Memory) -> tuple[Part, ...]:
    """Subject and content, for one line of a table."""
    if memory.expires_on and memory.expires_on <= day_of(ids.utc_now()):
        return Span(f"expired {memory.expires_on}: ", "yellow"), text.shorten(
            full_text(memory), LINE_CHARACTERS
        )
    if memory.trust is session_module.Trust.UNTRUSTED:
        return Span("untrusted: ", "yellow"), text.shorten(full_text(memory), LINE_CHARACTERS)
    if text.normalise(memory.content).startswith(text.normalise(memory.subject)):
        return (text.shorten(memory.content, LINE_CHARACTERS),)
    return bold(memory.subject), "  ", text.shorten(memory.content, LINE_CHARACTERS)


def waits_for_owner(run: Run, memory: Memory) -> bool:
    """Whether an agent asked for a change of the owner's memory: that waits for review."""
    return run.settings.actor.is_agent and memory.speaker is session_module.Speaker.OWNER


def render_outcome(paper: Paper, verb: str, memory: Memory) -> None:
    """What became of one memory."""
    facts = joined((place_name(memory), f"importance {memory.importance}", short_id(memory)))
    paper.line(
        f"{verb}: ", kind_span(memory.kind), " ", bold(memory.subject), "  ", dim(facts), hang=2
    )


def render_outcomes(paper: Paper, verb: str, memories: Sequence[Memory]) -> None:
    """What became of several."""
    for memory in memories:
        render_outcome(paper, verb, memory)


def render_list(paper: Paper, memories: Sequence[Memory], *, total: int, offset: int) -> None:
    """A page of memories and how many there are."""
    render_table(paper, memories)
    shown = offset + len(memories)
    if shown < total:
        paper.blank()
        paper.line(
            dim(f"{len(memories)} of {count(total, 'memory', 'memories')}; more: --offset {shown}")
        )


def full_text(memory: Memory) -> str:
    """Subject and content in one, where the content does not begin with the subject."""
    is_told = text.normalise(memory.content).startswith(text.normalise(memory.subject))
    return text.shorten(
        memory.content if is_told else f"{memory.subject}: {memory.content}", HIT_CHARACTERS
    )


def origin_of(memory: Memory) -> str:
    """Where a memory was learned."""
    where = memory.source.session or memory.source.file
    return f"from {where}" if where else "of unknown origin"


def link_facts(link: Hop | LinkLine | LinkView) -> str:
    """What is not usual about a link: its strength, what made it, when it holds, why."""
    parts = (
        f"{round(link.strength, 2):g}" if link.strength != USUAL_STRENGTH else "",
        link.origin if link.origin != "manual" else "",
        _span_of(link.valid),
        link.reason or "",
    )
    return joined(parts, ", ")


def _span_of(valid: Validity) -> str:
    if valid.since and valid.until:
        return f"{valid.since} to {valid.until}"
    if valid.until:
        return f"{'ended' if valid.until <= day_of(ids.utc_now()) else 'until'} {valid.until}"
    return f"from {valid.since}" if valid.since else ""


# ----------------------------------------------------------------------------
# What answers a question, as JSON and as lines: memories, turns of sessions, and what each lane did.


_QUOTE_CHARACTERS = 180
_INDENT = 4
NOTHING = "Nothing matches."
EMPTY = "There is nothing in memory yet."
_TITLE_CHARACTERS = 70


def memory_hit_record(hit: MemoryHit) -> Record:
    """One memory that answers."""
    return {
        **memory_record(hit.memory),
        "score": hit.score,
        "evidence": [evidence_record(item) for item in hit.evidence],
        "confidence": hit.confidence.value,
        "candidate": hit.candidate,
        "outdated_by": list(hit.outdated_by),
        "doubt": hit.doubt,
        "components": hit.components,
        "space": hit.space,
    }


def turn_hit_record(hit: TurnHit) -> Record:
    """One turn that answers."""
    return {
        "session_id": hit.session.native_id,
        "turn_id": hit.turn.id,
        "tool": hit.session.tool,
        "project": hit.project,
        "score": hit.score,
        "confidence": hit.confidence.value,
        "excerpt": hit.excerpt,
        "speaker": hit.turn.speaker.value,
        "trust": hit.turn.trust.value,
        "author": hit.turn.author,
        "time": stamp(hit.turn.time),
        "title": hit.session.title,
        "components": hit.components,
    }


def lane_records(lanes: Sequence[Lane]) -> list[Record]:
    """What each lane did."""
    return [{"name": lane.name, "state": lane.state.value, "note": lane.note} for lane in lanes]


def render_hit(paper: Paper, rank: int, hit: MemoryHit, *, explain: bool) -> None:
    """One memory that answers, with its evidence."""
    memory = hit.memory
    if memory.trust is session_module.Trust.UNTRUSTED:
        paper.line(bold(f"{rank:>2}"), "  ", kind_span(memory.kind), hang=_INDENT)
        paper.framed(full_text(memory), origin_of(memory), indent=_INDENT)
    else:
        _render_words(paper, rank, memory)
    facts = (
        hit.confidence.value,
        hit.space or "",
        "an agent's proposal" if memory.proposed else "",
        place_name(memory),
        when(memory.created),
        f"importance\u00a0{memory.importance}",
        short_id(memory),
    )
    paper.line(dim(joined(facts)), indent=_INDENT)
    _render_notes(paper, hit)
    if explain:
        _render_components(paper, hit.score, hit.components)


def _render_words(paper: Paper, rank: int, memory: Memory) -> None:
    paper.line(
        bold(f"{rank:>2}"), "  ", kind_span(memory.kind), "  ", bold(memory.subject), hang=_INDENT
    )
    if text.normalise(memory.content) != text.normalise(memory.subject):
        paper.line(text.shorten(memory.content, HIT_CHARACTERS), indent=_INDENT)


def _render_notes(paper: Paper, hit: MemoryHit) -> None:
    memory = hit.memory
    if hit.candidate:
        keep = f"pending candidate; to keep it: nacre review keep {short_id(memory)}"
        paper.line(Span(keep, "yellow"), indent=_INDENT)
    if hit.outdated_by:
        newer = joined([one[-SHORT_ID:] for one in hit.outdated_by], ", ")
        paper.line(Span(f"may be outdated: see {newer}", "yellow"), indent=_INDENT)
    if hit.doubt:
        paper.line(Span(f"may be out of date: {hit.doubt}", "yellow"), indent=_INDENT)
    if hit.evidence:
        _evidence_line(paper, hit.evidence, memory)


def _evidence_line(paper: Paper, evidence: Sequence[Evidence], memory: Memory) -> None:
    first = next((one for one in evidence if one.speaker is memory.speaker), evidence[0])
    tool, _, native_id = first.session_id.partition(":")
    more = f" and {count(len(evidence) - 1, 'more turn')}" if len(evidence) > 1 else ""
    said_by = speaker_name(memory.speaker, memory.author)
    told_by = f"said by {said_by} in {tool} {short_session(native_id)}{more}"
    date = when(first.time) if when(first.time) != when(memory.created) else ""
    quote = text.shorten(first.excerpt, _QUOTE_CHARACTERS)
    is_own = (
        first.speaker is memory.speaker
    )  # words of another are not quoted as the memory's speaker's
    quoted = f": “{quote}”" if is_own and not says_the_same(first.excerpt, memory.content) else ""
    paper.line(dim(f"{joined((told_by, date), ', ')}{quoted}"), indent=_INDENT)


def _render_components(paper: Paper, score: float, parts: dict[str, float]) -> None:
    """What a score is made of, and how: lanes and bonuses add up, ``×`` multiplies, the rest are absolute signals."""
    names = {name: f"× {name[2:]}" if name.startswith("x_") else name for name in parts}
    rows = [(dim("score"), dim(f"{score:.4f}{_formula(parts)}"))]
    rows += [(dim(f"  {names[name]}"), dim(f"{value:.4f}")) for name, value in parts.items()]
    paper.table(rows, indent=_INDENT)


def _formula(parts: dict[str, float]) -> str:
    """How a memory's score is worked out; those of turns are sums."""
    factors = " × ".join(name.removeprefix("x_") for name in parts if name.startswith("x_"))
    return f" = relevance{' × ' * bool(factors)}{factors}" if "relevance" in parts else ""


def render_turn_hits(
    paper: Paper, turns: Sequence[TurnHit], *, explain: bool, offset: int = 0
) -> None:
    """Who said it in which session, and the words."""
    for rank, hit in enumerate(turns, start=offset + 1):
        session = hit.session
        title = f"“{text.shorten(session.title, _TITLE_CHARACTERS)}”" if session.title else ""
        where = f"{session.tool} {short_session(session.native_id)}"
        place = joined((hit.confidence.value, where, hit.project, when(hit.turn.time), title))
        paper.line(bold(f"{rank:>2}"), "  ", dim(place), hang=_INDENT)
        who = speaker_name(hit.turn.speaker, hit.turn.author)
        if hit.turn.trust is session_module.Trust.UNTRUSTED:
            told = f"from {who} in {session.tool} {short_session(session.native_id)}"
            paper.framed(hit.excerpt, told, indent=_INDENT)
        else:
            paper.line(Span(f"{who}:", "bold"), " ", hit.excerpt, indent=_INDENT)
        if explain:
            _render_components(paper, hit.score, hit.components)
        paper.blank()


def render_beginning(paper: Paper) -> None:
    """How to begin."""
    paper.line(bold(EMPTY))
    paper.facts(
        (
            ("nacre ingest", "reads the sessions of the agents on this machine"),
            ('nacre store "…"', "keeps something you tell it"),
        ),
        indent=2,
    )


def render_nothing(paper: Paper, message: str) -> None:
    """That nothing was found, and what to try."""
    paper.line(bold(message))
    paper.line(dim("Try other words, or fewer filters."), indent=2)


def render_span(paper: Paper, result: RecallResult) -> None:
    """The times that were asked for, and how to leave out those that were read from the question."""
    if not result.span:
        return
    paper.blank()
    if result.time_words:
        paper.line(
            dim(
                f"“{result.time_words}”: what is {result.span} counts more. To leave this out: --ignore-time"
            )
        )
    else:
        paper.line(dim(f"Only what is {result.span}."))


def render_lanes(paper: Paper, result: RecallResult, *, explain: bool) -> None:
    """What each lane did, or only those that did less than they should."""
    lanes: Sequence[Lane] = result.lanes if explain else result.degraded
    corrected = next(
        (lane.note for lane in result.lanes if lane.name == "spelling" and lane.note), None
    )
    if corrected and not explain:
        paper.blank()
        paper.line(dim(f"spelling: {corrected}"))
    if not lanes:
        return
    told = describe_lanes(lanes)
    paper.blank()
    took = f" · {result.took_ms:.0f} ms" if explain else ""
    paper.line(dim(f"lanes: {told}{took}" if explain else f"degraded: {told}"))


def describe_lanes(lanes: Sequence[Lane]) -> str:
    """What each lane did, in one line."""
    return "; ".join(
        f"{lane.name} {lane.state.value}{f' ({lane.note})' if lane.note else ''}" for lane in lanes
    )
