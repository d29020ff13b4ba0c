"""Parse and redact transcripts.

Stored names of files, sessions and turns are redacted, too. A redacted name ends with a hash of the
original, because names are keys and must differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from nacre.base.frozen import frozen
from nacre.base.text import shorten, to_bytes
from nacre.errors import InvalidInputError, NacreError, UnreadableTranscriptError
from nacre.readers import conversation
from nacre.readers.adapter import (
    MAGIC,
    MAX_LINE_BYTES,
    SUFFIXES,
    Adapter,
    DatabaseSource,
    FileSource,
    Head,
    Places,
    Root,
    Source,
    is_complete,
    is_too_long,
    open_file,
    read_head,
)
from nacre.readers.conversation import ERROR_CHARACTERS, strip
from nacre.readers.registry import adapter_of, find_adapter
from nacre.redact.redactor import Redactor
from nacre.store.foreign import ForeignDatabase, open_foreign
from nacre.values.codec import with_texts
from nacre.values.reports import Problem
from nacre.values.session import Cursor, Session, Tally, ToolCall, Turn

_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:|-]{1,39}")
_MAX_CACHED_NAMES = 4096


@lru_cache(_MAX_CACHED_NAMES)
def kept_name(redactor: Redactor, name: str) -> str:
    """Redact a path or session id. A hash keeps different redacted names distinct."""
    clean = redactor.clean(name)
    if clean == name:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{clean}#{digest}"


def kept_id(redactor: Redactor, name: str) -> str:
    """Redact the id that a tool gave a turn, unless it cannot contain a secret."""
    return name if _PLAIN_ID.fullmatch(name) else kept_name(redactor, name)


# -- Reading files -------------------------------------------------------------


MAX_SECONDS = 600.0
"""Time limit for reading a file, in seconds."""

BATCH_TURNS = 400
BATCH_CHARACTERS = 1_000_000
INPUT_CHARACTERS = 300
OUTCOME_CHARACTERS = 200
PATH_CHARACTERS = 500
BORDER_BYTES = 12_000_000
"""Minimum number of unread bytes for which several processes are used.

Reading half of that takes as long as starting a process.
"""

MOST_PROCESSES = 4
"""Maximum number of processes. More would read faster than the results can be stored."""

UNKNOWN_CHARACTERS = 80
_END: Any = object()


@frozen
class Job:
    """A file to read, with the tool and cursor of the previous reading, if any.

    ``size`` and ``mtime_ns``: size and modification time of all files of the transcript.
    ``is_named``: whether the user named the file explicitly.
    ``expected_of``: label of a tool that stores transcripts at this path; an unreadable file is
        then a problem.
    ``identities``: the owner's ids in chats.
    ``reader``: the only tool whose adapter may read the file.
    """

    path: Path
    size: int
    tool: str | None = None
    cursor: Cursor | None = None
    is_named: bool = False
    expected_of: str = ""
    mtime_ns: int = 0
    identities: tuple[str, ...] = ()
    reader: str | None = None

    @property
    def unread(self) -> int:
        """The number of bytes added since the last reading, or the size if the file shrank."""
        offset = self.cursor.offset if self.cursor else 0
        return self.size - offset if self.size >= offset else self.size


@frozen
class Batch:
    """Consecutive turns of a session, without secrets.

    Without turns, only details of the session changed. ``project`` is the slug, if known.
    """

    path: Path
    session: Session
    turns: tuple[Turn, ...]
    project: str | None = None


@frozen
class FileDone:
    """The event for a file that was read to its end.

    ``present`` maps sessions to their turn ids, so that turns no longer in the file can be deleted.
    It is ``None`` if reading continued from a cursor.
    """

    path: Path
    size: int
    tool: str
    cursor: Cursor
    tally: Tally
    bytes_read: int
    present: Mapping[str, Sequence[str]] | None = None


@frozen
class FileFailed:
    """The event for a file that was not read.

    ``problem`` is ``None`` if the file is empty, not a transcript, or from an excluded tool.
    """

    path: Path
    size: int
    problem: Problem | None
    is_excluded: bool = False
    is_empty: bool = False
    is_own: bool = False
    """True for a session started by nacre to call a model."""

    unread_of: str | None = None
    """Label of the tool to which a file in an unknown format belongs. The file probably has
    sessions.
    """


Event = Batch | FileDone | FileFailed


def roots_of(adapter: Adapter, places: Places) -> Sequence[Root] | Problem:
    """Return the locations of a tool's transcripts, or a Problem if its adapter fails."""
    try:
        return adapter.roots(places)
    except Exception as error:  # noqa: BLE001 - a third-party adapter must affect only its files
        message = f"the adapter cannot find its files: {type(error).__name__}: {error}"
        return Problem(adapter.label, message, "report it with the tool's version")


