"""The conformance test for adapters: :func:`check_adapter`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

from nacre.errors import InvalidInputError, UnreadableTranscriptError
from nacre.home.parsing import Batch, FileFailed, Job, read_files
from nacre.readers.adapter import (
    MAGIC,
    SUFFIXES,
    Adapter,
    DatabaseSource,
    FileSource,
    Head,
    Places,
    Root,
    read_head,
)
from nacre.readers.registry import adapters
from nacre.redact.redactor import Redactor
from nacre.store.foreign import open_foreign
from nacre.testing.samples import samples
from nacre.values.session import Cursor, Flag, Session, Speaker, Tally, Trust, Turn

_NOISE = (
    b"",
    b"{",
    b"[[]]",
    b'{"type": 7, "role": [], "parts": "x"}',
    b"\xff\xfe\xed\xa0\x80",
    None,
    -1,
    3.5,
)
"""Unexpected column values."""

Value = bytes | str | int | float | None


def form_of(path: Path) -> TextForm:
    """Return the file format that belongs to a file's name."""
    return DatabaseForm() if path.name.endswith(SUFFIXES) else TextForm()


class TextForm:
    """The format of a text file, with ways to open, change and damage a sample transcript."""

    is_database = False

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        """Yield what an adapter needs to recognise a file. Raises NacreError."""
        yield read_head(path)

    def source(
        self, path: Path, cursor: Cursor | None
    ) -> contextlib.AbstractContextManager[FileSource | DatabaseSource]:
        """Open a file for parsing, starting at the cursor if there is one. Raises NacreError."""
        return FileSource(path, cursor)

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:  # noqa: ARG002
        """Return the sample's bytes with ``old`` replaced, or ``None`` if it does not occur."""
        return data.replace(old, new) if old in data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Yield damaged versions of the sample, each with a description."""
        half = len(data) // 2
        yield "an empty file", b""
        yield "zero bytes", bytes(4096)
        yield "random bytes", random.Random(1).randbytes(4096)  # noqa: S311 - the same each time
        yield "a truncated file", data[:half]
        yield "invalid UTF-8", data[:half] + b"\xff\xfe\xed\xa0\x80" + data[half:]
        yield "a binary tail", data + bytes(range(256)) * 8
        yield "no newline at the end", data.rstrip()
        yield "Windows line endings", data.replace(b"\n", b"\r\n")
        yield "a byte order mark", b"\xef\xbb\xbf" + data


class DatabaseForm(TextForm):
    """The format of a SQLite database that is not in use."""

    is_database = True

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        with open_foreign(path) as database:
            yield Head(path, MAGIC, database)

    @contextlib.contextmanager
    def source(self, path: Path, cursor: Cursor | None) -> Iterator[DatabaseSource]:
        with contextlib.ExitStack() as stack:
            yield DatabaseSource(
                path,
                stack.enter_context(open_foreign(path)),
                lambda other: stack.enter_context(open_foreign(other)),
                cursor,
            )

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:
        def change(value: Value) -> Value:
            if isinstance(value, str):
                return value.replace(old.decode(), new.decode())
            return value.replace(old, new) if isinstance(value, bytes) else value

        changed = _changed(path, data, change, _columns(path, data))
        return changed if changed != data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
        half = len(data) // 2
        yield "a truncated file", data[:half]
        yield "pages of noise", data[:half] + random.Random(1).randbytes(half)  # noqa: S311
        for table, column in _columns(path, data):
            for noise in _NOISE:
                spoilt = _changed(path, data, partial(_replaced, noise), [(table, column)])
                yield f"{noise!r} in {table}.{column}", spoilt
        with _open(path, data) as database:
            for table in _tables(database):
                database.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608
        yield "tables without rows", path.read_bytes()


def _replaced(noise: Value, _: Value) -> Value:
    return noise


def _tables(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [name for (name,) in rows]


def _columns(path: Path, data: bytes) -> list[tuple[str, str]]:
    query = "SELECT name FROM pragma_table_info(?)"
    with _open(path, data) as database:
        return [
            (table, column)
            for table in _tables(database)
            for (column,) in database.execute(query, (table,))
        ]


def _changed(
    path: Path, data: bytes, change: Callable[[Value], Value], columns: list[tuple[str, str]]
) -> bytes:
    with _open(path, data) as database:
        for table, column in columns:
            quoted, of = _quoted(column), _quoted(table)
            for row, value in database.execute(f"SELECT rowid, {quoted} FROM {of}").fetchall():  # noqa: S608 - quoted
                new = change(value)
                if new != value:  # else the file stays the same
                    with contextlib.suppress(sqlite3.Error):  # a unique or fixed-type column
                        statement = f"UPDATE {of} SET {quoted} = ? WHERE rowid = ?"  # noqa: S608
                        database.execute(statement, (new, row))
    return path.read_bytes()


@contextlib.contextmanager
def _open(path: Path, data: bytes) -> Iterator[sqlite3.Connection]:
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ----------------------------------------------------------------------------
# Steps in a conversation, independent of the tool's format.


@dataclass(frozen=True)
class Owner:
    """A message typed by the user."""

    text: str


@dataclass(frozen=True)
class Agent:
    """A message from the agent."""

    text: str


@dataclass(frozen=True)
class Tool:
    """A tool call that returns ``output``. ``name`` is the name of the tool in Claude Code."""

    name: str
    argument: str
    output: str


@dataclass(frozen=True)
class Summary:
    """A summary of the conversation so far, written by the host."""

    text: str


Step = Owner | Agent | Tool | Summary


# ----------------------------------------------------------------------------
# Tests that run an adapter on a sample of its tool's transcripts.


Write = Callable[[Path, Sequence[Step]], Path]
"""Function that writes a conversation in the tool's format below a folder, and returns the transcript's path."""

Complaints = Iterator[str]

_MOST_CUTS = 40
_LONG_LINE = 4 * 1024 * 1024
_MOST_MEMORY = 96 * 1024 * 1024
_MTIME = 1_795_003_200
_MARKED = "<nacre-context>zephyr lantern quartz</nacre-context>"
_SECRET = "ghp_" + "a1B2" * 9
_PAGE = "All rowers must hand their oars to the stranger before the race begins."
_MEMORY = "The boat house is locked at nine in the evening, except on Fridays."
_NOISE_CONFORMANCE = (
    "<nacre-context",
    "<system-reminder",
    "<system_reminder",
    "<environment_details",
    "<environment_context",
)


@dataclass(frozen=True)
class _Reading:
    sessions: dict[str, Session]
    turns: dict[tuple[str, str], Turn]
    turn_count: int
    cursor: Cursor
    tally: Tally

    def continues(self, later: _Reading, complete: _Reading) -> bool:
        turns, sessions = self.turns | later.turns, self.sessions | later.sessions
        return (turns, sessions) == (complete.turns, complete.sessions)


def check_adapter(
    adapter: Adapter,
    sample: Path,
    *,
    beside: Iterable[Path] = (),
    others: Iterable[Path] = (),
    write: Write | None = None,
    keeps_output: bool = True,
    takes_anything: bool = False,
) -> None:
    """Test an adapter with a sample transcript. Raises AssertionError with all failures.

    ``sample``: text file or closed database that contains text typed by the owner.
    ``beside``: other files that the adapter reads from the same folder.
    ``others``: files that the adapter must not recognise, in addition to nacre's own samples.
    ``write``: renders a conversation in the tool's format, to test speakers and trust.
    ``keeps_output``: False if the tool does not record the output of tool calls.
    ``takes_anything``: True if the adapter may recognise any file.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-conformance-") as folder:
        kit = _Kit(adapter, sample, tuple(beside), Path(folder))
        complaints = list(kit.recognises(others, takes_anything=takes_anything))
        for check in (
            kit.places,
            kit.reads,
            kit.goes_on,
            kit.survives,
            kit.counts,
            kit.strips,
            kit.redacts,
            kit.is_bounded,
            kit.is_left_alone,
        ):
            complaints += check()
        if write:
            complaints += kit.grows(write)
            complaints += kit.attributes(write, keeps_output=keeps_output)
    if complaints:
        listed = "\n".join(f"- {complaint}" for complaint in complaints)
        raise AssertionError(f"the adapter {adapter.tool} ({adapter.label}) fails:\n{listed}")


