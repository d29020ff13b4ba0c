"""Names that are kept: of files, of sessions, of turns. What looks like a secret in one is taken out of it.

A name is a key: two files must not become one. So what was changed ends in a hash of what it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from nacre.base.text import shorten
from nacre.errors import InvalidInput, NacreError, TranscriptUnreadable
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
    read_head,
)
from nacre.readers.conversation import ERROR_CHARACTERS, strip
from nacre.readers.registry import adapter_of, find_adapter
from nacre.redact.redactor import Redactor
from nacre.store.foreign import ForeignDatabase, open_foreign
from nacre.store.packs import Cleaner, Payload, digest_of
from nacre.values.reports import Problem
from nacre.values.session import Cursor, Flag, Session, Tally, ToolCall, Turn

_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:|-]{1,39}")
_MOST_REMEMBERED = 4096


@lru_cache(_MOST_REMEMBERED)
def kept_name(redactor: Redactor, name: str) -> str:
    """A path, or the id of a session, which may come from the name of a file, as it is stored."""
    clean = redactor.clean(name)
    if clean == name:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{clean}#{digest}"


def kept_id(redactor: Redactor, name: str) -> str:
    """A tool's own id of a turn. It is short and random as a rule, and then it is what it says."""
    return name if _PLAIN_ID.fullmatch(name) else kept_name(redactor, name)


# ----------------------------------------------------------------------------
# Parse and redact transcripts; the caller stores what arrives.


MAX_SECONDS = 600.0
"""How long one file may be read; then the next one follows."""

BATCH_TURNS = 400
BATCH_CHARACTERS = 1_000_000
INPUT_CHARACTERS = 300
OUTCOME_CHARACTERS = 200
PATH_CHARACTERS = 500
BORDER_BYTES = 12_000_000
"""Less is read here: starting a process takes as long as reading half of it does."""

MOST_PROCESSES = 4
"""More of them read faster than one can store."""

UNKNOWN_CHARACTERS = 80
_NUMBERS = {int, float}
_END: Any = object()


@dataclass(frozen=True, slots=True)
class Job:
    """A file to read: the tool it was read as before and where that ended, if it was; whether a person named it.

    ``size`` and ``mtime_ns`` are those of all files that belong to it (``Adapter.beside``). ``is_expected`` where its
    tool keeps sessions in this very place: what cannot be read there is a problem. ``identities`` are the names under
    which the owner writes in chats. ``reader`` is the only tool whose adapters may read it.
    """

    path: Path
    size: int
    tool: str | None = None
    cursor: Cursor | None = None
    is_named: bool = False
    is_expected: bool = False
    mtime_ns: int = 0
    identities: tuple[str, ...] = ()
    reader: str | None = None

    @property
    def unread(self) -> int:
        """Bytes that are new since the last reading; a file that shrank is new."""
        begun = self.cursor.offset if self.cursor else 0
        return self.size - begun if self.size >= begun else self.size


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one session, redacted, in order. The turns may be empty: then only the session's facts are new.

    ``project`` is the slug of its project where that is known already.
    """

    path: Path
    session: Session
    turns: tuple[Turn, ...]
    project: str | None = None


@dataclass(frozen=True, slots=True)
class FileDone:
    """A file was read to its end.

    ``present`` says what the file holds, session by session, where it was read as a whole: everything else that was
    read from it before is gone. It is ``None`` where the reading went on from a cursor.
    """

    path: Path
    size: int
    tool: str
    cursor: Cursor
    tally: Tally
    bytes_read: int
    present: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class FileFailed:
    """A file could not be read, or is no transcript, an empty database, or of a tool that is excluded (then ``problem``
    is ``None``)."""

    path: Path
    size: int
    problem: Problem | None
    is_excluded: bool = False
    is_empty: bool = False
    is_own: bool = False
    """A session that nacre began itself, to ask a model."""


Event = Batch | FileDone | FileFailed


def roots_of(adapter: Adapter, places: Places) -> Sequence[Root] | Problem:
    """Where an adapter's tool keeps transcripts. An adapter that fails is a problem, and the others go on."""
    try:
        return adapter.roots(places)
    except Exception as error:  # noqa: BLE001 - anybody's adapter costs its own files only
        message = f"the adapter cannot say where its files are: {type(error).__name__}: {error}"
        return Problem(adapter.label, message, "report it with the tool's version")


def count_processes(jobs: Sequence[Job], wanted: int = 0) -> int:
    """How many processes are to read: ``wanted``, or by what there is to read and by the processor's cores.

    1 means: this one.
    """
    if getattr(sys, "frozen", False) or not sys.executable or len(jobs) < 2:
        return 1
    if wanted:
        return min(wanted, len(jobs))
    unread = sum(job.unread for job in jobs)
    return min(_count_cores(), MOST_PROCESSES, len(jobs)) if unread >= BORDER_BYTES else 1


