"""Parse and redact transcripts in a thread of their own; the caller stores what arrives.

SQLite works outside the interpreter's lock, so that reading and storing share two cores.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nacre.errors import InvalidInput, NacreError
from nacre.model.cursor import Cursor, Tally
from nacre.model.reports import Problem
from nacre.model.session import Flag, Session, ToolCall, Turn
from nacre.redact.redactor import Redactor
from nacre.storage.foreign import ForeignDatabase, open_foreign
from nacre.text import shorten
from nacre.transcripts.adapter import Adapter, Head, Places, Root
from nacre.transcripts.databases import MAGIC, SUFFIXES, DatabaseSource
from nacre.transcripts.injected import strip
from nacre.transcripts.reading import FileSource, read_head
from nacre.transcripts.registry import adapter_of, find_adapter
from nacre.transcripts.tool_calls import ERROR_CHARACTERS

BATCH_TURNS = 400
BATCH_CHARACTERS = 1_000_000
INPUT_CHARACTERS = 300
OUTCOME_CHARACTERS = 200
PATH_CHARACTERS = 500
_QUEUE_BATCHES = 6
_ID_CHARACTERS = 39


@dataclass(frozen=True, slots=True)
class Job:
    """A file to read: the tool it was read as before and where that ended, if it was; whether a person named it.

    ``size`` and ``mtime_ns`` are those of all files that belong to it (``Adapter.beside``). ``is_expected`` where its
    tool keeps sessions in this very place: what cannot be read there is a problem.
    """

    path: Path
    size: int
    tool: str | None = None
    cursor: Cursor | None = None
    is_named: bool = False
    is_expected: bool = False
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one session, redacted, in order. The turns may be empty: then only the session's facts are new."""

    path: Path
    session: Session
    turns: tuple[Turn, ...]


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
    """A file could not be read, or is no transcript or of a tool that is excluded (then ``problem`` is ``None``)."""

    path: Path
    size: int
    problem: Problem | None
    is_excluded: bool = False


Event = Batch | FileDone | FileFailed


def roots_of(adapter: Adapter, places: Places) -> Sequence[Root] | Problem:
    """Where an adapter's tool keeps transcripts. An adapter that fails is a problem, and the others go on."""
    try:
        return adapter.roots(places)
    except Exception as error:  # noqa: BLE001 - anybody's adapter costs its own files only
        message = f"the adapter cannot say where its files are: {type(error).__name__}: {error}"
        return Problem(adapter.label, message, "report it with the tool's version")