class _Kit:
    def __init__(
        self, adapter: Adapter, sample: Path, beside: tuple[Path, ...], folder: Path
    ) -> None:
        self.adapter = adapter
        self.data = sample.read_bytes()
        self.path = folder / sample.parent.name / sample.name
        self.path.parent.mkdir(parents=True)
        for file in beside:
            self.path.with_name(file.name).write_bytes(file.read_bytes())
        self.folder = folder
        self.form = form_of(self.path)
        self.needs_whole = adapter.whole or self.form.is_database

    # Checks

    def recognises(self, others: Iterable[Path], *, takes_anything: bool) -> Complaints:
        if not self.recognised(self.put(self.data)):
            yield "it does not recognise its own sample"
        for name, others_data in self.foreign(others) if not takes_anything else ():
            if others_data != self.data and self.recognised(self.put(others_data, name)):
                yield f"it recognises a transcript of another tool: {name}"
        self.put(self.data)

    def recognised(self, path: Path) -> bool:
        with form_of(path).head(path) as head:
            return self.adapter.sniff(head)

    def foreign(self, others: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
        for name, (file, data) in samples().items():
            if adapters().get(name) != self.adapter:
                yield f"{name}/{file}", data
        yield from ((file.name, file.read_bytes()) for file in others)

    def places(self) -> Complaints:
        for platform in ("linux", "darwin", "win32"):
            roots = self.adapter.roots(Places(self.folder / "nobody", {}, platform))
            if not all(isinstance(root, Root) for root in roots):
                yield f"its roots on {platform} are not Root records"

    def reads(self) -> Complaints:
        first, again = self.read(self.data), self.read(self.data)
        if not any(turn.speaker is Speaker.OWNER and turn.text for turn in first.turns.values()):
            yield "its sample has no turn typed by the owner"
        if (first.sessions, first.turns) != (again.sessions, again.turns):
            yield "two readings of the same file differ"
        if first.turn_count != len(first.turns):
            yield f"{first.turn_count - len(first.turns)} of its {first.turn_count} turns have the id of another turn"
        yield from (
            f"the session {session.id} belongs to another tool"
            for session in first.sessions.values()
            if session.tool != self.adapter.tool or not session.native_id
        )
        for (_, name), turn in first.turns.items():
            if not name or len(name) > 200:
                yield f"a turn has an empty or too long id: {name[:50]!r}"
            if turn.time and (turn.time.tzinfo is None or turn.time.utcoffset() != timedelta(0)):
                yield f"the time of turn {name} is not in UTC"
            if turn.speaker is Speaker.OWNER and any(
                mark in turn.text for mark in _NOISE_CONFORMANCE
            ):
                yield f"turn {name} contains text that the owner did not type"

    def goes_on(self) -> Complaints:
        if self.needs_whole:
            return
        complete = self.read(self.data)
        for cut in self.cuts():
            early = self.read(self.data[:cut])
            late = self.read(self.data, early.cursor)
            if not early.continues(late, complete):
                yield f"reading to byte {cut} and then the rest differs from one reading"
                return

    def cuts(self) -> list[int]:
        ends = [at + 1 for at, byte in enumerate(self.data) if byte == 0x0A]
        torn = [(first + last) // 2 for first, last in pairwise(ends)]
        cuts = sorted({*ends, *torn})
        return cuts[:: max(1, len(cuts) // _MOST_CUTS)]

    def survives(self) -> Complaints:
        # An adapter may report a damaged file as unreadable only if it must read the whole file at
        # once.
        for name, data in self.form.spoiled(self.path, self.data):
            try:
                self.recognised(self.put(data))
                self.read(data)
            except UnreadableTranscriptError:
                if not self.needs_whole:
                    yield f"{name}: it reports an unreadable file, but it reads line by line"
            except Exception as error:  # noqa: BLE001 - any exception is a finding
                if not (self.form.is_database and isinstance(error, InvalidInputError)):
                    yield f"{name}: it raises {type(error).__name__}: {error}"

    def counts(self) -> Complaints:
        lines = self.data.splitlines(keepends=True)
        if self.needs_whole or not all(_is_object(line) for line in lines if line.strip()):
            return
        unchanged = self.read(self.data)
        unknown = b'{"type": "zephyr_lantern", "payload": {"type": "zephyr_lantern"}}\n'
        data = self.data.rstrip() + b"\n"
        reading = self.read(data + unknown + b'{"broken": \n')
        if reading.turns != unchanged.turns:
            yield "an unknown record changes earlier turns"
        if not sum(reading.tally.unknown.values()) > sum(unchanged.tally.unknown.values()):
            yield "an unknown record is not counted: call source.unknown"
        new_field = lines[0].rstrip()[:-1] + b', "zephyr_lantern": 1}'
        counts = self.read(data + new_field).tally.unknown
        if self.adapter.fields and not counts["field zephyr_lantern"]:
            yield "an unknown field is not counted: read the lines with source.lines"
        if not reading.tally.corrupt > unchanged.tally.corrupt:
            yield "a broken line is not counted: call source.corrupt"

    def strips(self) -> Complaints:
        if not list(self.planted(_MARKED)):
            yield "no text of its sample occurs in the file as it is: use a simpler sample"
        for place, data in self.planted(_MARKED):
            if any("zephyr lantern" in turn.text for turn in self.read(data).turns.values()):
                yield f"nacre's own context in {place} is not stripped: use injected.clean"

    def planted(self, words: str) -> Iterator[tuple[str, bytes]]:
        unchanged = [turn for turn in self.read(self.data).turns.values() if turn.text]
        for speaker in (Speaker.OWNER, Speaker.AGENT):
            lines = (turn.text.splitlines()[0] for turn in unchanged if turn.speaker is speaker)
            changed = (
                self.form.put(self.path, self.data, form, form + f" {words}".encode())
                for line in lines
                if len(line) > 5
                for form in _forms(line)
            )
            if planted := next(filter(None, changed), None):
                yield f"a text of the {speaker}", planted

    def redacts(self) -> Complaints:
        # A secret that the adapter cuts or changes would not be recognised and redacted.
        for place, data in self.planted(_SECRET):
            self.put(data)
            events = list(read_files([Job(self.path, len(data))], Redactor()))
            turns = [event.turns for event in events if isinstance(event, Batch)]
            has_failed = any(isinstance(event, FileFailed) for event in events)
            if not has_failed and _SECRET[:12] in msgspec.json.encode(turns).decode():
                yield f"a secret in {place} is cut or changed, so that it is not recognised"

    def is_bounded(self) -> Complaints:
        if self.form.is_database:
            return
        data = self.data.rstrip() + b"\n" + b'{"type":"x","text":"' + b"y" * _LONG_LINE + b'"}\n'
        tracemalloc.start()
        try:
            with contextlib.suppress(UnreadableTranscriptError):
                self.read(data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        if peak > _MOST_MEMORY:
            yield f"a line of {_LONG_LINE >> 20} MB takes {peak >> 20} MB of memory"

    def is_left_alone(self) -> Complaints:
        # A database can be very large, so it must not be read again unless it has changed.
        if not self.form.is_database:
            return
        if again := self.read(self.data, self.read(self.data).cursor).turn_count:
            yield f"{again} turns of an unchanged database are read again: use databases.Marks"

    def grows(self, write: Write) -> Complaints:
        if not self.form.is_database:
            return
        steps: list[Step] = [
            Owner("Where do the rowers meet?"),
            Agent("At the boat house."),
            Owner("And when?"),
            Tool("Read", "/code/lake/hours.md", "nine to five"),
            Agent("At nine."),
            Owner("Then I come at nine."),
        ]
        for count in range(1, len(steps)):
            early = self.read_at(write(self.folder / f"grown-{count}", steps[:count]))
            path = write(self.folder / f"grown-{count}", steps)
            late, complete = self.read_at(path, early.cursor), self.read_at(path)
            if not early.continues(late, complete):
                yield f"reading after {count} of {len(steps)} steps and then the rest differs from one reading"
                return

    def attributes(self, write: Write, *, keeps_output: bool) -> Complaints:
        steps: list[Step] = [
            Owner(f"<nacre-context>{_MEMORY}</nacre-context> What does the page say?"),
            Agent("I look it up."),
            Tool("WebFetch", "https://lake.example", _PAGE),
            Agent("It is about oars."),
            Owner("ok then"),
            Agent(f"It says: {_PAGE}"),
            Owner("And the boat house?"),
            Agent(f"From memory: {_MEMORY}"),
            Owner("Rowers keep their oars in any case."),
        ]
        reading = self.read_at(write(self.folder / "written", steps))
        turns = list(reading.turns.values())
        prompts = [
            turn.text
            for turn in turns
            if turn.speaker is Speaker.OWNER and not turn.flags & (Flag.META | Flag.COMMAND)
        ]
        typed = [
            "What does the page say?",
            *(step.text for step in steps[1:] if isinstance(step, Owner)),
        ]
        if prompts != typed:
            yield f"the owner typed {typed}, but it returns {prompts}"
        others = [turn for turn in turns if turn.speaker is not Speaker.OWNER]
        page = next((turn for turn in others if turn.text.startswith("It says:")), None)
        if page is None or page.speaker is not Speaker.AGENT:
            yield "a turn of the agent is missing or has another speaker"
        elif keeps_output and page.trust is not Trust.UNTRUSTED:
            yield "text that the agent repeats from a page is trusted: pass tool output to trust.Exchange"
        memory = next((turn for turn in others if turn.text.startswith("From memory")), None)
        if memory and memory.trust is Trust.TRUSTED and not memory.flags & Flag.INJECTED:
            yield "text that the agent repeats from nacre's context is not marked: pass the context to trust.Exchange"
        if any(turn.text == _PAGE for turn in turns if turn.speaker is not Speaker.AGENT):
            yield "tool output is returned as a turn of a person or an agent"

    # Readings

    def put(self, data: bytes, name: str | None = None) -> Path:
        path = self.folder / "others" / name if name else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (_MTIME, _MTIME))  # some formats contain no other time
        return path

    def read(self, data: bytes, cursor: Cursor | None = None) -> _Reading:
        return self.read_at(self.put(data), cursor)

    def read_at(self, path: Path, cursor: Cursor | None = None) -> _Reading:
        sessions: dict[str, Session] = {}
        turns: dict[tuple[str, str], Turn] = {}
        current, turn_count = "", 0
        with form_of(path).source(path, cursor) as source:
            source.fields = self.adapter.fields
            for item in self.adapter.parse(source):
                if isinstance(item, Session):
                    current = item.native_id
                    sessions[current] = item
                elif not sessions:
                    raise AssertionError(
                        f"the adapter {self.adapter.tool} returns a turn before its session"
                    )
                else:
                    turns[current, item.id] = item
                    turn_count += 1
            carried = msgspec.json.decode(msgspec.json.encode(source.carry))
            return _Reading(
                sessions, turns, turn_count, replace(source.cursor(), carry=carried), source.tally
            )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _forms(line: str) -> Iterator[bytes]:
    yield json.dumps(line)[1:-1].encode()
    yield json.dumps(line, ensure_ascii=False)[1:-1].encode("utf-8", errors="replace")
    yield line.encode("utf-8", errors="replace")