def read_files(
    jobs: Sequence[Job], redactor: Redactor, excluded_tools: Container[str] = frozenset()
) -> Iterator[Event]:
    """Read files in order. An error in one file is an event, never the end."""
    for job in jobs:
        yield from read_file(job, redactor, excluded_tools)


def read_file(job: Job, redactor: Redactor, excluded_tools: Container[str]) -> Iterator[Event]:
    """Read one file; the last event, and only that, is :class:`FileDone` or :class:`FileFailed`."""
    try:
        with opened(job.path, job.tool, job.cursor, job.identities) as (adapter, source):
            if adapter is None or job.reader not in (None, adapter.tool):
                problem = (
                    Problem(str(job.path), "not a transcript nacre knows", None)
                    if job.is_named
                    else None
                )
                yield FileFailed(job.path, job.size, problem)
            elif adapter.tool in excluded_tools:
                yield FileFailed(job.path, job.size, None, is_excluded=True)
            elif adapter.tool in conversation.TOOLS and _is_own_call(job.path, adapter):
                yield FileFailed(job.path, job.size, None, is_own=True)
            else:
                yield from _read_source(job, adapter, source, redactor)
    except NotTheirs as error:
        is_empty = isinstance(error, Empty)
        is_wanted = job.is_named or (job.is_expected and not is_empty)
        failed = FileFailed(job.path, job.size, None, is_empty=is_empty and job.is_expected)
        yield _failed(job, redactor, error.message, error.hint) if is_wanted else failed
    except NacreError as error:
        yield _failed(job, redactor, error.message, error.hint)
    except OSError as error:
        yield _failed(job, redactor, error.strerror or "cannot be read")
    except Exception as error:  # noqa: BLE001 - a format that drifted, or anybody's adapter, costs its own file only
        message = f"the adapter failed: {type(error).__name__}: {error}"
        yield _failed(job, redactor, message, "report it with the tool's version")


def _is_own_call(path: Path, adapter: Adapter) -> bool:
    with path.open("rb") as file:
        if not conversation.may_be_own(file.read(conversation.HEAD_BYTES)):
            return False
    with FileSource(path) as source:
        return conversation.is_own_call(parsed(adapter, source))


def _read_source(
    job: Job, adapter: Adapter, source: AnySource, redactor: Redactor
) -> Iterator[Event]:
    present: dict[str, list[str]] = {}
    for batch in batches(job.path, adapter, source, redactor):
        if adapter.whole:
            present.setdefault(batch.session.native_id, []).extend(turn.id for turn in batch.turns)
        yield batch
    cursor = source.cursor()
    read = max(0, cursor.size - source.start)
    cursor = replace(cursor, carry=_clean_values(cursor.carry, redactor))
    if job.mtime_ns:  # of several files those count that were there when the reading began
        cursor = replace(cursor, size=job.size, mtime_ns=job.mtime_ns)
    tally = replace(source.tally, unknown=_clean_counts(source.tally.unknown, redactor))
    yield FileDone(
        job.path, job.size, adapter.tool, cursor, tally, read, present if adapter.whole else None
    )


AnySource = FileSource | DatabaseSource


class NotTheirs(InvalidInput):
    """A file that is named like a database and is none, or an encrypted one; or one whose lines are all too long."""


class Empty(NotTheirs):
    """A database without a byte: a tool that just started has one, and some never write into theirs."""