def count_processes(jobs: Sequence[Job], requested: int = 0) -> int:
    """Return how many processes should read the files (1 means only this process).

    If ``requested`` is 0, the unread bytes and the processor cores decide.
    """
    if getattr(sys, "frozen", False) or not sys.executable or len(jobs) < 2:
        return 1
    if requested:
        return min(requested, len(jobs))
    unread = sum(job.unread for job in jobs)
    return min(count_cores(), MOST_PROCESSES, len(jobs)) if unread >= BORDER_BYTES else 1


def read_files(
    jobs: Sequence[Job], redactor: Redactor, excluded_tools: Container[str] = frozenset()
) -> Iterator[Event]:
    """Read files in order, and yield their sessions. A file that fails yields an event, too."""
    for job in jobs:
        yield from read_file(job, redactor, excluded_tools)


def read_file(job: Job, redactor: Redactor, excluded_tools: Container[str]) -> Iterator[Event]:
    """Read one file. The last event is a :class:`FileDone` or a :class:`FileFailed`."""
    try:
        with open_transcript(job.path, job.tool, job.cursor, job.identities) as (adapter, source):
            if adapter is None or job.reader not in (None, adapter.tool):
                problem = (
                    Problem(str(job.path), "not a transcript that nacre knows", None)
                    if job.is_named
                    else None
                )
                unread_of = job.expected_of or (
                    "an unknown tool" if ".jsonl" in job.path.name else None
                )
                if adapter or not job.size or job.path.suffix == ".vscdb":  # windows without chats
                    unread_of = None
                yield FileFailed(job.path, job.size, problem, unread_of=unread_of)
            elif adapter.tool in excluded_tools:
                yield FileFailed(job.path, job.size, None, is_excluded=True)
            elif adapter.tool in conversation.TOOLS and _is_own_call(job.path, adapter):
                yield FileFailed(job.path, job.size, None, is_own=True)
            else:
                yield from _read_source(job, adapter, source, redactor)
    except ForeignFormatError as error:
        is_empty = isinstance(error, EmptyError)
        is_problem = job.is_named or (job.expected_of and not is_empty)
        failed = FileFailed(job.path, job.size, None, is_empty=is_empty and bool(job.expected_of))
        yield _failure(job, redactor, error.message, error.hint) if is_problem else failed
    except NacreError as error:
        yield _failure(job, redactor, error.message, error.hint)
    except OSError as error:
        yield _failure(job, redactor, error.strerror or "cannot be read")
    except Exception as error:  # noqa: BLE001 - a changed format or third-party adapter must affect only one file
        message = f"the adapter failed: {type(error).__name__}: {error}"
        yield _failure(job, redactor, message, "report it with the tool's version")


def _is_own_call(path: Path, adapter: Adapter) -> bool:
    with open_file(path) as file:
        if not conversation.may_be_own(file.read(conversation.HEAD_BYTES)):
            return False
    with FileSource(path) as source:
        return conversation.is_own_call(iter_parsed(adapter, source))


def _read_source(
    job: Job, adapter: Adapter, source: AnySource, redactor: Redactor
) -> Iterator[Event]:
    present: dict[str, list[str]] = {}
    for batch in batches(job.path, adapter, source, redactor):
        if adapter.whole:
            present.setdefault(batch.session.native_id, []).extend(turn.id for turn in batch.turns)
        yield batch
    cursor = source.cursor()
    byte_count = max(0, cursor.size - source.start)
    # The state that an adapter keeps can quote the transcript.
    carry = with_texts(cursor.carry, lambda text: redactor.clean(_encodable(text)), keys=True)
    json.dumps(carry)  # raises TypeError for values that cannot be stored
    cursor = replace(cursor, carry=carry)
    if job.mtime_ns:  # a transcript of several files: use its state before reading
        cursor = replace(cursor, size=job.size, mtime_ns=job.mtime_ns)
    tally = replace(source.tally, unknown=_clean_counts(source.tally.unknown, redactor))
    yield FileDone(
        job.path,
        job.size,
        adapter.tool,
        cursor,
        tally,
        byte_count,
        present if adapter.whole else None,
    )


AnySource = FileSource | DatabaseSource


class ForeignFormatError(InvalidInputError):
    """The error for an encrypted file, an invalid database, or a file with only overlong lines."""