def read_files(
    jobs: Sequence[Job], redactor: Redactor, excluded_tools: Container[str] = frozenset()
) -> Iterator[Event]:
    """Read files in order. An error in one file is an event, never the end."""
    events: queue.Queue[Event | BaseException | None] = queue.Queue(_QUEUE_BATCHES)
    stopping = threading.Event()

    def work() -> None:
        try:
            for job in jobs:
                for event in _read_file(job, redactor, excluded_tools):
                    if stopping.is_set():
                        return
                    events.put(event)
            events.put(None)
        except BaseException as error:  # noqa: BLE001 - carried over to the reading thread and raised there
            events.put(error)

    thread = threading.Thread(target=work, name="nacre-reader", daemon=True)
    thread.start()
    try:
        while (event := events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        stopping.set()
        while thread.is_alive():
            try:
                events.get(timeout=0.05)
            except queue.Empty:
                continue
        thread.join()


def _read_file(job: Job, redactor: Redactor, excluded_tools: Container[str]) -> Iterator[Event]:
    try:
        with opened(job.path, job.tool, job.cursor) as (adapter, source):
            if adapter is None:
                problem = Problem(str(job.path), "not a transcript nacre knows", None) if job.is_named else None
                yield FileFailed(job.path, job.size, problem)
            elif adapter.tool in excluded_tools:
                yield FileFailed(job.path, job.size, None, is_excluded=True)
            else:
                yield from _read_source(job, adapter, source, redactor)
    except NotTheirs as error:
        is_wanted = job.is_named or job.is_expected
        yield _failed(job, redactor, error.message, error.hint) if is_wanted else FileFailed(job.path, job.size, None)
    except NacreError as error:
        yield _failed(job, redactor, error.message, error.hint)
    except OSError as error:
        yield _failed(job, redactor, error.strerror or "cannot be read")
    except Exception as error:  # noqa: BLE001 - a format that drifted, or anybody's adapter, costs its own file only
        message = f"the adapter failed: {type(error).__name__}: {error}"
        yield _failed(job, redactor, message, "report it with the tool's version")


def _read_source(job: Job, adapter: Adapter, source: AnySource, redactor: Redactor) -> Iterator[Event]:
    present: dict[str, list[str]] = {}
    for batch in _batches(job.path, adapter, source, redactor):
        if adapter.whole:
            present.setdefault(batch.session.native_id, []).extend(turn.id for turn in batch.turns)
        yield batch
    cursor = source.cursor()
    read = max(0, cursor.size - source.start)
    cursor = replace(cursor, carry=_clean_values(cursor.carry, redactor))
    if job.mtime_ns:  # of several files those count that were there when the reading began
        cursor = replace(cursor, size=job.size, mtime_ns=job.mtime_ns)
    tally = replace(source.tally, unknown=Counter(_clean_values(dict(source.tally.unknown), redactor)))
    yield FileDone(
        job.path, job.size, adapter.tool, cursor, tally, read, present if adapter.whole else None
    )  # fmt: skip


AnySource = FileSource | DatabaseSource


class NotTheirs(InvalidInput):
    """A file that is named like a database and is none, or an encrypted one."""


@contextlib.contextmanager
def opened(
    path: Path, tool: str | None = None, cursor: Cursor | None = None
) -> Iterator[tuple[Adapter | None, AnySource]]:
    """A transcript to read, with the adapter that knows it: ``None`` when there is none.

    The reading goes on at the cursor where the file was read as this tool before, in a format that continues.
    Raises NotTheirs for what only looks like a database, InvalidInput for a file that cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if path.name.endswith(SUFFIXES):
            database = stack.enter_context(_database(path))
            adapter = find_adapter(Head(path, MAGIC, database))
            previous = cursor if adapter and adapter.tool == tool else None

            def look(other: Path) -> ForeignDatabase:
                return stack.enter_context(_database(other))

            yield adapter, DatabaseSource(path, database, look, previous)
        else:
            adapter = adapter_of(tool, path) if tool and cursor else find_adapter(read_head(path))
            continues = adapter is not None and adapter.tool == tool and not adapter.whole
            yield adapter, stack.enter_context(FileSource(path, cursor if continues else None))


@contextlib.contextmanager
def _database(path: Path) -> Iterator[ForeignDatabase]:
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start and start != MAGIC:
        raise NotTheirs(
            f"{path} is no SQLite database, or an encrypted one", hint="have its program export or decrypt it first"
        )
    with open_foreign(path) as database:
        yield database


def _failed(job: Job, redactor: Redactor, message: str, hint: str | None = None) -> FileFailed:
    return FileFailed(job.path, job.size, Problem(str(job.path), shorten(redactor.clean(message), 500), hint))


def _batches(path: Path, adapter: Adapter, source: AnySource, redactor: Redactor) -> Iterator[Batch]:
    session: Session | None = None
    turns: list[Turn] = []
    characters = 0
    for item in adapter.parse(source):
        if isinstance(item, Session):
            if session and (turns or session != item):
                yield Batch(path, session, tuple(turns))
            session, turns, characters = _clean_session(item, redactor), [], 0
            continue
        if session is None:
            raise ValueError(f"{adapter.tool} gave a turn before its session")
        turns.append(_clean_turn(item, redactor))
        characters += len(item.text)
        if len(turns) >= BATCH_TURNS or characters >= BATCH_CHARACTERS:
            yield Batch(path, session, tuple(turns))
            turns, characters = [], 0
    if session:
        yield Batch(path, session, tuple(turns))


def _clean_values(value: Any, redactor: Redactor) -> Any:
    """What an adapter carries over may quote the transcript."""
    if isinstance(value, str):
        return redactor.clean(value)
    if isinstance(value, dict):
        return {redactor.clean(str(key)): _clean_values(item, redactor) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_values(item, redactor) for item in value]
    return value


def _sound(text: str) -> str:
    """Half characters cannot be stored; anybody's adapter may hand them on."""
    return text if text.isascii() else text.encode("utf-8", errors="replace").decode("utf-8")


def _clean_id(name: str, redactor: Redactor) -> str:
    """A tool's own id, which is short and random; a long one may be something else."""
    return _sound(name) if len(name) <= _ID_CHARACTERS else redactor.clean(_sound(name))


def _clean_session(session: Session, redactor: Redactor) -> Session:
    def clean(text: str) -> str:
        return redactor.clean(strip(_sound(text)).text)

    return replace(
        session,
        native_id=_clean_id(session.native_id, redactor),
        title=clean(session.title)[:300] if session.title else None,
        branch=clean(session.branch) if session.branch else None,
        label=clean(session.label) if session.label else None,
        cwd=clean(session.cwd) if session.cwd else None,
        repository=clean(session.repository) if session.repository else None,
        parent=_clean_id(session.parent, redactor) if session.parent else None,
        tool_version=clean(session.tool_version) if session.tool_version else None,
        model=clean(session.model) if session.model else None,
    )


def _clean_turn(turn: Turn, redactor: Redactor) -> Turn:
    if turn.time and turn.time.tzinfo is None:
        raise ValueError("a turn's time has no zone")
    said = strip(_sound(turn.text))
    text = redactor.clean(said.text)
    flags = turn.flags | (Flag.INJECTED if said.injected else Flag.NONE)
    author = redactor.clean(_sound(turn.author)) if turn.author else turn.author
    calls = tuple(_clean_call(call, redactor) for call in turn.tool_calls)
    return replace(turn, id=_clean_id(turn.id, redactor), text=text, author=author, tool_calls=calls, flags=flags)


def _clean_call(call: ToolCall, redactor: Redactor) -> ToolCall:
    """Secrets first, length then: the head of a secret that a cut went through is not recognised."""

    def clean(text: str) -> str:
        return redactor.clean(strip(_sound(text)).text)

    outcome = clean(call.outcome)[:OUTCOME_CHARACTERS].rstrip(": ") if call.outcome else call.outcome
    error = clean(call.error)[:ERROR_CHARACTERS] if call.error else None
    return ToolCall(
        redactor.clean(_sound(call.name)), shorten(clean(call.input), INPUT_CHARACTERS), outcome, call.action,
        tuple(clean(path)[:PATH_CHARACTERS] for path in call.paths), error,
    )  # fmt: skip