@contextlib.contextmanager
def opened(
    path: Path,
    tool: str | None = None,
    cursor: Cursor | None = None,
    identities: tuple[str, ...] = (),
) -> Iterator[tuple[Adapter | None, AnySource]]:
    """A transcript to read, with the adapter that knows it: ``None`` when there is none.

    The reading goes on at the cursor where the file was read as this tool before, in a format that continues.
    Raises NotTheirs for what only looks like a database or has no line that can be read, InvalidInput for a file that
    cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if path.name.endswith(SUFFIXES):
            database = stack.enter_context(_database(path))
            adapter = find_adapter(Head(path, MAGIC, database))
            previous = cursor if adapter and adapter.tool == tool else None

            def look(other: Path) -> ForeignDatabase:
                return stack.enter_context(_database(other))

            found: AnySource = DatabaseSource(path, database, look, previous)
            found.identities = identities
            yield adapter, found
        else:
            adapter = adapter_of(tool, path) if tool and cursor else find_adapter(read_head(path))
            if adapter is None and is_too_long(path):
                raise NotTheirs(
                    f"{path} has no line of less than {MAX_LINE_BYTES // 1_000_000} MB: none can be read"
                )
            continues = adapter is not None and adapter.tool == tool and not adapter.whole
            found = stack.enter_context(FileSource(path, cursor if continues else None))
            found.identities = identities
            yield adapter, found


@contextlib.contextmanager
def _database(path: Path) -> Iterator[ForeignDatabase]:
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if not start:
        raise Empty(f"{path} is empty: it has no sessions yet, or lost them")
    if start != MAGIC:
        raise NotTheirs(
            f"{path} is no SQLite database, or an encrypted one",
            hint="have its program export or decrypt it first",
        )
    with open_foreign(path) as database:
        yield database


def _failed(job: Job, redactor: Redactor, message: str, hint: str | None = None) -> FileFailed:
    told = shorten(
        redactor.clean(message.removeprefix(f"{job.path} ")), 500
    )  # the path is told beside it
    return FileFailed(job.path, job.size, Problem(str(job.path), told, hint))


def recognise(job: Job) -> Adapter | None:
    """The adapter that reads a file; ``None`` when it is no transcript. Raises TranscriptUnreadable, InvalidInput."""
    try:
        with opened(job.path, job.tool, job.cursor) as (adapter, _):
            return adapter
    except NotTheirs as error:
        if job.is_named or (job.is_expected and not isinstance(error, Empty)):
            raise
        return None


def parsed(adapter: Adapter, source: Source) -> Iterator[Session | Turn]:
    """What an adapter makes of a transcript. What anybody's prints meanwhile goes where warnings go."""
    items = adapter.parse(source)
    return items if adapter.parse.__module__.startswith("nacre.") else _quietly(items)


def _quietly(items: Iterator[Session | Turn]) -> Iterator[Session | Turn]:
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
    """What an adapter finds in a source, redacted, some hundred turns at a time. Raises TranscriptUnreadable."""
    until = clock() + MAX_SECONDS
    session: Session | None = None
    turns: list[Turn] = []
    characters = 0
    for item in parsed(adapter, source):
        if clock() > until:
            raise TranscriptUnreadable(
                f"{path} takes longer than {MAX_SECONDS:.0f} seconds to read"
            )
        if isinstance(item, Session):
            if session and (turns or session != item):
                yield Batch(path, session, _clean_turns(turns, redactor))
            session, turns, characters = _clean_session(item, redactor), [], 0
            continue
        if session is None:
            raise ValueError(f"{adapter.tool} gave a turn before its session")
        turns.append(item)
        characters += len(item.text)
        if len(turns) >= BATCH_TURNS or characters >= BATCH_CHARACTERS:
            yield Batch(path, session, _clean_turns(turns, redactor))
            turns, characters = [], 0
    if session:
        yield Batch(path, session, _clean_turns(turns, redactor))