class EmptyError(ForeignFormatError):
    """The error for an empty database, which some tools create at startup."""


@contextlib.contextmanager
def open_transcript(
    path: Path,
    tool: str | None = None,
    cursor: Cursor | None = None,
    identities: tuple[str, ...] = (),
) -> Iterator[tuple[Adapter | None, AnySource]]:
    """Open a transcript with the adapter that recognises it, or ``None``.

    Reading continues at the cursor if the format allows it. Raises ForeignFormatError if the file
    is not a valid database or has no readable line, or InvalidInputError if it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if path.name.endswith(SUFFIXES):
            database = stack.enter_context(_database(path))
            adapter = find_adapter(Head(path, MAGIC, database))
            previous = cursor if adapter and adapter.tool == tool else None

            def look(other: Path) -> ForeignDatabase:
                return stack.enter_context(_database(other))

            source: AnySource = DatabaseSource(path, database, look, previous)
            source.identities = identities
            yield adapter, source
        else:
            adapter = adapter_of(tool, path) if tool and cursor else find_adapter(read_head(path))
            if adapter is None and is_too_long(path):
                raise ForeignFormatError(
                    f"{path} has only lines of {MAX_LINE_BYTES // 1_000_000} MB or more, which cannot be read"
                )
            continues = adapter is not None and adapter.tool == tool and not adapter.whole
            source = stack.enter_context(FileSource(path, cursor if continues else None))
            source.identities = identities
            if adapter:
                source.fields = adapter.fields
            yield adapter, source


@contextlib.contextmanager
def _database(path: Path) -> Iterator[ForeignDatabase]:
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if not start:
        raise EmptyError(f"{path} is empty: it has no sessions")
    if start != MAGIC:
        raise ForeignFormatError(
            f"{path} is not a SQLite database, or is encrypted",
            hint="have its program export or decrypt it first",
        )
    with open_foreign(path) as database:
        yield database


def _failure(job: Job, redactor: Redactor, message: str, hint: str | None = None) -> FileFailed:
    # The problem already contains the path.
    shortened = shorten(redactor.clean(message.removeprefix(f"{job.path} ")), 500)
    return FileFailed(job.path, job.size, Problem(str(job.path), shortened, hint))


def recognise(job: Job) -> Adapter | None:
    """Return the adapter for a file, or ``None`` if the file is not a transcript.

    Raises UnreadableTranscriptError or InvalidInputError.
    """
    try:
        with open_transcript(job.path, job.tool, job.cursor) as (adapter, _):
            return adapter
    except ForeignFormatError as error:
        if job.is_named or (job.expected_of and not isinstance(error, EmptyError)):
            raise
        return None


def iter_parsed(adapter: Adapter, source: Source) -> Iterator[Session | Turn]:
    """Yield a transcript's sessions and turns. Output of third-party adapters goes to stderr."""
    items = iter(adapter.parse(source))
    return (
        items if adapter.parse.__module__.startswith("nacre.") else _with_stdout_redirected(items)
    )


def _with_stdout_redirected(items: Iterator[Session | Turn]) -> Iterator[Session | Turn]:
    while True:
        with contextlib.redirect_stdout(sys.stderr):
            item = next(items, _END)
        if item is _END:
            return
        yield item


def batches(
    path: Path,
    adapter: Adapter,
    source: Source,
    redactor: Redactor,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Batch]:
    """Yield a transcript's redacted turns in batches. Raises UnreadableTranscriptError."""
    deadline = clock() + MAX_SECONDS
    session: Session | None = None
    turns: list[Turn] = []
    characters = 0
    for item in iter_parsed(adapter, source):
        if clock() > deadline:
            raise UnreadableTranscriptError(
                f"{path} takes longer than {MAX_SECONDS:.0f} seconds to read"
            )
        if isinstance(item, Session):
            if session and (turns or session != item):
                yield Batch(path, session, _clean_turns(turns, redactor))
            session, turns, characters = _clean_session(item, redactor), [], 0
            continue
        if session is None:
            raise ValueError(f"the {adapter.tool} adapter returned a turn before its session")
        turns.append(item)
        characters += len(item.text)
        if len(turns) >= BATCH_TURNS or characters >= BATCH_CHARACTERS:
            yield Batch(path, session, _clean_turns(turns, redactor))
            turns, characters = [], 0
    if session:
        yield Batch(path, session, _clean_turns(turns, redactor))


def _clean_counts(counts: Mapping[str, int], redactor: Redactor) -> Counter[str]:
    cleaned: Counter[str] = Counter()
    for name, count in counts.items():
        cleaned[redactor.clean(name)[:UNKNOWN_CHARACTERS]] += count
    return cleaned