def _clean_values(value: Any, redactor: Redactor) -> Any:
    """What an adapter carries over may quote the transcript. Raises TypeError for what is no JSON."""
    if isinstance(value, str):
        return redactor.clean(_sound(value))
    if isinstance(value, dict):
        return {
            _clean_values(str(key), redactor): _clean_values(item, redactor)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _NUMBERS:  # the hashes of what was heard, thousands of them
            return list(value)
        return [_clean_values(item, redactor) for item in value]
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be carried over")


def _clean_counts(counts: Mapping[str, int], redactor: Redactor) -> Counter[str]:
    """Types of records that are not known. They may be anything: secrets first, length then."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[redactor.clean(name)[:UNKNOWN_CHARACTERS]] += count
    return found


def _sound(text: str) -> str:
    """Half characters cannot be stored; anybody's adapter may hand them on."""
    return text if text.isascii() else text.encode("utf-8", errors="replace").decode("utf-8")


def _clean_session(session: Session, redactor: Redactor) -> Session:
    def clean(text: str) -> str:
        return redactor.clean(strip(_sound(text)).text)

    return replace(
        session,
        native_id=kept_name(redactor, _sound(session.native_id)),
        title=clean(session.title)[:300] if session.title else None,
        branch=clean(session.branch) if session.branch else None,
        label=clean(session.label) if session.label else None,
        cwd=clean(session.cwd) if session.cwd else None,
        repository=clean(session.repository) if session.repository else None,
        parent=kept_name(redactor, _sound(session.parent)) if session.parent else None,
        tool_version=clean(session.tool_version) if session.tool_version else None,
        model=clean(session.model) if session.model else None,
    )


def _clean_turns(turns: Sequence[Turn], redactor: Redactor) -> tuple[Turn, ...]:
    """Turns without secrets, the texts of all of them together: many are short, and hardly any holds one."""
    bare = [_bare_turn(turn, redactor) for turn in turns]
    cleaned = iter(redactor.clean_all([text for turn in bare for text in _texts_of(turn)]))
    return tuple(_put_back(turn, cleaned) for turn in bare)


def _bare_turn(turn: Turn, redactor: Redactor) -> Turn:
    """A turn without nacre's own context, and without half characters; its id as it is kept."""
    if turn.time and turn.time.tzinfo is None:
        raise ValueError("a turn's time has no zone")
    said = strip(_sound(turn.text))
    flags = turn.flags | Flag.INJECTED if said.injected else turn.flags
    author = _sound(turn.author) if turn.author else turn.author
    calls = tuple(
        ToolCall(
            _sound(call.name),
            _bare(call.input),
            _bare(call.outcome) if call.outcome else call.outcome,
            call.action,
            tuple(map(_bare, call.paths)),
            _bare(call.error) if call.error else None,
            tuple(map(_bare, call.made)),
        )
        for call in turn.tool_calls
    )
    return replace(
        turn,
        id=kept_id(redactor, _sound(turn.id)),
        text=said.text,
        author=author,
        tool_calls=calls,
        flags=flags,
    )


def _bare(text: str) -> str:
    return strip(_sound(text)).text


def _texts_of(turn: Turn) -> Iterator[str]:
    """What a turn says, in the order in which :func:`_put_back` takes it."""
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


def _put_back(turn: Turn, texts: Iterator[str]) -> Turn:
    """A turn with its texts redacted; cut only now, for what a cut leaves of a secret is not recognised."""
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


def _count_cores() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ----------------------------------------------------------------------------
# Portions of transcripts without secrets, made here or ahead in processes of their own.


SEGMENT_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Portion:
    """What came of the lines from ``start`` on whose digest is ``of``; no payload where nothing in them changes."""

    path: Path
    start: int
    of: bytes
    payload: Payload | None
    is_last: bool


class Ahead:
    """Portions that come in the order of their files, for whoever asks in that order."""

    def __init__(self, portions: Iterator[Portion], paths: Sequence[Path]) -> None:
        """``paths`` are the files in order."""
        self._portions = portions
        self._order: Mapping[Path, int] = {path: number for number, path in enumerate(paths)}
        self._next: Portion | None = None

    def find(self, path: Path, start: int, raw: bytes) -> Payload | None:
        """What is kept of some lines, if they were cleaned as they are."""
        wanted = self._order.get(path)
        if wanted is None:
            return None
        while self._next is None or (self._order[self._next.path], self._next.start) < (
            wanted,
            start,
        ):
            self._next = next(self._portions, None)
            if self._next is None:
                return None
        found = self._next
        if (found.path, found.start) != (path, start) or found.of != digest_of(raw):
            return None
        return found.payload or Payload(raw)


def clean(cleaner: Cleaner, raw: bytes) -> Payload:
    """What is kept of some lines."""
    return cleaner.lines(raw) if raw.strip() else Payload(b"\n", ((0, len(raw) - 1),))


def clean_file(job: Job, cleaner: Cleaner) -> Iterator[Portion]:
    """What is kept of a file from where it was archived to; the last portion says so, and is empty."""
    start = job.cursor.offset if job.cursor else 0
    try:
        with job.path.open("rb") as file:
            for at, raw in cut(file, start, job.size):
                payload = clean(cleaner, raw)
                yield Portion(
                    job.path,
                    at,
                    digest_of(raw),
                    None if payload.text is raw else payload,
                    is_last=False,
                )
    except OSError:
        pass  # who archives it says so
    yield Portion(job.path, job.size, b"", None, is_last=True)


def cut(
    file: BinaryIO, start: int, size: int, cuts: Sequence[int] = ()
) -> Iterator[tuple[int, bytes]]:
    """Complete lines from a place on, some megabytes at a time; a line that is too long is blank."""
    while start < size:
        ends = [cut for cut in cuts if start < cut <= size]
        wanted = (
            min(
                ends[0] if ends else size,
                start + max(SEGMENT_BYTES, ends[0] - start if ends else 0),
            )
            - start
        )
        file.seek(start)
        raw = file.read(min(wanted, MAX_LINE_BYTES))
        kept = raw[: raw.rfind(b"\n") + 1]
        if not kept and len(raw) == wanted < size - start:
            raw += file.readline(MAX_LINE_BYTES)[: size - start - wanted]
            kept = raw[: raw.rfind(b"\n") + 1] or (
                b" " * len(raw) if len(raw) > MAX_LINE_BYTES else b""
            )
        if start + len(raw) == size and len(kept) < len(raw) and is_complete(raw[len(kept) :]):
            kept = raw
        if not kept:
            return
        yield start, kept
        start += len(kept)