def _encodable(text: str) -> str:
    # Third-party adapters can return unpaired surrogates, which cannot be stored.
    return text if text.isascii() else to_bytes(text).decode("utf-8")


def _clean_session(session: Session, redactor: Redactor) -> Session:
    def clean(text: str) -> str:
        return redactor.clean(strip(_encodable(text)).text)

    def clean_name(name: str) -> str:
        return kept_name(redactor, _encodable(name))

    cleaned: dict[str, Any] = {
        name: clean(text) if (text := getattr(session, name)) else None
        for name in ("branch", "label", "cwd", "repository", "tool_version", "model")
    }
    return replace(
        session,
        **cleaned,
        title=clean(session.title)[:300] if session.title else None,
        native_id=clean_name(session.native_id),
        parent=clean_name(session.parent) if session.parent else None,
    )


def _clean_turns(turns: Sequence[Turn], redactor: Redactor) -> tuple[Turn, ...]:
    """Redact all turns in one call, because many calls would be slower."""
    stripped = [_stripped_turn(turn, redactor) for turn in turns]
    cleaned = iter(redactor.clean_all([text for turn in stripped for text in _texts_of(turn)]))
    return tuple(_with_texts(turn, cleaned) for turn in stripped)


def _stripped_turn(turn: Turn, redactor: Redactor) -> Turn:
    if turn.time and turn.time.tzinfo is None:
        raise ValueError("a turn's time has no time zone")
    stripped = strip(_encodable(turn.text))
    flags = turn.flags | stripped.flags
    author = _encodable(turn.author) if turn.author else turn.author
    calls = tuple(
        ToolCall(
            _encodable(call.name),
            _strip(call.input),
            _strip(call.outcome) if call.outcome else call.outcome,
            call.action,
            tuple(map(_strip, call.paths)),
            _strip(call.error) if call.error else None,
            tuple(map(_strip, call.made)),
        )
        for call in turn.tool_calls
    )
    return replace(
        turn,
        id=kept_id(redactor, _encodable(turn.id)),
        text=stripped.text,
        author=author,
        tool_calls=calls,
        flags=flags,
    )


def _strip(text: str) -> str:
    return strip(_encodable(text)).text


def _texts_of(turn: Turn) -> Iterator[str]:
    # The order must be the one in which _with_texts() takes them.
    yield turn.text
    if turn.author:
        yield turn.author
    for call in turn.tool_calls:
        yield call.name
        yield call.input
        if call.outcome:
            yield call.outcome
        yield from call.paths
        if call.error:
            yield call.error
        yield from call.made


def _with_texts(turn: Turn, texts: Iterator[str]) -> Turn:
    # Texts are shortened only after redaction, because truncated secrets would not be recognised.
    text = next(texts)
    author = next(texts) if turn.author else turn.author
    calls = tuple(
        ToolCall(
            next(texts),
            shorten(next(texts), INPUT_CHARACTERS),
            next(texts)[:OUTCOME_CHARACTERS].rstrip(": ") if call.outcome else call.outcome,
            call.action,
            tuple(next(texts)[:PATH_CHARACTERS] for _ in call.paths),
            next(texts)[:ERROR_CHARACTERS] if call.error else None,
            tuple(next(texts)[:PATH_CHARACTERS] for _ in call.made),
        )
        for call in turn.tool_calls
    )
    return replace(turn, text=text, author=author, tool_calls=calls)


def count_cores() -> int:
    """Return the number of processor cores available to this process."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# -- Portions for the archive --------------------------------------------------


SEGMENT_BYTES = 4_000_000


def cut(file: BinaryIO, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield complete lines in blocks of a few megabytes, each with its offset.

    Lines that are too long become blank.
    """
    while start < size:
        length = min(size - start, SEGMENT_BYTES)
        file.seek(start)
        raw = file.read(min(length, MAX_LINE_BYTES))
        complete = raw[: raw.rfind(b"\n") + 1]
        if not complete and len(raw) == length < size - start:
            raw += file.readline(MAX_LINE_BYTES)[: size - start - length]
            complete = raw[: raw.rfind(b"\n") + 1] or (
                b" " * len(raw) if len(raw) > MAX_LINE_BYTES else b""
            )
        if (
            start + len(raw) == size
            and len(complete) < len(raw)
            and is_complete(raw[len(complete) :])
        ):
            complete = raw
        if not complete:
            return
        yield start, complete
        start += len(complete)
